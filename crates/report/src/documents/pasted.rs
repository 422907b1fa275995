//! Text as it comes out of mails, issues and web pages: quoted, fenced, escaped.
//!
//! Lines are kept, so that they have the numbers of the input, but where a log had joined several. Indentation and tabs are the reader's to judge.

use crate::apple_text::Lines;

/// Fewer quoted lines than these may be anybody's text.
const MIN_QUOTED: usize = 3;

/// Whether a text begins with the mark of Jira's blocks rather than with JSON.
pub(super) fn is_block_mark(line: &[u8]) -> bool {
    [&b"{code"[..], b"{noformat", b"{quote"].iter().any(|mark| line.starts_with(mark))
}

/// What was done to a text when it was pasted.
#[derive(Default)]
struct Marks {
    quoted: usize,
    fenced: bool,
    escaped: bool,
    blanks: bool,
    /// A terminal's escape sequences for colours.
    coloured: bool,
    /// A backquote that opens a text of several lines.
    opened: bool,
    /// Lines that a log joined to one by `#012`.
    joined: bool,
    /// Links of Markdown: `[text](https://…)`.
    linked: bool,
    /// Lines of which each stands between backquotes of its own.
    ticked: usize,
    /// Three stars, of which Markdown needs one escaped.
    starred: bool,
    /// Every line is indented by a tab.
    tabbed: bool,
}

/// Three stars at the beginning of a message, as Markdown needs them: two would begin bold text.
const STARS: &[u8] = b"**\\*";

/// The text without the marks of pasting; `None` where there are none.
pub(super) fn cleaned(text: &[u8]) -> Option<Vec<u8>> {
    let marks = Marks::of(text);
    let is_quoted = marks.quoted >= MIN_QUOTED;
    let is_plain = !is_quoted && !marks.fenced && !marks.escaped && !marks.blanks && !marks.coloured;
    let is_ticked = marks.ticked >= MIN_QUOTED;
    let has_others = marks.opened || marks.joined || marks.linked || marks.starred || marks.tabbed;
    if is_plain && !has_others && !is_ticked {
        return None;
    }
    let plain = marks.coloured.then(|| without_colours(text));
    let text = plain.as_deref().unwrap_or(text);
    let parted = marks.joined.then(|| replaced(text, BREAK, b"\n"));
    let text = parted.as_deref().unwrap_or(text);
    let unlinked = marks.linked.then(|| without_links(text));
    let text = unlinked.as_deref().unwrap_or(text);
    let unstarred = marks.starred.then(|| replaced(text, STARS, b"***"));
    let text = unstarred.as_deref().unwrap_or(text);
    let mut is_open = false;
    let mut cleaned = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, behind) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        rest = behind;
        let has_break = line.ends_with(b"\n");
        let line = if is_quoted { without_quotes(line) } else { line };
        let line = line.strip_prefix(b"\t").filter(|_| marks.tabbed).unwrap_or(line);
        if is_fence(line) {
            cleaned.extend(line.iter().filter(|byte| matches!(byte, b'\r' | b'\n')));
            continue;
        }
        let line = if marks.fenced { without_fence(line) } else { line };
        if let Some(inner) = between_ticks(line).filter(|_| is_ticked) {
            cleaned.extend_from_slice(inner);
            cleaned.extend(line.iter().filter(|byte| matches!(byte, b'\r' | b'\n')));
            continue;
        }
        let line = if marks.opened { without_backquotes(line, &mut is_open) } else { line };
        if marks.escaped {
            unescape(line, &mut cleaned);
        } else {
            cleaned.extend_from_slice(line);
        }
        if has_break && cleaned.last() != Some(&b'\n') {
            cleaned.push(b'\n');
        }
    }
    if marks.blanks || marks.escaped {
        cleaned = with_plain_blanks(&cleaned);
    }
    Some(cleaned)
}

impl Marks {
    fn of(text: &[u8]) -> Self {
        let mut marks = Self::default();
        let mut states_id = false;
        let mut at_margin = 0;
        let mut lines = 0;
        for line in Lines::new(text, 0..text.len(), 1) {
            let inner = line.bytes.trim_ascii_start();
            lines += usize::from(!inner.is_empty());
            at_margin += usize::from(!inner.is_empty() && !line.bytes.starts_with(b"\t"));
            match inner.first() {
                Some(b'>') => marks.quoted += 1,
                Some(b'`' | b'~' | b'{') => {
                    marks.fenced |= is_fence(inner) || inner.starts_with(FENCE);
                    marks.opened |= opens(inner);
                    marks.ticked += usize::from(between_ticks(inner).is_some());
                }
                _ => {}
            }
            if marks.quoted > 0
                && without_quotes(inner).first().is_some_and(|byte| matches!(byte, b'`' | b'~'))
            {
                marks.fenced |= is_fence(without_quotes(inner));
            }
            if !states_id && (inner.starts_with(b"0x") || inner.starts_with(b">")) {
                states_id = has_raw_id(inner);
            }
        }
        marks.tabbed = at_margin == 0 && lines >= MIN_QUOTED;
        let is_escaped = || [&b"&lt;"[..], b"&gt;", b"&quot;", b"&nbsp;"].iter().any(|mark| has(text, mark));
        marks.escaped = !states_id && is_escaped();
        marks.blanks = has(text, "\u{a0}".as_bytes());
        marks.coloured = has(text, COLOUR);
        marks.joined = has(text, b"#012#");
        marks.starred = has(text, STARS);
        marks.linked = memchr::memmem::find_iter(text, b"](").any(|at| link(text, at).is_some());
        marks
    }
}

/// A link of Markdown whose text ends by the bracket at `at`: where it begins, and where what follows it does. Its target has a
/// scheme, as no argument of a function has.
fn link(text: &[u8], at: usize) -> Option<(usize, usize)> {
    /// Longer ones are none, neither text nor target.
    const MAX: usize = 1024;
    const MAX_SCHEME: usize = 12;
    let target = text.get(at + 2..)?;
    let scheme = target.iter().take(MAX_SCHEME).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if scheme == 0 || !target.get(scheme..)?.starts_with(b"://") {
        return None;
    }
    let target = target.get(..MAX.min(target.len()))?;
    let length = memchr::memchr3(b')', b'\n', b' ', target)?;
    if target.get(length) != Some(&b')') {
        return None;
    }
    let from = at.saturating_sub(MAX);
    let opening = from + memchr::memrchr2(b'[', b'\n', text.get(from..at)?)?;
    (text.get(opening) == Some(&b'[')).then_some((opening, at + 2 + length + 1))
}

/// The text with the texts of links in the place of these.
fn without_links(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(text, b"](") {
        let Some((opening, behind)) = link(text, at).filter(|(opening, _)| *opening >= from) else {
            continue;
        };
        plain.extend_from_slice(text.get(from..opening).unwrap_or_default());
        plain.extend_from_slice(text.get(opening + 1..at).unwrap_or_default());
        from = behind;
    }
    plain.extend_from_slice(text.get(from..).unwrap_or_default());
    plain
}

/// How a terminal's sequence for colours begins ("Select Graphic Rendition", ECMA-48 8.3.117). It ends in `m`.
const COLOUR: &[u8] = b"\x1b[";

/// The text as a terminal shows it, without colours. Other sequences stay.
fn without_colours(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, COLOUR) {
        let (before, behind) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        plain.extend_from_slice(before);
        let parameters = behind.get(COLOUR.len()..).unwrap_or_default();
        let length =
            parameters.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':')).count();
        rest = match parameters.get(length) {
            Some(b'm') => parameters.get(length + 1..).unwrap_or_default(),
            _ => {
                plain.extend_from_slice(COLOUR);
                parameters
            }
        };
    }
    plain.extend_from_slice(rest);
    plain
}

/// What a line has between two backquotes that are all it has besides.
fn between_ticks(line: &[u8]) -> Option<&[u8]> {
    let inner = line.trim_ascii().strip_prefix(b"`")?.strip_suffix(b"`")?;
    (!inner.is_empty() && memchr::memchr(b'`', inner).is_none()).then_some(inner)
}

/// Whether a line begins with the backquote of a text that goes on behind it.
fn opens(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"`").unwrap_or_default();
    !rest.is_empty() && memchr::memchr(b'`', rest).is_none()
}

/// A line without the backquote that opens a text of several lines; without the one that closes it, and its break.
fn without_backquotes<'l>(line: &'l [u8], is_open: &mut bool) -> &'l [u8] {
    let start = line.trim_ascii_start();
    if !*is_open && opens(start.trim_ascii_end()) {
        *is_open = true;
        return start.get(1..).unwrap_or_default();
    }
    let end = line.trim_ascii_end();
    match end.strip_suffix(b"`") {
        Some(inner) if *is_open && memchr::memchr(b'`', inner).is_none() => {
            *is_open = false;
            inner
        }
        _ => line,
    }
}

/// How a log joins the lines of a message, since its own lines have to be one each (rsyslog).
const BREAK: &[u8] = b"#012";

fn replaced(text: &[u8], word: &[u8], by: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, word) {
        let (before, behind) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        plain.extend_from_slice(before);
        plain.extend_from_slice(by);
        rest = behind.get(word.len()..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    plain
}

fn has(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

/// Whether a row states an image's identity in brackets that are not escaped.
fn has_raw_id(line: &[u8]) -> bool {
    let behind = line.iter().position(|byte| *byte == b'<').and_then(|at| line.get(at + 1..at + 9));
    behind.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// A line without the `>` of quotations, however many.
fn without_quotes(line: &[u8]) -> &[u8] {
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match rest.get(blanks..).and_then(|rest| rest.strip_prefix(b">")) {
            Some(behind) => rest = behind.strip_prefix(b" ").unwrap_or(behind),
            None => return rest,
        }
    }
}

/// A line that opens or closes a block of code: three backquotes or tildes and a language, or Jira's `{code}`.
fn is_fence(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let mark = [&b"```"[..], b"~~~"].iter().find_map(|mark| line.strip_prefix(*mark));
    let is_word = |rest: &[u8]| rest.len() <= 20 && !rest.contains(&b' ');
    mark.is_some_and(is_word) || (is_block_mark(line) && line.ends_with(b"}") && line.len() < 60)
}

const FENCE: &[u8] = b"```";

/// A line without the marks of a block of code that begins or ends in it, beside what the line says.
fn without_fence(line: &[u8]) -> &[u8] {
    let start = line.trim_ascii_start();
    let line = start.strip_prefix(FENCE).unwrap_or(line);
    let end = line.trim_ascii_end();
    end.strip_suffix(FENCE).filter(|inner| !inner.is_empty()).unwrap_or(line)
}

/// Adds a line with the escapes of HTML undone and its tags left out.
fn unescape(line: &[u8], to: &mut Vec<u8>) {
    const ENTITIES: [(&[u8], &[u8]); 7] = [
        (b"&lt;", b"<"),
        (b"&gt;", b">"),
        (b"&amp;", b"&"),
        (b"&quot;", b"\""),
        (b"&#39;", b"'"),
        (b"&apos;", b"'"),
        (b"&nbsp;", b" "),
    ];
    let mut rest = line;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'&' | b'<')) {
        let (before, behind) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        to.extend_from_slice(before);
        let entity = ENTITIES.iter().find(|(entity, _)| behind.starts_with(entity));
        let (plain, length): (&[u8], usize) = match (entity, tag(behind)) {
            (Some((entity, plain)), _) => (plain, entity.len()),
            (None, Some(length)) => (b"", length),
            (None, None) => (behind.get(..1).unwrap_or_default(), 1),
        };
        to.extend_from_slice(plain);
        rest = behind.get(length..).unwrap_or_default();
    }
    to.extend_from_slice(rest);
}

/// The length of the tag that `text` begins with, where it is one that code stands in on pages.
fn tag(text: &[u8]) -> Option<usize> {
    const TAGS: [&[u8]; 12] =
        [b"pre", b"code", b"p", b"div", b"br", b"span", b"blockquote", b"tt", b"td", b"tr", b"a", b"samp"];
    let inner = text.strip_prefix(b"<")?;
    let length = inner.iter().take(400).position(|byte| *byte == b'>')?;
    let name = inner.get(..length)?;
    let name = name.strip_prefix(b"/").unwrap_or(name);
    let name = name.split(|byte| matches!(byte, b' ' | b'/')).next()?;
    TAGS.iter().any(|tag| name.eq_ignore_ascii_case(tag)).then_some(length + 2)
}

/// Blanks that do not break, as blanks.
fn with_plain_blanks(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte == 0xc2 && bytes.peek() == Some(&0xa0) {
            bytes.next();
            plain.push(b' ');
        } else {
            plain.push(byte);
        }
    }
    plain
}
