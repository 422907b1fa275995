//! The verdict by the frame to suspect, and the cases in which a stack does not tell.

use super::{Attribution, StaticOwner, StaticOwners, Verdict};
use crate::explain::kill::{Blame, Killing, killing};
use crate::names::{
    BASES, base_name, cite, describe, fault_stack, image_name, image_of, is_any_of, main_thread, thread_label,
};
use crate::suspect::owner::{Owner, owner_of_image};
use crate::suspect::skip::skip_reason;
use crate::suspect::{Suspect, owner_of, suspect_on};
use backtrail_core::Avma;
use backtrail_model::{Frame, Image, Report, Source};

/// The verdict on `report`.
pub(super) fn attribute(report: &Report, owners: &dyn StaticOwners) -> Attribution {
    if let Some(found) = by_source(report) {
        return found;
    }
    let Some(killing) = killing(report) else {
        return match fault_stack(report) {
            Some((stack, frames)) => by_stack(report, owners, &stack, frames),
            None => no_stack("the report does not say which thread crashed"),
        };
    };
    by_killing(report, owners, &killing)
}

/// Kinds of reports whose stacks, if any, are of no fault; a panic's are the kernel's.
fn by_source(report: &Report) -> Option<Attribution> {
    let has_stacks = !report.process.threads.is_empty() || !report.process.backtraces.is_empty();
    match report.source {
        Source::ApplePanic => Some(by_extensions(report)),
        Source::AppleJetsam | Source::AppleIpsOther => Some(no_stack("reports of this kind have no stacks")),
        Source::AppleStackshot => Some(no_stack("the stacks of all processes blame none of them")),
        Source::MetricKit if !has_stacks => Some(no_stack("metrics have no stacks")),
        _ => None,
    }
}

/// An extension of others on the panicked thread's stack is who to look at first; else it was the system.
fn by_extensions(report: &Report) -> Attribution {
    let frames = report.crashed().map(|thread| thread.frames.as_slice()).unwrap_or_default();
    let extension = |frame: &Frame| {
        let id = image_of(report, frame)?.bundle_id.clone()?;
        (!id.starts_with("com.apple.")).then_some((frame.index, id))
    };
    match frames.iter().find_map(extension) {
        Some((index, id)) => {
            let why = format!(
                "frame {index} of the panicked thread lies in {id}, an extension that is not Apple's"
            );
            verdict(Verdict::Sdk, Some(id), vec![why])
        }
        None if frames.is_empty() => no_stack("the panic has no stack"),
        None => {
            let why = "no extension of others is on the panicked thread's stack".to_owned();
            verdict(Verdict::System, Some("kernel".to_owned()), vec![why])
        }
    }
}

/// The process was ended from outside, or by a guard of the system: what the stacks are worth depends on why.
fn by_killing(report: &Report, owners: &dyn StaticOwners, killing: &Killing) -> Attribution {
    let said = format!("{} ({})", killing.meaning, killing.evidence);
    match killing.blame {
        Blame::Outside => verdict(Verdict::System, None, vec![said, no_fault()]),
        Blame::Untold => {
            let untold =
                "the report does not tell whose code is the reason; the stacks show what ran at the end only";
            verdict(Verdict::Unknown, None, vec![said, untold.to_owned()])
        }
        Blame::Packaging => verdict(Verdict::App, app_name(report), vec![said, packaging()]),
        Blame::MainThread => with_caution(by_main_thread(report, owners), said),
        Blame::Stack => match fault_stack(report) {
            Some((stack, frames)) => {
                let mut found = by_stack(report, owners, &stack, frames);
                found.evidence.push(said);
                found
            }
            None => no_stack("the report does not say which thread crashed"),
        },
    }
}

fn no_fault() -> String {
    "that is no fault of any code on the stacks; they show what ran at that moment only".to_owned()
}

fn packaging() -> String {
    "the way the app is built or packaged is the reason, not code on the stacks".to_owned()
}

fn with_caution(mut found: Attribution, said: String) -> Attribution {
    found.evidence.push(said);
    let caution = "caution: the stacks were taken when the process was killed; the work that took the time may be over by then";
    found.evidence.push(caution.to_owned());
    found
}

fn by_main_thread(report: &Report, owners: &dyn StaticOwners) -> Attribution {
    match main_thread(report) {
        Some(thread) => by_stack(report, owners, &format!("{} (main)", thread_label(thread)), &thread.frames),
        None => no_stack("the report has no main thread"),
    }
}

fn by_stack(report: &Report, owners: &dyn StaticOwners, stack: &str, frames: &[Frame]) -> Attribution {
    let Some(suspect) = suspect_on(report, stack, frames) else {
        return by_link_register(report, frames).unwrap_or_else(|| nobody_but_system(report, stack, frames));
    };
    let place = cite(report, stack, suspect.frame);
    let innermost = format!("{place} is the innermost frame that is not the system's");
    let mut evidence = vec![innermost, suspect.ownership.why.clone()];
    if let Some(owner) = static_owner(report, owners, &suspect) {
        let inside = format!("{}: {}", owner.library, owner.evidence);
        evidence.insert(1, inside);
        evidence.extend(suspect.passed);
        return verdict(Verdict::Sdk, Some(owner.library), evidence);
    }
    evidence.extend(suspect.passed);
    let name = image_name(report, suspect.frame).map(str::to_owned);
    // A class belongs to no file; the app is named by its package.
    let is_class = suspect.frame.language.is_some() && suspect.ownership.owner == Owner::App;
    let name = if is_class { report.process.identifier.clone() } else { name };
    match suspect.ownership.owner {
        Owner::App => verdict(Verdict::App, name.or_else(|| app_name(report)), evidence),
        Owner::Sdk => verdict(Verdict::Sdk, name, evidence),
        Owner::System => verdict(Verdict::System, name, evidence),
        Owner::Unknown => verdict(Verdict::Unknown, name, evidence),
    }
}

fn static_owner(report: &Report, owners: &dyn StaticOwners, suspect: &Suspect<'_>) -> Option<StaticOwner> {
    let image = image_of(report, suspect.frame)?;
    let frame = suspect.frame;
    let mut functions =
        frame.functions.iter().filter(|function| skip_reason(base_name(&function.name)).is_none());
    let by_function =
        functions.find_map(|function| owners.owner(image, &function.name, function.file.as_deref()));
    if by_function.is_some() || !frame.functions.is_empty() {
        return by_function;
    }
    let file = frame.reported.as_ref().and_then(|reported| reported.file.as_deref());
    owners.owner(image, frame.names().next()?, file)
}

/// A thread that jumped to where no code is has no frames; the link register still holds where it came from.
fn by_link_register(report: &Report, frames: &[Frame]) -> Option<Attribution> {
    let thread = report.crashed().filter(|_| frames.is_empty())?;
    let lr = thread.registers.iter().find(|register| register.name.eq_ignore_ascii_case("lr"))?;
    let address = Avma::new(lr.value);
    let holds =
        |image: &&Image| image.load_address <= address && image.end_address.is_some_and(|end| address < end);
    let image = report.process.images.iter().find(holds)?;
    let ownership = owner_of_image(report, image);
    let found = match ownership.owner {
        Owner::App => Verdict::App,
        Owner::Sdk => Verdict::Sdk,
        Owner::System | Owner::Unknown => return None,
    };
    let offset = address.get() - image.load_address.get();
    let place = format!(
        "{} has no frames; its link register lr = {address} lies in {} + {offset}",
        thread_label(thread),
        image.name
    );
    Some(verdict(found, Some(image.name.clone()), vec![place, ownership.why]))
}

/// Whether a stack is too short to have been followed to where it began.
fn is_torn(frames: &[Frame]) -> bool {
    frames.len() < 3 && !frames.last().is_some_and(|frame| is_any_of(frame, &BASES))
}

/// All frames are the system's, or there are none.
fn nobody_but_system(report: &Report, stack: &str, frames: &[Frame]) -> Attribution {
    let innermost = frames.iter().find(|frame| owner_of(report, frame).owner == Owner::System);
    let Some(frame) = innermost else {
        return no_stack(&format!("{stack} has no frame in an image that the report knows"));
    };
    let all = format!("no frame of {stack} lies in the app or in a library that it ships");
    let mut evidence =
        vec![all, format!("the innermost one is {}", describe(report, frame)), owner_of(report, frame).why];
    if is_torn(frames) {
        let torn = "the stack ends after so few frames that the way to the caller is lost: it may have been overwritten";
        evidence.insert(0, torn.to_owned());
        return verdict(Verdict::Unknown, None, evidence);
    }
    verdict(Verdict::System, image_name(report, frame).map(str::to_owned), evidence)
}

fn no_stack(why: &str) -> Attribution {
    verdict(Verdict::Unknown, None, vec![why.to_owned()])
}

fn app_name(report: &Report) -> Option<String> {
    report.process.name.clone()
}

fn verdict(verdict: Verdict, name: Option<String>, evidence: Vec<String>) -> Attribution {
    Attribution { verdict, name, evidence }
}
