//! Captured processes with names: capture, walk, and look up.

use backtrail_core::ImageId;
#[cfg(target_os = "linux")]
use backtrail_core::{FrameAddress, Trust};
use backtrail_demangle::{self as demangler, demangle};
use backtrail_diagnose::{Circumstances, Packages, add_how_to_get};
use backtrail_model::{Detail, Report, Source, ThrowingRuntime};
#[cfg(target_os = "linux")]
use backtrail_model::{Frame, Thread};
use backtrail_resolve::SymbolizeLoaded as _;
use backtrail_resolve::{PerfMap, Symbols};
use backtrail_stacks::{self as stacks, Captured, StackOptions, StacksError};
use backtrail_store::{RemoteFile, RemoteKind};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Files that hold a process's memory and registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaptureKind {
    /// An ELF core.
    ElfCore,
    /// A minidump.
    Minidump,
    /// What backtrail's crash handler wrote inside of the process.
    CrashFile,
}

impl CaptureKind {
    /// The kind of the file that begins with these bytes; a few dozen are enough.
    pub fn of(head: &[u8]) -> Option<Self> {
        let elf_type = || head.get(16..18).zip(head.get(5));
        if head.starts_with(b"MDMP") {
            return Some(Self::Minidump);
        }
        if head.starts_with(b"BTCRASH\n") {
            return Some(Self::CrashFile);
        }
        let (elf_type, order) = elf_type().filter(|_| head.starts_with(b"\x7fELF"))?;
        // `e_type` is in the file's byte order.
        (elf_type == if *order == 2 { 4_u16.to_be_bytes() } else { 4_u16.to_le_bytes() })
            .then_some(Self::ElfCore)
    }
}

/// The stacks of a captured process, walked and named.
#[derive(Debug)]
pub struct Stacks {
    /// The process, its threads and their frames, its images, what stopped it.
    pub report: Report,
    /// Whether names were looked for.
    pub(crate) wants_names: bool,
}

impl Stacks {
    /// Captures a process that runs, walks and names its threads. Each thread is stopped while its registers and stack
    /// are copied, no longer.
    ///
    /// # Errors
    /// Where there is no such process, or it may not be captured; the message says which setting or capability is in the
    /// way.
    #[cfg(target_os = "linux")]
    pub fn process(pid: u32, symbols: &Symbols, options: &StackOptions) -> Result<Self, StacksError> {
        Ok(named(stacks::process(pid, symbols.index(), options)?, symbols, options.detail))
    }

    /// The images of a process that runs, without stopping it; no threads.
    ///
    /// # Errors
    /// As [`Stacks::process`]'s.
    #[cfg(target_os = "linux")]
    pub fn images_of(pid: u32, symbols: &Symbols) -> Result<Self, StacksError> {
        let mut captured = stacks::images_of(pid, symbols.index())?;
        symbols.open_loaded(&mut captured.report.process, &captured.files);
        Ok(Self { report: captured.report, wants_names: true })
    }

    /// Reads, walks and names the threads of an ELF core. Images' files are found by build id among `symbols` and in the
    /// system's debug directories, by path, and in the core itself; `executable` is the program where the caller has it.
    ///
    /// # Errors
    /// Where `path` is no core that can be read, or `executable` cannot be.
    pub fn core(
        path: impl AsRef<Path>,
        executable: Option<&Path>,
        symbols: &Symbols,
        options: &StackOptions,
    ) -> Result<Self, StacksError> {
        let capture = || stacks::core(path.as_ref(), executable, symbols.index(), options);
        Ok(named(with_binaries(symbols, capture)?, symbols, options.detail))
    }

    /// Reads, walks and names the threads of a minidump. Modules' files are found by identity among `symbols` and in the
    /// system's debug directories, and by path.
    ///
    /// # Errors
    /// Where `path` is no minidump that can be read.
    #[cfg(feature = "minidump")]
    pub fn minidump(
        path: impl AsRef<Path>,
        symbols: &Symbols,
        options: &StackOptions,
    ) -> Result<Self, StacksError> {
        let capture = || stacks::minidump(path.as_ref(), symbols.index(), options);
        Ok(named(with_binaries(symbols, capture)?, symbols, options.detail))
    }

    /// Reads, walks and names the threads of a capture in memory: the bytes of an ELF core, a minidump or a crash file. `None` where
    /// they are none of these.
    ///
    /// # Errors
    /// Where they begin as one and cannot be read.
    pub fn of_bytes(
        bytes: &[u8],
        symbols: &Symbols,
        options: &StackOptions,
    ) -> Result<Option<Self>, StacksError> {
        let index = symbols.index();
        let capture: &dyn Fn() -> Result<Captured, StacksError> = match CaptureKind::of(bytes) {
            None => return Ok(None),
            Some(CaptureKind::ElfCore) => &|| stacks::core_bytes(bytes, None, index, options),
            Some(CaptureKind::CrashFile) => &|| stacks::crash_file_bytes(bytes, index, options),
            #[cfg(feature = "minidump")]
            Some(CaptureKind::Minidump) => &|| stacks::minidump_bytes(bytes, index, options),
            #[cfg(not(feature = "minidump"))]
            Some(CaptureKind::Minidump) => return Ok(None),
        };
        let captured = with_binaries(symbols, capture)?;
        Ok(Some(named(captured, symbols, options.detail)))
    }

    /// Reads, walks and names a saved stack: a directory in the layout of libunwindstack's offline cases. What the
    /// directory's binaries do not name is looked for in `symbols`.
    ///
    /// # Errors
    /// Where the directory has no `regs.txt` or `maps.txt`, or they cannot be read.
    pub fn offline(
        path: impl AsRef<Path>,
        symbols: &Symbols,
        options: &StackOptions,
    ) -> Result<Self, StacksError> {
        Ok(named(stacks::offline(path.as_ref(), symbols.index(), options)?, symbols, options.detail))
    }

    /// Whether a frame stayed without a name: an image's `symbols` say why, or it lies in no image, as generated code does.
    /// Never with [`Detail::Addresses`].
    pub fn is_incomplete(&self) -> bool {
        self.wants_names && self.report.process.is_incomplete()
    }
}

/// Demangles the type of a C++ exception, which a process's own handler left as `std::type_info::name` gives it.
fn name_exception(report: &mut Report) {
    const SAYS: &str = "typeinfo name for ";
    if let Some(thrown) = report.thrown.as_mut().filter(|thrown| thrown.runtime == ThrowingRuntime::Cpp) {
        // Types alone are not taken for mangled: `i` is one, and a word.
        let mangled = format!("_ZTS{}", thrown.name);
        let readable = demangle(&mangled, &demangler::Options::default());
        if let Some(name) = readable.strip_prefix(SAYS) {
            thrown.name = name.to_owned();
        }
    }
}

/// Names addresses of a process that runs, without stopping it: those that a profiler or a log has. An address is looked up
/// as it is ([`FrameAddress::Exact`]) or as one that a callee returns to ([`FrameAddress::Return`]). The frames come in the
/// order of the addresses.
///
/// # Errors
/// Where there is no such process, or its list of mappings may not be read.
#[cfg(target_os = "linux")]
pub fn symbolize(pid: u32, addresses: &[FrameAddress], symbols: &Symbols) -> Result<Vec<Frame>, StacksError> {
    let mut captured = stacks::images_of(pid, symbols.index())?;
    let process = &mut captured.report.process;
    let frame = |(address, index): (&FrameAddress, u32)| Frame {
        address: Some(*address),
        trust: Trust::Report,
        ..Frame::new(index)
    };
    let frames = addresses.iter().zip(0..).map(frame).collect();
    process.threads.push(Thread { frames, ..Thread::default() });
    process.place_frames();
    symbols.symbolize_loaded(process, &captured.files, Detail::Lines);
    Ok(process.threads.pop().map(|thread| thread.frames).unwrap_or_default())
}

/// Walks again as often as servers have a binary that the walk came to and did not have. Without it there are no unwind
/// tables, so that the frames above it are guesses, or none.
fn with_binaries(
    symbols: &Symbols,
    capture: impl Fn() -> Result<Captured, StacksError>,
) -> Result<Captured, StacksError> {
    let mut captured = capture()?;
    if symbols.index().remote().is_none() {
        return Ok(captured);
    }
    let mut asked = BTreeSet::new();
    for _ in 0..MAX_WALKS {
        let process = &mut captured.report.process;
        let used: BTreeSet<_> = process.frames_mut().filter_map(|frame| frame.image).collect();
        let images = used.into_iter().filter_map(|position| process.images.get(position));
        let missing = images.filter(|image| !image.symbols.has_file()).filter_map(|image| image.id);
        let ids: Vec<_> = missing.filter(|id| matches!(id, ImageId::BuildId(_))).collect();
        let ids: Vec<_> = ids.into_iter().filter(|id| asked.insert(id.to_string())).collect();
        let file = |kind| move |id: &ImageId| RemoteFile { id: *id, kind };
        // The debug file is asked for along with it: the next walk tells where its addresses lie.
        let files: Vec<_> = ids.iter().map(file(RemoteKind::Executable)).collect();
        let debug_files: Vec<_> = ids.iter().map(file(RemoteKind::DebugInfo)).collect();
        let fetched = symbols.index().fetch(&[files, debug_files].concat());
        if !fetched.iter().any(Result::is_ok) {
            break;
        }
        captured = capture()?;
    }
    Ok(captured)
}

/// Each walk may come to images that the one before did not reach; few stacks go through as many that are missing.
const MAX_WALKS: usize = 16;

/// What is known of where names are looked for.
pub(crate) fn circumstances(report: &Report, symbols: &Symbols) -> Circumstances {
    let mut circumstances = Circumstances::default();
    circumstances.asked_servers = symbols.index().remote().is_some();
    circumstances.by_upload = symbols.is_only_scanned();
    let is_here = report.source == Source::Process;
    if is_here && report.process.images.iter().any(|image| image.symbols.is_incomplete()) {
        let mut text = String::new();
        let release = File::open("/etc/os-release").ok();
        let _ = release.map(|file| file.take(MAX_RELEASE).read_to_string(&mut text));
        circumstances.packages = Some(Packages::of_os_release(&text));
    }
    circumstances
}

/// Bytes of `/etc/os-release` that are read; it has some hundred.
const MAX_RELEASE: u64 = 64 << 10;

fn named(mut captured: Captured, symbols: &Symbols, detail: Detail) -> Stacks {
    let mut process = std::mem::take(&mut captured.report.process);
    captured.install(|| symbols.symbolize_loaded(&mut process, &captured.files, detail));
    captured.report.process = process;
    name_exception(&mut captured.report);
    if detail != Detail::Addresses
        && let Some(map) = captured.perf_map.as_deref().and_then(PerfMap::read)
    {
        map.name(&mut captured.report.process);
    }
    let circumstances = circumstances(&captured.report, symbols);
    add_how_to_get(&mut captured.report, circumstances);
    Stacks { report: captured.report, wants_names: detail != Detail::Addresses }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::Avma;
    use backtrail_model::Process;

    #[test]
    fn a_frame_in_no_image_has_no_name_either() {
        let frame =
            |index| Frame { address: Some(FrameAddress::Exact(Avma::new(0x7000))), ..Frame::new(index) };
        let threads = vec![Thread { frames: vec![frame(0), frame(1)], ..Thread::default() }];
        let process = Process { threads, ..Process::default() };
        let report = Report { process, ..Report::default() };
        let stacks = |wants_names| Stacks { report: report.clone(), wants_names };
        assert!(stacks(true).is_incomplete());
        assert!(!stacks(false).is_incomplete());
    }
}
