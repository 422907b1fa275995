//! One self-contained page: no scripts, no fonts, nothing fetched. Every text from the report is escaped.

use crate::escape::{is_unsafe, shortened};
use crate::facts::{evidence, id, messages, subject, what, where_lines, whose};
use crate::stack::{Row, common_directory, rows, rows_in};
use crate::threads::{folded, thread_title};
use crate::tree::{process_line, tree_rows};
use backtrail::{Analysis, Field, Frame, Image, OwnerKind, Report, Thread, Tree};
use std::fmt::{self, Display};
use std::io::{self, Write};

/// The style of pages, light and dark.
pub const STYLE: &str = include_str!("page.css");

/// Writes the page of one analysed report.
pub fn write(out: &mut dyn Write, analysis: &Analysis) -> io::Result<()> {
    begin(out, &analysis.explanation.title)?;
    write_body(out, analysis, "h1")?;
    end(out)
}

/// Writes what is on the page of one analysed report, for a page that has its own head and [`STYLE`]. `heading` is the element that the
/// title is in: `h1`, or `h2` on a page that is of more than this report.
pub fn write_body(out: &mut dyn Write, analysis: &Analysis, heading: &str) -> io::Result<()> {
    let directory = common_directory(&analysis.report);
    let page = Page { analysis, directory: directory.as_deref(), heading };
    page.head(out)?;
    page.facts(out)?;
    page.advice(out)?;
    page.stacks(out)?;
    page.images(out)?;
    page.rest(out)
}

/// Begins a page.
pub fn begin(out: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>", Text(title))
}

/// Ends a page.
pub fn end(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "</main>\n</body>\n</html>")
}

/// A report's entry in the index of many, without the link that it is in.
pub fn index_entry(analysis: &Analysis, input: &str) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let directory = common_directory(&analysis.report);
    let place = where_lines(&analysis.report, directory.as_deref()).into_iter().next().unwrap_or_default();
    writeln!(out, "{}</a>", Prose(&analysis.explanation.title))?;
    if !place.is_empty() {
        writeln!(out, "<p><code>{}</code></p>", Text(&shortened(&place)))?;
    }
    let (class, whose) = (verdict_class(analysis), whose(analysis));
    writeln!(out, "<p><span class=\"badge {class}\">{}</span></p>", Text(&whose))?;
    writeln!(out, "<p class=\"faint\">{} · {}</p></li>", Text(input), Text(&subject(&analysis.report)))?;
    Ok(out)
}

/// Writes the page that lists many reports' pages, in the order of the inputs: for each the file's name and the entry.
pub fn write_index(out: &mut dyn Write, entries: &[(String, Vec<u8>)]) -> io::Result<()> {
    let title = format!("{} reports", entries.len());
    begin(out, &title)?;
    writeln!(out, "<header>\n<h1 class=\"plain\">{title}</h1>\n</header>\n<ol class=\"index\">")?;
    for (page, entry) in entries {
        write!(out, "<li><a href=\"./{}\">", Link(page))?;
        out.write_all(entry)?;
    }
    writeln!(out, "</ol>")?;
    end(out)
}

fn verdict_class(analysis: &Analysis) -> &'static str {
    match analysis.attribution.verdict {
        OwnerKind::App => "app",
        OwnerKind::Sdk => "sdk",
        OwnerKind::System => "system",
        _ => "unknown",
    }
}

struct Page<'a> {
    analysis: &'a Analysis,
    directory: Option<&'a str>,
    /// The element that the title is in.
    heading: &'a str,
}

impl Page<'_> {
    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let explanation = &self.analysis.explanation;
        writeln!(out, "<header>\n<p class=\"subject\">{}</p>", Text(&subject(&self.analysis.report)))?;
        let heading = self.heading;
        writeln!(out, "<{heading} class=\"title\">{}</{heading}>", Prose(&explanation.title))?;
        writeln!(out, "<p class=\"summary\">{}</p>\n</header>", Prose(&explanation.summary))
    }

    fn facts(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = &self.analysis.report;
        writeln!(out, "<dl class=\"facts\">")?;
        if let Some(what) = what(report) {
            writeln!(out, "<dt>What</dt><dd><code>{}</code></dd>", Text(&what))?;
        }
        for (name, lines) in [("Said", messages(report)), ("Where", where_lines(report, self.directory))] {
            if lines.is_empty() {
                continue;
            }
            writeln!(out, "<dt>{name}</dt><dd>")?;
            for line in lines {
                writeln!(out, "<div><code>{}</code></div>", Text(line.trim_start()))?;
            }
            writeln!(out, "</dd>")?;
        }
        let (class, whose) = (verdict_class(self.analysis), whose(self.analysis));
        writeln!(out, "<dt>Whose</dt><dd><span class=\"badge {class}\">{}</span></dd>", Text(&whose))?;
        writeln!(out, "</dl>")
    }

    fn advice(&self, out: &mut dyn Write) -> io::Result<()> {
        let explanation = &self.analysis.explanation;
        writeln!(out, "<section class=\"advice\">")?;
        list(out, "Likely causes", "ol", &explanation.causes)?;
        list(out, "What to do next", "ol", &explanation.next_steps)?;
        list(out, "Evidence", "ul", &evidence(self.analysis))?;
        // The first line says where, which stands above.
        let place = where_lines(&self.analysis.report, self.directory).len().min(1);
        let whose = self.analysis.attribution.evidence.get(place..).unwrap_or_default();
        list(out, "Whose code", "ul", whose)?;
        writeln!(out, "</section>")
    }

    fn stacks(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = &self.analysis.report;
        if has_stacks(report) {
            writeln!(out, "<div class=\"tools\"><input type=\"checkbox\" id=\"app-frames\">")?;
            writeln!(out, "<label for=\"app-frames\">Only frames outside of the system</label></div>")?;
        }
        if let Some(directory) = self.directory {
            writeln!(out, "<p class=\"faint\">Source files are below <code>{}</code></p>", Text(directory))?;
        }
        for (number, backtrace) in report.process.backtraces.iter().enumerate() {
            self.stack(out, &format!("backtrace-{number}"), &backtrace.title, &backtrace.frames, true)?;
        }
        if let Some(thread) = report.crashed() {
            self.stack(out, &anchor(thread), &thread_title(thread), &thread.frames, true)?;
            registers(out, thread)?;
        }
        let others = report.process.threads.iter().enumerate();
        let others = others
            .filter(|(index, _)| Some(*index) != report.process.crashed_thread)
            .map(|(_, thread)| thread);
        for group in folded(others) {
            let titles: Vec<_> = group.iter().map(|thread| thread_title(thread)).collect();
            if let Some(first) = group.first() {
                self.stack(out, &anchor(first), &titles.join(", "), &first.frames, false)?;
            }
        }
        report.process.trees.iter().try_for_each(|tree| self.tree(out, tree, &report.process.images))?;
        self.others(out)
    }

    /// The other processes, each with its stacks.
    fn others(&self, out: &mut dyn Write) -> io::Result<()> {
        let processes = &self.analysis.report.processes;
        if processes.is_empty() {
            return Ok(());
        }
        writeln!(out, "<h2>Other processes</h2>")?;
        for (process, number) in processes.iter().zip(1..) {
            writeln!(out, "<h3>{}</h3>", Text(&process_line(process)))?;
            let stack = |out: &mut dyn Write, id: String, title: &str, frames: &[Frame]| {
                let rows = rows_in(&process.images, frames, self.directory);
                write_stack(out, &format!("process-{number}-{id}"), title, &rows, frames.len(), false)
            };
            for (backtrace, position) in process.backtraces.iter().zip(1..) {
                stack(out, format!("stack-{position}"), &backtrace.title, &backtrace.frames)?;
            }
            for group in folded(process.threads.iter()) {
                let titles: Vec<_> = group.iter().map(|thread| thread_title(thread)).collect();
                if let Some(first) = group.first() {
                    stack(out, anchor(first), &titles.join(", "), &first.frames)?;
                }
            }
            process.trees.iter().try_for_each(|tree| self.tree(out, tree, &process.images))?;
            fields(out, &process.fields)?;
        }
        Ok(())
    }

    /// A call tree: how many samples have each frame, set in by how deep it stands.
    fn tree(&self, out: &mut dyn Write, tree: &Tree, images: &[Image]) -> io::Result<()> {
        let title = format!("{} ({})", tree.title, tree.unit.as_str());
        writeln!(out, "<details>\n<summary>{} <span class=\"faint\">", Text(&title))?;
        writeln!(out, "{} frames</span></summary>", tree.nodes.len())?;
        writeln!(out, "<div class=\"scroll\"><table class=\"tree\">")?;
        for shown in tree_rows(tree, images, self.directory) {
            let row = &shown.row;
            let notes = [shown.note.as_deref(), row.reason, row.place.as_deref()];
            let notes: Vec<_> = notes.into_iter().flatten().collect();
            writeln!(
                out,
                "<tr><td class=\"number\">{}</td><td style=\"padding-left:{}ch\"><code>{}</code> {} <span class=\"faint\">{}</span></td></tr>",
                shown.weight,
                shown.depth.min(MAX_INDENT),
                Text(&shortened(&row.what)),
                Text(&shortened(&row.image)),
                Text(&notes.join(" "))
            )?;
        }
        writeln!(out, "</table></div>\n</details>")
    }

    /// A stack of the process that the report is about.
    fn stack(
        &self,
        out: &mut dyn Write,
        id: &str,
        title: &str,
        frames: &[Frame],
        open: bool,
    ) -> io::Result<()> {
        write_stack(out, id, title, &rows(&self.analysis.report, frames, self.directory), frames.len(), open)
    }

    fn images(&self, out: &mut dyn Write) -> io::Result<()> {
        let images: Vec<_> =
            self.analysis.report.process.images.iter().map(|image| (image, &image.symbols)).collect();
        if images.is_empty() {
            return Ok(());
        }
        let missing = images.iter().filter(|(_, symbols)| symbols.is_incomplete()).count();
        let open = if missing > 0 { " open" } else { "" };
        writeln!(out, "<details{open}>\n<summary>Symbols <span class=\"faint\">{} images, ", images.len())?;
        writeln!(out, "{missing} missing</span></summary>\n<table class=\"images\">")?;
        writeln!(out, "<tr><th>image</th><th>identity</th><th>symbols</th><th>files</th></tr>")?;
        for (image, symbols) in images {
            let class = if symbols.is_incomplete() { "missing" } else { "" };
            write!(
                out,
                "<tr class=\"{class}\"><td>{}</td><td><code>{}</code></td>",
                Text(&image.name),
                id(image)
            )?;
            let files = if symbols.has_file() { &symbols.files } else { &symbols.tried };
            let how = symbols.how_to_get.as_ref().map(|how| format!("to get them: {how}"));
            let files: Vec<_> = files.iter().chain(&how).map(|file| Text(file).to_string()).collect();
            writeln!(out, "<td>{}</td><td>{}</td></tr>", symbols.status.as_str(), files.join("<br>"))?;
        }
        writeln!(out, "</table>\n</details>")
    }

    /// Everything else that the report says, so that nothing of it is lost on this page.
    fn rest(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = &self.analysis.report;
        list(out, "Notes", "ul", &report.notes)?;
        let own = &report.process.fields;
        if !report.fields.is_empty()
            || !own.is_empty()
            || !report.sections.is_empty()
            || !report.app_info.is_empty()
        {
            writeln!(out, "<details>\n<summary>The rest of the report</summary>")?;
            for info in &report.app_info {
                let title = info.image.as_deref().unwrap_or("Application specific information");
                block(out, title, &info.lines.join("\n"))?;
            }
            for section in &report.sections {
                block(out, &section.title, &section.text)?;
            }
            fields(out, &report.fields)?;
            fields(out, &report.process.fields)?;
            writeln!(out, "</details>")?;
        }
        Ok(())
    }
}

/// Deeper frames of a tree are not set further in.
const MAX_INDENT: usize = 60;

fn fields(out: &mut dyn Write, fields: &[Field]) -> io::Result<()> {
    if fields.is_empty() {
        return Ok(());
    }
    writeln!(out, "<dl class=\"fields\">")?;
    for field in fields {
        writeln!(out, "<dt>{}</dt><dd>{}</dd>", Text(&field.key), Text(&field.value))?;
    }
    writeln!(out, "</dl>")
}

fn block(out: &mut dyn Write, title: &str, text: &str) -> io::Result<()> {
    writeln!(out, "<h3>{}</h3>\n<pre>{}</pre>", Text(title), Text(text))
}

/// Writes a titled list of sentences of ours, if there are any.
pub fn list(out: &mut dyn Write, title: &str, tag: &str, items: &[String]) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "<div><h2>{title}</h2>\n<{tag}>")?;
    for item in items {
        writeln!(out, "<li>{}</li>", Prose(item))?;
    }
    writeln!(out, "</{tag}></div>")
}

/// Where a thread is found on the page.
fn anchor(thread: &Thread) -> String {
    format!("thread-{}", thread.number)
}

/// A stack under its permanent link `#id`, each frame under `#id-frame-number`; then the same as text, which one click
/// selects whole.
fn write_stack(
    out: &mut dyn Write,
    id: &str,
    title: &str,
    rows: &[Row],
    frames: usize,
    open: bool,
) -> io::Result<()> {
    let open = if open { " open" } else { "" };
    let count = if frames == 1 { "1 frame".to_owned() } else { format!("{frames} frames") };
    writeln!(out, "<details id=\"{id}\"{open}>\n<summary>{} <span class=\"faint\">", Text(title))?;
    writeln!(out, "{count}</span> <a class=\"link\" href=\"#{id}\">#</a></summary>")?;
    writeln!(out, "<table class=\"stack\">")?;
    for row in rows {
        frame_row(out, id, row)?;
    }
    writeln!(out, "</table>\n<details class=\"copy\"><summary>As text, to copy</summary>\n<pre>")?;
    writeln!(out, "{}", Text(title))?;
    for row in rows {
        let index = row.index.map_or_else(String::new, |index| index.to_string());
        let place = row.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let line = format!("{index:<3} {} {}{place}", row.image, row.what);
        writeln!(out, "{}", Text(&shortened(line.trim_end())))?;
    }
    writeln!(out, "</pre></details>\n</details>")
}

fn frame_row(out: &mut dyn Write, id: &str, row: &Row) -> io::Result<()> {
    let named = match (row.located, row.reason) {
        _ if row.is_guess => "unnamed",
        (true, _) => "located",
        (false, Some(_)) => "unnamed",
        (false, None) => "",
    };
    let system = if row.is_system { "system" } else { "" };
    let class = [named, system].join(" ");
    match row.index {
        Some(index) => write!(
            out,
            "<tr class=\"{}\" id=\"{id}-frame-{index}\"><td class=\"number\"><a href=\"#{id}-frame-{index}\">{index}</a></td>",
            class.trim()
        )?,
        None => write!(out, "<tr class=\"{}\"><td class=\"number\"></td>", class.trim())?,
    }
    write!(out, "<td class=\"image\">{}</td>", Text(&shortened(&row.image)))?;
    write!(out, "<td><code>{}</code>", Text(&shortened(&row.what)))?;
    if row.inlined {
        write!(out, " <span class=\"faint\">inlined</span>")?;
    }
    if let Some(owner) = &row.owner {
        write!(out, " <span class=\"owner\">{}</span>", Text(&shortened(owner)))?;
    }
    if let Some(doubt) = &row.doubt {
        let class = if row.is_guess { "guess" } else { "faint" };
        write!(out, " <span class=\"{class}\">{doubt}</span>")?;
    }
    if let Some(reason) = row.reason {
        write!(out, " <span class=\"faint\">{reason}</span>")?;
    }
    let place = row.place.as_deref().unwrap_or_default();
    writeln!(out, "</td><td class=\"place\">{}</td></tr>", Text(&shortened(place)))
}

fn registers(out: &mut dyn Write, thread: &Thread) -> io::Result<()> {
    if thread.registers.is_empty() {
        return Ok(());
    }
    writeln!(out, "<details>\n<summary>Registers of thread {}</summary>", thread.number)?;
    writeln!(out, "<div class=\"registers\">")?;
    for register in &thread.registers {
        let note = register.note.as_deref().unwrap_or_default();
        writeln!(
            out,
            "<div><b>{}</b> <code>{:#018x}</code> {}</div>",
            Text(&register.name),
            register.value,
            Text(note)
        )?;
    }
    writeln!(out, "</div>\n</details>")
}

/// Text from a stranger, safe in element content and in quoted attributes. What cannot be seen or turns the order of text is
/// shown escaped; the page isolates the direction of what is left.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\t' | '\n' => write!(f, "{character}")?,
                hidden if is_unsafe(hidden) => write!(f, "{}", hidden.escape_default())?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}

/// A sentence of ours: what stands between backticks is code.
#[derive(Clone, Copy, Debug)]
pub struct Prose<'a>(pub &'a str);

impl Display for Prose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((before, (code, after))) =
            rest.split_once('`').and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
        {
            write!(f, "{}<code>{}</code>", Text(before), Text(code))?;
            rest = after;
        }
        write!(f, "{}", Text(rest))
    }
}

/// A file's name as a relative link: all but plain characters in percent-encoding (RFC 3986).
struct Link<'a>(&'a str);

impl Display for Link<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    write!(f, "{}", char::from(byte))?;
                }
                other => write!(f, "%{other:02X}")?,
            }
        }
        Ok(())
    }
}

/// Whether there is a stack to show.
fn has_stacks(report: &Report) -> bool {
    std::iter::once(&report.process).chain(&report.processes).any(|process| {
        !process.trees.is_empty()
            || process.threads.iter().any(|thread| !thread.frames.is_empty())
            || process.backtraces.iter().any(|backtrace| !backtrace.frames.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_text_stays_text() {
        let text = Text("<script>alert('1 & \"2\"')</script>\u{1b}[31m\u{202e}").to_string();
        let expected =
            "&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;\\u{1b}[31m\\u{202e}";
        assert_eq!(text, expected);
    }

    #[test]
    fn code_in_sentences_is_marked_as_code() {
        let prose = |text: &str| Prose(text).to_string();
        assert_eq!(
            prose("in `-[A b]` (A.m:1) and `f<int>`"),
            "in <code>-[A b]</code> (A.m:1) and <code>f&lt;int&gt;</code>"
        );
        assert_eq!(prose("no code, one ` alone"), "no code, one ` alone");
    }

    /// A class without a style was how call trees came to widen the page.
    #[test]
    fn the_boxes_that_scroll_have_a_style() {
        for class in ["scroll", "tree", "fields", "registers", "badge", "index"] {
            assert!(STYLE.contains(&format!(".{class} ")), "{class}");
        }
    }

    #[test]
    fn links_hold_no_markup() {
        assert_eq!(Link("a b\"<#?%.html").to_string(), "a%20b%22%3C%23%3F%25.html");
    }

    #[test]
    fn a_guess_is_marked() {
        let row = Row {
            index: Some(3),
            image: "libc".to_owned(),
            what: "read".to_owned(),
            place: None,
            inlined: false,
            reason: None,
            doubt: Some("by scan, a guess".to_owned()),
            is_guess: true,
            located: false,
            is_system: false,
            owner: None,
        };
        let mut out = Vec::new();
        frame_row(&mut out, "thread-0", &row).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("<span class=\"guess\">by scan, a guess</span>"), "{out}");
    }
}
