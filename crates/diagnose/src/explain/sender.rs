//! Signals that a process sent, in the place of the processor or the kernel: Linux's `siginfo` tells. Cores and tombstones have
//! it as `SI_USER from pid 1234`.

use crate::suspect::skip::sends_signal;
use backtrail_core::Trust;
use backtrail_model::Report;

/// Who sent a signal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// The process itself.
    Itself,
    /// Another process; how a sentence calls it.
    Other(String),
    /// Some process: the report does not say which.
    Untold,
}

/// Codes that the kernel gives where a process sent the signal: by kill(), by sigqueue(), by tgkill().
const SENT: [&str; 3] = ["SI_USER", "SI_QUEUE", "SI_TKILL"];

/// Who sent the signal that ended the process; `None` where nobody did, or the report does not tell.
pub(crate) fn sender(report: &Report) -> Option<Sender> {
    let exception = report.exception.as_ref()?;
    let Some(codes) = exception.codes.as_deref() else {
        let is_unix = exception.kind.is_none();
        return (is_unix && was_sending(report)).then_some(Sender::Itself);
    };
    let code = SENT.into_iter().find(|code| words(codes).any(|word| word == *code))?;
    let by = words(codes).skip_while(|word| *word != "pid").nth(1).and_then(|pid| pid.parse::<u64>().ok());
    // Pid 0 is a sender outside of the process's own namespace, or none that was recorded.
    match by.filter(|by| *by != 0) {
        Some(by) if Some(by) == report.process.pid => Some(Sender::Itself),
        Some(by) => Some(Sender::Other(format!("another process (pid {by})"))),
        // tgkill() names a thread of a process: raise(), pthread_kill() and abort() call it.
        None if code == "SI_TKILL" => Some(Sender::Itself),
        // bionic's abort() and raise() send by rt_tgsigqueueinfo().
        None if code == "SI_QUEUE" && report.source.is_android_or_java() => Some(Sender::Itself),
        None => Some(Sender::Untold),
    }
}

/// Whether the thread that the signal came to was just sending one: nothing else happens in these functions. Older minidumps have
/// no code, and others have none for `SI_USER`.
fn was_sending(report: &Report) -> bool {
    let is_fault = |signal: &str| FAULTS.contains(&signal);
    let is_fault =
        report.exception.as_ref().and_then(|exception| exception.signal.as_deref()).is_some_and(is_fault);
    let innermost = report.crashed().and_then(|thread| thread.frames.first());
    is_fault && innermost.is_some_and(|frame| frame.trust != Trust::Scan && sends_signal(frame))
}

/// Signals of faults.
const FAULTS: [&str; 5] = ["SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP"];

fn words(codes: &str) -> impl Iterator<Item = &str> {
    codes.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Signals by which others ask a process to end. None of them is the processor's finding.
const ASKING: [&str; 6] = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"];

/// How a sentence tells that the process was ended by a signal from outside; `None` where it was not. Without a word of who
/// sent it, signals that ask for an end count.
pub(crate) fn sent_from_outside(report: &Report) -> Option<String> {
    let exception = report.exception.as_ref()?;
    let signal = exception.signal.as_deref()?;
    // What the main thread did is why the host ended it.
    if exception.subtype.as_deref().map(str::trim) == Some("LAUNCH_HANG") {
        return None;
    }
    match sender(report) {
        Some(Sender::Itself) => None,
        Some(Sender::Other(who)) => Some(format!("{who} sent {signal}")),
        Some(Sender::Untold) if signal == "SIGABRT" => None,
        Some(Sender::Untold) => Some(format!("a process sent {signal}; the report does not tell which")),
        None => ASKING
            .contains(&signal)
            .then(|| format!("{signal} asks for an end; the report does not tell who sent it")),
    }
}
