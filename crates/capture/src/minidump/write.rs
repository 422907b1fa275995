//! Writes a minidump, for the tools that read nothing else. Microsoft, `minidumpapiset.h`; Breakpad, `minidump_format.h`,
//! `minidump_cpu_amd64.h` and `minidump_cpu_arm64.h`.

use super::LINUX_MAPS;
use crate::elf_core::signals::code_number;
use crate::maps::maps_text;
use crate::{Error, ErrorKind, Fault, MappedImage, Snapshot, Thread};
use backtrail_core::{AddrRange, Arch, Avma, Registers};

const MAGIC: &[u8; 4] = b"MDMP";
const VERSION: u32 = 0xa793;
const HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 12;

const THREADS: u32 = 3;
const MODULES: u32 = 4;
const MEMORY: u32 = 5;
const EXCEPTION: u32 = 6;
const SYSTEM: u32 = 7;
const MISC: u32 = 15;
const THREAD_NAMES: u32 = 24;

/// Breakpad's number of Linux, and its mark of a build id.
const PLATFORM_LINUX: u32 = 0x8201;
const ELF_BUILD_ID: u32 = 0x4270_454c;

/// Where a part lies: its size, and its offset in the file.
#[derive(Clone, Copy, Default)]
struct LocationDescriptor {
    size: u32,
    offset: u32,
}

/// The file, part behind part. What refers to a part comes behind it.
struct File {
    bytes: Vec<u8>,
    streams: Vec<(u32, LocationDescriptor)>,
}

/// Streams that are written.
const STREAMS: usize = 8;

/// The snapshot of a process on Linux as a minidump: its threads with names and registers, images with build ids, mappings, memory, and
/// why it ended.
///
/// # Errors
/// For other processors than `x86_64` and ARM64, and where it would be larger than 4 GiB.
pub fn write(snapshot: &Snapshot<'_>) -> Result<Vec<u8>, Error> {
    if !matches!(snapshot.arch, Arch::X86_64 | Arch::Arm64) {
        let message = format!("a minidump of {}; only x86_64 and ARM64 are written", snapshot.arch);
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let mut file = File { bytes: vec![0; HEADER_BYTES + STREAMS * ENTRY_BYTES], streams: Vec::new() };
    let memory = file.memory(snapshot)?;
    let contexts = snapshot.threads.iter().map(|thread| file.put(&context(snapshot.arch, &thread.registers)));
    let contexts = contexts.collect::<Result<Vec<_>, _>>()?;
    file.system(snapshot)?;
    file.misc(snapshot)?;
    file.threads(&snapshot.threads, &contexts, &memory)?;
    file.thread_names(&snapshot.threads)?;
    file.modules(&snapshot.images)?;
    let maps = maps_text(&snapshot.mappings);
    file.stream(LINUX_MAPS, maps.as_bytes())?;
    if let Some(fault) = &snapshot.fault {
        let crashed = snapshot.threads.iter().zip(&contexts).find(|(thread, _)| thread.is_crashed);
        file.exception(fault, crashed)?;
    }
    Ok(file.finish(snapshot.process.time.unwrap_or(0)))
}

impl File {
    fn put(&mut self, part: &[u8]) -> Result<LocationDescriptor, Error> {
        // Structures have words of eight bytes.
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let place = u32::try_from(part.len()).ok().zip(u32::try_from(self.bytes.len()).ok());
        let fits = |end: usize| u32::try_from(end).is_ok();
        let place = place.filter(|_| self.bytes.len().checked_add(part.len()).is_some_and(fits));
        let Some((size, offset)) = place else {
            return Err(Error::new(ErrorKind::Unsupported, "a minidump of more than 4 GiB".to_owned()));
        };
        self.bytes.extend_from_slice(part);
        Ok(LocationDescriptor { size, offset })
    }

    fn stream(&mut self, kind: u32, part: &[u8]) -> Result<(), Error> {
        let place = self.put(part)?;
        self.streams.push((kind, place));
        Ok(())
    }

    /// A text in UTF-16, with its size before it and a zero behind it.
    fn text(&mut self, text: &str) -> Result<u32, Error> {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut part = Fields::default();
        part.u32(u32::try_from(units.len()).unwrap_or(u32::MAX)).put(&units).u16(0);
        Ok(self.put(&part.0)?.offset)
    }

    fn memory(
        &mut self,
        snapshot: &Snapshot<'_>,
    ) -> Result<Vec<(AddrRange<Avma>, LocationDescriptor)>, Error> {
        let mut places = Vec::new();
        for range in snapshot.memory.ranges() {
            let size = usize::try_from(range.size()).unwrap_or(usize::MAX);
            let bytes = snapshot.memory.bytes_from(range.start()).unwrap_or_default();
            let bytes = bytes.get(..size).unwrap_or(bytes);
            if !bytes.is_empty() {
                let place = self.put(bytes)?;
                places.push((AddrRange::from_size(range.start(), bytes.len() as u64), place));
            }
        }
        let mut list = Fields::default();
        list.count(places.len());
        for (range, place) in &places {
            list.u64(range.start().get()).place(*place);
        }
        self.stream(MEMORY, &list.0)?;
        Ok(places)
    }

    fn system(&mut self, snapshot: &Snapshot<'_>) -> Result<(), Error> {
        let description = snapshot.process.os.as_deref().unwrap_or("Linux");
        let description = self.text(description.strip_prefix("Linux ").unwrap_or(description))?;
        let processor = if snapshot.arch == Arch::Arm64 { 12 } else { 9 };
        let mut system = Fields::default();
        // Level, revision, count and product are not known.
        system.u16(processor).put(&[0; 6]).put(&[0; 12]);
        system.u32(PLATFORM_LINUX).u32(description).put(&[0; 4 + 24]);
        self.stream(SYSTEM, &system.0)
    }

    fn misc(&mut self, snapshot: &Snapshot<'_>) -> Result<(), Error> {
        const HAS_PROCESS: u32 = 1;
        let pid = snapshot.process.pid.and_then(|pid| u32::try_from(pid).ok());
        let mut misc = Fields::default();
        misc.u32(24).u32(if pid.is_some() { HAS_PROCESS } else { 0 }).u32(pid.unwrap_or(0)).put(&[0; 12]);
        self.stream(MISC, &misc.0)
    }

    fn threads(
        &mut self,
        threads: &[Thread],
        contexts: &[LocationDescriptor],
        memory: &[(AddrRange<Avma>, LocationDescriptor)],
    ) -> Result<(), Error> {
        let mut list = Fields::default();
        list.count(threads.len());
        for (thread, context) in threads.iter().zip(contexts) {
            let stack =
                thread.registers.sp().and_then(|sp| memory.iter().find(|(range, _)| range.contains(sp)));
            let (start, place) = stack
                .map_or((0, LocationDescriptor::default()), |(range, place)| (range.start().get(), *place));
            list.u32(number(thread.id)).put(&[0; 20]).u64(start).place(place).place(*context);
        }
        self.stream(THREADS, &list.0)
    }

    fn thread_names(&mut self, threads: &[Thread]) -> Result<(), Error> {
        let mut list = Fields::default();
        let named = threads.iter().filter_map(|thread| Some((number(thread.id), thread.name.as_deref()?)));
        let named: Vec<_> = named.collect();
        list.count(named.len());
        for (id, name) in named {
            let name = self.text(name)?;
            list.u32(id).u64(name.into());
        }
        self.stream(THREAD_NAMES, &list.0)
    }

    fn modules(&mut self, images: &[MappedImage]) -> Result<(), Error> {
        let known = |image: &&MappedImage| image.range.is_some_and(|range| !range.is_empty());
        // The first one is the program.
        let program = images.iter().filter(known).filter(|image| image.is_executable);
        let others = images.iter().filter(known).filter(|image| !image.is_executable);
        let images: Vec<_> = program.chain(others).collect();
        let mut list = Fields::default();
        list.count(images.len());
        for image in images {
            let Some(range) = image.range else { continue };
            let name = self.text(&image.path)?;
            let record = match &image.id {
                Some(id) => {
                    let mut record = Fields::default();
                    record.u32(ELF_BUILD_ID).put(id.as_bytes());
                    self.put(&record.0)?
                }
                None => LocationDescriptor::default(),
            };
            list.u64(range.start().get()).u32(u32::try_from(range.size()).unwrap_or(u32::MAX));
            // Checksum, time, name; version; build id; nothing else.
            list.put(&[0; 8]).u32(name).put(&[0; 52]).place(record).put(&[0; 8 + 16]);
        }
        self.stream(MODULES, &list.0)
    }

    fn exception(
        &mut self,
        fault: &Fault,
        crashed: Option<(&Thread, &LocationDescriptor)>,
    ) -> Result<(), Error> {
        let code = fault.code.as_deref().and_then(|name| code_number(fault.number, name)).unwrap_or(0);
        let signal = u32::try_from(fault.number).unwrap_or(0);
        let address = fault.address.map_or(0, Avma::get);
        let mut record = Fields::default();
        record.u32(crashed.map_or(0, |(thread, _)| number(thread.id))).u32(0);
        record.u32(signal).u32(code.cast_unsigned()).u64(0).u64(address).put(&[0; 8 + 15 * 8]);
        record.place(crashed.map_or_else(LocationDescriptor::default, |(_, context)| *context));
        self.stream(EXCEPTION, &record.0)
    }

    fn finish(mut self, time: u64) -> Vec<u8> {
        let mut head = Fields::default();
        head.put(MAGIC).u32(VERSION).count(self.streams.len()).u32(HEADER_BYTES as u32).u32(0);
        head.u32(u32::try_from(time).unwrap_or(0)).u64(0);
        for (kind, place) in &self.streams {
            head.u32(*kind).place(*place);
        }
        for (to, from) in self.bytes.iter_mut().zip(head.0) {
            *to = from;
        }
        self.bytes
    }
}

fn number(id: Option<u64>) -> u32 {
    id.and_then(|id| u32::try_from(id).ok()).unwrap_or(0)
}

/// Numbers, one behind the other.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u16(&mut self, number: u16) -> &mut Self {
        self.put(&number.to_le_bytes())
    }

    fn u32(&mut self, number: u32) -> &mut Self {
        self.put(&number.to_le_bytes())
    }

    fn u64(&mut self, number: u64) -> &mut Self {
        self.put(&number.to_le_bytes())
    }

    fn count(&mut self, count: usize) -> &mut Self {
        self.u32(u32::try_from(count).unwrap_or(0))
    }

    fn place(&mut self, place: LocationDescriptor) -> &mut Self {
        self.u32(place.size).u32(place.offset)
    }
}

/// Where the processor's registers stand in its context.
const AMD64: [(&str, usize); 17] = [
    ("rax", 0x78),
    ("rcx", 0x80),
    ("rdx", 0x88),
    ("rbx", 0x90),
    ("rsp", 0x98),
    ("rbp", 0xa0),
    ("rsi", 0xa8),
    ("rdi", 0xb0),
    ("r8", 0xb8),
    ("r9", 0xc0),
    ("r10", 0xc8),
    ("r11", 0xd0),
    ("r12", 0xd8),
    ("r13", 0xe0),
    ("r14", 0xe8),
    ("r15", 0xf0),
    ("rip", 0xf8),
];

/// The registers as `MDRawContextAMD64` or `MDRawContextARM64` has them; those that are not known are 0.
fn context(arch: Arch, registers: &Registers) -> Vec<u8> {
    // The processor, and that those of control and of integers are there.
    let (size, flags_at, flags) =
        if arch == Arch::Arm64 { (912, 0, 0x40_0003_u32) } else { (1232, 0x30, 0x10_0003) };
    let mut context = vec![0; size];
    let mut put = |at: usize, bytes: &[u8]| {
        let room = context.get_mut(at..).unwrap_or_default();
        room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    };
    put(flags_at, &flags.to_le_bytes());
    let value = |name: &str| {
        let register = registers.family().register(name)?;
        registers.get(register)
    };
    if arch == Arch::Arm64 {
        for index in 0..31 {
            put(8 + index * 8, &value(&format!("x{index}")).unwrap_or(0).to_le_bytes());
        }
        let named = [(29, registers.fp()), (30, registers.lr()), (31, registers.sp()), (32, registers.pc())];
        for (index, value) in named {
            if let Some(value) = value {
                put(8 + index * 8, &value.get().to_le_bytes());
            }
        }
    } else {
        for (name, at) in AMD64 {
            put(at, &value(name).unwrap_or(0).to_le_bytes());
        }
        put(0xf8, &registers.pc().map_or(0, Avma::get).to_le_bytes());
    }
    context
}
