//! Joins a snapshot with its images' files, walks its threads and names the frames.

use crate::abort_message;
use crate::cpp_exception;
use crate::from_memory::InMemory;
use crate::jit::{self, JitFile};
use crate::live_memory::CachedMemory;
use crate::loaded_image::{LoadedImage, Part};
use crate::process_memory::{LiveFirst, ProcessMemory};
use crate::unwind_image::UnwindImage;
use crate::walk::{Walker, places, unwind_images};
use crate::{Captured, StackOptions};
use backtrail_capture::{Fault, Snapshot, Source as CaptureSource, Thread as CapturedThread};
use backtrail_core::{AddrRange, Avma, Bias, ImageId, Svma, Utc};
use backtrail_model::{
    AppInfo, EndKind, Ended, Exception, Image, ImageSymbols, Process, Register, Report, Source, Thread,
    ThrowingRuntime, ThrownException,
};
use backtrail_store::{FileData, ImageFiles, LoadedFiles, OpenFile};
use backtrail_unwind::{Cache, ModuleMap};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What of one image is known and open.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// What the image is called.
    pub(crate) name: String,
    pub(crate) path: Option<String>,
    pub(crate) id: Option<ImageId>,
    pub(crate) files: ImageFiles,
}

/// A snapshot on its way to stacks.
pub(crate) struct Builder<'s, 'd> {
    snapshot: &'s Snapshot<'d>,
    memory: ProcessMemory<'s, 'd>,
    /// Images that memory has, though their files may be gone.
    pub(crate) in_memory: InMemory<'s, 'd>,
    images: Vec<Image>,
    placed: Vec<LoadedImage>,
    notes: Vec<String>,
    /// Images whose files were taken by their paths.
    unproven: Vec<String>,
    /// Whether threads are walked on all processors.
    side_by_side: bool,
    /// What the C library wrote down before it ended the process, and its image's name.
    message: Option<(String, String)>,
}

impl<'s, 'd> Builder<'s, 'd> {
    pub(crate) fn new(snapshot: &'s Snapshot<'d>) -> Self {
        let memory = ProcessMemory::new(&snapshot.memory);
        let in_memory = InMemory::new(&snapshot.memory);
        let notes = snapshot.notes.clone();
        Self {
            snapshot,
            memory,
            in_memory,
            images: Vec::new(),
            placed: Vec::new(),
            notes,
            unproven: Vec::new(),
            side_by_side: true,
            message: None,
        }
    }

    /// Whether threads are walked on all processors (of rayon's pool that this is called in), or on the caller's.
    pub(crate) fn set_side_by_side(&mut self, side_by_side: bool) {
        self.side_by_side = side_by_side;
    }

    /// What the snapshot does not have is read from the process that it is of.
    pub(crate) fn set_live(&mut self, live: CachedMemory) {
        self.memory.set_live(live);
    }

    /// Notes that nothing tells whether the file of an image is that of the build that ran.
    pub(crate) fn add_unproven(&mut self, path: &str) {
        self.unproven.push(path.to_owned());
    }

    /// Adds an image. `known` is its bias where the capture tells it.
    pub(crate) fn add(&mut self, part: &Part, sources: Sources, known: Option<Bias>) {
        let headers = part.headers();
        let range = part.range();
        if let Some(file) = part.file.as_ref().filter(|_| !part.is_from_memory) {
            for mapping in &part.mappings {
                self.memory.add(mapping, file.bytes(), part.file_offset);
            }
        }
        let from_file = headers.as_ref().map(|headers| headers.bias);
        let bias = known.or(from_file).unwrap_or_else(|| Bias::between(range.start(), Svma::new(0)));
        let load_address = headers.as_ref().filter(|_| known.is_none()).map(|headers| headers.load_address);
        self.push(&sources, load_address.unwrap_or_else(|| range.start()), range.end(), bias);
        let code = if part.code().is_empty() { vec![range] } else { part.code() };
        let has_binary = headers.is_some();
        let saved = |range: &AddrRange<Avma>| self.snapshot.memory.bytes_from(range.start()).is_some();
        let has_code = !part.is_from_memory || code.iter().any(saved);
        self.place(code, bias, bias, sources.files, has_code);
        // Without the binary the debug file alone tells what its addresses count from.
        if let Some(placed) = self.placed.last_mut().filter(|_| !has_binary)
            && let Some(base) = placed.files.naming().first().and_then(|file| file.image_base())
        {
            placed.bias = Bias::between(range.start(), base);
        }
    }

    fn push(&mut self, sources: &Sources, load_address: Avma, end: Avma, bias: Bias) {
        let files = &sources.files;
        let is_open = files.binary.is_some() || !files.debug.is_empty();
        self.images.push(Image {
            name: sources.name.clone(),
            path: sources.path.clone(),
            id: sources.id,
            arch: Some(self.snapshot.arch),
            load_address,
            end_address: Some(end),
            symbols: ImageSymbols {
                status: files.status.clone(),
                tried: files.tried.clone(),
                bias: Some(bias).filter(|_| is_open),
                ..ImageSymbols::default()
            },
            ..Image::default()
        });
    }

    /// Opens what the last pushed image's addresses are unwound by. What memory has of an image without its code has zeros
    /// there, which is not what ran.
    fn place(
        &mut self,
        code: Vec<AddrRange<Avma>>,
        bias: Bias,
        relative: Bias,
        files: ImageFiles,
        has_code: bool,
    ) {
        let skipped = usize::from(!has_code && files.binary.is_some());
        let unwind = UnwindImage::open(files.unwinding().skip(skipped));
        let shown = self.images.len().saturating_sub(1);
        self.placed.push(LoadedImage { shown, code, bias, relative, unwind, files: Arc::new(files) });
    }

    /// Adds what glibc wrote down before it ended the process.
    pub(crate) fn add_abort_message(&mut self, parts: &[Part]) {
        if self.is_abort() {
            self.message = abort_message::read(parts, &self.memory, self.snapshot.arch);
        }
    }

    fn is_abort(&self) -> bool {
        self.snapshot.fault.as_ref().is_some_and(|fault| fault.name == "SIGABRT")
    }

    /// The exception of C++ that the process ended for.
    fn thrown(&self, threads: &[Thread]) -> Option<ThrownException> {
        let crashed = threads.iter().find(|thread| thread.crashed)?;
        let captured = self.snapshot.threads.get(usize::try_from(crashed.number).ok()?)?;
        let pointer = captured.thread_pointer?;
        if !cpp_exception::is_uncaught(&crashed.frames, &self.placed, self.snapshot.arch, self.is_abort()) {
            return None;
        }
        let exception = cpp_exception::current(&LiveFirst(&self.memory), pointer)?;
        Some(ThrownException {
            runtime: ThrowingRuntime::Cpp,
            name: exception.type_name,
            reason: exception.what,
            is_handled: false,
        })
    }

    /// Adds code that was made at run time: what the images' descriptors list, and `loose` files that nothing lists.
    pub(crate) fn add_jit(&mut self, parts: &[Part], loose: Vec<(String, FileData)>) {
        // Where every code range has its file there is nothing that it could belong to.
        let mut files = Vec::new();
        if parts.iter().any(|part| part.file.is_none()) {
            for part in parts {
                files.extend(self.jit_files(part).into_iter().map(|file| (String::new(), file)));
            }
        }
        for (name, data) in loose {
            files.extend(jit::code_of(&data).map(|code| (name, JitFile { data, code })));
        }
        for (name, file) in files {
            self.place_jit(name, file);
        }
    }

    fn jit_files(&self, part: &Part) -> Vec<JitFile> {
        let descriptor = || jit::descriptor(part.file.as_ref()?.object()?, part.headers()?.bias);
        let descriptor = descriptor();
        descriptor.map(|at| jit::files(&self.memory, at, self.snapshot.arch)).unwrap_or_default()
    }

    /// Code made at run time is shown as the mapped range that it lies in; files that lie in none stand for themselves.
    fn place_jit(&mut self, name: String, file: JitFile) {
        let Some(first) = file.code.first().copied() else { return };
        let around = self.placed.iter().position(|placed| {
            placed.unwind.is_none() && placed.code.iter().any(|range| range.contains(first.start()))
        });
        let bias = Bias::default();
        let relative = match around.and_then(|around| self.placed.get_mut(around)) {
            Some(placed) => {
                placed.code = placed.code.iter().flat_map(|range| without(*range, &file.code)).collect();
                (Some(placed.shown), placed.relative)
            }
            None if name.is_empty() => return,
            None => (None, Bias::between(first.start(), Svma::new(0))),
        };
        let files = ImageFiles::of_binary(OpenFile::new(name.clone(), name.clone(), file.data));
        let sources = Sources { name, files, ..Sources::default() };
        if relative.0.is_none() {
            self.push(&sources, first.start(), first.end(), bias);
        }
        self.place(file.code, bias, relative.1, sources.files, true);
        if let Some(placed) = self.placed.last_mut() {
            placed.shown = relative.0.unwrap_or(placed.shown);
        }
    }

    /// Walks every thread.
    pub(crate) fn finish(mut self, options: &StackOptions) -> Captured {
        self.memory.sort();
        let mut images = unwind_images(&self.placed);
        let places = places(&self.placed);
        let walker = Walker {
            arch: self.snapshot.arch,
            memory: &self.memory,
            images: ModuleMap::new(&mut images),
            mappings: &self.snapshot.mappings,
            // Cores need not list what was not saved, minidumps and saved stacks what was made at run time.
            knows_all_code: self.snapshot.source == CaptureSource::Process,
            places: &places,
            placed: &self.placed,
            met_no_code: AtomicBool::new(false),
        };
        let threads = threads(&walker, self.snapshot, options, self.side_by_side);
        let met_no_code = walker.met_no_code.into_inner();
        Captured { met_no_code, ..self.captured(threads) }
    }

    /// The images alone.
    pub(crate) fn finish_images(self) -> Captured {
        self.captured(Vec::new())
    }

    fn captured(mut self, threads: Vec<Thread>) -> Captured {
        let mut report = report(self.snapshot);
        self.notes.extend(unproven_note(&self.unproven));
        report.app_info.extend(self.message.take().map(|(image, message)| AppInfo {
            image: Some(image),
            lines: message.lines().map(str::to_owned).collect(),
        }));
        report.process.crashed_thread = threads.iter().position(|thread| thread.crashed);
        report.thrown = self.thrown(&threads);
        (report.process.threads, report.process.images, report.notes) = (threads, self.images, self.notes);
        let files = self.placed.into_iter().map(|placed| LoadedFiles {
            image: placed.shown,
            ranges: placed.code,
            bias: Some(placed.bias),
            files: placed.files,
        });
        Captured::new(report, files.collect())
    }
}

/// One line, however many images there are: a core of `gcore` has an identity for none of them.
fn unproven_note(paths: &[String]) -> Option<String> {
    match paths {
        [] => None,
        [path] => Some(format!("{path}: its identity is not in the capture; taken by its path")),
        [first, ..] => Some(format!(
            "the identities of {} images are not in the capture; their files were taken by their paths ({first} and others)",
            paths.len()
        )),
    }
}

/// What is left of `range` without `holes`.
fn without(range: AddrRange<Avma>, holes: &[AddrRange<Avma>]) -> Vec<AddrRange<Avma>> {
    let mut left = vec![range];
    for hole in holes {
        let cut = |part: AddrRange<Avma>| {
            let before = AddrRange::new(part.start(), hole.start().clamp(part.start(), part.end()));
            let after = AddrRange::new(hole.end().clamp(part.start(), part.end()), part.end());
            [before, after].into_iter().filter(|part| !part.is_empty())
        };
        left = left.into_iter().flat_map(cut).collect();
    }
    left
}

/// Frames of all threads together. One stack that overflowed has a million; a capture that is made to harm says that of
/// each of its threads.
const MAX_FRAMES: u64 = 2 << 20;
/// What a thread has all the same.
const MIN_FRAMES: u64 = 100;
/// Threads that are walked in one go: what the first of them found in tables, the others find in the cache.
const WORTH_A_TASK: usize = 16;

/// Walks all threads. Each has an equal share of the frames, and where that was not enough, what the others left, in their
/// order: so the answer does not depend on which was walked first.
fn threads(
    walker: &Walker<'_>,
    snapshot: &Snapshot<'_>,
    options: &StackOptions,
    side_by_side: bool,
) -> Vec<Thread> {
    let max_frames = options.max_frames;
    let is_wanted = |thread: &CapturedThread| options.threads.matches(thread.id, thread.name.as_deref());
    let captured: Vec<_> =
        snapshot.threads.iter().enumerate().filter(|(_, thread)| is_wanted(thread)).collect();
    let share = (MAX_FRAMES / (captured.len() as u64).max(1)).max(MIN_FRAMES).min(max_frames);
    let one = |cache: &mut Cache, (number, captured): &(usize, &CapturedThread)| {
        thread(walker, captured, *number as u64, share, cache)
    };
    let mut threads: Vec<_> = if side_by_side {
        captured.par_iter().with_min_len(WORTH_A_TASK).map_init(Cache::new, one).collect()
    } else {
        let mut cache = Cache::new();
        captured.iter().map(|item| one(&mut cache, item)).collect()
    };
    let used: u64 = threads.iter().map(|thread| thread.frames.len() as u64).sum();
    let mut left = MAX_FRAMES.saturating_sub(used);
    for (walked, captured) in threads.iter_mut().zip(&captured) {
        let more = max_frames.min(share.saturating_add(left));
        let is_cut = walked.ended.as_ref().is_some_and(|ended| ended.kind == EndKind::Truncated);
        if is_cut && more > share {
            *walked = thread(walker, captured.1, walked.number, more, &mut Cache::new());
            left = left.saturating_sub((walked.frames.len() as u64).saturating_sub(share));
        }
    }
    threads
}

fn thread(
    walker: &Walker<'_>,
    captured: &CapturedThread,
    number: u64,
    max_frames: u64,
    cache: &mut Cache,
) -> Thread {
    let family = walker.arch.family();
    let register = |(register, value)| {
        Some(Register { name: family.register_name(register)?.to_owned(), value, note: None })
    };
    let (frames, ended) = walker.walk(captured, max_frames, cache).unwrap_or_else(|| {
        let why = "the capture has no registers of this thread".to_owned();
        (Vec::new(), Ended { kind: EndKind::Failed, why })
    });
    Thread {
        number,
        id: captured.id,
        name: captured.name.clone(),
        crashed: captured.is_crashed,
        state: captured.state.clone(),
        frames,
        registers: captured.registers.iter().filter_map(register).collect(),
        ended: Some(ended),
        ..Thread::default()
    }
}

/// What the snapshot says of the process and of what stopped it.
/// A time in seconds since 1970 as reports print it. Zero and what no calendar has are no time.
fn printed_time(seconds: u64) -> Option<String> {
    const YEAR_10000: i64 = 253_402_300_800;
    let seconds = i64::try_from(seconds).ok().filter(|seconds| (1..YEAR_10000).contains(seconds))?;
    Some(Utc::from_unix(seconds).to_string())
}

fn report(snapshot: &Snapshot<'_>) -> Report {
    let process = &snapshot.process;
    let executable = process.executable.as_deref();
    let file_name = executable.and_then(|path| path.rsplit(['/', '\\']).next()).map(str::to_owned);
    Report {
        source: match snapshot.source {
            CaptureSource::ElfCore => Source::ElfCore,
            CaptureSource::Minidump => Source::Minidump,
            CaptureSource::CrashFile => Source::CrashFile,
            CaptureSource::Process => Source::Process,
            _ => Source::SavedStack,
        },
        process: Process {
            name: process.name.clone().or(file_name),
            pid: process.pid,
            path: process.executable.clone(),
            command_line: process.command_line.clone(),
            arch: Some(snapshot.arch),
            ..Process::default()
        },
        os: process.os.clone(),
        time: process.time.and_then(printed_time),
        exception: snapshot.fault.as_ref().map(|fault| Exception {
            signal: Some(fault.name.clone()).filter(|name| is_signal(name)),
            kind: Some(fault.name.clone()).filter(|name| !is_signal(name)),
            codes: codes(fault),
            raw_codes: vec![fault.number],
            address: fault.address,
            ..Exception::default()
        }),
        ..Report::default()
    }
}

/// The code by name, with who sent the signal: as Android's tombstones have it.
fn codes(fault: &Fault) -> Option<String> {
    let code = fault.code.as_ref()?;
    Some(match fault.sender {
        Some(pid) => format!("{code} from pid {pid}"),
        None => code.clone(),
    })
}

/// Linux has signals; of Apple's systems and Windows minidumps name the exception.
fn is_signal(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with("sig")
}

#[cfg(test)]
mod tests {
    use super::printed_time;

    #[test]
    fn times_that_no_calendar_has_are_none() {
        for (seconds, expected) in [
            (1_777_636_800, Some("2026-05-01T12:00:00Z")),
            (253_402_300_799, Some("9999-12-31T23:59:59Z")),
            (253_402_300_800, None),
            (0, None),
            (u64::MAX, None),
        ] {
            assert_eq!(printed_time(seconds).as_deref(), expected, "{seconds}");
        }
    }
}
