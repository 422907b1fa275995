//! What Apple's `bug_type` numbers stand for.

/// Types whose body is a crash: JSON (309), text or JSON (109).
pub(super) const CRASHES: [&str; 2] = ["109", "309"];

/// The other types by number.
const KINDS: [(&str, &str); 46] = [
    ("10", "kernel panic"),
    ("11", "spin"),
    ("12", "hang"),
    ("17", "shutdown stall"),
    ("22", "CPU resource diagnostic"),
    ("28", "watchdog report"),
    ("29", "watchdog report"),
    ("98", "jetsam (memory) event"),
    ("110", "kernel panic"),
    ("120", "force-quit report"),
    ("142", "CPU wake-ups report"),
    ("145", "disk writes report"),
    ("151", "forced reset"),
    ("157", "microstackshots"),
    ("174", "microstackshots"),
    ("183", "proactive event"),
    ("185", "resource limit report"),
    ("187", "stuck process report"),
    ("188", "stuck process report"),
    ("195", "Siri search feedback"),
    ("198", "jetsam (memory) event"),
    ("202", "CPU usage report"),
    ("206", "fatal CPU usage report"),
    ("210", "kernel panic"),
    ("211", "analytics aggregate"),
    ("220", "microstackshots"),
    ("222", "long run-loop hang"),
    ("223", "short run-loop hang"),
    ("225", "Xcode beta feedback"),
    ("226", "application log archive"),
    ("227", "thread-count limit report"),
    ("228", "hang of an app"),
    ("243", "compositor hang"),
    ("284", "thread-count limit report"),
    ("288", "stackshot"),
    ("298", "jetsam (memory) event"),
    ("301", "system memory reset"),
    ("308", "OS fault"),
    ("310", "micro run-loop hang"),
    ("313", "Safety Alert"),
    ("327", "thread-count limit report"),
    ("328", "hang of an app"),
    ("385", "resource limit report"),
    ("409", "watchdog report"),
    ("509", "stackshot of a termination"),
    ("521", "watchdog report"),
];

/// The kind that a `bug_type` stands for, crashes excepted.
pub(super) fn name(bug_type: &str) -> Option<&'static str> {
    KINDS.iter().find(|(number, _)| *number == bug_type).map(|(_, name)| *name)
}
