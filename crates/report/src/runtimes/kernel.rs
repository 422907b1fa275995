//! Linux's kernel: oopses, panics, warnings, stalls, hung tasks, and what its checkers find, as dmesg has them.
//!
//! Rows with `?` were found on the stack without being proven: guesses. Rows and registers stay in the log also, which has
//! the sizes of functions and the times, and lines of other processors between them.

use super::log::{Log, Reader, drive, guess, named, word};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{AppInfo, Exception, Field, Frame, Register, Report, Source, Thread};

/// How the lines begin that say what happened, and the kind that each stands for.
const EVENTS: [(&str, &str); 32] = [
    ("Kernel panic - not syncing", "kernel panic"),
    ("BUG: unable to handle ", "page fault"),
    ("BUG: kernel NULL pointer dereference", "null pointer dereference"),
    ("BUG: soft lockup", "soft lockup"),
    ("BUG: workqueue lockup", "workqueue lockup"),
    ("BUG: scheduling while atomic", "scheduling while atomic"),
    ("BUG: sleeping function called from invalid context", "sleep in atomic context"),
    ("BUG: KASAN: ", "KASAN"),
    ("BUG: KMSAN: ", "KMSAN"),
    ("BUG: KCSAN: ", "KCSAN"),
    ("BUG: KFENCE: ", "KFENCE"),
    ("BUG: memory leak", "memory leak"),
    ("BUG: ", "BUG"),
    ("watchdog: BUG: soft lockup", "soft lockup"),
    ("watchdog: Watchdog detected hard LOCKUP", "hard lockup"),
    ("NMI watchdog: ", "lockup"),
    ("WARNING: possible circular locking dependency", "lock order"),
    ("WARNING: possible recursive locking", "lock order"),
    ("WARNING: possible irq lock inversion", "lock order"),
    ("WARNING: inconsistent lock state", "lock state"),
    ("WARNING: suspicious RCU usage", "RCU usage"),
    ("WARNING: ", "warning"),
    ("INFO: task ", "hung task"),
    ("INFO: rcu", "RCU stall"),
    ("rcu: INFO: ", "RCU stall"),
    ("INFO: possible circular locking dependency", "lock order"),
    ("Unable to handle kernel ", "page fault"),
    ("Internal error: ", "oops"),
    ("Oops: ", "oops"),
    ("general protection fault", "general protection fault"),
    ("kernel BUG at ", "BUG"),
    ("UBSAN: ", "UBSAN"),
];

/// How OpenZFS's own checks begin (`include/os/linux/spl/sys/debug.h`); behind the condition stands `failed`.
const ZFS_CHECKS: [&str; 5] = ["VERIFY(", "VERIFY3", "VERIFY0(", "ASSERT(", "ASSERT3"];
/// What a failed check of ZFS is called.
const ZFS: &str = "failed check of ZFS";

/// Whether a line is OpenZFS's word of a check that failed, or of the place (`spl_panic` in `module/os/linux/spl/spl-err.c`):
/// `VERIFY3(a >= b) failed (1 >= 2)`, `PANIC at arc.c:12:arc_read()`, `SPLError: 6797:0:(zfs_znode.c:330:f()) SPL PANIC`.
fn is_zfs(line: &str) -> bool {
    let is_check = ZFS_CHECKS.iter().any(|begin| line.starts_with(begin)) && line.contains(") failed");
    is_check || is_zfs_place(line)
}

fn is_zfs_place(line: &str) -> bool {
    let place = line.strip_prefix("PANIC at ").and_then(|rest| rest.strip_suffix("()"));
    let is_place = place.is_some_and(|place| {
        let mut parts = place.split(':');
        let (file, number) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        file.contains(".c") && number.parse::<u32>().is_ok() && parts.count() == 1
    });
    is_place || line.starts_with("SPLError: ") && line.ends_with(" SPL PANIC")
}

/// Further lines of the same that begin otherwise.
const OTHERS: [(&str, &str); 7] = [
    ("divide error: ", "divide error"),
    ("invalid opcode: ", "invalid opcode"),
    ("stack segment: ", "stack segment"),
    ("int3: ", "breakpoint"),
    ("double fault: ", "double fault"),
    ("unregister_netdevice: waiting for ", "reference leak"),
    ("Kernel BUG at ", "BUG"),
];

/// The kind of event that a line speaks of.
pub(super) fn event(line: &str) -> Option<&'static str> {
    if is_zfs(line) {
        return Some(ZFS);
    }
    let known = EVENTS.iter().chain(&OTHERS).find(|(begin, _)| line.starts_with(begin))?;
    let rest = line.get(known.0.len()..).unwrap_or_default();
    // Other programs warn and inform, too.
    let fits = match known.0 {
        "WARNING: " => {
            rest.starts_with("CPU: ")
                || rest.starts_with("at ")
                || rest.contains(" at ") && rest.contains("+0x")
                || rest.contains("lock")
                || rest.starts_with("suspicious")
        }
        "INFO: task " => rest.contains("blocked for more than") || rest.contains("hung"),
        "INFO: rcu" | "rcu: INFO: " => rest.contains("stall"),
        "UBSAN: " => rest.contains(" in "),
        "Internal error: " => rest.contains('['),
        "general protection fault" => !line.contains(" ip:"),
        "Oops: " => {
            rest.contains('[') || rest.contains("general") || rest.starts_with("0") || rest.contains(": ")
        }
        "NMI watchdog: " => rest.contains("LOCKUP") || rest.contains("lockup"),
        _ => true,
    };
    fits.then_some(known.1)
}

/// Whether a line tells that the text is of this kind. The words alone also occur in programs' logs.
pub(super) fn is_sure(line: &str) -> bool {
    line.starts_with("Kernel panic - not syncing")
        || line.starts_with("BUG: KASAN: ")
        || line.starts_with("BUG: unable to handle ")
        || line.starts_with("BUG: kernel NULL pointer dereference")
        || line.starts_with("Unable to handle kernel ")
        || line.starts_with("watchdog: BUG: soft lockup")
        || line.starts_with("kernel BUG at ")
        || (line.starts_with("WARNING: CPU: ") && line.contains(" PID: "))
        || (line.starts_with("INFO: task ") && line.contains(" blocked for more than "))
        || (line.starts_with("RIP: 00") && line.contains("+0x"))
        || is_zfs_place(line)
}

/// Whether a line is one that the kernel also prints for other reasons: of a program's fault, or when memory runs out.
pub(super) fn is_part(line: &str) -> bool {
    matches!(line, "Call Trace:" | "Call trace:")
        || (line.starts_with("CPU: ") && line.contains(" PID: ") && line.contains(" Comm: "))
}

/// Reads such a log.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::LinuxKernel, limits);
    let mut reader = Kernel {
        log,
        title: String::new(),
        context: Thread::default(),
        top: None,
        is_over: false,
        is_trace: false,
    };
    drive(&mut reader, input, start);
    reader.place_top();
    let mut report = reader.log.finish();
    if report.exception.is_none() && report.process.threads.is_empty() && report.process.backtraces.is_empty()
    {
        return None;
    }
    report.process.name = Some("Linux".to_owned());
    if let Some(thread) = report.process.threads.first_mut() {
        thread.crashed = true;
        report.process.crashed_thread = Some(0);
    }
    Some(report)
}

struct Kernel<'l> {
    log: Log<'l>,
    /// The last line that may be a stack's title.
    title: String,
    /// The task that the next stack is of.
    context: Thread,
    /// The instruction that the processor was at, for the stack that follows.
    top: Option<Frame>,
    /// Behind the end of the first report; what follows repeats its registers.
    is_over: bool,
    /// Whether rows may follow.
    is_trace: bool,
}

impl<'l> Reader<'l> for Kernel<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return false;
        }
        if trimmed.starts_with("---[ end ") {
            self.is_over = true;
            self.is_trace = false;
            self.log.end_stack();
            return false;
        }
        if let Some(kind) = event(trimmed) {
            self.event(kind, trimmed);
        }
        if self.registers(trimmed) {
            return false;
        }
        if let Some(rest) = pointer(trimmed) {
            self.instruction(rest, line);
            return false;
        }
        self.task(trimmed);
        if is_title(trimmed) {
            self.log.end_stack();
            trimmed.clone_into(&mut self.title);
            self.is_trace = true;
            return false;
        }
        if let Some(frame) = row(trimmed).filter(|_| self.is_trace || text.starts_with(' ')) {
            if !self.log.is_in_stack() && !self.begin() {
                return false;
            }
            let index = self.log.next_index();
            // A row of the form `[<c01>] (f) from [<c02>]` has both.
            self.log.push(Frame { index, span: Some(line.span.clone()), ..frame });
        }
        false
    }
}

impl Kernel<'_> {
    fn event(&mut self, kind: &str, line: &str) {
        let report = &mut self.log.report;
        if report.exception.is_none() {
            let number = [
                "at address: ",
                "at virtual address ",
                "address: ",
                "at address ",
                "request at ",
                "at addr ",
            ]
            .iter()
            .find_map(|mark| word(line.split_once(mark)?.1.trim_start_matches("0x")).0.parse_hex());
            report.exception = Some(Exception {
                kind: Some(kind.to_owned()),
                message: Some(line.to_owned()),
                address: number.map(Avma::new),
                ..Exception::default()
            });
        }
        if report.app_info.len() < 16 {
            report.app_info.push(AppInfo { image: None, lines: vec![line.to_owned()] });
        }
    }

    /// `CPU: 1 PID: 12 Comm: bash Not tainted 6.1.0 #1`, `task:bash state:D stack:0 pid:12 ppid:1`,
    /// `INFO: task bash:12 blocked for more than 120 seconds.`
    fn task(&mut self, line: &str) {
        if line.starts_with("CPU: ") || line.contains("CPU: ") && line.contains(" Comm: ") {
            let Some((_, comm)) = line.split_once(" Comm: ") else { return };
            let id = line.split_once("PID: ").and_then(|(_, id)| word(id).0.parse().ok());
            let (name, rest) =
                comm.split_once(" Not tainted").or(comm.split_once(" Tainted:")).unwrap_or((comm, ""));
            let state = line.split_once("CPU: ").map(|(_, cpu)| format!("on processor {}", word(cpu).0));
            self.context = Thread { id, name: Some(name.trim().to_owned()), state, ..Thread::default() };
            let mut words = rest.split_whitespace();
            let version =
                words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
            if let Some(version) = version {
                self.log.report.os.get_or_insert_with(|| format!("Linux {version}"));
            }
        } else if let Some(rest) = line.strip_prefix("task:") {
            let (name, rest) = word(rest);
            let state = rest.split_once("state:").map(|(_, state)| word(state).0.to_owned());
            let id = rest.split_once("pid:").and_then(|(_, id)| word(id).0.parse().ok());
            self.log.end_stack();
            self.context = Thread { id, name: Some(name.to_owned()), state, ..Thread::default() };
        } else if let Some(rest) = line.strip_prefix("Hardware name: ") {
            self.log.report.device.get_or_insert_with(|| rest.to_owned());
        } else if let Some(rest) = line.strip_prefix("Modules linked in:") {
            let fields = &mut self.log.report.process.fields;
            if fields.is_empty() {
                fields.push(Field { key: "Modules linked in".to_owned(), value: rest.trim().to_owned() });
            }
        }
    }

    /// The instruction pointer: of the stack that follows, or of what the stack's interrupt interrupted.
    fn instruction(&mut self, rest: &str, line: &Line<'_>) {
        let (segment, place) = rest.split_once(':').unwrap_or(("", rest));
        let place = if segment.is_empty() || segment.len() > 4 { rest } else { place };
        let is_user = segment == "0033" || segment == "0023";
        let Some(mut frame) = row(place.trim()).filter(|_| !is_user && !self.is_over) else { return };
        frame.address = frame.address.map(|address| FrameAddress::Exact(address.raw()));
        frame.span = Some(line.span.clone());
        if self.log.is_in_stack() && self.log.thread().is_some() {
            frame.index = self.log.next_index();
            self.log.push(frame);
        } else if self.log.report.process.threads.is_empty() {
            self.top = self.top.take().or(Some(frame));
        }
    }

    fn begin(&mut self) -> bool {
        let title = std::mem::take(&mut self.title);
        let is_call_trace = title.starts_with("Call ")
            || title.starts_with("Backtrace")
            || title.is_empty()
            || title.starts_with("stack backtrace");
        let context = std::mem::take(&mut self.context);
        let is_first = self.log.report.process.threads.is_empty();
        if is_call_trace && (is_first || context.name.is_some()) {
            let number = self.log.report.process.threads.len() as u64;
            let begun = self.log.begin_thread(Thread { number, ..context });
            self.push_top();
            return begun;
        }
        self.context = context;
        self.log.begin_backtrace(title.trim_end_matches(':'), false)
    }

    fn push_top(&mut self) {
        if let Some(frame) = self.top.take() {
            self.log.push(frame);
        }
    }

    /// Makes a stack of the instruction alone, where no rows followed.
    fn place_top(&mut self) {
        if self.top.is_some() && self.log.report.process.threads.is_empty() {
            let context = std::mem::take(&mut self.context);
            if self.log.begin_thread(context) {
                self.push_top();
            }
        }
    }

    /// `RAX: 0000000000000001 RBX: ffff888042681740`, `x29: ffff x28: ffff`, `r7 : 00000001`.
    fn registers(&mut self, line: &str) -> bool {
        let line = line.replace(" : ", ": ");
        let mut words = line.split_whitespace();
        let mut registers = Vec::new();
        while let Some(name) = words.next() {
            let Some(name) = name.strip_suffix(':').filter(|name| is_register(name)) else { return false };
            let Some(value) = words.next() else { return false };
            // `RSP: 0018:ffffc90012c7f490`.
            let value = value.rsplit(':').next().unwrap_or(value);
            let is_value = matches!(value.len(), 8 | 16);
            let Some(value) = value.parse_hex().filter(|_| is_value) else { return false };
            registers.push(Register { name: name.to_owned(), value, note: None });
            if name == "RSP" {
                break;
            }
        }
        if registers.is_empty() || self.is_over {
            return !registers.is_empty();
        }
        // They stand before the stack on most processors.
        let thread = match self.log.report.process.threads.first_mut() {
            Some(thread) => thread,
            None => &mut self.context,
        };
        if thread.registers.len() < 64
            && registers.iter().all(|it| thread.registers.iter().all(|known| known.name != it.name))
        {
            thread.registers.append(&mut registers);
        }
        true
    }
}

/// Reading of digits without `0x`.
trait Hexadecimal {
    fn parse_hex(&self) -> Option<u64>;
}

impl Hexadecimal for str {
    fn parse_hex(&self) -> Option<u64> {
        u64::from_str_radix(self.trim_start_matches("0x").trim_end_matches([',', ')', ']']), 16).ok()
    }
}

fn is_register(name: &str) -> bool {
    let rest = name.strip_prefix(['R', 'x', 'r', 'E', 's', 'f', 'C', 'D', 'p', 'l', 'i']);
    name.len() <= 6
        && rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        && name != "CPU"
        && name != "PID"
}

/// What stands behind the name of the instruction pointer.
fn pointer(line: &str) -> Option<&str> {
    ["RIP: ", "EIP: ", "IP: ", "pc : ", "PC is at ", "epc : "].iter().find_map(|name| line.strip_prefix(name))
}

/// Lines that the rows of a stack follow.
fn is_title(line: &str) -> bool {
    let is_known = [
        "Call Trace",
        "Call trace",
        "Backtrace",
        "stack backtrace",
        "-> #",
        "Allocated by task",
        "Freed by task",
        "Last potentially related work",
    ]
    .iter()
    .any(|begin| line.starts_with(begin));
    let is_titled = line.ends_with(':') && !line.contains("+0x") && line.contains(' ') && line.len() < 120;
    is_known || is_titled
}

/// `? f+0x12/0x40 [module]`, `[<ffffffff81234567>] f+0x12/0x40`, `f+0x12/0x40 fs/x.c:12`,
/// `[<c0102>] (f) from [<c0103>] (g+0x1/0x2)`.
fn row(line: &str) -> Option<Frame> {
    let mut rest = line;
    let mut address = None;
    if let Some((inside, behind)) = rest.strip_prefix("[<").and_then(|rest| rest.split_once(">]")) {
        address = inside.parse_hex();
        rest = behind.trim_start();
    }
    let is_guess = rest.starts_with("? ") || rest.starts_with("(?) ");
    rest = rest.strip_prefix("? ").or(rest.strip_prefix("(?) ")).unwrap_or(rest).trim_start();
    if let Some(inner) = rest.strip_prefix('(') {
        rest = inner.split(')').next().unwrap_or(inner);
    }
    let (symbol, behind) = word(rest);
    let (name, distance) = match symbol.split_once("+0x") {
        Some((name, distance)) => (name, Some(distance)),
        // Older processors' rows have no distance.
        None if address.is_some() && !symbol.is_empty() => (symbol, None),
        None => return None,
    };
    let (offset, size) = match distance {
        Some(distance) => {
            distance.split_once("/0x").map(|(offset, size)| (offset, Some(size))).unwrap_or((distance, None))
        }
        None => ("", None),
    };
    let is_name = !name.is_empty()
        && name.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b':' | b'<' | b'>' | b'-')
        });
    let offset = offset.parse_hex();
    if !is_name || (distance.is_some() && offset.is_none()) || (size.is_none() && address.is_none()) {
        return None;
    }
    let mut found = None;
    let mut module = None;
    for part in behind.split_whitespace() {
        let inside = part.strip_prefix('[').map(|part| part.trim_end_matches(']'));
        if inside.is_some_and(|inside| !inside.starts_with("inline") && !inside.is_empty()) {
            module = module.or(inside);
        } else if found.is_none() {
            found = super::log::place(part);
        }
    }
    let mut frame = named(0, name, found);
    if let Some(symbol) = &mut frame.reported {
        symbol.offset = offset;
    }
    frame.inlined = behind.contains("[inline]");
    frame.address = address.map(|address| FrameAddress::Return(Avma::new(address)));
    frame.image_name = Some(module.unwrap_or(KERNEL).to_owned());
    Some(if is_guess { guess(frame) } else { frame })
}

/// The kernel's own image.
const KERNEL: &str = "vmlinux";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use backtrail_core::Trust;

    #[test]
    fn an_oops_with_guesses() {
        let report = parse(
            b"[   12.345678] BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
              [   12.345679] #PF: supervisor read access in kernel mode\n\
              [   12.345680] Oops: 0000 [#1] SMP PTI\n\
              [   12.345681] CPU: 3 PID: 412 Comm: cat Not tainted 6.1.0-9-amd64 #1 Debian\n\
              [   12.345682] RIP: 0010:my_read+0x12/0x40 [my_mod]\n\
              [   12.345683] RSP: 0018:ffffc90012c7f490 EFLAGS: 00000246\n\
              [   12.345684] RAX: 0000000000000001 RBX: ffff888042681740 RCX: 0000000000000000\n\
              [   12.345685] Call Trace:\n[   12.345686]  <TASK>\n[   12.345687]  ? show_regs+0x1/0x2\n[   12.345688]  vfs_read+0xa1/0x190\n[   12.345689]  </TASK>\n\
              [   12.345690] ---[ end trace 0000000000000000 ]---\n[   12.345691] RIP: 0010:my_read+0x12/0x40 [my_mod]\n",
            &Limits::default(),
        )
        .unwrap();
        assert_eq!(report.source, Source::LinuxKernel);
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(
            (exception.kind.as_deref(), exception.address),
            (Some("null pointer dereference"), Some(Avma::new(8)))
        );
        let thread = report.crashed().unwrap();
        assert_eq!((thread.name.as_deref(), thread.id, thread.registers.len()), (Some("cat"), Some(412), 4));
        let frames: Vec<_> = thread
            .frames
            .iter()
            .map(|frame| {
                (
                    frame.reported.as_ref().unwrap().name.as_str(),
                    frame.trust,
                    frame.image_name.as_deref().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            frames,
            [
                ("my_read", Trust::Report, "my_mod"),
                ("show_regs", Trust::Scan, "vmlinux"),
                ("vfs_read", Trust::Report, "vmlinux")
            ]
        );
        assert_eq!(report.os.as_deref(), Some("Linux 6.1.0-9-amd64"));
    }
}
