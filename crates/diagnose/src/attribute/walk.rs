//! The verdict by the frame to suspect, and the cases in which a stack does not tell.

use super::blame::{caller, caution, confidence, layer, layers, refused, undecidable};
use super::{Attribution, Layer};
use crate::Explanation;
use crate::explain::kill::{Blame, Killing, killing};
use crate::explain::tables::telling::PRIVACY;
use crate::names::{
    BASES, cite, describe, image_name, image_of, is_any_of, main_thread, missing_thread, thread_label,
};
use crate::owners::of_frame;
use crate::suspect::owner::{is_delegates, owner_of_image};
use crate::suspect::{fault_stack, hides_script, kind_of, owner_of, suspect_on};
use backtrail_core::{Avma, Confidence};
use backtrail_model::{Frame, Image, OwnerKind, Report, Source};

/// The verdict on `report`.
pub(super) fn attribute(report: &Report, explanation: &Explanation) -> Attribution {
    if let Some(found) = by_source(report) {
        return found;
    }
    let Some(killing) = killing(report) else {
        if explanation.title == PRIVACY {
            return verdict(OwnerKind::App, report.process.name.clone(), vec![packaging()]);
        }
        return match fault_stack(report) {
            Some((stack, frames)) => by_stack(report, explanation, &stack, frames),
            None => no_stack(&without_stack(report)),
        };
    };
    by_killing(report, explanation, &killing)
}

/// Kinds of reports whose stacks, if any, are of no fault; a panic's are the kernel's.
fn by_source(report: &Report) -> Option<Attribution> {
    let has_stacks = !report.process.threads.is_empty() || !report.process.backtraces.is_empty();
    if hides_script(report) {
        return Some(no_stack("the error was thrown in JavaScript, whose stack is not in the report"));
    }
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
            verdict(OwnerKind::Sdk, Some(id), vec![why])
        }
        None if frames.is_empty() => no_stack("the panic has no stack"),
        None => {
            let why = "no extension of others is on the panicked thread's stack".to_owned();
            verdict(OwnerKind::System, Some("kernel".to_owned()), vec![why])
        }
    }
}

/// The process was ended from outside, or by a guard of the system: what the stacks are worth depends on why.
fn by_killing(report: &Report, explanation: &Explanation, killing: &Killing) -> Attribution {
    let said = format!("{} ({})", killing.meaning, killing.evidence);
    match killing.blame {
        Blame::Outside => verdict(OwnerKind::System, None, vec![said, no_fault()]),
        Blame::Untold => {
            let untold =
                "the report does not tell whose code is the reason; the stacks show what ran at the end only";
            verdict(OwnerKind::Unknown, None, vec![said, untold.to_owned()])
        }
        Blame::Packaging => verdict(OwnerKind::App, report.process.name.clone(), vec![said, packaging()]),
        Blame::MainThread => with_caution(by_main_thread(report, explanation), said),
        Blame::Stack => match fault_stack(report) {
            Some((stack, frames)) => {
                let mut found = by_stack(report, explanation, &stack, frames);
                found.evidence.push(said);
                found
            }
            None => no_stack(&without_stack(report)),
        },
    }
}

fn without_stack(report: &Report) -> String {
    match missing_thread(report) {
        Some(number) => format!("the report ends before the stack of thread {number}, which crashed"),
        None => "the report does not say which thread crashed".to_owned(),
    }
}

fn no_fault() -> String {
    "that is no fault of any code on the stacks; they show what ran at that moment only".to_owned()
}

fn packaging() -> String {
    "the way the app is built or packaged is the reason, not code on the stacks".to_owned()
}

fn with_caution(mut found: Attribution, said: String) -> Attribution {
    found.confidence = found.confidence.map(|confidence| confidence.min(Confidence::Likely));
    found.evidence.push(said);
    let caution = "caution: the stacks were taken when the process was killed; the work that took the time may be over by then";
    found.evidence.push(caution.to_owned());
    found
}

fn by_main_thread(report: &Report, explanation: &Explanation) -> Attribution {
    match main_thread(report) {
        Some(thread) => {
            by_stack(report, explanation, &format!("{} (main)", thread_label(thread)), &thread.frames)
        }
        None => no_stack("the report has no main thread"),
    }
}

fn by_stack(report: &Report, explanation: &Explanation, stack: &str, frames: &[Frame]) -> Attribution {
    let mut found = by_suspect(report, explanation, stack, frames);
    (found.crashed, found.called) = layers(report, frames);
    found
}

fn by_suspect(report: &Report, explanation: &Explanation, stack: &str, frames: &[Frame]) -> Attribution {
    let Some(suspect) = suspect_on(report, stack, frames) else {
        let found =
            by_link_register(report, frames).unwrap_or_else(|| nobody_but_system(report, stack, frames));
        return match undecidable(explanation, false) {
            Some(why) => no_one(why, found.evidence),
            None => found,
        };
    };
    let place = cite(report, stack, suspect.frame);
    let innermost = format!("{place} is the innermost frame that is not the system's");
    let mut evidence = vec![innermost];
    evidence.extend(told_by(report, suspect.frame));
    evidence.extend(caller(report, stack, frames, &suspect));
    evidence.extend(suspect.passed.iter().cloned());
    if let Some(why) = undecidable(explanation, true) {
        return Attribution { blamed: None, ..no_one(why, evidence) };
    }
    if suspect.is_entry && is_thrown_again(frames.get(..suspect.position).unwrap_or_default()) {
        let why = "not decidable: the exception was caught and thrown again; the stack shows where that was, not where it came from";
        return Attribution { blamed: None, ..no_one(why, evidence) };
    }
    let owner = of_frame(report, suspect.frame);
    if let Some(caller) = refused(report, explanation, frames, &suspect) {
        let name = owner.name.as_deref().unwrap_or("the library");
        let why = format!(
            "{} called it: {name} threw because of what it was called with",
            cite(report, stack, caller)
        );
        evidence.insert(0, why);
        let by = of_frame(report, caller);
        return Attribution {
            confidence: by.confidence.map(|confidence| confidence.min(Confidence::Likely)),
            version: by.version.clone(),
            blamed: Some(layer(report, caller)),
            ..verdict(by.kind, by.name.clone(), evidence)
        };
    }
    let caution = caution(explanation);
    evidence.extend(caution.map(str::to_owned));
    // No image tells, and what it may have called in the same image is not on the stack.
    if owner.kind == OwnerKind::Unknown && is_delegates(suspect.frame) {
        evidence.insert(0, "the method is of the app's own delegate".to_owned());
        let name = image_name(report, suspect.frame).map(str::to_owned);
        let of_app = Layer { kind: OwnerKind::App, name: name.clone(), frame: suspect.frame.index };
        return Attribution {
            confidence: Some(Confidence::Likely),
            blamed: Some(of_app),
            ..verdict(OwnerKind::App, name, evidence)
        };
    }
    Attribution {
        confidence: confidence(&owner, &suspect, caution.is_some()),
        version: owner.version.clone(),
        blamed: Some(layer(report, suspect.frame)),
        ..verdict(owner.kind, owner.name.clone(), evidence)
    }
}

/// Whether what ended the process threw an exception on that it had caught.
fn is_thrown_again(frames: &[Frame]) -> bool {
    frames.iter().any(|frame| is_any_of(frame, &["objc_exception_rethrow", "__cxa_rethrow"]))
}

/// Nobody can be blamed; what else is known stays.
fn no_one(why: &str, mut evidence: Vec<String>) -> Attribution {
    evidence.insert(0, why.to_owned());
    verdict(OwnerKind::Unknown, None, evidence)
}

/// What says whose a frame is: for a library inside of an image how it was told, then what is known of the image.
fn told_by(report: &Report, frame: &Frame) -> Vec<String> {
    let of_image = owner_of(report, frame);
    let owner = of_frame(report, frame);
    let is_told = owner.how == of_image.how && owner.kind == of_image.owner;
    let inside = (!is_told).then(|| {
        let what = match owner.kind {
            OwnerKind::App => "the app's own code",
            OwnerKind::System => "the system's",
            _ => owner.name.as_deref().unwrap_or("a library"),
        };
        let version = owner.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let confidence = owner.confidence.map(|it| format!("{} ", it.as_str())).unwrap_or_default();
        let file = owner.file.as_deref().map(|file| format!(", from {file}")).unwrap_or_default();
        format!("frame {} is {what}{version}: {confidence}({}{file})", frame.index, owner.how)
    });
    inside.into_iter().chain([of_image.why]).collect()
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
    if !matches!(ownership.owner, OwnerKind::App | OwnerKind::Sdk) {
        return None;
    }
    let offset = address.get() - image.load_address.get();
    let place = format!(
        "{} has no frames; its link register lr = {address} lies in {} + {offset}",
        thread_label(thread),
        image.name
    );
    let confidence = ownership.confidence.map(|confidence| confidence.min(Confidence::Likely));
    let found = verdict(ownership.owner, Some(image.name.clone()), vec![place, ownership.why]);
    Some(Attribution { confidence, ..found })
}

/// Whether a stack is too short to have been followed to where it began.
fn is_torn(frames: &[Frame]) -> bool {
    frames.len() < 3 && !frames.last().is_some_and(|frame| is_any_of(frame, &BASES))
}

/// Whether a part of a report, which has no list of images, has no stack from end to beginning: the outermost frame is none that
/// stacks begin with, or the innermost one is.
fn is_cut(report: &Report, frames: &[Frame]) -> bool {
    /// What else is outermost: the loader's start, and those that never return to their caller.
    const OUTERMOST: [&str; 8] = [
        "_dyld_start",
        "dyld_start",
        "thread_start",
        "_dispatch_call_block_and_release",
        "__clone3",
        "clone3",
        "__libc_start_main_impl",
        "RtlUserThreadStart",
    ];
    let is_text = matches!(
        report.source,
        Source::AppleText
            | Source::AppleSamples
            | Source::DebuggerBacktrace
            | Source::Sanitizer
            | Source::RuntimeError
    );
    let begins = |frame: Option<&Frame>| {
        frame.is_some_and(|frame| is_any_of(frame, &BASES) || is_any_of(frame, &OUTERMOST))
    };
    // `sample` states the image in each row: one without was cut, and what it called is not there.
    let is_broken = report.source == Source::AppleSamples
        && frames.first().is_some_and(|frame| frame.image_name.is_none() && frame.names().next().is_some());
    is_text
        && report.process.images.is_empty()
        && (begins(frames.first()) || !begins(frames.last()) || is_broken)
}

/// All frames are the system's, or there are none.
fn nobody_but_system(report: &Report, stack: &str, frames: &[Frame]) -> Attribution {
    let innermost = frames.iter().find(|frame| kind_of(report, frame) == OwnerKind::System);
    let Some(frame) = innermost else {
        return no_stack(&format!("{stack} has no frame in an image that the report knows"));
    };
    if let Some(found) = by_component(report) {
        return found;
    }
    let all = format!("no frame of {stack} lies in the app or in a library that it ships");
    let mut evidence =
        vec![all, format!("the innermost one is {}", describe(report, frame)), owner_of(report, frame).why];
    if is_torn(frames) {
        let torn = "the stack ends after so few frames that the way to the caller is lost: it may have been overwritten";
        evidence.insert(0, torn.to_owned());
        return verdict(OwnerKind::Unknown, None, evidence);
    }
    if is_cut(report, frames) {
        let cut =
            "the text was cut before the stack's beginning, or has only that: what called this is not known";
        evidence.insert(0, cut.to_owned());
        return verdict(OwnerKind::Unknown, None, evidence);
    }
    // What runtimes print has no list of images: a frame without a name may be anybody's.
    let is_untold = |frame: &Frame| {
        let has_image = image_name(report, frame).is_some();
        let is_anybodys = report.source.is_runtimes() && frame.names().next().is_none();
        kind_of(report, frame) == OwnerKind::Unknown && (has_image || is_anybodys)
    };
    if report.source == Source::LinuxKernel {
        let own = "the stack has only what the kernel reports by".to_owned();
        evidence.insert(0, own);
        return verdict(OwnerKind::Unknown, None, evidence);
    }
    if frames.iter().any(is_untold) {
        let unknown = "frames of the stack lie in images whose owner the report does not tell";
        evidence.insert(0, unknown.to_owned());
        return verdict(OwnerKind::Unknown, None, evidence);
    }
    let confidence = of_frame(report, frame).confidence;
    let found = verdict(OwnerKind::System, image_name(report, frame).map(str::to_owned), evidence);
    Attribution { confidence, blamed: Some(layer(report, frame)), ..found }
}

/// Exceptions that Android's framework throws in the app for what one of its components is or did: the message names it, or the app's
/// process was told that it broke a rule. The frames are the framework's alone.
///
/// Source: Android's `ActivityThread`, `performLaunchActivity`, `handleCreateService`, `throwRemoteServiceException`.
fn by_component(report: &Report) -> Option<Attribution> {
    if !report.source.is_android_or_java() {
        return None;
    }
    let exception = report.exception.as_ref()?;
    let kind = exception.kind.as_deref().unwrap_or_default();
    let said = exception.message.as_deref().unwrap_or_default();
    let is_told_off = kind.split(['.', '$']).any(|part| part == "RemoteServiceException");
    let Some((package, class)) = component(said) else {
        let why = format!("the framework ended the process by {kind} for what one of the app's services did");
        let found = verdict(OwnerKind::App, report.process.name.clone(), vec![why]);
        return is_told_off.then_some(Attribution { confidence: Some(Confidence::Likely), ..found });
    };
    // `io.example.shop/.Player` and classes below the package; builds have packages that end in their variant's name.
    let family = |name: &str| name.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    let is_own = class.starts_with('.') || family(package) == family(class);
    let why =
        format!("the message names the component {package}/{class}, which the framework was at work on");
    if is_own {
        let found = verdict(OwnerKind::App, Some(package.to_owned()), vec![why]);
        return Some(Attribution { confidence: Some(Confidence::Likely), ..found });
    }
    let whose = "its class is of another package than the app: a library's, or the app's makers' own";
    Some(verdict(OwnerKind::Unknown, None, vec![whose.to_owned(), why]))
}

/// The component that a message names: `ComponentInfo{io.example.shop/io.example.shop.Cart}`, `ServiceRecord{9d9 u0 io.example.shop/.Player}`.
fn component(said: &str) -> Option<(&str, &str)> {
    let inside = ["ComponentInfo{", "ServiceRecord{"].iter().find_map(|begin| said.split_once(begin))?.1;
    let words = inside.split('}').next()?;
    let name = words.split(' ').find(|word| word.contains('/'))?;
    let (package, class) = name.split_once('/')?;
    (package.contains('.') && !class.is_empty()).then_some((package, class))
}

fn no_stack(why: &str) -> Attribution {
    verdict(OwnerKind::Unknown, None, vec![why.to_owned()])
}

fn verdict(verdict: OwnerKind, name: Option<String>, evidence: Vec<String>) -> Attribution {
    // What the system says itself is as sure as can be; verdicts on frames have their own.
    let confidence = (verdict != OwnerKind::Unknown).then_some(Confidence::Strong);
    Attribution { verdict, name, confidence, evidence, ..Attribution::default() }
}
