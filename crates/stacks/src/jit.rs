//! Code made at run time, as GDB's JIT interface registers it: a list of small ELF files in memory, one for some
//! functions each. GDB's manual, "JIT Compilation Interface". Android's runtime uses it for what it compiles.

use backtrail_core::{AddrRange, Arch, Avma, Bias, ReadMemory, Svma};
use backtrail_object::{Limits, Object};
use backtrail_store::FileData;

/// Bytes of one entry's file, and entries; Android's have some kilobytes each, and several functions share one.
const MAX_FILE: u64 = 64 << 20;
const MAX_ENTRIES: usize = 100_000;
/// All files together.
const MAX_TOTAL: u64 = 1 << 30;

/// One registered file.
pub(crate) struct JitFile {
    pub(crate) data: FileData,
    /// Where its code lies in the process.
    pub(crate) code: Vec<AddrRange<Avma>>,
}

/// Where `__jit_debug_descriptor` lies in an image.
pub(crate) fn descriptor(object: &Object<'_>, bias: Bias) -> Option<Avma> {
    let symbols = object.symbols().ok()?;
    let symbol = symbols.iter().find(|symbol| symbol.name == "__jit_debug_descriptor")?;
    bias.to_avma(symbol.address)
}

/// Every file that the descriptor lists and that can be read.
pub(crate) fn files(memory: &impl ReadMemory, descriptor: Avma, arch: Arch) -> Vec<JitFile> {
    let size = arch.pointer_size();
    let first = descriptor.checked_add(8 + u64::from(size)).and_then(|at| memory.read_pointer(at, size).ok());
    let (mut all, mut total) = (Vec::new(), 0);
    let mut next = first;
    let mut left = MAX_ENTRIES;
    while let Some(entry) = next.filter(|entry| *entry != 0 && left > 0) {
        left -= 1;
        let Some((following, start, bytes)) = entry_at(memory, Avma::new(entry), arch) else { break };
        total += bytes;
        let data = (bytes <= MAX_FILE && total <= MAX_TOTAL).then(|| read(memory, start, bytes)).flatten();
        all.extend(data.and_then(file));
        next = Some(following).filter(|following| *following != entry);
    }
    all
}

fn read(memory: &impl ReadMemory, start: Avma, size: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    memory.read(start, &mut bytes).ok()?;
    Some(bytes)
}

/// `next_entry`, `symfile_addr` and `symfile_size` of `jit_code_entry`. The size has eight bytes everywhere and is
/// aligned to them, but not on 32-bit x86.
fn entry_at(memory: &impl ReadMemory, entry: Avma, arch: Arch) -> Option<(u64, Avma, u64)> {
    let size = arch.pointer_size();
    let word = |index: u64| memory.read_pointer(entry.checked_add(index * u64::from(size))?, size).ok();
    let size_at = match (size, arch) {
        (8, _) => 24,
        (_, Arch::X86) => 12,
        _ => 16,
    };
    let bytes = memory.read_u64(entry.checked_add(size_at)?).ok()?;
    Some((word(0)?, Avma::new(word(2)?), bytes))
}

/// A file whose addresses are those of the process.
pub(crate) fn file(bytes: Vec<u8>) -> Option<JitFile> {
    let data = FileData::from(bytes);
    let code = code_of(&data)?;
    Some(JitFile { data, code })
}

/// Where the code of a file lies that states addresses of the process; `None` for other files.
pub(crate) fn code_of(data: &FileData) -> Option<Vec<AddrRange<Avma>>> {
    let object = Object::parse_with(data, &Limits::default()).ok()?;
    let avma = |svma: Svma| Avma::new(svma.get());
    let code = object.sections().iter().filter(|section| section.is_code && section.is_loaded);
    let ranges: Vec<_> = code
        .filter(|section| section.address.start().get() != 0 && !section.address.is_empty())
        .map(|section| AddrRange::new(avma(section.address.start()), avma(section.address.end())))
        .collect();
    (!ranges.is_empty()).then_some(ranges)
}
