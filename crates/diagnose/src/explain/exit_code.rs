//! Exit codes that are all there is.
//!
//! Sources: POSIX, Shell Command Language, 2.8.2 Exit Status for Commands; bash(1), EXIT STATUS; Microsoft's list of NTSTATUS
//! values.

use super::draft::Draft;
use super::facts::Facts;
use super::signals;
use super::tables::windows::CODES;
use backtrail_model::Source;

/// A sentence that tells an exit code.
pub(super) fn told(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let exception = facts.exception();
    let is_it = facts.report.source == Source::ExceptionLog && exception.kind.as_deref() == Some("exit code");
    let printed = exception.codes.as_deref().filter(|_| is_it).unwrap_or_default();
    let code = match printed.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => printed.parse().ok(),
    };
    let Some(code) = code else { return false };
    match code {
        126 => {
            draft.lead(
                "Exit code 126: the program was found and could not be executed",
                "Shells give 126 where a command is there and cannot be run. A program may use the number for anything else.",
            );
            draft.causes(&[
                "The file is not executable (chmod +x), or lies on a file system mounted `noexec`.",
                "It is a directory, or for another processor; its interpreter cannot be run.",
            ]);
        }
        127 => {
            draft.lead(
                "Exit code 127: the program was not found",
                "Shells give 127 where a command is not found; glibc's loader gives it too, for a library that is missing. A program may use the number for anything else.",
            );
            draft.causes(&[
                "A name that is misspelt, or a program that is not installed or not in PATH (of that user, of that container).",
                "A shared library that is missing: the line before says which.",
            ]);
            draft.next("Look at the lines before: the shell or the loader names what was not found.");
        }
        129..256 if !facts.signal().is_empty() => {
            signals::by_code(facts, draft, code);
        }
        _ => match CODES.iter().find(|(known, ..)| *known == code) {
            Some((_, title, meaning, causes, next)) => {
                draft.lead(
                    format!("{title} ({code:#x})"),
                    meaning.replace("The event does", "The exit code does"),
                );
                draft.say("The exit code is all that is told: neither where nor which module.");
                draft.causes(causes);
                draft.nexts(next);
            }
            None => draft.lead(
                format!("Exit code {code:#x}"),
                "The program ended by an exception of Windows that is none of those known here.",
            ),
        },
    }
    draft.evidence(exception.message.as_deref().unwrap_or_default());
    true
}
