//! What is said of a report in every form for people.

use super::stack::{Row, rows};
use backtrail::{Analysis, Blamed, Image, Report, Source, Termination, Verdict, blamed};

/// The image's identity, or that it has none.
pub(crate) fn id(image: &Image) -> String {
    image.id.map_or_else(|| "no identity".to_owned(), |id| id.to_string())
}

/// Process, version, system, device, time: one line.
pub(crate) fn subject(report: &Report) -> String {
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
    let parts = [Some(head), arch, report.os.clone(), report.device.clone(), report.time.clone()];
    let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
    parts.join(" · ")
}

/// The exception and termination in the report's own words.
pub(crate) fn what(report: &Report) -> Option<String> {
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
pub(crate) fn messages(report: &Report) -> Vec<String> {
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
pub(crate) fn evidence(analysis: &Analysis) -> Vec<String> {
    let messages = messages(&analysis.report);
    let is_message = |line: &String| {
        line.starts_with("Application Specific Information")
            || line.starts_with(SIGNATURES)
            || messages.contains(&marked(line))
    };
    analysis.explanation.evidence.iter().filter(|line| !is_message(line)).cloned().collect()
}

/// The frame to look at first, with what is inlined there.
pub(crate) fn where_lines(report: &Report, directory: Option<&str>) -> Vec<String> {
    let Some(Blamed { stack, frame, passed, .. }) = blamed(report) else { return Vec::new() };
    let at = format!("{stack} frame {}", frame.index);
    // Locks and arguments stand with the stack.
    let mut alone = frame.clone();
    alone.annotations.clear();
    let rows = rows(report, std::slice::from_ref(&alone), directory);
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
    // What is inlined ends the chain; behind it stand other candidates and the report's own lines.
    let chain = rows
        .iter()
        .skip(passed)
        .scan(true, |is_open, row| std::mem::replace(is_open, row.inlined).then_some(row));
    chain.enumerate().map(line).collect()
}

/// The verdict in words.
pub(crate) fn whose(analysis: &Analysis) -> String {
    let attribution = &analysis.attribution;
    let name = attribution.name.as_deref();
    match (attribution.verdict, name) {
        (Verdict::App, Some(name)) => format!("the app's own code ({name})"),
        (Verdict::App, None) => "the app's own code".to_owned(),
        (Verdict::Sdk, Some(name)) if analysis.report.source == Source::ApplePanic => {
            format!("an extension of the kernel that is not Apple's: {name}")
        }
        (Verdict::Sdk, Some(name)) => format!("a library shipped inside the app: {name}"),
        (Verdict::Sdk, None) => "a library shipped inside the app".to_owned(),
        (Verdict::System, Some(name)) => format!("the system ({name}); no code of the app took part"),
        (Verdict::System, None) => "the system; no code of the app took part".to_owned(),
        _ => "the report does not tell".to_owned(),
    }
}
