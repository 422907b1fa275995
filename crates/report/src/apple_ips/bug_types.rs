//! What Apple's `bug_type` numbers stand for, by the list of log types that its systems ship (`log_types` of the
//! diagnostics configuration), in our words.

/// Types whose body is a crash: JSON (309), text or JSON (109), text of old macOS (9).
pub(super) const CRASHES: [&str; 3] = ["9", "109", "309"];

/// The other types that hold stacks or that people take for crashes, by number.
const KINDS: [(&str, &str); 63] = [
    ("10", "kernel panic"),
    ("11", "spin"),
    ("12", "hang"),
    ("17", "shutdown stall"),
    ("21", "GPU restart"),
    ("22", "CPU resource limit report"),
    ("23", "microstackshots"),
    ("24", "sleep or wake failure"),
    ("28", "watchdog timeout"),
    ("29", "watchdog timeout of a service"),
    ("30", "memory resource limit report"),
    ("44", "disk writes microstackshots"),
    ("98", "jetsam (memory) event"),
    ("110", "kernel panic"),
    ("115", "reset count"),
    ("120", "low battery shutdown"),
    ("142", "CPU wake-ups report"),
    ("144", "disk writes microstackshots"),
    ("145", "disk writes report"),
    ("151", "forced reset"),
    ("152", "memory snapshot"),
    ("154", "memory graph"),
    ("157", "CPU microstackshots"),
    ("159", "baseband crash"),
    ("174", "microstackshots"),
    ("178", "power log"),
    ("183", "software update report"),
    ("184", "GPU restart"),
    ("185", "resource limit report"),
    ("187", "sandbox violation"),
    ("188", "stackshot"),
    ("194", "software restore report"),
    ("198", "jetsam (memory) event"),
    ("202", "CPU usage report"),
    ("204", "automatic bug capture"),
    ("206", "fatal CPU usage report"),
    ("207", "hang or spin"),
    ("210", "kernel panic"),
    ("211", "analytics"),
    ("220", "power microstackshots"),
    ("222", "long run-loop hang"),
    ("223", "short run-loop hang"),
    ("227", "thread-count limit report"),
    ("228", "hang of an app"),
    ("230", "power log"),
    ("238", "app launch diagnostics"),
    ("239", "slow workflow report"),
    ("242", "deadlock report"),
    ("243", "compositor hang"),
    ("248", "app launch report"),
    ("284", "GPU event"),
    ("288", "stackshot"),
    ("298", "jetsam (memory) event"),
    ("301", "system memory reset"),
    ("302", "audio glitch report"),
    ("308", "OS fault"),
    ("310", "micro run-loop hang"),
    ("327", "thread-count limit report"),
    ("328", "hang of an app"),
    ("385", "resource limit report"),
    ("409", "system watchdog crash"),
    ("410", "kernel panic"),
    ("509", "stackshot of a termination"),
];

/// The kind that a `bug_type` stands for, crashes excepted.
pub(super) fn name(bug_type: &str) -> Option<&'static str> {
    KINDS.iter().find(|(number, _)| *number == bug_type).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_one_kind_each() {
        let mut numbers: Vec<u32> = KINDS.iter().map(|(number, _)| number.parse().unwrap()).collect();
        assert!(numbers.is_sorted());
        numbers.dedup();
        assert_eq!(numbers.len(), KINDS.len());
        assert!(CRASHES.iter().all(|crash| name(crash).is_none()));
    }
}
