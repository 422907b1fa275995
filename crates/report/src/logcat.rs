//! What `adb logcat` puts before a line: time, ids, priority, tag.
//!
//! `11-22 17:00:00.123  1234  1234 F DEBUG   : ` (threadtime), with a year, a zone, a user or a process in some forms;
//! `11-22 17:00:00.123 F/DEBUG( 1234): ` (time), `F/DEBUG( 1234): ` (brief), `F/DEBUG: ` (tag), and Android Studio's
//! `2024-01-02 17:00:00.123 1234-1234/? A/DEBUG: ` and `… 1234-1234  DEBUG  pid-1234  A  `, of which it lets people hide date and
//! tag (`17:00:00.123 1234-1234 com.example  A  `), or all but time and priority (`17:00:00.123  A  `). Flutter's tool puts
//! `[  +21 ms] ` before any of these.

use crate::numbers::is_number;

/// A line of a log, split behind its prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LogLine<'l> {
    pub(crate) tag: &'l str,
    /// What was logged, with the blanks that it begins with.
    pub(crate) message: &'l str,
    /// Whether its priority is that of the last line before the end.
    pub(crate) is_fatal: bool,
}

impl<'l> LogLine<'l> {
    fn new(priority: &str, tag: &'l str, message: &'l str) -> Self {
        Self { tag: tag.trim(), message, is_fatal: matches!(priority, "F" | "A") }
    }
}

/// Splits a line; `None` where it has no such prefix.
pub(crate) fn log_line(line: &str) -> Option<LogLine<'_>> {
    let start = line.trim_start();
    if start.starts_with('[') {
        let tools = of_flutters_tool(start)?;
        return Some(of_logcat(tools.message.trim_start()).unwrap_or(tools));
    }
    of_logcat(start)
}

fn of_logcat(start: &str) -> Option<LogLine<'_>> {
    let behind = behind_time(start);
    let found =
        behind.and_then(|rest| threadtime(rest).or_else(|| studio(rest)).or_else(|| studio_old(rest)));
    found
        .or_else(|| brief(behind.unwrap_or(start)))
        .or_else(|| compact(start))
        .or_else(|| brief(behind_clock(start)?))
        .or_else(|| columns(start))
}

/// What stands behind a time alone: `16:26:39.159 A/DEBUG: `.
fn behind_clock(line: &str) -> Option<&str> {
    line.as_bytes().first().filter(|byte| byte.is_ascii_digit())?;
    let (time, rest) = line.split_once(' ')?;
    is_clock(time).then(|| rest.trim_start())
}

fn is_clock(time: &str) -> bool {
    matches!(time.len(), 8 | 12)
        && time.bytes().enumerate().all(|(at, byte)| match at {
            2 | 5 => byte == b':',
            8 => byte == b'.',
            _ => byte.is_ascii_digit(),
        })
}

/// Android Studio's columns without the time: `AndroidRuntime  E  FATAL EXCEPTION: main`, and `E  Process: …` below it. Only lines
/// of Java's exceptions are known by so little.
fn columns(start: &str) -> Option<LogLine<'_>> {
    const BEGINS: [&str; 5] = ["FATAL EXCEPTION: ", "Process: ", "Caused by: ", "at ", "java."];
    let (tag, rest) = match start.strip_prefix("AndroidRuntime") {
        Some(rest) => ("AndroidRuntime", rest.strip_prefix("  ")?.trim_start()),
        None => ("", start),
    };
    let message = rest.strip_prefix("E  ")?;
    let begin = message.trim_start();
    BEGINS.iter().any(|known| begin.starts_with(known)).then(|| LogLine::new("E", tag, message))
}

/// What stands behind a date and a time.
fn behind_time(line: &str) -> Option<&str> {
    // This is asked of every line of every text.
    line.as_bytes().first().filter(|byte| byte.is_ascii_digit() || **byte == b'-')?;
    let (date, rest) = line.split_once(' ')?;
    let (time, rest) = rest.split_once(' ')?;
    let is_date = date.len() >= 5 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_time = time.len() >= 8
        && time.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))
        && time.contains(':');
    (is_date && is_time).then(|| rest.trim_start())
}

fn is_priority(word: &str) -> bool {
    matches!(word, "V" | "D" | "I" | "W" | "E" | "F" | "A" | "S")
}

/// `[user] pid tid P tag: message`.
fn threadtime(rest: &str) -> Option<LogLine<'_>> {
    let mut at = rest;
    let mut numbers = 0;
    loop {
        let (word, behind) = at.split_once(' ')?;
        let is_zone = word.starts_with(['+', '-']) && word.len() == 5;
        if is_priority(word) && numbers >= 1 {
            let (tag, message) = tagged(behind)?;
            return Some(LogLine::new(word, tag, message));
        }
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit()) || is_zone || word.starts_with("u0_");
        if !is_number || numbers > 4 {
            return None;
        }
        numbers += 1;
        at = behind.trim_start();
    }
}

/// `tag   : message`; the blank behind the colon belongs to the prefix.
fn tagged(text: &str) -> Option<(&str, &str)> {
    let (tag, message) = text.split_once(':')?;
    Some((tag.trim(), message.strip_prefix(' ').unwrap_or(message)))
}

/// `P/tag( pid): message`, and `P/tag: message` of `logcat -v tag`.
fn brief(line: &str) -> Option<LogLine<'_>> {
    let (priority, rest) = line.split_at_checked(1).filter(|(priority, _)| is_priority(priority))?;
    let rest = rest.strip_prefix('/')?;
    let with_pid = || {
        let (tag, rest) = rest.split_once('(')?;
        let (pid, message) = rest.split_once("):")?;
        is_number(pid.trim()).then_some((tag, message.strip_prefix(' ').unwrap_or(message)))
    };
    // Words such as `I/O: ` and paths look alike.
    let is_tag = |(tag, message): &(&str, &str)| {
        let is_word = tag.len() >= 3 && !tag.contains(|c: char| c.is_whitespace() || "/.,".contains(c));
        is_word && (message.is_empty() || rest.contains(": "))
    };
    let (tag, message) = with_pid().or_else(|| tagged(rest).filter(is_tag))?;
    Some(LogLine::new(priority, tag, message))
}

/// `pid-tid/package P/tag: message`.
fn studio_old(rest: &str) -> Option<LogLine<'_>> {
    let (ids, rest) = rest.split_once(' ')?;
    ids.split_once('/').filter(|(ids, _)| is_ids(ids))?;
    let (priority, rest) = rest.trim_start().split_once('/')?;
    let (tag, message) = tagged(rest).filter(|_| is_priority(priority))?;
    Some(LogLine::new(priority, tag, message))
}

/// `pid-tid  tag  package  P  message`.
fn studio(rest: &str) -> Option<LogLine<'_>> {
    let (_, rest) = rest.split_once(' ').filter(|(ids, _)| is_ids(ids))?;
    let (tag, rest) = rest.trim_start().split_once("  ")?;
    let (_, rest) = rest.trim_start().split_once(' ')?;
    let rest = rest.trim_start();
    let (priority, message) = rest.split_once(' ').unwrap_or((rest, ""));
    is_priority(priority).then(|| LogLine::new(priority, tag, message.strip_prefix(' ').unwrap_or(message)))
}

/// `time pid-tid package  P  message`, `time  P  message`: no tag is told. `time P tag : message`, as services that lend devices
/// show it, with or without a second's parts.
fn compact(line: &str) -> Option<LogLine<'_>> {
    // This, too, is asked of every line.
    line.as_bytes().first().filter(|byte| byte.is_ascii_digit())?;
    let (time, rest) = line.split_once(' ')?;
    if !is_clock(time) {
        return None;
    }
    let rest = match rest.split_once(' ').filter(|(ids, _)| is_ids(ids)) {
        Some((_, rest)) => rest.trim_start().split_once(' ')?.1,
        None => rest,
    };
    let (priority, message) = rest.trim_start().split_once(' ').filter(|(word, _)| is_priority(word))?;
    if let Some(message) = message.strip_prefix(' ').filter(|_| time.len() == 12) {
        return Some(LogLine::new(priority, "", message));
    }
    let (tag, message) = tagged(message).filter(|(tag, _)| !tag.contains(' '))?;
    Some(LogLine::new(priority, tag, message))
}

/// Flutter's tool puts the time that went by before each line of a log: `[  +21 ms] message`, `[        ] message`.
fn of_flutters_tool(line: &str) -> Option<LogLine<'_>> {
    let (time, message) = line.strip_prefix("[ ")?.split_once(']')?;
    let time = time.trim();
    let is_time = time.is_empty()
        || time.strip_prefix('+').and_then(|time| time.strip_suffix(" ms")).is_some_and(is_number);
    let message = message.strip_prefix(' ')?;
    is_time.then(|| LogLine::new("", "", message))
}

fn is_ids(word: &str) -> bool {
    word.split_once('-').is_some_and(|(pid, tid)| is_number(pid) && is_number(tid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_all_forms() {
        for (line, tag) in [
            ("11-22 17:00:00.123  1234  1235 F DEBUG   :     #00 pc 12  /a", "DEBUG"),
            ("2024-11-22 17:00:00.123  1234  1235 F DEBUG   :     #00 pc 12  /a", "DEBUG"),
            ("10-26 19:26:24.749 10159 26250 26363 F DEBUG:     #00 pc 12  /a", "DEBUG"),
            ("11-22 17:00:00.123 F/DEBUG   ( 1234):     #00 pc 12  /a", "DEBUG"),
            ("F/libc    (1234):     #00 pc 12  /a", "libc"),
            ("F/DEBUG:     #00 pc 12  /a", "DEBUG"),
            ("2021-02-19 17:05:04.647 29547-29547/? A/DEBUG:     #00 pc 12  /a", "DEBUG"),
            ("2024-02-19 17:05:04.647 29547-29547 DEBUG   pid-29547   A      #00 pc 12  /a", "DEBUG"),
            ("17:05:04.647 29547-29547 com.example.shop   A      #00 pc 12  /a", ""),
            ("17:05:04.647  A      #00 pc 12  /a", ""),
            ("17:05:04 A DEBUG :     #00 pc 12  /a", "DEBUG"),
            ("17:05:04.647 A/DEBUG:     #00 pc 12  /a", "DEBUG"),
            ("[  +21 ms]     #00 pc 12  /a", ""),
            ("[        ] F/libc    (1234):     #00 pc 12  /a", "libc"),
        ] {
            let found = log_line(line).unwrap();
            assert_eq!(found.tag, tag, "{line}");
            assert_eq!(found.message, "    #00 pc 12  /a", "{line}");
        }
        let found = log_line("         AndroidRuntime  E  FATAL EXCEPTION: main").unwrap();
        assert_eq!((found.tag, found.message), ("AndroidRuntime", "FATAL EXCEPTION: main"));
        assert_eq!(log_line("    E      at a.b.C.d(C.java:1)").unwrap().message, "    at a.b.C.d(C.java:1)");
        for line in [
            "",
            "E  words",
            "words",
            "at a.b(C.java:1)",
            "11-22 17:00:00.123",
            "signal 11 (SIGSEGV)",
            "I/O: x",
            "A/b/c.d: x",
            "F/DEBUG:x",
            "[12] x",
            "17:05:04 A meeting at noon",
            "17:05:04.647 A b",
        ] {
            assert_eq!(log_line(line), None, "{line}");
        }
    }
}
