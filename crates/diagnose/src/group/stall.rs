//! Stalls and lockups of Linux's kernel are reported by an interrupt, whose functions are the same in all of them. What it
//! interrupted is what tells one from another.

use backtrail_core::Trust;
use backtrail_model::{Frame, Report, Source};

/// What the reader calls such events.
const STALLS: [&str; 4] = ["RCU stall", "soft lockup", "hard lockup", "lockup"];

/// Functions in which the processor's tick and its watchdogs look for stalls. Other interrupts may be what stalls.
const REPORTING: [&str; 12] = [
    "update_process_times",
    "tick_sched_handle",
    "tick_sched_timer",
    "tick_nohz_handler",
    "tick_periodic",
    "rcu_check_callbacks",
    "rcu_sched_clock_irq",
    "watchdog_timer_fn",
    "nmi_cpu_backtrace",
    "nmi_handle",
    "do_nmi",
    "exc_nmi",
];

/// Where processors enter the kernel for an interrupt: what is behind was interrupted.
const ENTRIES: [&str; 14] = [
    "asm_common_interrupt",
    "asm_exc_nmi",
    "common_interrupt",
    "ret_from_intr",
    "end_repeat_nmi",
    "nmi",
    "el1_irq",
    "el0_irq",
    "el1h_64_irq",
    "el0t_64_irq",
    "__irq_svc",
    "__irq_usr",
    "call_on_irq_stack",
    "handle_exception",
];

/// x86's timer has several names, one in another: `trace_apic_timer_interrupt`, `asm_sysvec_apic_timer_interrupt`.
const TIMER: &str = "apic_timer_interrupt";

/// The thread that misses the stalled processor. Its stack, which reports show first, is always the same.
const WAITING: &str = "rcu_gp_kthread";

/// Frames looked at: interrupts have few.
const MAX_FRAMES: usize = 48;

fn is_stall(report: &Report) -> bool {
    let kind = report.exception.as_ref().and_then(|exception| exception.kind.as_deref());
    report.source == Source::LinuxKernel && kind.is_some_and(|kind| STALLS.contains(&kind))
}

/// Names without what compilers put behind them: `.cold`, `.isra.0`.
fn plain_names(frame: &Frame) -> impl Iterator<Item = &str> {
    frame.names().map(|name| name.split('.').next().unwrap_or(name))
}

fn is_entry(frame: &Frame) -> bool {
    plain_names(frame).any(|name| name.contains(TIMER) || ENTRIES.contains(&name))
}

/// The function of arm's interrupt controller, where rows name each function with its caller and the entry's own row is left out.
fn is_handler(frame: &Frame) -> bool {
    plain_names(frame).any(|name| name == "gic_handle_irq")
}

/// The stack of the processor that stalls, where that of the thread which misses it is shown first.
pub(super) fn stalled(report: &Report) -> Option<(String, Vec<&Frame>)> {
    let threads = &report.process.threads;
    let first = threads.first().filter(|_| is_stall(report))?;
    if !first.frames.iter().any(|frame| plain_names(frame).any(|name| name == WAITING)) {
        return None;
    }
    threads.iter().skip(1).find_map(|thread| {
        let frames: Vec<&Frame> = thread.frames.iter().filter(|frame| frame.trust != Trust::Scan).collect();
        (reporting(report, &frames) > 0).then(|| (format!("Thread {}", thread.number), frames))
    })
}

/// How many of the innermost frames are those of the interrupt that reported a stall. 0 where none is, or nothing lies behind.
pub(super) fn reporting(report: &Report, frames: &[&Frame]) -> usize {
    if !is_stall(report) {
        return 0;
    }
    let looked_at = frames.get(..frames.len().min(MAX_FRAMES)).unwrap_or_default();
    let entry = looked_at.iter().position(|frame| is_entry(frame));
    let Some(entry) = entry.or_else(|| looked_at.iter().position(|frame| is_handler(frame))) else {
        return 0;
    };
    let inner = looked_at.get(..entry).unwrap_or_default();
    if !inner.iter().any(|frame| plain_names(frame).any(|name| REPORTING.contains(&name))) {
        return 0;
    }
    let behind = looked_at.get(entry..).unwrap_or_default();
    let count = entry + behind.iter().take_while(|frame| is_entry(frame) || is_handler(frame)).count();
    if count < frames.len() { count } else { 0 }
}
