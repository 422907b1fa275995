//! What is said of a report in every form for people.

use crate::stack::{Row, rows};
use backtrail::{Analysis, Blamed, Confidence, Image, Layer, OwnerKind, Report, Source, Termination, blamed};

/// The image's identity, or that it has none.
pub fn id(image: &Image) -> String {
    image.id.map_or_else(|| "no identity".to_owned(), |id| id.to_string())
}

/// Process, version, system, device, time: one line.
pub fn subject(report: &Report) -> String {
    let process = &report.process;
    let mut head = process.name.clone().unwrap_or_default();
    for (before, text, after) in
        [(" ", process.version.clone(), ""), (" [", process.pid.map(|pid| pid.to_string()), "]")]
    {
        if let Some(text) = text {
            head = format!("{head}{before}{text}{after}");
        }
    }
    let arch = process.arch.map(|arch| arch.name().to_owned());
    let parts = [
        Some(head.trim_start().to_owned()),
        arch,
        report.os.clone(),
        report.device.clone(),
        report.time.clone(),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
    parts.join(" · ")
}

/// The exception and termination in the report's own words.
pub fn what(report: &Report) -> Option<String> {
    let ended = report.termination.as_ref().and_then(ended);
    let Some(exception) = &report.exception else {
        let reason = report.termination.as_ref().and_then(|termination| termination.reason.clone());
        let words: Vec<_> = [ended, reason].into_iter().flatten().collect();
        return Some(words.join(" ")).filter(|words| !words.is_empty());
    };
    let signal = exception.signal.as_deref();
    let head = match (exception.kind.as_deref(), signal) {
        (Some(kind), Some(signal)) => format!("{kind} ({signal})"),
        (kind, signal) => kind.or(signal).unwrap_or_default().to_owned(),
    };
    let detail = exception.subtype.as_deref().or(exception.codes.as_deref()).unwrap_or_default();
    // Codes of an exception that has none.
    let is_empty = !detail.is_empty() && detail.chars().all(|c| matches!(c, '0' | 'x' | ',' | ' '));
    let detail = if is_empty { "" } else { detail };
    let ended = ended.map(|ended| format!("· {ended}")).unwrap_or_default();
    let words = [head.as_str(), detail, ended.as_str()].into_iter().filter(|part| !part.is_empty());
    Some(words.collect::<Vec<_>>().join(" ")).filter(|what| !what.is_empty())
}

/// `RUNNINGBOARD 0xdead10cc`. That a signal ended it stands with the exception.
fn ended(termination: &Termination) -> Option<String> {
    let namespace = termination.namespace.as_deref().filter(|namespace| *namespace != "SIGNAL")?;
    let code = termination.code.map(|code| format!(" {code:#x}")).unwrap_or_default();
    Some(format!("{namespace}{code}"))
}

/// No more lines of messages stand at the head; all are among the rest of the report.
const MAX_MESSAGES: usize = 8;

/// What libraries wrote down: application-specific information and signatures, line by line. Each begins with the name of
/// the library or a mark, so that no message looks like a line of ours.
pub fn messages(report: &Report) -> Vec<String> {
    let info = report.app_info.iter().flat_map(|info| {
        let lines = info.lines.iter().filter(|line| !line.trim().is_empty()).enumerate();
        lines.map(move |(position, line)| match &info.image {
            Some(image) if position == 0 => format!("{image}: {}", line.trim()),
            _ => marked(line),
        })
    });
    let signatures = report.sections.iter().filter(|section| section.title == SIGNATURES);
    let signatures =
        signatures.flat_map(|section| section.text.lines()).filter(|line| !line.trim().is_empty());
    let mut lines: Vec<_> = info.chain(signatures.map(marked)).collect();
    let more = lines.len().saturating_sub(MAX_MESSAGES);
    lines.truncate(MAX_MESSAGES);
    if more > 0 {
        lines.push(format!("… {more} more lines"));
    }
    lines
}

fn marked(line: impl AsRef<str>) -> String {
    format!("| {}", line.as_ref().trim())
}

const SIGNATURES: &str = "Application Specific Signatures";

/// The evidence that [`messages`] does not print already.
pub fn evidence(analysis: &Analysis) -> Vec<String> {
    let messages = messages(&analysis.report);
    let is_message = |line: &String| {
        line.starts_with("Application Specific Information")
            || line.starts_with(SIGNATURES)
            || messages.contains(&marked(line))
    };
    analysis.explanation.evidence.iter().filter(|line| !is_message(line)).cloned().collect()
}

/// The frame to look at first, with what is inlined there.
pub fn where_lines(report: &Report, directory: Option<&str>) -> Vec<String> {
    let Some(Blamed { stack, frame, passed, .. }) = blamed(report) else { return Vec::new() };
    let parted = if stack.is_empty() { "" } else { " " };
    let at = format!("{stack}{parted}frame {}", frame.index);
    let rows = rows(report, std::slice::from_ref(frame), directory);
    let line = |(position, row): (usize, &Row)| {
        // What is known by its name belongs to no image.
        let has_image = position == 0 && !row.image.is_empty();
        let image = if has_image { format!(" in {}", row.image) } else { String::new() };
        let place = row.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
        match position {
            0 => format!("{}{image}{place}, {at}", row.what),
            _ => format!("  inlined into {}{place}", row.what),
        }
    };
    // What is not inlined ends the chain; behind it stand other candidates, and the report's own lines: locks, arguments.
    let chain = rows
        .iter()
        .skip(passed)
        .scan(true, |is_open, row| std::mem::replace(is_open, row.inlined).then_some(row));
    chain.enumerate().map(line).collect()
}

/// The verdict in words.
pub fn whose(analysis: &Analysis) -> String {
    let attribution = &analysis.attribution;
    let name = attribution.name.as_deref();
    // What is ours and what is others' there is the kernel and its modules.
    let is_kernel = analysis.report.source == Source::LinuxKernel;
    match (attribution.verdict, name) {
        (OwnerKind::App, _) if is_kernel => "the kernel itself".to_owned(),
        (OwnerKind::Sdk, Some(name)) if is_kernel => format!("a module of the kernel: {name}"),
        (OwnerKind::App, Some(name)) => format!("the app's own code ({name})"),
        (OwnerKind::App, None) => "the app's own code".to_owned(),
        (OwnerKind::Sdk, Some(name)) if analysis.report.source == Source::ApplePanic => {
            format!("an extension of the kernel that is not Apple's: {name}")
        }
        (OwnerKind::Sdk, Some(name)) => {
            let is_image = analysis.report.process.images.iter().any(|image| image.name == name);
            let shipped = if is_image { "shipped inside" } else { "linked into" };
            let version = attribution.version.as_deref().map(|version| format!(" {version}"));
            // Of frameworks the name is sure.
            let is_guess = !is_image && attribution.confidence == Some(Confidence::Likely);
            let doubt = if is_guess { " (likely)" } else { "" };
            format!("a library {shipped} the app: {name}{}{doubt}", version.unwrap_or_default())
        }
        (OwnerKind::Sdk, None) => "a library shipped inside the app".to_owned(),
        (OwnerKind::System, Some(name)) => format!("the system ({name}); no code of the app took part"),
        (OwnerKind::System, None) => "the system; no code of the app took part".to_owned(),
        _ => match attribution.evidence.first().filter(|why| why.starts_with("not decidable")) {
            Some(why) => why.clone(),
            None => "the report does not tell".to_owned(),
        },
    }
}

/// Who crashed and who called, where that is another than who is to blame and a library has part in it.
pub fn layers(analysis: &Analysis) -> Option<String> {
    let attribution = &analysis.attribution;
    let (crashed, called) = (attribution.crashed.as_ref()?, attribution.called.as_ref()?);
    let has_library = [crashed, called].iter().any(|layer| layer.kind == OwnerKind::Sdk);
    let is_same = attribution.blamed.as_ref() == Some(crashed) && called.kind == OwnerKind::System;
    let is_kernel = analysis.report.source == Source::LinuxKernel;
    let name = |layer: &Layer| match (layer.kind, layer.name.as_deref()) {
        (OwnerKind::App, _) if is_kernel => "the kernel".to_owned(),
        (OwnerKind::App, _) => "the app".to_owned(),
        (_, Some(name)) => name.to_owned(),
        (kind, None) => kind.as_str().to_owned(),
    };
    (has_library && !is_same).then(|| {
        format!(
            "it stopped in {} (frame {}), called by {} (frame {})",
            name(crashed),
            crashed.frame,
            name(called),
            called.frame
        )
    })
}
