//! The rule on signals that a process sent.

use super::draft::Draft;
use super::facts::Facts;
use super::kill::capitalized;
use super::sender::{Sender, sender};
use super::tables::exceptions::signal_by_name;

/// Codes of a signal that a process sent: nothing that the signal's name stands for has happened.
pub(super) fn sent(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(sender) = sender(facts.report) else { return false };
    let signal = facts.signal();
    // abort() sends its signal itself, and rules further on tell who called it.
    if !signal.starts_with("SIG") || signal == "SIGABRT" && !matches!(sender, Sender::Other(_)) {
        return false;
    }
    let (title, by, next) = match &sender {
        Sender::Itself => (
            format!("The process sent itself {signal}"),
            "The process sent itself".to_owned(),
            "Look at the frame that called raise(), kill() or pthread_kill().",
        ),
        Sender::Other(who) => (
            format!("{signal} sent by another process"),
            format!("{} sent", capitalized(who)),
            "See which process that was; the stacks show what ran at that moment only.",
        ),
        Sender::Untold => (
            format!("{signal} sent by a process"),
            "A process sent".to_owned(),
            "See whether the stack has a call of kill(); else another process sent it.",
        ),
    };
    draft.lead(title, format!("{by} {signal}."));
    let is_fault = matches!(signal, "SIGSEGV" | "SIGBUS" | "SIGILL" | "SIGFPE" | "SIGTRAP" | "SIGSYS");
    let what = signal_by_name(signal).filter(|_| is_fault || matches!(signal, "SIGXCPU" | "SIGXFSZ"));
    if let Some(known) = what {
        draft.say(format!("It does not mean what it says otherwise ({}).", known.meaning));
    }
    draft.causes(match sender {
        Sender::Itself if is_fault => &[
            "A handler of the signal that sends it on after its work: a crash reporter's, or a runtime's.",
            "Code that ends the process that way.",
        ],
        Sender::Itself => &["Code that ends the process that way, or asks for a core of it."],
        _ => &["A person, a script or a supervisor that ended the process, or asked for a core of it."],
    });
    draft.next(next);
    true
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::testing::{Build, report};
    use super::*;
    use crate::attribute;
    use backtrail_model::OwnerKind;
    use backtrail_model::Source;

    fn core(signal: &str, codes: &str) -> Build {
        report("", signal).codes(codes).with(|report| {
            report.source = Source::ElfCore;
            report.process.pid = Some(77);
        })
    }

    #[test]
    fn senders_by_code_and_pid() {
        for (codes, expected) in [
            ("SI_TKILL", Some(Sender::Itself)),
            ("SI_USER from pid 77", Some(Sender::Itself)),
            ("SI_USER from pid 5", Some(Sender::Other("another process (pid 5)".to_owned()))),
            (
                "code 0 (SI_USER from pid 1234, uid 1000), fault addr --------",
                Some(Sender::Other("another process (pid 1234)".to_owned())),
            ),
            ("SI_USER", Some(Sender::Untold)),
            ("SI_USER from pid 0", Some(Sender::Untold)),
            ("SEGV_MAPERR", None),
            ("SI_KERNEL", None),
        ] {
            assert_eq!(sender(&core("SIGSEGV", codes).done()), expected, "{codes}");
        }
    }

    /// Cores of programs that call kill(getpid(), SIGSEGV) and raise(SIGSEGV), and of one that a shell sent SIGSEGV.
    #[test]
    fn a_signal_that_was_sent_is_no_memory_access() {
        for (signal, codes, title) in [
            ("SIGSEGV", "SI_USER from pid 77", "The process sent itself SIGSEGV"),
            ("SIGSEGV", "SI_TKILL", "The process sent itself SIGSEGV"),
            ("SIGSEGV", "SI_USER from pid 5", "SIGSEGV sent by another process"),
            ("SIGXCPU", "SI_USER from pid 5", "SIGXCPU sent by another process"),
            ("SIGSYS", "SI_USER", "SIGSYS sent by a process"),
            ("SIGQUIT", "SI_TKILL from pid 77", "The process sent itself SIGQUIT"),
        ] {
            let explanation = explain(&core(signal, codes).frames("Demo main").done());
            assert_eq!((explanation.rule, explanation.title.as_str()), ("sent-signal", title));
            let text = format!("{explanation:?}");
            for wrong in ["keyboard", "accessed memory", "used more CPU time than its limit\"", "no register"]
            {
                assert!(!text.contains(wrong), "{wrong}: {text}");
            }
        }
        let fault = explain(&core("SIGSEGV", "SEGV_MAPERR").frames("Demo main").done());
        assert_ne!(fault.rule, "sent-signal");
    }

    /// Minidumps have no code for `SI_USER`.
    #[test]
    fn the_innermost_frame_tells_where_no_code_does() {
        let minidump = |signal: &str, frame: &str| {
            report("", signal).with(|report| report.source = Source::Minidump).frames(frame).done()
        };
        let sent = explain(&minidump("SIGSEGV", "libc.so.6 __GI_kill\nDemo main"));
        assert_eq!(sent.title, "The process sent itself SIGSEGV");
        assert_ne!(explain(&minidump("SIGSEGV", "Demo kill_all\nDemo main")).rule, "sent-signal");
    }

    #[test]
    fn ends_from_outside_are_nobodys_on_the_stack() {
        let verdict = |build: Build| {
            let report = build.frames("Demo main").done();
            attribute(&report, &explain(&report)).verdict
        };
        assert_eq!(verdict(core("SIGSEGV", "SI_USER from pid 5")), OwnerKind::Unknown);
        assert_eq!(verdict(report("EXC_CRASH", "SIGTERM")), OwnerKind::Unknown);
        assert_eq!(verdict(core("SIGABRT", "SI_USER from pid 5")), OwnerKind::Unknown);
        assert_eq!(verdict(core("SIGTERM", "SI_TKILL")), OwnerKind::App);
        assert_eq!(verdict(core("SIGABRT", "SI_TKILL")), OwnerKind::App);
    }
}
