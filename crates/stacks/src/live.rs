//! Stacks and images of a process that runs.

use crate::build::Builder;
use crate::from_memory::InMemory;
use crate::live_memory::CachedMemory;
use crate::locks::Locks;
use crate::{Captured, StackOptions, StacksError, images};
use backtrail_capture::remote::{
    self, Captured as Snapshots, CpuAvoidance, Maps, StackCopyMethod, Target, ThreadInfo,
};
use backtrail_capture::{Limits, MappedImage, Memory, Snapshot};
use backtrail_core::Arch;
use backtrail_model::{Detail, EndKind, Ended, Report, SymbolStatus, Thread};
use backtrail_store::{FileData, ImageFiles, Index, OpenFile};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Captures a process that runs and walks its threads. Each thread is stopped while its registers and stack are copied, no
/// longer.
///
/// # Errors
/// Where there is no such process, or it may not be captured; the message says which setting or capability is in the way.
pub fn process(pid: u32, index: &Index, options: &StackOptions) -> Result<Captured, StacksError> {
    let target = Target::open(pid).map_err(StacksError::of_process)?;
    let mut how = remote::Options::default();
    how.consistent = options.consistent;
    how.real_time = options.real_time;
    how.kernel_stacks = options.kernel_stacks;
    let mut away = CpuAvoidance::default();
    let mut snapshots = remote::capture(&target, &how, &mut away).map_err(StacksError::of_process)?;
    let mut captured = walk(&target, &snapshots, index, options);
    if has_strays(&captured, &snapshots.maps) && snapshots.renew(&target, &how.limits) {
        captured = walk(&target, &snapshots, index, options);
    }
    let window = options.cpu_window;
    if window > Duration::ZERO
        && let Some(usage) = snapshots.usage.take()
    {
        usage.finish(&target, window, &mut snapshots.threads);
    }
    add_notes(&mut captured.report, &snapshots);
    let locks = Locks::new(&snapshots.threads);
    for thread in &mut captured.report.process.threads {
        // Its number is its position among all that were captured.
        let position = usize::try_from(thread.number).ok();
        let Some(facts) = position.and_then(|position| snapshots.threads.get(position)) else { continue };
        add_facts(thread, facts);
        thread.waits_for = facts.waits_for.map(|waits| locks.wait(waits));
    }
    captured.report.process.deadlocks = snapshots.deadlocks.iter().map(|one| locks.deadlock(one)).collect();
    if options.busy_only {
        keep_busy(&mut captured.report, window);
    }
    let perf_map = format!("/tmp/perf-{}.map", target.own_id());
    captured.perf_map = Some(target.path(Path::new(&perf_map)));
    Ok(captured)
}

/// The images of a process that runs, without stopping it; no threads.
///
/// # Errors
/// As [`process`]'s.
pub fn images_of(pid: u32, index: &Index) -> Result<Captured, StacksError> {
    let target = Target::open(pid).map_err(StacksError::of_process)?;
    let (snapshot, maps) = remote::images(&target, &Limits::default()).map_err(StacksError::of_process)?;
    let live = Live { target: &target, maps: &maps, index, left: AtomicU64::new(MAX_COPIED) };
    let mut builder = Builder::new(&snapshot);
    for image in &snapshot.images {
        images::add(&mut builder, &snapshot, image, live.find(image, true), image.bias);
    }
    Ok(builder.finish_images())
}

/// Walks what was captured.
pub(crate) fn walk(
    target: &Target,
    snapshots: &Snapshots,
    index: &Index,
    options: &StackOptions,
) -> Captured {
    let live = Live { target, maps: &snapshots.maps, index, left: AtomicU64::new(MAX_COPIED) };
    let workers = remote::workers();
    let walk = || live.walk(&snapshots.snapshot, options, workers);
    // Naming divides its work by itself, walking need not: then this thread's memory is at hand, and no other has to begin.
    if workers == 1 && options.detail == Detail::Addresses {
        return walk();
    }
    let Some(pool) = pool(workers) else { return walk() };
    let captured = pool.install(walk);
    Captured { workers: Some(pool), ..captured }
}

/// Whether a stack leads to where no code is mapped: it may have been mapped since.
fn has_strays(captured: &Captured, maps: &Maps) -> bool {
    let process = &captured.report.process;
    let arch = process.arch.unwrap_or(Arch::HOST);
    let frames = process.threads.iter().flat_map(|thread| &thread.frames);
    let mut placeless = frames.filter(|frame| frame.image.is_none()).filter_map(|frame| frame.address);
    captured.met_no_code
        || placeless.any(|address| maps.at(address.lookup(arch)).is_none_or(|mapping| !mapping.executable))
}

/// Threads on so many processors: no more than nothing else runs on, since one that the process runs on would be taken away
/// from it for milliseconds at a time, which is longer than all its threads are stopped.
fn pool(workers: usize) -> Option<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new().num_threads(workers).start_handler(|_| make_room()).build().ok()
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

/// Bytes that are copied of a process's memory in the place of files that are gone, of all images together.
const MAX_COPIED: u64 = 1 << 30;

/// A process, and where its images' files are looked for.
struct Live<'l> {
    target: &'l Target,
    maps: &'l Maps,
    index: &'l Index,
    /// Bytes of the process's memory that may still be copied in the place of files.
    left: AtomicU64,
}

impl Live<'_> {
    fn walk(&self, snapshot: &Snapshot<'_>, options: &StackOptions, workers: usize) -> Captured {
        let mut builder = Builder::new(snapshot);
        builder.set_side_by_side(workers > 1);
        builder.set_live(CachedMemory::new(self.target.memory()));
        let mut parts = Vec::new();
        for image in &snapshot.images {
            let found = self.find(image, options.detail == Detail::Lines);
            parts.extend(images::add(&mut builder, snapshot, image, found, image.bias));
        }
        images::add_unclaimed(&mut builder, snapshot, &mut parts);
        builder.add_abort_message(&parts);
        builder.add_jit(&parts, Vec::new());
        builder.finish(options)
    }

    /// Looks for the very file that is mapped, and for debug files of the same identity.
    fn find(&self, image: &MappedImage, with_debug_files: bool) -> ImageFiles {
        let mut found = ImageFiles { status: SymbolStatus::Missing, ..ImageFiles::default() };
        self.mapped_file(image, &mut found);
        let has_debug_info = found.binary.as_ref().is_some_and(|binary| binary.has_debug_info());
        if let Some(id) = &image.id
            && with_debug_files
            && !has_debug_info
        {
            self.index.add_by_identity(id, Some(self.target.arch()), true, &mut found);
        }
        if found.binary.is_none() {
            self.copy_out(image, &mut found);
        } else if with_debug_files {
            self.index.add_separate_debug_file(&mut found);
        }
        if found.binary.is_some() || !found.debug.is_empty() {
            found.status = SymbolStatus::Found;
        } else if image.path.starts_with('[') {
            found.status = SymbolStatus::NoneNeeded;
        }
        found
    }

    fn mapped_file(&self, image: &MappedImage, found: &mut ImageFiles) {
        let file = image.range.and_then(|range| self.maps.file(range.start()));
        if image.path.starts_with('[') {
            return;
        }
        for (path, is_sure) in self.target.paths_of(&image.path, file, image.is_executable) {
            match self.open(&path, is_sure, image) {
                Ok(file) => {
                    // Files that debug info names lie where the process sees them.
                    found.main_file = self.target.path(Path::new(&image.path));
                    found.binary = Some(file);
                    return;
                }
                Err(why) => found.tried.push(format!("{}: {why}", path.display())),
            }
        }
    }

    fn open(&self, path: &Path, is_sure: bool, image: &MappedImage) -> Result<Arc<OpenFile>, String> {
        let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
        let shown = if is_sure { Path::new(&image.path) } else { path };
        let shown = shown
            .strip_prefix(self.target.root())
            .map_or_else(|_| shown.to_owned(), |below| Path::new("/").join(below));
        let named = shown.display().to_string();
        let opened = self.index.object_at_path_as(path, named).map_err(|error| error.to_string())?;
        if let Some(problem) = opened.problem() {
            return Err(problem.to_owned());
        }
        if opened.arch().family() != self.target.arch().family() {
            return Err(format!("is for {}, the process runs {}", opened.arch(), self.target.arch()));
        }
        if is_sure {
            return Ok(opened);
        }
        // File systems that stand for others (overlayfs) give other numbers than what is mapped has: then the identity
        // tells.
        let file = image.range.and_then(|range| self.maps.file(range.start()));
        let is_same = file.is_some_and(|file| !file.is_deleted && file.is(metadata.dev(), metadata.ino()));
        match (image.id, opened.id()) {
            _ if is_same => Ok(opened),
            (Some(wanted), Some(other)) if wanted == other => Ok(opened),
            (Some(wanted), Some(other)) => {
                Err(format!("has {} {other}, the process runs {wanted}", other.kind()))
            }
            _ => Err("is another file than the process has mapped".to_owned()),
        }
    }

    /// The image as far as the process's memory has it.
    fn copy_out(&self, image: &MappedImage, found: &mut ImageFiles) {
        let Some(range) = image.range else { return };
        let take = |left: u64| left.checked_sub(range.size());
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            let size = range.size();
            found
                .tried
                .push(format!("the process's memory: {size} bytes are more than are copied of one process"));
            return;
        }
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
            let name = format!("memory of {}", image.name());
            found.binary = Some(OpenFile::new(name, &image.path, FileData::from(bytes)));
            found.main_file = PathBuf::from(&image.path);
        }
    }
}

/// How long threads were stopped, and what else there is to tell.
fn add_notes(report: &mut Report, captured: &Snapshots) {
    report.notes.push(captured.stops.to_string());
    let cut = captured.threads.iter().filter(|facts| facts.is_cut).count();
    if cut > 0 {
        report.notes.push(format!(
            "{cut} with a deep stack, whose outermost part was read after the thread went on: there it may be of a later \
             moment"
        ));
    }
}

/// Leaves out threads that used no processor time, and puts the busiest first.
fn keep_busy(report: &mut Report, window: Duration) {
    /// Below this share of a processor a thread is said to have used none: what waking up and going back to sleep takes.
    const NOTHING: f64 = 0.001;
    let threads = &mut report.process.threads;
    let all = threads.len();
    threads.retain(|thread| thread.cpu_usage.is_some_and(|usage| usage >= NOTHING));
    threads.sort_by(|one, other| other.cpu_usage.unwrap_or(0.0).total_cmp(&one.cpu_usage.unwrap_or(0.0)));
    let idle = all.saturating_sub(threads.len());
    if idle > 0 {
        let window = window.as_millis();
        report
            .notes
            .push(format!("{idle} of {all} threads used no processor time in {window} ms and are left out"));
    }
}

pub(crate) fn add_facts(thread: &mut Thread, facts: &ThreadInfo) {
    thread.waiting_in.clone_from(&facts.waiting_in);
    thread.waiting_on.clone_from(&facts.waiting_on);
    thread.cpu_usage = facts.cpu_usage.map(|usage| (usage * 1e4).round() / 1e4);
    thread.kernel_stack.clone_from(&facts.kernel_stack);
    thread.wait_channel.clone_from(&facts.wait_channel);
    thread.start_time = Some(facts.start.as_secs_f64());
    thread.user_time = Some(facts.user_time.as_secs_f64());
    thread.system_time = Some(facts.system_time.as_secs_f64());
    thread.priority = Some(facts.priority);
    thread.nice = Some(facts.nice);
    thread.namespace_id = facts.inner_id.map(u64::from);
    match (&facts.stack_copy, &mut thread.ended) {
        (StackCopyMethod::Not(why), ended) => {
            *ended = Some(Ended { kind: EndKind::Failed, why: format!("no stack: {why}") });
        }
        (StackCopyMethod::Unstopped(why), Some(ended)) => {
            ended.why = format!("{}; read without stopping the thread: {why}", ended.why);
        }
        _ => {}
    }
}
