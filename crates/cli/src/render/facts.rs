//! What is said of a report in every form for people.

use super::stack::{Row, place, rows};
use backtrail::{Analysis, Image, Report, Source, Trust, Verdict};

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

/// The exception or termination in the report's own words.
pub(crate) fn what(report: &Report) -> Option<String> {
    if let Some(exception) = &report.exception {
        let signal = exception.signal.as_deref();
        let head = match (exception.kind.as_deref(), signal) {
            (Some(kind), Some(signal)) => format!("{kind} ({signal})"),
            (kind, signal) => kind.or(signal).unwrap_or_default().to_owned(),
        };
        let detail = exception.subtype.as_deref().or(exception.codes.as_deref()).unwrap_or_default();
        let what = format!("{head} {detail}");
        return Some(what.trim().to_owned()).filter(|what| !what.is_empty());
    }
    let termination = report.termination.as_ref()?;
    let code = termination.code.map(|code| format!("{code:#x}"));
    let parts = [termination.namespace.clone(), code, termination.reason.clone()];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// The innermost frame of the fault that has a source line, with its inline callers; else the innermost named one. What was
/// found by scanning is a guess, and nothing rests on it.
pub(crate) fn where_lines(report: &Report, directory: Option<&str>) -> Vec<String> {
    if report.source == Source::ApplePanic {
        // The innermost frames are those of the panic itself.
        return Vec::new();
    }
    let frames = report.fault_frames();
    let certain = frames.iter().take_while(|frame| frame.trust != Trust::Scan).count();
    let frames = frames.get(..certain).unwrap_or(frames);
    let located = frames.iter().find(|frame| frame.functions.iter().any(|function| function.file.is_some()));
    if let Some(frame) = located {
        let line = |function: &backtrail::Function| match place(function, directory) {
            Some(place) => format!("{} at {place}", function.name),
            None => function.name.clone(),
        };
        let with_role = |(position, function): (usize, &backtrail::Function)| {
            if position == 0 { line(function) } else { format!("  inlined into {}", line(function)) }
        };
        return frame.functions.iter().enumerate().map(with_role).collect();
    }
    let rows = rows(report, frames, directory);
    let named = rows.iter().find(|row| row.reason.is_none()).or(rows.first());
    let line = |row: &Row| {
        let image = if row.image.is_empty() { String::new() } else { format!(" in {}", row.image) };
        // What is known by its name has its place in the source as others have an address.
        let place = row.place.as_ref().filter(|_| row.image.is_empty());
        let place = place.map(|place| format!(" at {place}")).unwrap_or_default();
        format!("{}{place}{image}", row.what)
    };
    named.map(line).into_iter().collect()
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
