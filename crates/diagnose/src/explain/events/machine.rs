//! What kind of process it was, where that is out of the ordinary: translated, an app for another system, a simulator's.

use super::super::draft::Draft;
use super::super::facts::Facts;
use super::field;

/// Says on what the process ran, where that matters for reading the report.
pub(in super::super) fn ran_as(facts: &Facts<'_>, draft: &mut Draft) {
    let report = facts.report;
    if report.process.translated {
        draft.say("The process was translated while it ran (Rosetta): its code was built for another processor, and frames of the translator have no names.");
    }
    let Some(platform) = field(&report.fields, "metadata.platform") else { return };
    let on_mac = report.os.as_deref().is_some_and(|os| os.starts_with("macOS") || os.starts_with("Mac OS"));
    // The numbers of `<mach-o/loader.h>`.
    match platform {
        "2" if on_mac => draft.say("It is an app for iOS that ran on a Mac."),
        "6" => draft.say("The app ran by Mac Catalyst."),
        "7" | "8" | "9" | "12" => draft.say("It ran in a simulator."),
        _ => {}
    }
}
