//! What logs put before each line: times, process ids, levels, names of containers.

use crate::logcat::log_line;

/// No log puts more parts than these before a line.
const MAX_PARTS: usize = 5;

/// The line without what a log put before it. The blanks that it begins with are kept.
pub(crate) fn plain(line: &str) -> &str {
    let mut rest = container(line).unwrap_or(line);
    for _ in 0..MAX_PARTS {
        match behind_part(rest) {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    rest
}

fn behind_part(line: &str) -> Option<&str> {
    match line.bytes().next()? {
        b'[' => bracket(line),
        b'<' => level(line),
        b'0'..=b'9' => log_line(line)
            .map(|log| log.message)
            .or_else(|| time(line))
            .or_else(|| redis(line))
            .or_else(|| numbered(line)),
        b'V' | b'D' | b'I' | b'W' | b'E' | b'F' if line.as_bytes().get(1) == Some(&b'/') => {
            log_line(line).map(|log| log.message)
        }
        // Flutter's tool on Apple's systems.
        b'f' if line.starts_with("flutter: ") => line.strip_prefix("flutter: "),
        first if first.is_ascii_alphabetic() => {
            syslog(line).or_else(|| logread(line)).or_else(|| unified(line))
        }
        _ => None,
    }
}

/// Kernels' `[   12.345678] `, `[   12.345678][  T123] `, `[12:34:56] `, and `[1234] `, `[pid 1234] `.
fn bracket(line: &str) -> Option<&str> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    let inside = inside.trim();
    let id = inside.strip_prefix("pid ").unwrap_or(inside);
    let id = id.strip_prefix(['T', 'C']).unwrap_or(id);
    let is_number = |text: &str| {
        text.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'-' | b'/'))
    };
    let is_time = || {
        let date = inside.split(['T', ' ']).next().unwrap_or_default();
        date.len() == 10 && is_date(date) && inside.len() <= 40
    };
    // PHP's `10-Feb-2023 16:36:43 Europe/Brussels`.
    let is_phps = || {
        let (date, clock) = inside.split_once(' ').unwrap_or((inside, ""));
        let is_date = date.len() == 11
            && date.get(2..7).is_some_and(|month| month.starts_with('-') && month.ends_with('-'));
        is_date && is_number(clock.split(' ').next().unwrap_or_default()) && inside.len() <= 60
    };
    // Flutter's tool: the time that went by, `[  +12 ms] `, or none.
    let is_tools = || {
        line.starts_with("[    ") && inside.is_empty()
            || inside.strip_suffix(" ms").is_some_and(|time| is_number(time.trim_start_matches('+').trim()))
    };
    // Without a blank only the next bracket may follow.
    let behind =
        rest.strip_prefix(' ').or_else(|| Some(rest).filter(|rest| rest.is_empty() || rest.starts_with('[')));
    behind.filter(|_| is_number(id) || is_time() || is_phps() || is_tools())
}

/// The kernel's `<4>`.
fn level(line: &str) -> Option<&str> {
    let (inside, rest) = line.strip_prefix('<')?.split_once('>')?;
    (!inside.is_empty() && inside.len() <= 3 && inside.bytes().all(|byte| byte.is_ascii_digit()))
        .then_some(rest)
}

fn is_date(word: &str) -> bool {
    word.len() == 10
        && word.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => matches!(byte, b'-' | b'/'),
            _ => byte.is_ascii_digit(),
        })
}

/// `2024-11-22T17:00:00.123Z `, `2024-11-22 17:00:00,123 `, and what container runtimes put behind it: `stderr F `.
fn time(line: &str) -> Option<&str> {
    let date = line.get(..10).filter(|date| is_date(date))?;
    let rest = line.get(date.len()..)?.strip_prefix(['T', ' '])?;
    let (clock, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_clock = clock.get(..8)?.bytes().enumerate().all(|(at, byte)| match at {
        2 | 5 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let stream =
        ["stdout F ", "stderr F ", "stdout P ", "stderr P "].iter().find_map(|word| rest.strip_prefix(word));
    is_clock.then(|| stream.unwrap_or(rest))
}

/// Redis's `13883:S 07 Jan 2025 12:58:10.527 # `, `18 Apr 21:35:45 # `.
fn redis(line: &str) -> Option<&str> {
    let start = match line.split_once(' ')? {
        (process, rest) if process.contains(':') && process.len() <= 12 => rest,
        _ => line,
    };
    let (before, message) = start.split_at_checked(start.find(['#', '*'])?)?;
    let words: Vec<&str> = before.split(' ').collect();
    let is_clock = |word: &str| word.len() >= 8 && word.get(2..3) == Some(":");
    let is_time = match words.as_slice() {
        [day, month, rest @ .., clock, ""] => {
            day.len() <= 2
                && day.parse::<u8>().is_ok()
                && month.len() == 3
                && rest.len() <= 1
                && is_clock(clock)
        }
        _ => false,
    };
    let message = message.get(1..)?;
    is_time.then(|| message.strip_prefix(' ').unwrap_or(message))
}

/// A build service's `19:08:21.757 26 info flutter.tools `: time, number of the line, level, source.
fn numbered(line: &str) -> Option<&str> {
    const LEVELS: [&str; 8] = ["trace", "debug", "info", "warn", "warning", "error", "fatal", "critical"];
    let mut words = line.splitn(5, ' ');
    let (clock, number, level) = (words.next()?, words.next()?, words.next()?);
    let is_clock = clock.len() >= 8
        && clock.bytes().enumerate().all(|(at, byte)| match at {
            2 | 5 => byte == b':',
            8 => matches!(byte, b'.' | b','),
            _ => byte.is_ascii_digit(),
        });
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_level = LEVELS.iter().any(|known| level.eq_ignore_ascii_case(known));
    let source = words.next().filter(|source| !source.is_empty() && is_clock && is_number && is_level);
    source.map(|_| words.next().unwrap_or_default())
}

/// What Apple's log puts before a line, behind the time: `App[342:16833830] critical: `.
fn unified(line: &str) -> Option<&str> {
    const LEVELS: [&str; 4] = ["critical: ", "error: ", "warning: ", "info: "];
    let (program, rest) = line.split_once('[').filter(|(name, _)| !name.is_empty() && !name.contains(' '))?;
    let (ids, rest) = rest.split_once(']')?;
    let (pid, thread) = ids.split_once(':')?;
    let is_id = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let rest = rest.strip_prefix(' ').filter(|_| is_id(pid) && is_id(thread) && program.len() <= 64)?;
    Some(LEVELS.iter().find_map(|level| rest.strip_prefix(level)).unwrap_or(rest))
}

/// OpenWrt's `Tue Apr  1 17:46:36 2025 kern.info kernel: `.
fn logread(line: &str) -> Option<&str> {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let day = line.get(..3).filter(|day| DAYS.contains(day))?;
    let rest = line.get(day.len()..)?.strip_prefix(' ')?;
    let clock = rest.get(..15).filter(|clock| clock.get(12..13) == Some(":"))?;
    let (year, rest) = rest.get(clock.len()..)?.strip_prefix(' ')?.split_once(' ')?;
    let (level, rest) = rest.split_once(' ')?;
    let (program, rest) = rest.split_once(':')?;
    let is_prefix = year.len() == 4 && level.contains('.') && !program.contains(char::is_whitespace);
    is_prefix.then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// `Nov 22 17:00:00 host program[123]: `.
fn syslog(line: &str) -> Option<&str> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = line.get(..3).filter(|month| MONTHS.contains(month))?;
    let rest = line.get(month.len()..)?.strip_prefix(' ')?.trim_start();
    let (_, rest) = rest.split_once(' ').filter(|(day, _)| day.parse::<u8>().is_ok())?;
    let (_, rest) = rest.split_once(' ').filter(|(clock, _)| clock.len() >= 8 && clock.contains(':'))?;
    let (host, rest) = rest.split_once(' ')?;
    // The page of a host, with a clock of twelve hours and no program: `Mar 14 02:53:16 PM  `.
    if matches!(host, "AM" | "PM") {
        return Some(rest.strip_prefix(' ').unwrap_or(rest));
    }
    // Some have the level before the program: `host INFO program: `.
    let rest = match rest.split_once(' ') {
        Some((level, behind)) if level.len() <= 8 && level.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            behind
        }
        _ => rest,
    };
    let (program, rest) = rest.split_once(':')?;
    let is_program = !program.is_empty() && !program.contains(char::is_whitespace);
    is_program.then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// The name that Docker Compose gives a container: `web_1  | `.
fn container(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once('|').filter(|(name, _)| name.len() <= 64)?;
    let name = name.strip_suffix(' ')?.trim_end();
    let is_name = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    is_name.then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_lines_without_what_stands_before() {
        for line in [
            "[   12.345678]   at x",
            "[   12.345678][  T123]   at x",
            "<4>[   12.345678]   at x",
            "2024-11-22T17:00:00.123Z   at x",
            "2024-11-22T17:00:00.123456789+01:00 stderr F   at x",
            "2024-11-22 17:00:00,123   at x",
            "Nov 22 17:00:00 host kernel: [   12.345678]   at x",
            "Nov  2 17:00:00 host app[123]:   at x",
            "Tue Apr  1 17:46:36 2025 kern.info kernel: [   88.926144]   at x",
            "[10-Feb-2023 16:36:43 Europe/Brussels]   at x",
            "[        ]   at x",
            "13883:S 07 Jan 2025 12:58:10.527 #   at x",
            "[8761] 18 Apr 21:35:45 #   at x",
            "2018-12-04 13:15:55.000 My.App[342:16833830] critical:   at x",
            "[  +12 ms]   at x",
            "19:08:21.757 26 info flutter.tools   at x",
            "Mar 14 02:53:16 PM    at x",
            "web_1  |   at x",
            "web-1 | 2024-11-22T17:00:00Z   at x",
            "[123]   at x",
            "11-22 17:00:00.123  1234  1234 F DEBUG   :   at x",
            "E/app    (1234):   at x",
        ] {
            assert_eq!(plain(line), "  at x", "{line}");
        }
        for line in [
            "",
            "[",
            "[signal SIGSEGV]",
            "  | ValueError: x",
            "a.b: c",
            "[New LWP 12]",
            "a | b | c: 1",
            "2024",
        ] {
            let expected = if line.starts_with("a |") { "b | c: 1" } else { line };
            assert_eq!(plain(line), expected, "{line}");
        }
    }
}
