//! Ends by another's hand: the rule, and what the account of each kind adds.

use super::draft::Draft;
use super::facts::{Class, Facts};
use super::file_lock::holders;
use super::kill::{Blame, Killing, account, killing, simulated_note};
use super::tables::namespaces::namespace;
use super::thrown;
use super::waits::{main_thread_activity, releasers};
use super::watchdog::Account;
use super::words::one_line;
use crate::names::{cite, describe, thread_label};

/// A report that somebody asked for.
pub(super) fn simulated(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(note) = simulated_note(facts.report) else { return false };
    draft.lead(
        "A report made on purpose: nothing crashed",
        "Somebody asked for this report; the process went on. It shows what the threads did at that moment.",
    );
    draft.evidence(format!("Exception Note: {note}"));
    draft.cause("A diagnosing tool, or an app that reports a state which it thinks wrong.");
    draft.next("Do not count it as a crash.");
    true
}

/// The system, or another process, ended it.
pub(super) fn killed(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.class == Class::Resource {
        return false;
    }
    let Some(killing) = killing(facts.report) else { return false };
    if killing.is_sent_signal || killing.code.is_none() && says_more(facts, &killing) {
        return false;
    }
    let refused = is_dyld(&killing).then(|| Refused::of(facts)).flatten();
    if let Some(refused) = &refused {
        draft.lead(&refused.title, refused.what);
    } else {
        draft.lead(title(facts, &killing), &killing.meaning);
    }
    // Namespace and code stand at the head of every output; further words do not.
    if is_worded(facts.report) {
        draft.evidence(&killing.evidence);
    }
    if let Some(code) = killing.code.filter(|_| refused.is_none()) {
        draft.causes(code.causes);
    }
    match killing.code.map(|code| code.code) {
        Some(0x8bad_f00d) => watchdog(facts, draft),
        _ => by_namespace(facts, &killing, draft),
    }
    if let Some(code) = killing.code.filter(|_| refused.is_none()) {
        draft.nexts(code.next);
    }
    if let Some(refused) = refused {
        draft.causes(refused.causes);
        draft.nexts(refused.next);
    }
    if killing.blame == Blame::Outside {
        draft.say("The stacks show what ran at that moment; nothing on them is at fault for it.");
    }
    true
}

/// Whether the line that says so has more than a namespace and a code that others tell, and does not follow in parts.
fn is_worded(report: &backtrail_model::Report) -> bool {
    let Some(termination) = &report.termination else { return true };
    let reason = termination.reason.as_deref().unwrap_or_default();
    let is_told = matches!(termination.namespace.as_deref(), Some("TCC" | "DYLD"))
        || reason.contains("RBSTerminateContext")
        || reason.contains("watchdog transgression");
    !reason.trim().is_empty() && !is_told
}

/// A process that ended itself may name a namespace; the exception or bug that a library wrote down tells more.
fn says_more(facts: &Facts<'_>, killing: &Killing) -> bool {
    let is_tcc = killing.namespace.is_some_and(|namespace| namespace.name == "TCC");
    let bug = facts.find_said(|text| text.contains("BUG IN CLIENT OF"));
    facts.class == Class::Abort && !is_tcc && (bug.is_some() || thrown::find(facts).is_some())
}

fn title(facts: &Facts<'_>, killing: &Killing) -> String {
    let report = facts.report;
    if let Some(code) = killing.code {
        let account = Account::read(&all_words(facts));
        let event = account.event.map(|event| format!(" ({event})")).unwrap_or_default();
        let done = if account.of_cpu { "not done with" } else { "not done after" };
        let unit = if account.of_cpu { "s of processor time" } else { "s" };
        let allowance =
            account.allowance.map(|seconds| format!(": {done} {seconds} {unit}")).unwrap_or_default();
        let name = quoted_missing(&all_words(facts)).map(|name| format!(": {name}")).unwrap_or_default();
        return match code.code {
            0x8bad_f00d => format!("{}{event}{allowance}", code.title),
            _ if is_dyld(killing) => format!("{}{name}", code.title),
            number if number > 0xffff => format!("{} ({number:#x})", code.title),
            _ => code.title.to_owned(),
        };
    }
    let by = report.termination.as_ref().and_then(|termination| termination.by_process.as_deref());
    match (killing.namespace.map(|namespace| namespace.name), by) {
        (Some("TCC"), _) => "Private data accessed without a usage description".to_owned(),
        (Some("SIGNAL"), Some(by)) => format!("Killed with SIGKILL by {by}"),
        (None, _)
            if report.termination.as_ref().is_some_and(|termination| termination.namespace.is_some()) =>
        {
            let termination = report.termination.as_ref();
            let name =
                termination.and_then(|termination| termination.namespace.as_deref()).unwrap_or_default();
            let code = termination.and_then(|termination| termination.code);
            let code = code.map(|code| format!(", code {code:#x}")).unwrap_or_default();
            format!("Ended by {}{code}", one_line(name))
        }
        (Some("SIGNAL"), None) | (None, _) => "Killed with SIGKILL".to_owned(),
        (Some(name), _) => format!("Ended by {}", namespace_words(name)),
    }
}

fn namespace_words(name: &str) -> String {
    namespace(name).map_or_else(|| name.to_owned(), |space| format!("{} ({name})", space.meaning))
}

fn is_dyld(killing: &Killing) -> bool {
    killing.namespace.is_some_and(|namespace| namespace.name == "DYLD")
}

/// What each namespace's account adds.
fn by_namespace(facts: &Facts<'_>, killing: &Killing, draft: &mut Draft) {
    match killing.namespace.map(|namespace| namespace.name) {
        Some("DYLD") => dyld(facts, draft),
        Some("TCC") => privacy(facts, draft),
        Some("JETSAM") => draft
            .say("The report does not tell what used the memory: the stacks show what ran at the end only."),
        _ => other(facts, killing, draft),
    }
}

/// The watchdog: how long, how busy, and what the main thread did.
fn watchdog(facts: &Facts<'_>, draft: &mut Draft) {
    let account = Account::read(&all_words(facts));
    account.evidence.iter().for_each(|line| draft.evidence(line));
    draft.say(account.verdict());
    let is_told = main_thread_activity(facts, draft);
    account.busy().iter().filter(|_| !is_told).for_each(|busy| match busy {
        true => draft.cause("A long calculation or a loop without an end on the main thread."),
        false => draft.cause(
            "The main thread waited: for a lock, for another queue or process, for the network or a file.",
        ),
    });
    releasers(facts, draft);
    draft
        .say("The stacks show the last moment only; the work that took the time may have been over by then.");
}

/// The loader: which library or symbol, and who wanted it.
fn dyld(facts: &Facts<'_>, draft: &mut Draft) {
    let account = all_words(facts);
    for mark in ["Library not loaded:", "Symbol not found:", "Referenced from:", "Expected in:", "Reason:"] {
        if let Some(line) = line_after(&account, mark) {
            draft.evidence(format!("{mark} {}", one_line(line)));
        }
    }
    let is_missing = account.contains("no such file") || account.contains("image not found");
    if is_missing && Refused::of(facts).is_none() {
        draft.say("No file was found in any of the places that were tried.");
    }
    // The words of dyld for a path that begins with @rpath, where nothing says what that stands for.
    if account.contains("no LC_RPATH's found") {
        draft.say("The executable has no search path at all (LC_RPATH), so that nothing that is linked by @rpath can be found.");
        draft.cause("The linker was not given `-rpath @executable_path/../Frameworks` (macOS), `@executable_path/Frameworks` (iOS), or `/usr/lib/swift` for Swift's library.");
    }
    if account.contains("terminated at launch") {
        draft.say("The process ended before its own code ran: the stack does not matter.");
    }
}

/// A library that the loader found and could not use: for its signature, for want of memory.
struct Refused {
    title: String,
    what: &'static str,
    causes: &'static [&'static str],
    next: &'static [&'static str],
}

/// What to do about a signature.
const SIGN: &[&str] = &[
    "Sign app and library with one team (\"Embed & Sign\"), and compare what `codesign -dv --verbose=4` says of both.",
    "Only where the library is meant to be foreign: the entitlement com.apple.security.cs.disable-library-validation.",
];

impl Refused {
    fn of(facts: &Facts<'_>) -> Option<Self> {
        let account = all_words(facts);
        let missing = quoted_missing(&account)?;
        let says = |words: &str| account.contains(words);
        // `mremap_encrypted() => -1, errno=12`: ENOMEM of xnu's call for the encrypted pages of apps from the store.
        if says("errno=12") && (says("mremap_encrypted") || says("mmap")) {
            return Some(Self {
                title: format!("A library could not be mapped at launch: {missing} (no memory)"),
                what: "The loader (dyld) found a library that the app needs, and the system had no memory to map it.",
                causes: &[
                    "The device was out of memory, or out of what it keeps for encrypted pages. The app's packaging has no part in it.",
                ],
                next: &[
                    "Count by device and free memory; a restart of the device ends it.",
                    "Fewer and smaller dynamic frameworks need less: link them statically.",
                ],
            });
        }
        // `EPERM` of the call that maps the first page: xnu's check of the signature.
        if says("errno=1 validating first page") {
            return Some(Self {
                title: format!("A library was refused at launch: {missing} (code signature)"),
                what: "The loader (dyld) found a library that the app needs, and the system refused its code signature.",
                causes: &[
                    "The library is not signed, or not with a certificate and a profile that this device accepts for the app.",
                ],
                next: SIGN,
            });
        }
        // In the words of the kernel's signature checks (`AppleMobileFileIntegrity`), which dyld quotes.
        let causes: &[&str] = if says("different Team ID") {
            &[
                "App and library are signed by different teams, which the hardened runtime's library validation forbids: a library of somebody else that was not signed again, or one signed for development in an app for distribution.",
            ]
        } else if says("no Team ID") {
            &[
                "The library is signed ad hoc or with a certificate of no team, which library validation forbids.",
            ]
        } else if says("code signature") && (says("invalid") || says("not valid") || says("not signed")) {
            &[
                "The library was changed after it was signed (a script that strips or patches it), or was not signed with the app.",
            ]
        } else if says("no suitable image found") {
            return Some(Self {
                title: format!("A library was found and could not be loaded at launch: {missing}"),
                what: "The loader (dyld) found a file of that name, and could not use it; the lines behind \"Did find\" say why.",
                causes: &[
                    "The system refused its signature.",
                    "It is for another processor or another system (a simulator's), or its file is damaged.",
                ],
                next: &[
                    "Look at the lines behind \"Did find\"; `lipo -info` and `codesign -dv --verbose=4` tell what the file is.",
                ],
            });
        } else {
            return None;
        };
        Some(Self {
            title: format!("A library was refused at launch: {missing} (code signature)"),
            what: "The loader (dyld) found a library that the app needs, and the system refused its code signature.",
            causes,
            next: SIGN,
        })
    }
}

/// The rest of the line behind a mark; older reports part lines by `|`.
fn line_after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(mark)?;
    Some(rest.split(['\n', '|']).next()?.trim()).filter(|line| !line.is_empty())
}

/// Termination, details, and the sections in which older reports have the loader's words.
fn all_words(facts: &Facts<'_>) -> String {
    let mut text = account(facts.report);
    for said in &facts.said {
        text.push('\n');
        text.push_str(&said.text);
    }
    text
}

/// The library or symbol that the loader did not find.
fn quoted_missing(words: &str) -> Option<String> {
    let name = line_after(words, "Library not loaded:").or_else(|| line_after(words, "Symbol not found:"))?;
    Some(one_line(name))
}

/// Privacy: which key is missing.
fn privacy(facts: &Facts<'_>, draft: &mut Draft) {
    let account = account(facts.report);
    let key = account
        .split(|c: char| !c.is_ascii_alphanumeric())
        .find(|word| word.starts_with("NS") && word.ends_with("UsageDescription"));
    if !account.trim().is_empty() {
        draft.evidence(format!("Termination Reason: {}", one_line(&account)));
    }
    draft.say("The app asked for private data and its Info.plist does not say what for.");
    match key {
        Some(key) => {
            draft.say(format!("The missing key is {key}."));
            draft.next(format!("Add {key} to the Info.plist of the app (or of the extension that asks), with a sentence for the user."));
        }
        None => {
            draft.say("The report does not name the key.");
            draft.next("Add the usage description key for the kind of data that the stack asks for to the Info.plist.");
        }
    }
    draft.cause("A call of an API for private data (camera, microphone, photos, location, contacts…), by the app or by a library in it, without the key.");
}

fn other(facts: &Facts<'_>, killing: &Killing, draft: &mut Draft) {
    let code = killing.code.map(|code| code.code);
    match explanation(&account(facts.report)) {
        Some(words) if !is_worded(facts.report) => draft.evidence(format!("Termination Reason: {words}")),
        Some(words) if !killing.evidence.contains(&words) => {
            draft.evidence(format!("Termination Description: {words}"));
        }
        Some(_) => {}
        None if killing.code.is_none() => draft.say("The report does not tell why."),
        None => {}
    }
    // The device's own figures: `Thermal Level: 16`, `Thermal Sensors: 11336 29078 …` (iOS 5).
    let figures = facts.report.fields.iter().filter(|field| field.key.starts_with("Thermal"));
    figures.take(4).for_each(|field| draft.evidence(format!("{}: {}", field.key, field.value)));
    Account::read(&all_words(facts)).evidence.iter().for_each(|line| draft.evidence(line));
    if code == Some(0xdead_10cc) {
        file_lock(facts, draft);
    } else if killing.blame != Blame::Outside && killing.namespace.is_none_or(|space| space.name != "SIGNAL")
    {
        main_thread_activity(facts, draft);
    }
}

/// What the system says of a termination, without what only repeats code and form.
fn explanation(account: &str) -> Option<String> {
    let words = account.split_once("explanation:").map_or(account, |(_, words)| words);
    let words = words.split_once(" reportType:").map_or(words, |(words, _)| words);
    let words = one_line(words.trim().trim_end_matches('>'));
    (!words.is_empty()).then_some(words)
}

/// The files that the system says were locked, by their names.
fn locked_files(words: &str) -> Vec<String> {
    const MOST: usize = 3;
    let Some((_, behind)) = words.split_once("locked system files:") else { return Vec::new() };
    let paths = behind.lines().map(str::trim).filter(|line| !line.is_empty());
    let paths = paths.take_while(|line| line.starts_with('/')).take(MOST);
    paths.map(|path| one_line(path.rsplit('/').next().unwrap_or(path))).collect()
}

/// Who holds the file.
fn file_lock(facts: &Facts<'_>, draft: &mut Draft) {
    let holders = holders(facts.report);
    let files = locked_files(&all_words(facts));
    if holders.is_empty() && !files.is_empty() {
        draft.say(format!("The system names what was locked: {}.", files.join(", ")));
        draft.next("Look for who opens that file, and for writes to it that may have begun before the app went to the background.");
        return;
    }
    if holders.is_empty() {
        draft.say("The report does not tell which file: no stack shows a database or a file lock.");
        if facts.report.process.threads.iter().any(|thread| !thread.frames.is_empty()) {
            draft.cause("A lock that stays held while nothing works on the file: a transaction that was left open, a statement of SQLite that was stepped and neither reset nor finalized.");
        }
        draft.next(
            "Look for writes to shared files that may have begun before the app went to the background.",
        );
        return;
    }
    for (position, holder) in holders.iter().take(3).enumerate() {
        let label = thread_label(holder.thread);
        let inside = format!("{label} is inside {}", holder.what);
        let lock = cite(facts.report, &label, holder.lock);
        match holder.caller {
            Some(caller) if position == 0 => {
                draft.say(format!("{inside}, called by {}.", describe(facts.report, caller)));
                draft.evidence(lock);
            }
            Some(caller) => draft.evidence(format!("{}: {inside}", cite(facts.report, &label, caller))),
            None => draft.evidence(format!("{lock}: {inside}")),
        }
    }
}
