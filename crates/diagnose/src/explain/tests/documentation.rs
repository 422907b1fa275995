//! `docs/explain.md` says what the program does, and its lists of rules are compared; `docs/explain-tables.md` is generated.

use super::super::tables::{
    access, esr, exceptions, guard, kill, messages, namespaces, resource, runtimes, telling, throwers, waits,
    windows,
};
use super::super::{ADDING, ANDROID_ADDING, ANDROID_LEADING, LEADING, RUNTIMES_ADDING, RUNTIMES_LEADING};
use super::super::{java_memory, loader};
use crate::explain::tables::kill::{Blame, KillCode};
use crate::suspect::{paths, skip};
use backtrail_testkit::{assert_snapshot, workspace_root};
use std::path::PathBuf;

fn page(name: &str) -> PathBuf {
    workspace_root().join("docs").join(name)
}

/// The first cells of the table rows below a heading.
fn documented(text: &str, heading: &str) -> Vec<String> {
    let (_, rest) = text.split_once(heading).unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

#[test]
fn the_documentation_lists_the_rules_in_their_order() {
    let text = std::fs::read_to_string(page("explain.md")).unwrap();
    let leading: Vec<&str> = LEADING.iter().map(|rule| rule.id).collect();
    assert_eq!(documented(&text, "## The rules that lead"), leading);
    let adding: Vec<&str> = ADDING.iter().map(|rule| rule.id).collect();
    assert_eq!(documented(&text, "## What is added"), adding);
    let android: Vec<&str> = ANDROID_LEADING.iter().map(|rule| rule.id).collect();
    assert_eq!(documented(&text, "## Android and Java: the rules that lead"), android);
    let android: Vec<&str> = ANDROID_ADDING.iter().map(|rule| rule.id).collect();
    assert_eq!(documented(&text, "## Android and Java: what is added"), android);
    let runtimes: Vec<&str> = RUNTIMES_LEADING.iter().map(|rule| rule.id).collect();
    assert_eq!(documented(&text, "## Servers' logs: the rules that lead"), runtimes);
    let runtimes: Vec<&str> = RUNTIMES_ADDING.iter().map(|rule| rule.id).collect();
    assert_eq!(documented(&text, "## Servers' logs: what is added"), runtimes);
}

#[test]
fn the_documentation_holds_the_tables() {
    let path = page("explain-tables.md");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (name, rows) in tables() {
        text = replaced(&text, name, &rows);
    }
    assert_eq!(text.matches("<!-- begin ").count(), tables().len(), "each table is one of the program's");
    assert_snapshot(path, &text);
}

fn replaced(text: &str, name: &str, rows: &str) -> String {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no place for {name}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no end of {name}"));
    format!("{before}{begin}\n{rows}\n{end}{after}")
}

/// A Markdown table.
fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule: Vec<String> = head.iter().map(|_| "---".to_owned()).collect();
    let rows =
        rows.into_iter().map(|cells| cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>());
    [head, rule].into_iter().chain(rows).map(|cells| line(&cells)).collect()
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn codes(texts: &[&str]) -> String {
    texts.iter().map(|text| code(text)).collect::<Vec<_>>().join(", ")
}

fn blame(blame: Blame) -> String {
    match blame {
        Blame::Stack => "the blamed thread's stack",
        Blame::MainThread => "the main thread's stack, with a caution",
        Blame::Untold => "unknown",
        Blame::Outside => "no code of the process",
        Blame::Packaging => "the app's packaging",
    }
    .to_owned()
}

fn tables() -> Vec<(&'static str, String)> {
    let mut all = exception_tables();
    all.extend(windows_tables());
    all.extend(last_words_tables());
    all.extend(ending_tables());
    all.extend(name_tables());
    all
}

fn windows_tables() -> Vec<(&'static str, String)> {
    let codes = windows::CODES
        .iter()
        .map(|(number, title, meaning, ..)| vec![format!("{number:#x}"), format!("{title}. {meaning}")]);
    let reasons = windows::FAST_FAILS
        .iter()
        .map(|(number, what, meaning)| vec![number.to_string(), format!("{what}. {meaning}")]);
    let modules =
        windows::MODULES.iter().map(|(begin, what)| vec![code(&format!("{begin}…")), (*what).to_owned()]);
    vec![
        ("windows-codes", table(&["code", "meaning"], codes)),
        ("windows-fast-fails", table(&["reason of a fast failure", "meaning"], reasons)),
        ("windows-modules", table(&["module", "what"], modules)),
    ]
}

fn last_words_tables() -> Vec<(&'static str, String)> {
    let loaders = loader::REASONS
        .iter()
        .map(|(part, title, what, ..)| vec![code(&part.replace('`', "'")), format!("{title}. {what}")]);
    let java =
        java_memory::KINDS.iter().map(|(part, title, what, ..)| vec![code(part), format!("{title}. {what}")]);
    vec![
        ("loaders", table(&["part of the message", "meaning"], loaders)),
        ("java-memory", table(&["part of the message", "meaning"], java)),
    ]
}

fn exception_tables() -> Vec<(&'static str, String)> {
    let exceptions = exceptions::EXCEPTIONS
        .iter()
        .map(|(number, name, meaning)| vec![number.to_string(), code(name), (*meaning).to_owned()]);
    let signals = exceptions::SIGNALS
        .iter()
        .map(|signal| vec![signal.number.to_string(), code(signal.name), signal.meaning.to_owned()]);
    let access = access::ACCESS_CODES.iter().map(|known| {
        let number = known.code.map(|code| format!("{code:#x}")).unwrap_or_default();
        vec![number, code(known.name), known.meaning.to_owned()]
    });
    let linux = access::LINUX_CODES.iter().chain(&access::LINUX_X86_CODES);
    let access =
        access.chain(linux.map(|known| vec!["Linux".to_owned(), code(known.name), known.meaning.to_owned()]));
    let others = exceptions::EXCEPTION_CODES.iter().map(|known| {
        vec![code(known.exception), known.code.to_string(), code(known.name), known.meaning.to_owned()]
    });
    let words = exceptions::SIGNAL_CODES.iter().map(|(name, meaning)| {
        vec!["signal code".to_owned(), String::new(), code(name), (*meaning).to_owned()]
    });
    let ranged = |low: u64, high: u64| {
        if low == high { format!("{low:#x}") } else { format!("{low:#x} to {high:#x}") }
    };
    let esr_rows =
        esr::CLASSES.iter().map(|(class, name)| ("class (bits 31 to 26)", format!("{class:#x}"), *name));
    let faults = esr::FAULTS.iter().map(|(low, high, name)| {
        ("fault status of an abort (bits 5 to 0)", ranged((*low).into(), (*high).into()), *name)
    });
    let breaks = esr::BREAKS
        .iter()
        .map(|(low, high, name)| ("immediate value of BRK", ranged((*low).into(), (*high).into()), *name));
    let bits = esr::PAGE_FAULT_BITS
        .iter()
        .map(|(bit, set, _)| ("x86's page fault error code", format!("bit {bit}"), *set));
    let esr_rows = esr_rows
        .chain(faults)
        .chain(breaks)
        .chain(bits)
        .map(|(field, value, name)| vec![field.to_owned(), value, name.to_owned()]);
    let fills =
        access::FILLS.iter().map(|fill| vec![format!("{:#010x}", fill.word), fill.meaning.to_owned()]);
    vec![
        ("exceptions", table(&["number", "name", "meaning"], exceptions)),
        ("signals", table(&["number", "name", "meaning"], signals)),
        ("access-codes", table(&["code", "name", "meaning"], access)),
        ("exception-codes", table(&["exception", "code", "name", "meaning"], others.chain(words))),
        ("esr", table(&["field", "value", "meaning"], esr_rows)),
        ("fills", table(&["word", "meaning"], fills)),
    ]
}

fn kill_row(namespace: &str, known: &KillCode) -> Vec<String> {
    let number = if known.code > 0xffff { format!("{:#010x}", known.code) } else { known.code.to_string() };
    vec![namespace.to_owned(), number, format!("{}. {}", known.title, known.meaning), blame(known.blame)]
}

fn ending_tables() -> Vec<(&'static str, String)> {
    let any = kill::KILL_CODES.iter().map(|known| kill_row("any", known));
    let spaces = namespaces::NAMESPACES.iter().flat_map(|space| {
        let number = if space.number == 0 { String::new() } else { space.number.to_string() };
        let head = vec![
            format!("{} {number}", code(space.name)).trim().to_owned(),
            String::new(),
            space.meaning.to_owned(),
            blame(space.blame),
        ];
        std::iter::once(head).chain(space.codes.iter().map(|known| kill_row(&code(space.name), known)))
    });
    let resources = resource::RESOURCE_TYPES.iter().map(|known| {
        let flavors: Vec<String> = known
            .flavors
            .iter()
            .map(|(number, name, meaning)| format!("{number} {} ({meaning})", code(name)))
            .collect();
        let bits = |(low, width): (u32, u32)| format!("bits {} to {low}", low + width - 1);
        let observed = known.observed.map(|field| format!("subcode {}", bits(field))).unwrap_or_default();
        let interval = known.interval.map(bits).unwrap_or_default();
        vec![
            known.number.to_string(),
            code(known.name),
            known.unit.to_owned(),
            bits(known.limit),
            interval,
            observed,
            flavors.join(", "),
        ]
    });
    let guards = guard::GUARD_TYPES.iter().flat_map(|known| {
        let head = vec![
            known.number.to_string(),
            code(known.name),
            String::new(),
            String::new(),
            format!("{} is guarded; bits 31 to 0: {}", known.guarded, known.target),
        ];
        let flavors = known.flavors.iter().map(|flavor| {
            vec![
                String::new(),
                String::new(),
                flavor.value.to_string(),
                code(flavor.name),
                flavor.meaning.to_owned(),
            ]
        });
        std::iter::once(head).chain(flavors)
    });
    vec![
        ("kill-codes", table(&["namespace", "code", "meaning", "who is to look at"], any)),
        ("namespaces", table(&["namespace", "code", "meaning", "who is to look at"], spaces)),
        (
            "resources",
            table(&["type", "name", "unit", "limit", "interval", "observed", "flavors"], resources),
        ),
        ("guards", table(&["type", "name", "flavor", "word", "meaning"], guards)),
    ]
}

fn name_tables() -> Vec<(&'static str, String)> {
    let telling = telling::TELLING.iter().map(|row| vec![codes(row.functions), row.title.to_owned()]);
    let throwers = throwers::THROWERS.iter().map(|row| {
        let class = if row.class.is_empty() {
            String::new()
        } else {
            format!(" (of classes with {})", code(row.class))
        };
        let names = codes(&[row.selectors, row.functions].concat());
        let exception = if row.exception.is_empty() { "varies".to_owned() } else { code(row.exception) };
        vec![format!("{names}{class}"), exception, row.title.to_owned()]
    });
    let runtimes = runtimes::RUNTIMES.iter().map(|row| {
        let functions: Vec<String> = row.functions.iter().map(|name| format!("{name}…")).collect();
        let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
        vec![row.name.to_owned(), codes(&[row.images, functions.as_slice()].concat())]
    });
    let waits = waits::WAITS.iter().map(|wait| vec![codes(wait.functions), wait.what.to_owned()]);
    let hints = [
        ("reason of an Objective-C exception", &messages::REASONS[..]),
        ("type of a C++ exception", &messages::CPP_TYPES),
        ("Swift", &messages::SWIFT),
        ("malloc", &messages::MALLOC),
        ("sanitizers and checkers", &messages::SANITIZERS),
        ("the system, of a process that ended itself", &messages::ENDS),
        ("libdispatch, os_unfair_lock", &messages::CLIENT_BUGS),
    ];
    let hints = hints.into_iter().flat_map(|(who, hints)| {
        hints.iter().map(move |hint| vec![who.to_owned(), code(hint.text), hint.meaning.to_owned()])
    });
    let names = messages::EXCEPTION_NAMES.iter().map(|(name, meaning)| {
        vec!["name of an Objective-C exception".to_owned(), code(name), (*meaning).to_owned()]
    });
    let rules =
        [("not the system's", &paths::INJECTED_PATHS[..]), ("the system's", &paths::SYSTEM_PATHS[..])];
    let path_rows = rules.into_iter().flat_map(|(whose, rules)| {
        rules.iter().map(move |rule| {
            let kind = if rule.anywhere.is_some() { "holds" } else { "begins with" };
            vec![format!("{kind} {}", code(rule.part)), whose.to_owned(), rule.what.to_owned()]
        })
    });
    let inside = paths::APPLE_IN_BUNDLE.iter().map(|(name, what)| {
        vec![format!("in the bundle, {}", code(name)), "the system's".to_owned(), (*what).to_owned()]
    });
    let skipped = skip::SKIP_GROUPS.iter().map(|group| {
        let open: Vec<String> = group.prefixes.iter().map(|prefix| format!("{prefix}…")).collect();
        let open: Vec<&str> = open.iter().map(String::as_str).collect();
        vec![group.reason.to_owned(), codes(&[group.functions, open.as_slice()].concat())]
    });
    let reporters = vec!["is a crash reporter's image".to_owned(), codes(&skip::REPORTER_IMAGES)];
    vec![
        ("telling", table(&["functions", "what they tell"], telling)),
        ("throwers", table(&["methods", "exception", "what they tell"], throwers)),
        ("runtimes", table(&["runtime", "images, functions"], runtimes)),
        ("waits", table(&["functions", "waits for"], waits)),
        ("messages", table(&["from", "text", "meaning"], hints.chain(names))),
        ("paths", table(&["path", "whose", "what"], path_rows.chain(inside))),
        ("skipped", table(&["it …", "functions"], skipped.chain([reporters]))),
    ]
}
