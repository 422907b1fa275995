//! Collects what a crash file has, on the thread that was started for it.
//!
//! Nothing here allocates or locks: whatever the threads were at, they stay at it.

use crate::extra::{Extra, FILE, IN_PROGRAM};
use crate::line::Line;
use crate::number::number;
use crate::prepared::{Directory, Prepared};
use crate::sections::{Section, header, write_small};
#[cfg(target_os = "linux")]
use crate::watcher;
use crate::{exception, panic_hook, program, seen};
use backtrail_capture::crash_file::format::{FRAME_RETURNS, Kind, MessageKind, THREAD_CRASHED};
use backtrail_capture::local::{Status, threads};
use backtrail_core::{Avma, FrameAddress, ReadMemory as _, Registers, Trust};
use backtrail_stacks::own::{Capturer, OwnMemory, RawStack, Stopped, ThreadId};
use backtrail_sys::os::crash::{Crashed, OUT_OF_PATIENCE};
use backtrail_sys::os::raw_file;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Instant, SystemTime};

static FILTER_PANICKED: AtomicBool = AtomicBool::new(false);

/// Memory is read and kept by pages.
const PAGE: u64 = 4096;
/// Pages that may be missing at the stack pointer: an overflow points into the guard.
const GUARD_PAGES: u64 = 64;
/// Bytes before and behind where a register points.
const NEAR: u64 = 256;

/// Writes the whole file. `false` where the crash is none that is to be kept.
pub(crate) fn report(prepared: &mut Prepared, directory: &Directory, crashed: &Crashed<'_>) -> bool {
    let begun = Instant::now();
    let patience = prepared.options.patience;
    let half = begun.checked_add(patience / 2).unwrap_or(begun);
    let stopped = crashed.stopped();
    let asks = !prepared.options.own_code.is_empty() || prepared.options.filter.is_some();
    #[cfg(target_os = "linux")]
    let (asks, half) = {
        heed_filters(crashed);
        match watched(prepared, directory, crashed, &stopped, asks, half) {
            Watched::No => (asks, half),
            Watched::Unwanted => return false,
            Watched::Kept => return true,
            Watched::Unanswered => (false, Instant::now().checked_add(patience / 4).unwrap_or(begun)),
        }
    };
    match begin(prepared, directory, crashed, &stopped, asks) {
        Begun::Nowhere => return true,
        Begun::Unwanted => {
            directory.remove();
            return false;
        }
        Begun::Wanted => {}
    }
    let bytes = prepared.options.stack_bytes;
    stack(prepared, stopped.registers(), bytes);
    messages(prepared, crashed);
    of_program(prepared);
    if !asks {
        frames(prepared, crashed, &stopped);
    }
    near_registers(&mut prepared.section, stopped.registers());
    of_process(prepared, directory);
    other_threads(prepared, crashed.thread(), half);
    added(prepared);
    finish(directory);
    true
}

/// What became of a report that a watcher is to write.
#[cfg(target_os = "linux")]
enum Watched {
    /// There is no watcher.
    No,
    Unwanted,
    Kept,
    /// It did not say that it has written it. The crash is one that is wanted.
    Unanswered,
}

#[cfg(target_os = "linux")]
fn watched(
    prepared: &mut Prepared,
    directory: &Directory,
    crashed: &Crashed<'_>,
    stopped: &Stopped,
    asks: bool,
    half: Instant,
) -> Watched {
    if watcher::socket().is_none() {
        return Watched::No;
    }
    // Should the program's filter crash, the file that is begun for it is all that there will be.
    if asks {
        let is_wanted = begin(prepared, directory, crashed, stopped, asks) != Begun::Unwanted;
        directory.remove();
        if !is_wanted {
            return Watched::Unwanted;
        }
    }
    if ask_watcher(prepared, crashed, half) { Watched::Kept } else { Watched::Unanswered }
}

/// A filter of system calls may have the kernel end who reads memory by its help, which few programs do.
#[cfg(target_os = "linux")]
fn heed_filters(crashed: &Crashed<'_>) {
    let is_filtered = |thread| Status::of(thread).is_some_and(|status| status.is_filtered());
    if is_filtered(ThreadId::current()) || is_filtered(crashed.thread()) {
        OwnMemory::read_in_place();
    }
}

/// What became of a file's beginning.
#[derive(PartialEq, Eq)]
enum Begun {
    /// It cannot be written.
    Nowhere,
    Wanted,
    Unwanted,
}

/// What is surest comes first: should a later step fail, all this is there. Before the program is asked, no byte of its memory is
/// written.
fn begin(
    prepared: &mut Prepared,
    directory: &Directory,
    crashed: &Crashed<'_>,
    stopped: &Stopped,
    asks: bool,
) -> Begun {
    // Where there is no file the program is asked nevertheless: a watcher may have one.
    let is_written = directory.create().is_ok() && FILE.write(&header()).is_ok();
    what_happened(prepared, crashed);
    prepared.images.read(|images| FILE.write(&images.sections)).ok();
    crashed_thread(prepared, crashed, stopped);
    if asks {
        frames(prepared, crashed, stopped);
        if !is_wanted(prepared, crashed) {
            return Begun::Unwanted;
        }
    }
    if is_written { Begun::Wanted } else { Begun::Nowhere }
}

fn added(prepared: &mut Prepared) {
    if let Some(add) = prepared.options.add {
        let is_done = in_program(|| add(&mut Extra::new(&mut prepared.section))).is_some();
        if !is_done {
            write_small(Kind::Missing, b"the program's own function panicked", &FILE);
        }
    }
}

/// Calls a function of the program's. A panic of it is no crash of the process, which has one already: it gives `None`.
fn in_program<T>(function: impl FnOnce() -> T) -> Option<T> {
    IN_PROGRAM.store(true, SeqCst);
    let answer = catch_unwind(AssertUnwindSafe(function));
    IN_PROGRAM.store(false, SeqCst);
    if let Err(payload) = answer {
        // To drop it is to call the program again.
        std::mem::forget(payload);
        return None;
    }
    answer.ok()
}

fn crashed_thread(prepared: &mut Prepared, crashed: &Crashed<'_>, at: &Stopped) {
    let status = Status::of(crashed.thread());
    let name = status.as_ref().map_or("", Status::name);
    let number = number(crashed.thread(), || status);
    thread(&mut prepared.section, number, name, THREAD_CRASHED, Some(at.registers()), "");
}

/// Has the watcher write the file: it gets what only the program knows, and reads the rest itself. Says whether the file is on the
/// disk.
#[cfg(target_os = "linux")]
fn ask_watcher(prepared: &mut Prepared, crashed: &Crashed<'_>, deadline: Instant) -> bool {
    let Some(socket) = watcher::socket() else { return false };
    FILE.borrow(socket);
    watcher::set_asked(true);
    let _ = FILE.write(&header());
    what_happened(prepared, crashed);
    crashed_thread(prepared, crashed, &crashed.stopped());
    messages(prepared, crashed);
    of_program(prepared);
    added(prepared);
    let is_kept = tell_watcher(deadline);
    watcher::set_asked(false);
    is_kept
}

#[cfg(target_os = "linux")]
fn tell_watcher(deadline: Instant) -> bool {
    write_small(Kind::Own, &ThreadId::current().get().to_le_bytes(), &FILE);
    write_small(Kind::End, b"", &FILE);
    FILE.release() && watcher::has_kept(deadline)
}

/// How long who is in need waits for the watcher.
#[cfg(target_os = "linux")]
const IN_NEED: std::time::Duration = std::time::Duration::from_secs(1);

/// Asks the options about the frames that were found.
fn is_wanted(prepared: &Prepared, crashed: &Crashed<'_>) -> bool {
    let Prepared { options, frames, .. } = prepared;
    let answer = in_program(|| seen::is_wanted(&options.own_code, options.filter, crashed, frames));
    FILTER_PANICKED.store(answer.is_none(), SeqCst);
    answer.unwrap_or(true)
}

fn finish(directory: &Directory) {
    write_small(Kind::End, b"", &FILE);
    let _ = directory.finish();
}

/// The collecting thread has crashed, or takes too long: what is written stays, and the file says what happened.
pub(crate) fn in_need(signal: i32, directory: &Directory) {
    if signal == OUT_OF_PATIENCE {
        out_of_patience(directory);
        return;
    }
    let whose = if IN_PROGRAM.load(SeqCst) { "the program's own function" } else { "the crash handler" };
    let mut text = Line::new();
    let _ = write!(text, "{whose} crashed with signal {signal}; what it would have written next is missing");
    #[cfg(target_os = "linux")]
    if watcher::is_asked() {
        write_small(Kind::Missing, text.bytes(), &FILE);
        if Instant::now().checked_add(IN_NEED).is_some_and(tell_watcher) {
            return;
        }
    }
    if !FILE.is_open() && (directory.create().is_err() || FILE.write(&header()).is_err()) {
        return;
    }
    write_small(Kind::Missing, text.bytes(), &FILE);
    finish(directory);
}

/// The collecting thread may be at work still, and the stack may be small: nothing is put together here.
#[inline(never)]
fn out_of_patience(directory: &Directory) {
    if !FILE.is_open() {
        return;
    }
    let text: &[u8] = if IN_PROGRAM.load(SeqCst) {
        b"the program's own function took too long; what would have been written next is missing"
    } else {
        b"the crash handler took too long; what it would have written next is missing"
    };
    write_small(Kind::Missing, text, &FILE);
    #[cfg(target_os = "linux")]
    if watcher::is_asked() {
        Instant::now().checked_add(IN_NEED).map(tell_watcher);
        return;
    }
    write_small(Kind::End, b"", &FILE);
    let _ = directory.finish_early();
}

fn what_happened(prepared: &mut Prepared, crashed: &Crashed<'_>) {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let section = prepared.section.begin();
    section.u32(std::process::id());
    section.u32(number(crashed.thread(), || Status::of(crashed.thread())));
    section.u32(crashed.signal().cast_unsigned()).u32(crashed.code().cast_unsigned());
    let address = crashed.address();
    section.u8(u8::from(address.is_some())).u64(address.unwrap_or(0));
    section.u32(crashed.sender().map_or(0, i32::unsigned_abs));
    section.u64(time).u64(program::now().saturating_sub(prepared.begun));
    section.write(Kind::Crash, &FILE);
    #[cfg(not(target_os = "linux"))]
    if let Some(exception) = crashed.exception() {
        let section = prepared.section.begin().u32(exception.kind).u64(exception.code);
        section.u64(exception.subcode).u64(exception.syndrome).write(Kind::MachException, &FILE);
    }
    prepared.section.begin().put(&prepared.program).write(Kind::Program, &FILE);
    prepared.section.begin().put(prepared.system.as_bytes()).write(Kind::System, &FILE);
}

fn thread(
    section: &mut Section,
    number: u32,
    name: &str,
    flags: u8,
    registers: Option<&Registers>,
    why: &str,
) {
    section.begin().u32(number).u8(flags).short(name.as_bytes()).short(why.as_bytes());
    let count = registers.map_or(0, |registers| registers.iter().count());
    section.u8(u8::try_from(count).unwrap_or(0));
    for (register, value) in registers.into_iter().flat_map(Registers::iter) {
        section.u16(register.0.into()).u64(value);
    }
    section.write(Kind::Thread, &FILE);
}

/// The frames of the thread that crashed.
fn frames(prepared: &mut Prepared, crashed: &Crashed<'_>, at: &Stopped) {
    prepared.capturer.at(at, 0, &mut prepared.frames);
    let number = number(crashed.thread(), || Status::of(crashed.thread()));
    put_frames(&mut prepared.section, number, &prepared.frames);
}

fn put_frames(section: &mut Section, number: u32, stack: &RawStack) {
    let frames = stack.frames();
    // Behind a guess everything is one. Who reads the file has the stack's bytes and all mappings, and can do better.
    let sure = frames.iter().take(MAX_FRAMES).take_while(|frame| frame.trust != Trust::Scan).count();
    let frames = frames.get(..sure).unwrap_or_default();
    section.begin().u32(number).u16(u16::try_from(frames.len()).unwrap_or(0));
    for frame in frames {
        let flags = if matches!(frame.address, FrameAddress::Return(_)) { FRAME_RETURNS } else { 0 };
        section.u64(frame.address.raw().get()).u8(flags);
    }
    section.write(Kind::Frames, &FILE);
}

/// A section has room for so many.
const MAX_FRAMES: usize = 7000;

/// The innermost bytes of the stack, from the first page that can be read.
fn stack(prepared: &mut Prepared, registers: &Registers, bytes: usize) {
    let Some(sp) = registers.sp() else { return };
    // Leaf functions use bytes below the stack pointer (x86-64's red zone).
    let start = sp.get().saturating_sub(128);
    let mut at = start;
    let end = start.saturating_add(GUARD_PAGES * PAGE);
    while at < end && !is_readable(at) {
        at = next_page(at);
    }
    let end = at.saturating_add(bytes as u64);
    while at < end && save_page(&mut prepared.section, at, next_page(at).min(end)) {
        at = next_page(at);
    }
}

fn next_page(address: u64) -> u64 {
    (address & !(PAGE - 1)).saturating_add(PAGE)
}

fn is_readable(address: u64) -> bool {
    OwnMemory::without_stack().read(Avma::new(address), &mut [0]).is_ok()
}

/// Saves bytes of one page; says whether they could be read.
fn save_page(section: &mut Section, start: u64, end: u64) -> bool {
    let mut room = [0; PAGE as usize];
    let size = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    let Some(bytes) = room.get_mut(..size) else { return false };
    if OwnMemory::without_stack().read(Avma::new(start), bytes).is_err() {
        return false;
    }
    section.begin().u64(start).put(bytes).write(Kind::Memory, &FILE);
    true
}

/// What the registers point to. Never a page that cannot be read, never more than lies near.
fn near_registers(section: &mut Section, registers: &Registers) {
    for (_, value) in registers.iter() {
        let (start, end) = (value.saturating_sub(NEAR), value.saturating_add(NEAR));
        if value < PAGE {
            continue;
        }
        let page = next_page(start);
        save_page(section, start, end.min(page));
        if page < end {
            save_page(section, page, end);
        }
    }
}

/// What the C library, Rust and a C++ exception said before the abort.
fn messages(prepared: &mut Prepared, crashed: &Crashed<'_>) {
    let mut room = [0; panic_hook::LONGEST];
    // A thread that told its exception does nothing else any more but end; what it calls for that may crash.
    uncaught(prepared, crashed, &mut room);
    // At any other signal these are of something that is over.
    if crashed.signal() != SIGABRT {
        return;
    }
    if let Some(text) = panic_hook::said_by(crashed.thread(), &mut room) {
        message(&mut prepared.section, MessageKind::Panic, text);
    }
    if let Some(text) = panic_hook::said_before_by(crashed.thread(), &mut room) {
        message(&mut prepared.section, MessageKind::Panic, text);
    }
    #[cfg(not(target_os = "linux"))]
    if crate::ns_exception::put(crashed.thread(), &mut prepared.section) {
        prepared.section.write(Kind::NsException, &FILE);
    }
    #[cfg(target_os = "linux")]
    said_by_libc(prepared, &mut room);
}

/// The C++ exception that ends the program.
fn uncaught(prepared: &mut Prepared, crashed: &Crashed<'_>, room: &mut [u8; 1024]) {
    let mut what = [0; exception::LONGEST];
    if let Some((name, what)) = exception::of(crashed.thread(), room, &mut what) {
        let section = prepared.section.begin().u16(u16::try_from(name.len()).unwrap_or(0));
        section.put(name).put(what).write(Kind::Exception, &FILE);
    }
}

/// What glibc keeps before it aborts.
#[cfg(target_os = "linux")]
fn said_by_libc(prepared: &mut Prepared, room: &mut [u8; 1024]) {
    let memory = OwnMemory::without_stack();
    let pointer = prepared.abort_message.and_then(|at| memory.read_u64(at).ok()).filter(|at| *at != 0);
    // How much was mapped for it stands before the text.
    let Some(start) = pointer.and_then(|at| at.checked_add(4)) else { return };
    let mut size = 0;
    for byte in &mut *room {
        let at = Avma::new(start.saturating_add(size as u64));
        if memory.read(at, std::slice::from_mut(byte)).is_err() || *byte == 0 {
            break;
        }
        size += 1;
    }
    let text = room.get(..size).unwrap_or_default().trim_ascii_end();
    message(&mut prepared.section, MessageKind::Abort, text);
}

const SIGABRT: i32 = 6;

fn message(section: &mut Section, kind: MessageKind, text: &[u8]) {
    if !text.is_empty() {
        section.begin().u8(kind.number()).put(text).write(Kind::Message, &FILE);
    }
}

/// What the program told.
fn of_program(prepared: &mut Prepared) {
    if FILTER_PANICKED.load(SeqCst) {
        write_small(Kind::Missing, b"the program's filter panicked: the crash is kept", &FILE);
    }
    let (section, begun) = (&mut prepared.section, prepared.begun);
    program::each_note(|key, value| section.begin().short(key).put(value).write(Kind::Note, &FILE));
    program::each_breadcrumb(|time, text| {
        section.begin().u64(time.saturating_sub(begun)).put(text).write(Kind::Breadcrumb, &FILE);
    });
}

/// Resources: stack, core, processes, open files, address space. Linux, `include/uapi/asm-generic/resource.h`.
const RESOURCES: [u32; 5] = [3, 4, 6, 7, 9];
/// Open files that are listed; all are counted.
const MAX_OPEN_FILES: u32 = 256;
/// Bytes of a section of mappings or memory.
const PIECE: usize = 32 << 10;

fn of_process(prepared: &mut Prepared, directory: &Directory) {
    #[cfg(target_os = "linux")]
    mappings(prepared);
    let section = &mut prepared.section;
    for resource in RESOURCES {
        if let Some((soft, hard)) = raw_file::limit(resource) {
            section.begin().u32(resource).u64(soft).u64(hard).write(Kind::Limit, &FILE);
        }
    }
    let mut count = 0_u32;
    let listed = raw_file::open_files(|number, target| {
        // The crash file itself, and what is open for it alone.
        if FILE.is(number) || directory.holds(number) {
            return;
        }
        count = count.saturating_add(1);
        if count <= MAX_OPEN_FILES {
            section.begin().u32(number).put(target).write(Kind::OpenFile, &FILE);
        }
    });
    if listed.is_ok() {
        section.begin().u32(count).write(Kind::OpenFiles, &FILE);
    }
}

#[cfg(target_os = "linux")]
fn mappings(prepared: &mut Prepared) {
    let Prepared { section, maps, images, .. } = prepared;
    let size = raw_file::read_maps(maps).unwrap_or(0);
    let maps = maps.get(..size).unwrap_or_default();
    for piece in maps.chunks(PIECE) {
        section.begin().put(piece).write(Kind::Maps, &FILE);
    }
    images.read(|images| {
        images.each_newer(maps, section, |image| {
            let _ = FILE.write(image);
        });
    });
}

fn other_threads(prepared: &mut Prepared, crashed: ThreadId, deadline: Instant) {
    let own = ThreadId::current();
    let count = threads(&mut prepared.threads).unwrap_or(0);
    let known = count.min(prepared.threads.len());
    let mut left_out = count.saturating_sub(known);
    for position in 0..known {
        let Some(listed) = prepared.threads.get(position).copied() else { break };
        if listed == own || listed == crashed {
            continue;
        }
        let status = Status::read(listed);
        #[cfg(target_os = "linux")]
        let id = status.as_ref().and_then(Status::own_id).unwrap_or(listed);
        #[cfg(not(target_os = "linux"))]
        let id = listed;
        if id == own || id == crashed {
            continue;
        }
        let name = status.as_ref().map_or("", Status::name);
        // A thread of backtrail's own says nothing.
        #[cfg(not(target_os = "linux"))]
        if name == backtrail_sys::macos::crash::GUARD {
            continue;
        }
        if name == Capturer::REFRESHER {
            continue;
        }
        if Instant::now() >= deadline {
            left_out += 1;
            continue;
        }
        other_thread(prepared, id, number(id, || status), name, deadline);
    }
    if left_out > 0 {
        let mut text = Line::new();
        let _ = write!(text, "{left_out} threads were left out: there are many, or they took too long");
        prepared.section.begin().put(text.bytes()).write(Kind::Missing, &FILE);
    }
}

/// A thread that waits in its own handler, where it can be asked for nothing. Says whether it is one.
#[cfg(target_os = "linux")]
fn also_crashed(prepared: &mut Prepared, id: ThreadId, number: u32, name: &str) -> bool {
    let Some((at, signal)) = backtrail_sys::linux::crash::also_crashed(id) else { return false };
    let mut why = Line::new();
    let _ = write!(why, "crashed, too, by signal {signal}");
    let why = std::str::from_utf8(why.bytes()).unwrap_or_default();
    thread(&mut prepared.section, number, name, 0, Some(at.registers()), why);
    prepared.capturer.at(&at, 0, &mut prepared.frames);
    put_frames(&mut prepared.section, number, &prepared.frames);
    let bytes = prepared.options.other_stack_bytes;
    stack(prepared, at.registers(), bytes);
    true
}

fn other_thread(prepared: &mut Prepared, id: ThreadId, number: u32, name: &str, deadline: Instant) {
    #[cfg(target_os = "linux")]
    if also_crashed(prepared, id, number, name) {
        return;
    }
    let Prepared { section, copy, capturer, .. } = prepared;
    if let Err(error) = capturer.copy_thread(id, deadline, copy) {
        // It may have come to its handler meanwhile.
        #[cfg(target_os = "linux")]
        if also_crashed(prepared, id, number, name) {
            return;
        }
        let Prepared { section, .. } = prepared;
        let mut text = Line::new();
        let _ = write!(text, "{error}");
        let why = std::str::from_utf8(text.bytes()).unwrap_or_default();
        thread(section, number, name, 0, None, why);
        return;
    }
    thread(section, number, name, 0, copy.registers(), "");
    put_frames(section, number, copy.frames());
    let (from, bytes) = copy.bytes();
    for (piece, at) in bytes.chunks(PIECE).zip((from.get()..).step_by(PIECE)) {
        section.begin().u64(at).put(piece).write(Kind::Memory, &FILE);
    }
}
