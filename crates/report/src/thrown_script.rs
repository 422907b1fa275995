//! JavaScript's stack in the reason of an Objective-C exception, or in the message of Java's: React Native ends an app by one where
//! an error of JavaScript is not caught, and hands the stack over as a part of its reason. Seen in issues of apps:
//! `reason: 'Unhandled JS Exception: …, stack:\no@296:290\n<unknown>@649:1211\n'`,
//! `com.facebook.react.common.JavascriptException: TypeError: …, js engine: hermes, stack:\nf (address at index.bundle:1:1082)`.

use crate::Limits;
use crate::json;
use crate::runtimes::foreign_row;
use backtrail_model::{Backtrace, Frame, Report};

/// What the stack is called.
const TITLE: &str = "JavaScript Backtrace";

/// What React Native's reasons begin with.
const UNHANDLED: &str = "Unhandled JS Exception: ";

/// The class of Java's.
const CARRIER: &str = "com.facebook.react.common.JavascriptException: ";

/// What ends the words of such a reason, before the stack.
const STACK: &str = "stack:";

/// Makes a backtrace of the JavaScript stack that a report quotes, and puts it first: the native exception only carries it.
pub(crate) fn part(report: &mut Report, limits: &Limits) {
    let process = &report.process;
    if process.threads.len() + process.backtraces.len() >= limits.max_threads {
        return;
    }
    let said = report.app_info.iter().find_map(|info| stack(info.lines.iter().map(String::as_str)));
    let stated = || stack(report.thrown.as_ref()?.reason.as_deref()?.lines());
    let titled = || report.process.backtraces.iter().find_map(|it| stack(it.title.lines()));
    let found = said.or_else(stated).or_else(titled).or_else(|| of_member(report, limits));
    let Some(found) = found else { return };
    let frames: usize = report.process.frames_mut().count();
    if frames + found.frames.len() <= limits.max_frames {
        report.process.backtraces.insert(0, found);
    }
}

/// The member `exceptionReason` of newer `.ips` reports, which is kept as it is.
fn of_member(report: &Report, limits: &Limits) -> Option<Backtrace> {
    let arena = json::Arena::default();
    let object = json::read(&arena, report.text_of("exceptionReason")?.as_bytes(), 0, limits).value?;
    stack(object.get("composed_message")?.text()?.lines())
}

fn stack<'t>(lines: impl Iterator<Item = &'t str>) -> Option<Backtrace> {
    let mut lines = lines.map(str::trim).skip_while(|line| !is_head(line));
    lines.next()?;
    // Rows of built-in functions have no place: `apply@-1`.
    let lines = lines.filter(|line| !line.ends_with("@-1"));
    let rows = lines.map_while(row);
    let number = |(index, frame)| Frame { index, ..frame };
    let frames: Vec<Frame> = (0..).zip(rows).map(number).collect();
    (!frames.is_empty()).then(|| Backtrace { title: TITLE.to_owned(), is_exception: true, frames })
}

fn is_head(line: &str) -> bool {
    line.ends_with(STACK) && (line.contains(UNHANDLED) || line.contains(CARRIER))
}

/// A row. Hermes's `f (address at index.bundle:1:1082)` has lost its file and a bracket where Crashlytics shows it:
/// `f (address at@1:1082`.
fn row(line: &str) -> Option<Frame> {
    let line = line.trim_end_matches(['\'', '"']);
    let plain = line.split_once(" (address at").map(|(name, rest)| match rest.strip_prefix('@') {
        Some(_) => format!("{name}{}", rest.trim_end_matches(')')),
        None => format!("at {line}"),
    });
    foreign_row(plain.as_deref().unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    /// The title of the first stack, and its functions with their lines.
    fn first(text: &str) -> Option<String> {
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let stack = report.process.backtraces.first().filter(|stack| stack.is_exception)?;
        let name = |frame: &backtrail_model::Frame| {
            let symbol = frame.reported.as_ref().unwrap();
            format!(" {}:{}", symbol.name, symbol.line.unwrap())
        };
        Some(format!("{}:{}", stack.title, stack.frames.iter().map(name).collect::<String>()))
    }

    const REASON: &str = "*** Terminating app due to uncaught exception 'RCTFatalException: Unhandled JS Exception: x isn't a function', \
        reason: 'Unhandled JS Exception: x isn't a function, stack:";

    fn expected() -> Option<String> {
        Some("JavaScript Backtrace: o:296 <unknown>:649".to_owned())
    }

    #[test]
    fn in_apples_reports() {
        let text = format!(
            "Process: App [1]\nException Type: EXC_CRASH (SIGABRT)\nTriggered by Thread: 0\n\n\
             Application Specific Information:\n{REASON}\no@296:290\n<unknown>@649:1211\n'\nabort() called\n\n\
             Last Exception Backtrace:\n0   CoreFoundation 0x0000000180000010 0x180000000 + 16\n"
        );
        assert_eq!(first(&text), expected());
        let body = |said: &str| {
            format!(
                "{{\"bug_type\":\"309\",\"os_version\":\"iPhone OS 17.4\"}}\n{{\"procName\":\"App\",\"threads\":[],{said}}}"
            )
        };
        let rows = "\no@296:290\n<unknown>@649:1211\n'";
        let asi = serde_json::json!({ "CoreFoundation": [format!("{REASON}{rows}")] });
        assert_eq!(first(&body(&format!("\"asi\":{asi}"))), expected());
        let member = serde_json::json!({ "name": "RCTFatalException", "composed_message":
            "Unhandled JS Exception: x isn't a function, stack:\no@296:290\n<unknown>@649:1211" });
        assert_eq!(first(&body(&format!("\"exceptionReason\":{member}"))), expected());
    }

    #[test]
    fn what_is_no_stack_is_none() {
        for said in
            ["stack:\no@1:2", "Unhandled JS Exception: x, stack:\nno row", "Unhandled JS Exception: x"]
        {
            let asi = serde_json::json!([said]);
            let text = format!(
                "{{\"bug_type\":\"309\"}}\n{{\"procName\":\"App\",\"threads\":[],\"asi\":{{\"a\":{asi}}}}}"
            );
            assert_eq!(first(&text), None, "{said}");
        }
    }
}
