//! The images of the watched program, from the dynamic linker's own list.

use crate::Result;
use crate::machine::number_of;
use crate::remote::Remote;
use backtrail_store::UnwindTables;

use backtrail_core::{AddrRange, Avma, Bias, Svma};
use backtrail_object::Object;
use backtrail_unwind::{Module, PlacedModule, Rules};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A mapped file, opened for as long as this program runs.
pub(crate) struct Mapped {
    pub(crate) name: String,
    range: AddrRange<Avma>,
    bias: Bias,
    pub(crate) object: Object<'static>,
    module: &'static Module<'static>,
    rules: &'static Rules,
}

const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;
const AT_SYSINFO_EHDR: u64 = 33;
const PAGE: u64 = 4096;

pub(crate) struct Process {
    pub(crate) all: Vec<Mapped>,
    word: u64,
    sysroot: PathBuf,
    /// Paths that were read.
    known: HashSet<String>,
    /// Where the linker's list begins, once it has told.
    list: Option<u64>,
}

impl Process {
    pub(crate) fn open(remote: &mut Remote, program: &Path, sysroot: &Path, word: u8) -> Result<Self> {
        let mut process = Self {
            all: Vec::new(),
            word: u64::from(word),
            sysroot: sysroot.to_owned(),
            known: HashSet::new(),
            list: None,
        };
        let facts = remote.auxiliary_vector()?;
        let size = usize::from(word);
        let value = |tag: u64| {
            let pair = facts.chunks_exact(2 * size).find(|pair| number_of(&pair[..size]) == tag);
            pair.map(|pair| number_of(&pair[size..]))
        };
        let data = std::fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
        let data: &'static [u8] = data.leak();
        let object = Object::parse(data).map_err(|error| error.to_string())?;
        let entry = value(AT_ENTRY).ok_or("no entry point")?;
        let own = object.entry().ok_or("the program has no entry point")?;
        process.add(program.display().to_string(), Bias::between(Avma::new(entry), own), object);
        if let (Some(base), Some(linker)) = (value(AT_BASE).filter(|base| *base != 0), interpreter(data)) {
            process.add_file(&linker, base);
        }
        if let Some(at) = value(AT_SYSINFO_EHDR)
            && let Some(data) = remote.memory(at, 2 * PAGE as usize)?
            && let Ok(object) = Object::parse(data.leak())
        {
            process.add("[vdso]".to_owned(), Bias::between(Avma::new(at), object.image_base()), object);
        }
        Ok(process)
    }

    fn add_file(&mut self, path: &str, bias: u64) {
        if !self.known.insert(path.to_owned()) {
            return;
        }
        let inside = self.sysroot.join(path.trim_start_matches('/'));
        let found = [inside, PathBuf::from(path)].into_iter().find_map(|path| std::fs::read(path).ok());
        let Some(data) = found else { return };
        if let Ok(object) = Object::parse(data.leak()) {
            self.add(path.to_owned(), Bias::between(Avma::new(bias), Svma::new(0)), object);
        }
    }

    fn add(&mut self, name: String, bias: Bias, object: Object<'static>) {
        let segments = || object.segments().iter().filter(|segment| !segment.address.is_empty());
        let start = segments().map(|segment| segment.address.start()).min();
        let end = segments().map(|segment| segment.address.end()).max();
        let avma = |at: Option<Svma>| at.and_then(|at| bias.to_avma(at));
        let (Some(start), Some(end)) = (avma(start), avma(end)) else { return };
        let range = AddrRange::new(start, end);
        if self.all.iter().any(|known| known.range == range) {
            return;
        }
        let tables: &'static UnwindTables<'static> = Box::leak(Box::new(UnwindTables::read(&object)));
        let module: &'static Module<'static> = Box::leak(Box::new(Module::new(tables.sections())));
        let rules: &'static Rules = Box::leak(Box::new(module.compile()));
        self.all.push(Mapped { name, range, bias, object, module, rules });
    }

    /// Reads what the dynamic linker has loaded by now: `r_debug` and its chain of `link_map` (`link.h`).
    pub(crate) fn refresh(&mut self, remote: &mut Remote) -> Result<()> {
        let word = self.word;
        if self.list.is_none() {
            self.list = self.debug_structure(remote)?;
        }
        let Some(list) = self.list else { return Ok(()) };
        let mut at = read_word(remote, list + word, word)?;
        for _ in 0..256 {
            if at == 0 {
                break;
            }
            let bias = read_word(remote, at, word)?;
            let name = read_word(remote, at + word, word)?;
            let name = read_string(remote, name)?;
            if !name.is_empty() {
                self.add_file(&name, bias);
            }
            at = read_word(remote, at + 3 * word, word)?;
        }
        Ok(())
    }

    /// `DT_DEBUG` of the program's dynamic section, which the linker fills in.
    fn debug_structure(&self, remote: &mut Remote) -> Result<Option<u64>> {
        const DT_DEBUG: u64 = 21;
        let Some(program) = self.all.first() else { return Ok(None) };
        let Some(section) = program.object.section(".dynamic") else { return Ok(None) };
        let Some(start) = program.bias.to_avma(section.address.start()) else { return Ok(None) };
        let word = self.word;
        for entry in 0..section.address.size() / (2 * word) {
            let at = start.get() + entry * 2 * word;
            if read_word(remote, at, word)? == DT_DEBUG {
                return Ok(Some(read_word(remote, at + word, word)?).filter(|at| *at != 0));
            }
        }
        Ok(None)
    }

    pub(crate) fn images(&self) -> Vec<PlacedModule<'static>> {
        let image = |mapped: &Mapped| PlacedModule {
            rules: Some(mapped.rules),
            ..PlacedModule::new(mapped.range, mapped.bias, mapped.module)
        };
        self.all.iter().map(image).collect()
    }

    pub(crate) fn has(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    /// Whether a table speaks of the address. The pieces that compilers add at both ends of a program have none.
    pub(crate) fn is_described(&self, address: u64) -> bool {
        let svma =
            self.at(address).and_then(|mapped| Some((mapped, mapped.bias.to_svma(Avma::new(address))?)));
        svma.is_some_and(|(mapped, svma)| mapped.rules.find(svma).is_some())
    }

    /// Whether the address lies in the program itself, not in a library.
    pub(crate) fn is_program(&self, address: u64) -> bool {
        self.all.first().is_some_and(|program| program.range.contains(Avma::new(address)))
    }

    fn at(&self, address: u64) -> Option<&Mapped> {
        self.all.iter().find(|mapped| mapped.range.contains(Avma::new(address)))
    }

    /// The address as people can look it up.
    pub(crate) fn shown(&self, address: u64) -> String {
        let Some(mapped) = self.at(address) else { return format!("{address:#x}") };
        let svma = mapped.bias.to_svma(Avma::new(address)).unwrap_or_default();
        let name = mapped.name.rsplit('/').next().unwrap_or_default();
        let symbols = mapped.object.symbols().unwrap_or_default();
        let behind = |symbol: &&backtrail_object::Symbol<'_>| {
            symbol.is_code && symbol.address <= svma && !symbol.name.starts_with('$')
        };
        let nearest = symbols.iter().filter(behind).max_by_key(|symbol| symbol.address);
        let function =
            nearest.map(|symbol| format!(" {}+{:#x}", symbol.name, svma.get() - symbol.address.get()));
        format!("{name}!{svma}{}", function.unwrap_or_default())
    }

    /// Where the program has a function of this name.
    pub(crate) fn function(&self, name: &str) -> Option<u64> {
        let program = self.all.first()?;
        let symbols = program.object.symbols().unwrap_or_default();
        let symbol = symbols.iter().find(|symbol| symbol.name == name)?;
        program.bias.to_avma(symbol.address).map(Avma::get)
    }
}

/// `PT_INTERP` as text: the first string in the file that names a dynamic linker.
fn interpreter(data: &[u8]) -> Option<String> {
    let object = Object::parse(data).ok()?;
    let section = object.section(".interp")?;
    let data = object.section_data(section).ok()?;
    let name = data.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// A path; it may lie at the very end of what is mapped.
fn read_string(remote: &mut Remote, at: u64) -> Result<String> {
    let mut text = Vec::new();
    while text.len() < 4096 && !text.ends_with(b"\0") {
        let Some(byte) = remote.memory(at + text.len() as u64, 1)? else { break };
        text.extend(byte);
    }
    text.retain(|byte| *byte != 0);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn read_word(remote: &mut Remote, at: u64, word: u64) -> Result<u64> {
    Ok(remote.memory(at, word as usize)?.map_or(0, |bytes| number_of(&bytes)))
}
