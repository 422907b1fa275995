//! Stacks and images of a process that runs.

use super::build::Builder;
use super::find::{Finder, Found};
use super::from_memory::InMemory;
use super::live_memory::CachedMemory;
use super::perf_map::{self, PerfMap};
use super::walk::ended_in_no_code;
use super::{Detail, StackOptions, Stacks, StacksError, images};
use crate::{ImageSymbols, SymbolStatus, Symbols};
use backtrail_capture::remote::{self, Away, Captured, How, Maps, Target, ThreadFacts};
use backtrail_capture::{Image, Limits, Memory, Snapshot};
use backtrail_core::Arch;
use backtrail_object::Object;
use backtrail_report::{EndKind, Ended, Report, Thread};
use backtrail_store::FileData;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl Stacks {
    /// Captures a process that runs, walks and names its threads. Each thread is stopped while its registers and stack
    /// are copied, no longer.
    ///
    /// # Errors
    /// Where there is no such process, or it may not be captured; the message says which setting or capability is in the
    /// way.
    pub fn process(pid: u32, symbols: &Symbols, options: &StackOptions) -> Result<Self, StacksError> {
        let failed = |error: remote::Error| StacksError(error.to_string());
        let target = Target::open(pid).map_err(failed)?;
        let mut how = remote::Options::default();
        how.consistent = options.consistent;
        let mut away = Away::default();
        let mut captured = remote::capture(&target, &how, &mut away).map_err(failed)?;
        let mut stacks = walk(&target, &captured, symbols, options);
        if has_strays(&stacks.report, &captured.maps) && captured.renew(&target, &how.limits) {
            stacks = walk(&target, &captured, symbols, options);
        }
        let window = options.cpu_window;
        if window > Duration::ZERO {
            captured.usage.finish(&target, window, &mut captured.threads);
        }
        tell(&mut stacks.report, &captured);
        for (thread, facts) in stacks.report.threads.iter_mut().zip(&captured.threads) {
            add_facts(thread, facts);
        }
        Ok(stacks)
    }

    /// The images of a process that runs, without stopping it; no threads.
    ///
    /// # Errors
    /// As [`Stacks::process`]'s.
    pub fn images_of(pid: u32, symbols: &Symbols) -> Result<Self, StacksError> {
        let failed = |error: remote::Error| StacksError(error.to_string());
        let target = Target::open(pid).map_err(failed)?;
        let (snapshot, maps) = remote::images(&target, &Limits::default()).map_err(failed)?;
        let live = Live { target: &target, maps: &maps, symbols };
        let mut builder = Builder::new(&snapshot);
        for image in &snapshot.images {
            images::add(&mut builder, &snapshot, image, live.find(image, true), image.bias);
        }
        Ok(builder.finish_unasked())
    }
}

/// Walks and names what was captured.
fn walk(target: &Target, captured: &Captured, symbols: &Symbols, options: &StackOptions) -> Stacks {
    let live = Live { target, maps: &captured.maps, symbols };
    let workers = remote::workers();
    let walk = || live.walk(&captured.snapshot, options, workers);
    // Naming divides its work by itself, walking need not: then this thread's memory is at hand, and no other has to begin.
    let is_alone = workers == 1 && options.detail == Detail::Addresses;
    if is_alone { walk() } else { among(workers, walk) }
}

/// Whether a stack leads to where no code is mapped: it may have been mapped since.
fn has_strays(report: &Report, maps: &Maps) -> bool {
    let arch = report.process.arch.unwrap_or(Arch::HOST);
    let frames = report.threads.iter().flat_map(|thread| &thread.frames);
    let mut placeless = frames.filter(|frame| frame.image.is_none()).filter_map(|frame| frame.address);
    placeless.any(|address| maps.at(address.lookup(arch)).is_none_or(|mapping| !mapping.executable))
        || report.threads.iter().filter_map(|thread| thread.ended.as_ref()).any(ended_in_no_code)
}

/// Does the work on so many processors: no more than nothing else runs on, since one that the process runs on would be taken
/// away from it for milliseconds at a time, which is longer than all its threads are stopped.
fn among<R: Send>(workers: usize, work: impl FnOnce() -> R + Send) -> R {
    match rayon::ThreadPoolBuilder::new().num_threads(workers).start_handler(|_| make_room()).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// Has the allocator get room for many stacks at once. glibc's gives threads other than the first memory that it asks the kernel for
/// page by page: 1,700 times `mprotect` for 1,000 stacks, and while one thread asks none may touch a new page. A large block that is
/// given back raises what the allocator keeps (mallopt(3), `M_MMAP_THRESHOLD`), so that the second one is kept.
fn make_room() {
    for size in [2 * ROOM, ROOM] {
        let mut room = Vec::<u8>::new();
        // Without it there is only more to ask for later.
        let _ = room.try_reserve_exact(size);
        drop(std::hint::black_box(room));
    }
}

/// Bytes of the stacks of a thousand threads. Those that are not needed are never touched.
const ROOM: usize = 12 << 20;

/// A process, and where its images' files are looked for.
struct Live<'l> {
    target: &'l Target,
    maps: &'l Maps,
    symbols: &'l Symbols,
}

impl Live<'_> {
    fn walk(&self, snapshot: &Snapshot<'_>, options: &StackOptions, workers: usize) -> Stacks {
        let mut builder = Builder::new(snapshot);
        builder.set_side_by_side(workers > 1);
        builder.set_live(CachedMemory::new(self.target.memory()));
        let mut parts = Vec::new();
        for image in &snapshot.images {
            let found = self.find(image, options.detail == Detail::Lines);
            parts.extend(images::add(&mut builder, snapshot, image, found, image.bias));
        }
        images::add_unclaimed(&mut builder, snapshot, &mut parts);
        builder.add_jit(&parts, Vec::new());
        let mut stacks = builder.finish(self.symbols, options);
        if options.detail != Detail::Addresses {
            self.name_by_perf_map(&mut stacks);
        }
        stacks
    }

    /// Looks for the very file that is mapped, and for debug files of the same identity.
    fn find(&self, image: &Image, with_debug_files: bool) -> Found {
        let mut found = Found { status: SymbolStatus::Missing, ..Found::default() };
        self.mapped_file(image, &mut found);
        let has_debug_info = found
            .binary
            .as_ref()
            .is_some_and(|(_, data)| Object::parse(data).is_ok_and(|object| object.has_debug_info()));
        let finder = Finder {
            symbols: self.symbols,
            arch: self.target.arch(),
            executable: None,
            use_mapped_paths: false,
        };
        if let Some(id) = &image.id
            && with_debug_files
            && !has_debug_info
        {
            finder.by_identity(id, &mut found);
        }
        if found.binary.is_none() {
            self.copy_out(image, &mut found);
        } else if with_debug_files {
            finder.separate_debug_file(&mut found);
        }
        if found.binary.is_some() || !found.debug.is_empty() {
            found.status = SymbolStatus::Found;
        } else if image.path.starts_with('[') {
            found.status = SymbolStatus::NoneNeeded;
        }
        found
    }

    fn mapped_file(&self, image: &Image, found: &mut Found) {
        let file = image.range.and_then(|range| self.maps.file(range.start()));
        if image.path.starts_with('[') {
            return;
        }
        for (path, is_sure) in self.target.paths_of(&image.path, file, image.is_executable) {
            match self.open(&path, is_sure, image) {
                Ok(data) => {
                    // Files that debug info names lie where the process sees them.
                    found.main_file = self.target.path(Path::new(&image.path));
                    let shown = if is_sure { PathBuf::from(&image.path) } else { path };
                    let shown = shown
                        .strip_prefix(self.target.root())
                        .map_or(shown.clone(), |below| Path::new("/").join(below));
                    found.binary = Some((shown.display().to_string(), data));
                    return;
                }
                Err(why) => found.tried.push(format!("{}: {why}", path.display())),
            }
        }
    }

    fn open(&self, path: &Path, is_sure: bool, image: &Image) -> Result<FileData, String> {
        let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
        let data = FileData::map(path).map_err(|error| error.to_string())?;
        let object = Object::parse(&data).map_err(|error| error.to_string())?;
        if object.arch().family() != self.target.arch().family() {
            return Err(format!("is for {}, the process runs {}", object.arch(), self.target.arch()));
        }
        if is_sure {
            return Ok(data);
        }
        // File systems that stand for others (overlayfs) give other numbers than what is mapped has: then the identity
        // tells.
        let file = image.range.and_then(|range| self.maps.file(range.start()));
        let is_same = file.is_some_and(|file| !file.is_deleted && file.is(metadata.dev(), metadata.ino()));
        match (image.id, object.id()) {
            _ if is_same => Ok(data),
            (Some(wanted), Some(other)) if wanted == other => Ok(data),
            (Some(wanted), Some(other)) => {
                Err(format!("has {} {other}, the process runs {wanted}", other.kind()))
            }
            _ => Err("is another file than the process has mapped".to_owned()),
        }
    }

    /// The image as far as the process's memory has it.
    fn copy_out(&self, image: &Image, found: &mut Found) {
        /// Bytes of one image.
        const MOST: u64 = 1 << 30;
        let Some(range) = image.range.filter(|range| range.size() <= MOST) else { return };
        let memory = self.target.memory();
        let inside = self.maps.all().iter().filter(|mapping| {
            mapping.readable && range.contains(mapping.range.start()) && mapping.name == image.path
        });
        let piece = |mapping: &backtrail_capture::Mapping| {
            let mut bytes = vec![0; usize::try_from(mapping.range.size()).ok()?];
            let size = memory.copy(mapping.range.start(), &mut bytes);
            bytes.truncate(size);
            Some((mapping.range.start(), bytes.into()))
        };
        let pieces = Memory::new(inside.filter_map(piece));
        if let Some(bytes) = InMemory::new(&pieces).image(range.start(), self.target.arch()) {
            found.binary = Some((format!("memory of {}", image.name()), FileData::from(bytes)));
            found.main_file = PathBuf::from(&image.path);
        }
    }

    /// Names what a compiler wrote down for perf.
    fn name_by_perf_map(&self, stacks: &mut Stacks) {
        let arch = self.target.arch();
        let Stacks { report, images } = stacks;
        let frames = report.threads.iter_mut().flat_map(|thread| &mut thread.frames);
        let mut unnamed = frames.filter(|frame| frame.names().next().is_none()).peekable();
        if unnamed.peek().is_none() {
            return;
        }
        let path = self.target.path(Path::new(&format!("/tmp/perf-{}.map", self.target.own_id())));
        let mut text = Vec::new();
        let read = File::open(path).and_then(|file| file.take(perf_map::MAX_BYTES).read_to_end(&mut text));
        if read.is_err() {
            return;
        }
        let map = PerfMap::parse(&text);
        for frame in unnamed {
            let Some(symbol) = frame.address.and_then(|address| map.at(address.lookup(arch))) else {
                continue;
            };
            (frame.function_offset, frame.reason) = (Some(symbol.offset), None);
            frame.symbol = Some(symbol);
            if let Some(state) = frame.image.and_then(|image| images.get_mut(image)) {
                state.unnamed_frames = state.unnamed_frames.saturating_sub(1);
                if state.unnamed_frames == 0 && state.status == SymbolStatus::Missing {
                    *state = ImageSymbols { status: SymbolStatus::NoneNeeded, ..std::mem::take(state) };
                }
            }
        }
    }
}

/// How long threads were stopped, and what else there is to tell.
fn tell(report: &mut Report, captured: &Captured) {
    let stops = &captured.stops;
    let count = if stops.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", stops.threads) };
    report.notes.push(match (stops.together, stops.running) {
        (Some(time), None) => format!("{count} stopped together for {}", milliseconds(time)),
        (Some(time), Some(running)) => format!(
            "{count} stopped together for {}, those that ran for at most {}",
            milliseconds(time),
            milliseconds(running)
        ),
        (None, _) => format!("{count} stopped one by one, each for at most {}", milliseconds(stops.longest)),
    });
    let cut = captured.threads.iter().filter(|facts| facts.is_cut).count();
    if cut > 0 {
        report.notes.push(format!(
            "{cut} with a deep stack, whose outermost part was read after the thread went on: there it may be of a later \
             moment"
        ));
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

fn add_facts(thread: &mut Thread, facts: &ThreadFacts) {
    thread.waiting_in.clone_from(&facts.waiting_in);
    thread.waiting_on.clone_from(&facts.waiting_on);
    thread.cpu_usage = facts.cpu_usage.map(|usage| (usage * 1e4).round() / 1e4);
    thread.user_time = Some(facts.user_time.as_secs_f64());
    thread.system_time = Some(facts.system_time.as_secs_f64());
    thread.priority = Some(facts.priority);
    thread.nice = Some(facts.nice);
    thread.namespace_id = facts.inner_id.map(u64::from);
    match (&facts.how, &mut thread.ended) {
        (How::Not(why), ended) => {
            *ended = Some(Ended { kind: EndKind::Failed, why: format!("no stack: {why}") });
        }
        (How::Unstopped(why), Some(ended)) => {
            ended.why = format!("{}; read without stopping the thread: {why}", ended.why);
        }
        _ => {}
    }
}
