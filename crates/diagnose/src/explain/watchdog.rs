//! The watchdog's account: `… exhausted real (wall clock) time allowance of 19.97 seconds`, and what the processors
//! did meanwhile.

use super::words::{decimal_after, one_line};

/// What the account says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Account {
    /// Seconds that were allowed.
    pub(crate) allowance: Option<String>,
    /// `scene-create`, `scene-update`…
    pub(crate) event: Option<String>,
    /// Whether the allowance was one of CPU time.
    pub(crate) of_cpu: bool,
    /// Share of all processors' time that all processes used, in percent.
    total_share: Option<u32>,
    /// Share that this app used, in percent.
    app_share: Option<u32>,
    /// Seconds of CPU time that this app used.
    app_seconds: Option<String>,
    /// `Foreground` or `Background`.
    visibility: Option<String>,
    /// The account's lines.
    pub(crate) evidence: Vec<String>,
}

/// Above this share of all processors' time the app itself was busy. On two to six processors one busy main thread
/// makes 17 to 50 %.
const BUSY_SHARE: u32 = 12;
/// Above this share of the allowance one thread was busy for most of it.
const BUSY_PART: f64 = 0.5;

/// Events as the account names them, and what the app was to do.
const EVENTS: [(&str, &str); 8] = [
    ("scene-create", "launch and show its first screen"),
    ("scene-update", "update its screen"),
    ("process-launch", "launch"),
    ("process-exit", "end"),
    ("suspend", "go to the background"),
    ("resume", "come back from the background"),
    ("terminate", "end"),
    ("launch", "launch"),
];

impl Account {
    /// Reads the account; what it does not say stays empty.
    pub(crate) fn read(text: &str) -> Self {
        let value = |key: &str| {
            let rest = text.split_once(key)?.1.trim_start();
            let end = rest.find(['|', '\n', ';', ' ', ',']).unwrap_or(rest.len());
            rest.get(..end).map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
        };
        let allowance = decimal_after(text, "time allowance of")
            .or_else(|| decimal_after(text, "failed to terminate gracefully after"));
        let named =
            EVENTS.iter().map(|(event, _)| *event).find(|event| text.contains(&format!("{event} watchdog")));
        let mut account = Self {
            allowance: allowance.map(str::to_owned),
            event: value("WatchdogEvent:").or_else(|| named.map(str::to_owned)).or_else(|| old_event(text)),
            of_cpu: text.contains("CPU time allowance") || text.contains("cpu time allowance"),
            total_share: share(text, "lapsed total CPU time"),
            app_share: share(text, "lapsed application CPU time"),
            app_seconds: decimal_after(text, "lapsed application CPU time (seconds):").map(str::to_owned),
            visibility: value("ProcessVisibility:"),
            evidence: Vec::new(),
        };
        account.evidence = evidence(text);
        account
    }

    /// Whether the app was busy (true) or waited (false), where the account tells.
    pub(crate) fn busy(&self) -> Option<bool> {
        let share = self.app_share?;
        let seconds = self.app_seconds.as_deref().and_then(|seconds| seconds.parse::<f64>().ok());
        let allowed = self
            .allowance
            .as_deref()
            .and_then(|seconds| seconds.parse::<f64>().ok())
            .filter(|allowed| *allowed > 0.0);
        let part = seconds.zip(allowed).map(|(seconds, allowed)| seconds / allowed);
        let busy_part = part.map(|part| part >= BUSY_PART);
        Some(busy_part.unwrap_or(false) || share >= BUSY_SHARE)
    }

    /// A sentence on what the numbers mean.
    pub(crate) fn verdict(&self) -> String {
        let phase =
            self.event.as_deref().and_then(|event| EVENTS.iter().find(|(known, _)| event.contains(known)));
        let task = phase
            .map(|(_, task)| format!("It was to {task}"))
            .unwrap_or_else(|| "It had a task to finish".to_owned());
        let of_cpu = if self.of_cpu { " of processor time" } else { "" };
        let within = self
            .allowance
            .as_deref()
            .map(|seconds| format!(" within {seconds} seconds{of_cpu}"))
            .unwrap_or_default();
        let share = self.app_share.unwrap_or_default();
        let seconds = self
            .app_seconds
            .as_deref()
            .map(|seconds| format!("{seconds} s of CPU time, "))
            .unwrap_or_default();
        let rest = match self.busy() {
            Some(true) => format!("It was busy: it used {seconds}{share} % of all processors."),
            Some(false) if self.total_share.is_some_and(|total| total >= 70) => {
                format!(
                    "It hardly ran ({seconds}{share} % of all processors) while others kept the processors busy: it waited, or got no turn."
                )
            }
            Some(false) => format!(
                "It hardly ran ({seconds}{share} % of all processors): the main thread was waiting, not working."
            ),
            None => "The report does not tell whether it was busy or waiting.".to_owned(),
        };
        let seen = self
            .visibility
            .as_deref()
            .filter(|seen| *seen != "Unknown")
            .map(|seen| format!(" in the {}", seen.to_lowercase()))
            .unwrap_or_default();
        format!("{task}{within}{seen}. {rest}")
    }
}

/// iOS 3 to 8 wrote `com.acme.demo failed to launch in time`.
fn old_event(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("failed to ")?;
    let (event, _) = rest.split_once(" in time")?;
    EVENTS.iter().find(|(known, _)| *known == event).map(|(known, _)| (*known).to_owned())
}

/// `… 0.070, 0% CPU` behind the key.
fn share(text: &str, key: &str) -> Option<u32> {
    let (_, rest) = text.split_once(key)?;
    let (before, _) = rest.split_once('%')?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The lines that matter, as they stand.
fn evidence(text: &str) -> Vec<String> {
    // Event, allowance and visibility are told in words.
    const KEYS: [&str; 2] = ["lapsed total CPU time", "lapsed application CPU time"];
    let parts = text.split(['|', '\n']).map(|part| part.trim().trim_matches(['"', ',', '(', ')']).trim());
    parts.filter(|part| KEYS.iter().any(|key| part.contains(key))).take(8).map(one_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "SPRINGBOARD, scene-create watchdog transgression: application<com.x>:31 exhausted real (wall clock) time allowance of 19.97 seconds | ProcessVisibility: Foreground | ProcessState: Running | WatchdogEvent: scene-create | WatchdogVisibility: Foreground | WatchdogCPUStatistics: ( | \"Elapsed total CPU time (seconds): 15.390 (user 15.390, system 0.000), 38% CPU\", | \"Elapsed application CPU time (seconds): 0.070, 0% CPU\" | )";
    const NEW: &str = "<RBSTerminateContext| domain:10 code:0x8BADF00D explanation:scene-update watchdog transgression: application<net.x>:62 exhausted real (wall clock) time allowance of 10.00 seconds\nProcessVisibility: Background\nProcessState: Running\nWatchdogEvent: scene-update\nWatchdogVisibility: Background\nWatchdogCPUStatistics: (\n\"Elapsed total CPU time (seconds): 39.500 (user 39.500, system 0.000), 39% CPU\",\n\"Elapsed application CPU time (seconds): 21.283, 21% CPU\"\n) reportType:CrashLog>";

    #[test]
    fn a_visibility_that_is_unknown_is_not_told() {
        let verdict = Account::read(&NEW.replace("Background", "Unknown")).verdict();
        assert!(!verdict.contains("unknown") && verdict.contains("within 10.00 seconds."), "{verdict}");
    }

    #[test]
    fn the_one_line_account_of_older_systems() {
        let account = Account::read(OLD);
        assert_eq!(
            (account.allowance.as_deref(), account.event.as_deref()),
            (Some("19.97"), Some("scene-create"))
        );
        assert_eq!((account.busy(), account.total_share), (Some(false), Some(38)));
        assert!(
            account
                .verdict()
                .contains("launch and show its first screen within 19.97 seconds in the foreground"),
            "{}",
            account.verdict()
        );
        assert!(
            account
                .evidence
                .iter()
                .any(|line| line == "Elapsed application CPU time (seconds): 0.070, 0% CPU"),
            "{:?}",
            account.evidence
        );
    }

    #[test]
    fn the_account_of_newer_systems() {
        let account = Account::read(NEW);
        assert_eq!(
            (account.allowance.as_deref(), account.event.as_deref()),
            (Some("10.00"), Some("scene-update"))
        );
        assert_eq!(account.busy(), Some(true));
        assert!(
            account.verdict().contains("busy: it used 21.283 s of CPU time, 21 %"),
            "{}",
            account.verdict()
        );
    }

    #[test]
    fn the_account_of_the_first_systems() {
        let account = Account::read(
            "com.acme.x failed to launch in time\nelapsed total CPU time (seconds): 20.090 (user 11.400, system 8.690), 100% CPU\nelapsed application CPU time (seconds): 1.210, 6% CPU",
        );
        assert_eq!(
            (account.event.as_deref(), account.busy(), account.total_share),
            (Some("launch"), Some(false), Some(100))
        );
        assert!(account.verdict().contains("others kept the processors busy"), "{}", account.verdict());
    }

    #[test]
    fn what_is_not_told_is_not_claimed() {
        let account = Account::read("nothing of use");
        assert_eq!((account.busy(), account.allowance.clone(), account.event.clone()), (None, None, None));
        assert!(account.verdict().contains("does not tell whether it was busy"));
        assert!(Account::read("").evidence.is_empty());
    }
}
