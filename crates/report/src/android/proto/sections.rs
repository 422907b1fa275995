//! What the text form of a tombstone has as blocks of text, in its words.

use super::{Reader, signed, text};
use crate::protobuf::Value;
use crate::text::hex;
use backtrail_core::Arch;
use backtrail_model::Section;
use std::fmt::Write as _;

pub(super) fn push(reader: &mut Reader<'_>, title: &str, text: String) {
    if reader.report.sections.len() < reader.limits.max_items {
        reader.report.sections.push(Section { title: title.to_owned(), text });
    } else {
        reader.notes.add(|| format!("there are more blocks than are kept: {title}"));
    }
}

fn pointer_size(reader: &Reader<'_>) -> usize {
    usize::from(reader.report.process.arch.unwrap_or(Arch::Arm).pointer_size())
}

/// `    0000007f'ab000000-0000007f'ab000fff r-x         0      1000  /lib.so (BuildId: 01) (load bias 0x1000)`.
pub(super) fn mapping(reader: &mut Reader<'_>, bytes: &[u8]) -> String {
    let (mut begin, mut end, mut offset, mut bias) = (0_u64, 0_u64, 0, 0);
    let (mut access, mut name, mut id) = ([false; 3], String::new(), String::new());
    for field in reader.fields("a mapping", bytes) {
        match (field.number, field.value) {
            (1, Value::Varint(value)) => begin = value,
            (2, Value::Varint(value)) => end = value,
            (3, Value::Varint(value)) => offset = value,
            (4, Value::Varint(value)) => access[0] = value != 0,
            (5, Value::Varint(value)) => access[1] = value != 0,
            (6, Value::Varint(value)) => access[2] = value != 0,
            (7, value) => name = text(value).unwrap_or_default(),
            (8, value) => id = text(value).unwrap_or_default(),
            (9, Value::Varint(value)) => bias = value,
            _ => reader.unknown("mapping", &field),
        }
    }
    let is_64_bit = pointer_size(reader) == 8;
    let address = |value: u64| match is_64_bit {
        true => format!("{:08x}'{:08x}", value >> 32, value & 0xffff_ffff),
        false => format!("{value:08x}"),
    };
    let letters = ["r", "w", "x"].iter().zip(access).map(|(letter, has)| if has { *letter } else { "-" });
    let access: String = letters.collect();
    let mut row = format!(
        "    {}-{} {access}  {offset:8x}  {:8x}",
        address(begin),
        address(end.wrapping_sub(1)),
        end.wrapping_sub(begin)
    );
    if !name.is_empty() {
        let _ = write!(row, "  {name}");
    }
    if !id.is_empty() {
        let _ = write!(row, " (BuildId: {id})");
    }
    if bias != 0 {
        let _ = write!(row, " (load bias {bias:#x})");
    }
    row
}

/// `    fd 4: /dev/null (owned by FileInputStream 0x12)`.
pub(super) fn open_file(reader: &mut Reader<'_>, bytes: &[u8]) -> String {
    let (mut fd, mut path, mut owner, mut tag) = (0, String::new(), String::new(), 0);
    for field in reader.fields("an open file", bytes) {
        match (field.number, field.value) {
            (1, Value::Varint(value)) => fd = signed(value),
            (2, value) => path = text(value).unwrap_or_default(),
            (3, value) => owner = text(value).unwrap_or_default(),
            (4, Value::Varint(value)) => tag = value,
            _ => reader.unknown("open file", &field),
        }
    }
    match owner.as_str() {
        "" => format!("    fd {fd}: {path} (unowned)"),
        owner => format!("    fd {fd}: {path} (owned by {owner} {tag:#x})"),
    }
}

/// `11-22 17:00:00.123  1234  1235 F libc    : message`.
pub(super) fn log(reader: &mut Reader<'_>, bytes: &[u8]) {
    let (mut name, mut rows) = (String::new(), Vec::new());
    for field in reader.fields("a log", bytes) {
        match (field.number, field.value) {
            (1, value) => name = text(value).unwrap_or_default(),
            (2, Value::Bytes(bytes)) => {
                if rows.len() < reader.limits.max_items {
                    rows.extend(log_rows(reader, bytes));
                }
            }
            _ => reader.unknown("log", &field),
        }
    }
    push(reader, &format!("--------- log {name}"), rows.join("\n"));
}

fn log_rows(reader: &mut Reader<'_>, bytes: &[u8]) -> Vec<String> {
    let (mut time, mut pid, mut tid, mut priority) = (String::new(), 0, 0, 0);
    let (mut tag, mut message) = (String::new(), String::new());
    for field in reader.fields("a message of a log", bytes) {
        match (field.number, field.value) {
            (1, value) => time = text(value).unwrap_or_default(),
            (2, Value::Varint(value)) => pid = value,
            (3, Value::Varint(value)) => tid = value,
            (4, Value::Varint(value)) => priority = value,
            (5, value) => tag = text(value).unwrap_or_default(),
            (6, value) => message = text(value).unwrap_or_default(),
            _ => reader.unknown("log message", &field),
        }
    }
    // As in Android's log.h, from ANDROID_LOG_VERBOSE on.
    let letter =
        usize::try_from(priority).ok().and_then(|at| ["?", "?", "V", "D", "I", "W", "E", "F"].get(at));
    let letter = letter.copied().map_or_else(|| priority.to_string(), str::to_owned);
    let row = |line: &str| format!("{time} {pid:5} {tid:5} {letter} {tag:<8}: {line}");
    match message.is_empty() {
        true => vec![row("")],
        false => message.lines().map(row).collect(),
    }
}

/// Bytes near a register, 16 in a row, as numbers of the pointers' size and as text.
pub(super) fn memory(reader: &mut Reader<'_>, bytes: &[u8], title: Option<&str>, thread: Option<u64>) {
    let (mut register, mut mapping, mut begin, mut memory) = (String::new(), String::new(), 0_u64, &[][..]);
    let mut tags = String::new();
    for field in reader.fields("a memory dump", bytes) {
        match (field.number, field.value) {
            (1, value) => register = text(value).unwrap_or_default(),
            (2, value) => mapping = text(value).unwrap_or_default(),
            (3, Value::Varint(value)) => begin = value,
            (4, Value::Bytes(bytes)) => memory = bytes,
            (5, Value::Bytes(bytes)) => tags = hex(bytes),
            (6, Value::Bytes(bytes)) => tags = hex(bytes),
            _ => reader.unknown("memory dump", &field),
        }
    }
    let mut title = title.map_or_else(|| format!("memory near {register}"), str::to_owned);
    if !mapping.is_empty() {
        let _ = write!(title, " ({mapping})");
    }
    if let Some(thread) = thread {
        let _ = write!(title, " (thread {thread})");
    }
    let size = pointer_size(reader);
    let mut rows = Vec::new();
    for (row, chunk) in memory.chunks(16).enumerate() {
        let words: Vec<_> = chunk
            .chunks(size)
            .map(|word| {
                let digits = word.len() * 2;
                let value = word.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
                format!("{value:0digits$x}")
            })
            .collect();
        let shown: String = chunk
            .iter()
            .map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' })
            .collect();
        let address = begin.wrapping_add(16 * row as u64);
        let digits = size * 2;
        // A row that is short leaves its place empty.
        let width = 32 + 16 / size - 1;
        rows.push(format!("    {address:0digits$x} {:<width$}  {shown}", words.join(" ")));
    }
    if !tags.is_empty() {
        rows.push(format!("    tags {tags}"));
    }
    push(reader, &title, rows.join("\n"));
}

/// The bits of `prctl(PR_GET_TAGGED_ADDR_CTRL)` by their names.
pub(super) fn tagged_address_control(value: u64) -> String {
    let mut words = Vec::new();
    for (bit, name) in [(0, "PR_TAGGED_ADDR_ENABLE"), (1, "PR_MTE_TCF_SYNC"), (2, "PR_MTE_TCF_ASYNC")] {
        words.extend((value & 1 << bit != 0).then(|| name.to_owned()));
    }
    let mask = value >> 3 & 0xffff;
    words.extend((mask != 0).then(|| format!("mask {mask:#06x}")));
    words.extend((value >> 19 != 0).then(|| format!("unknown {:#x}", value >> 19 << 19)));
    with_words(value, &words)
}

/// The bits of `prctl(PR_PAC_GET_ENABLED_KEYS)` by their names.
pub(super) fn enabled_keys(value: u64) -> String {
    const KEYS: [&str; 5] =
        ["PR_PAC_APIAKEY", "PR_PAC_APIBKEY", "PR_PAC_APDAKEY", "PR_PAC_APDBKEY", "PR_PAC_APGAKEY"];
    let keys = KEYS.iter().enumerate().filter(|(bit, _)| value & 1 << bit != 0);
    let mut words: Vec<_> = keys.map(|(_, name)| (*name).to_owned()).collect();
    words.extend((value >> 5 != 0).then(|| format!("unknown {:#x}", value >> 5 << 5)));
    with_words(value, &words)
}

fn with_words(value: u64, words: &[String]) -> String {
    match words {
        [] => format!("{value:016x}"),
        words => format!("{value:016x} ({})", words.join(", ")),
    }
}
