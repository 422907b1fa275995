//! Stacks of other runtimes in what a Java exception says: React Native hands the stack of an error of JavaScript to Java as
//! a part of the message, .NET for Android that of the managed exception.

use super::java_row::trace_head;
use crate::Limits;
use crate::runtimes::foreign_row;
use backtrail_model::{Backtrace, Frame, Process};

/// Behind the managed stack of an exception that came from Java stands Java's own.
const END_OF_MANAGED: &str = "--- End of managed ";

/// Gives rows of other runtimes in the titles of stacks a stack of their own.
pub(super) fn part(process: &mut Process, limits: &Limits) {
    let mut room = limits.max_threads.saturating_sub(process.threads.len() + process.backtraces.len());
    let mut frames: usize = process.frames_mut().count();
    let mut parted = Vec::with_capacity(process.backtraces.len());
    for mut backtrace in std::mem::take(&mut process.backtraces) {
        let found = (room > 0).then(|| Foreign::of(&backtrace.title)).flatten();
        let Some(found) = found.filter(|found| frames + found.frames.len() <= limits.max_frames) else {
            parted.push(backtrace);
            continue;
        };
        room -= 1;
        frames += found.frames.len();
        let stack = Backtrace { title: found.title, is_exception: false, frames: found.frames };
        backtrace.title = found.rest;
        // The outermost first.
        if found.is_outer {
            parted.extend([stack, backtrace]);
        } else {
            parted.extend([backtrace, stack]);
        }
    }
    process.backtraces = parted;
}

/// Another runtime's stack in a title.
struct Foreign {
    title: String,
    frames: Vec<Frame>,
    /// The title of Java's stack without it.
    rest: String,
    /// Whether Java's exception is the cause of this one rather than the other way round.
    is_outer: bool,
}

impl Foreign {
    fn of(title: &str) -> Option<Self> {
        let mut frames = Vec::new();
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        let mut is_outer = false;
        for line in title.lines().map(str::trim) {
            match foreign_row(line) {
                Some(frame) if !is_outer => {
                    let index = u32::try_from(frames.len()).unwrap_or(u32::MAX);
                    frames.push(Frame { index, ..frame });
                }
                _ if line.starts_with(END_OF_MANAGED) => is_outer = true,
                _ if frames.is_empty() => before.push(line),
                _ => behind.push(line),
            }
        }
        if frames.is_empty() {
            return None;
        }
        if is_outer {
            // The managed exception only carries Java's.
            let (title, rest) = (before.join("\n"), behind.join("\n"));
            let rest = if trace_head(&rest).is_some() { format!("Caused by: {rest}") } else { rest };
            return Some(Self { title, frames, rest, is_outer });
        }
        let (_, _, message) = trace_head(before.first()?)?;
        let more: String =
            before.get(1..).unwrap_or_default().iter().map(|line| format!("\n{line}")).collect();
        // The message is what the other runtime said. It is no cause in Java's words, but is one: Java's exception only
        // carries it.
        let said = message?.trim_end().trim_end_matches("stack:").trim_end_matches([',', ' ']);
        let title = format!("Caused by: {said}{more}");
        let rest = before.iter().chain(&behind).copied().collect::<Vec<_>>().join("\n");
        Some(Self { title, frames, rest, is_outer })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    fn stacks(text: &str) -> Vec<(String, Vec<String>, bool)> {
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let backtraces = report.process.backtraces.into_iter();
        backtraces
            .map(|it| {
                let names = it.frames.iter().flat_map(|frame| frame.names().map(str::to_owned)).collect();
                (it.title, names, it.is_exception)
            })
            .collect()
    }

    fn stack(title: &str, names: &[&str], is_exception: bool) -> (String, Vec<String>, bool) {
        (title.to_owned(), names.iter().map(|name| (*name).to_owned()).collect(), is_exception)
    }

    #[test]
    fn javascript_in_a_java_exception() {
        let text = "com.facebook.react.common.JavascriptException: TypeError: x of undefined, stack:\nf@1:18\nforEach@[native code]\n\n\tat a.b.C.d(C.java:1)\n";
        assert_eq!(
            stacks(text),
            [
                stack(
                    "com.facebook.react.common.JavascriptException: TypeError: x of undefined, stack:",
                    &["a.b.C.d"],
                    false
                ),
                stack("Caused by: TypeError: x of undefined", &["f", "forEach"], true),
            ]
        );
    }

    #[test]
    fn a_managed_exception_around_and_within_one_of_java() {
        let text = "Java.Lang.E: low\n  at N.C.M () [0x00068] in <aa>:0 \n  --- End of managed Java.Lang.E stack trace ---\njava.lang.E: low\n\tat a.b.C.d(C.java:1)\n";
        assert_eq!(
            stacks(text),
            [
                stack("Java.Lang.E: low", &["N.C.M"], false),
                stack("Caused by: java.lang.E: low", &["a.b.C.d"], true)
            ]
        );
        let text = "android.runtime.JavaProxyThrowable: System.E: low\n  at N.C.M () [0x00031] in <5d>:0 \n\tat a.b.C.d(C.java:1)\n";
        assert_eq!(
            stacks(text),
            [
                stack("android.runtime.JavaProxyThrowable: System.E: low", &["a.b.C.d"], false),
                stack("Caused by: System.E: low", &["N.C.M"], true)
            ]
        );
    }
}
