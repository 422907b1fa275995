//! What programs say of a signal that they caught, before the stack that they print themselves.

use crate::numbers::{hex, signal, signal_in_words};

/// What a program says of a signal that it caught, before its own stack: `Redis 7.0.0 crashed by signal: 11, si_code: 1`,
/// `mysqld got signal 11 ;`, `*** Caught signal (Segmentation fault) **`, `Received signal 11 SEGV_MAPERR 000000000010`,
/// `Accessing address: 0x8`.
pub(crate) fn said_of_signal(line: &str) -> Option<(Option<&'static str>, Option<u64>)> {
    const MARKS: [&str; 6] = [
        "crashed by signal: ",
        "aught signal ",
        " got signal ",
        "Got signal: ",
        "eceived signal ",
        "faulting address ",
    ];
    if let Some(rest) = line.strip_prefix("Accessing address: ") {
        let address = if rest.starts_with("(nil)") { Some(0) } else { hex(word(rest)) };
        return Some((None, Some(address?)));
    }
    let (mark, rest) = MARKS.iter().find_map(|mark| Some((*mark, line.split_once(mark)?.1)))?;
    if mark == "faulting address " {
        let (_, words) = line.split_once("Caught ")?;
        return Some((Some(signal_in_words(words)?), hex(word(rest))));
    }
    let digits = rest.get(..rest.bytes().take_while(u8::is_ascii_digit).count())?;
    let by_number = || signal(digits.parse().ok()?, true);
    let name = by_number().or_else(|| signal_in_words(rest.trim_start_matches('(')))?;
    let codes = ["SEGV_MAPERR ", "SEGV_ACCERR ", "BUS_ADRERR ", "BUS_ADRALN "];
    let address = codes.iter().find_map(|code| line.split_once(code)).map(|(_, rest)| word(rest));
    Some((Some(name), address.and_then(|digits| u64::from_str_radix(digits, 16).ok())))
}

/// The line by which Chromium begins the stack of a signal (`base/debug/stack_trace_posix.cc`): `Received signal 11 SEGV_MAPERR
/// 000000000010`.
fn is_chromiums(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("Received signal ") else { return false };
    let mut words = rest.split(' ');
    let number = words.next().and_then(|word| word.parse::<u8>().ok());
    let code = words.next().unwrap_or_default();
    let address = words.next().unwrap_or_default();
    let is_code = code.contains('_') && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    number.is_some() && is_code && address.len() >= 12 && address.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The signal and the address of Chromium's line before a stack, which on Apple's systems has the rows of these.
pub(crate) fn chromiums_signal(line: &str) -> Option<(&'static str, Option<u64>)> {
    let line = line.trim();
    let (signal, address) = said_of_signal(line).filter(|_| is_chromiums(line))?;
    Some((signal?, address))
}

fn word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}
