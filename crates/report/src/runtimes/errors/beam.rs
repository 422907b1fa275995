//! Erlang and Elixir: exceptions and exits with their stacks, as consoles, tests and loggers print them.
//!
//! Sources: Elixir `lib/elixir/lib/exception.ex` (`format`, `format_stacktrace_entry`); Erlang/OTP `erl_error.erl`
//! (`format_exception`), `proc_lib.erl` (crash reports).

use super::super::log::{Log, Reader, SourcePlace, drive};
use super::Text;
use crate::Limits;
use crate::apple_text::Line;
use crate::numbers::is_number;
use backtrail_model::{Language, Report};

/// A row of a stack.
#[derive(PartialEq, Eq, Debug)]
struct Row<'t> {
    /// The application, where the row names one.
    application: Option<&'t str>,
    name: &'t str,
    place: Option<(&'t str, u32)>,
}

impl<'t> Row<'t> {
    /// Elixir's `(app 1.0.2) lib/file.ex:12: Module.function/2`, without the application for the project's own files.
    fn read(text: &'t str) -> Option<Self> {
        let (application, rest) = match text.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((application, rest)) => (Some(application), rest),
            None => (None, text),
        };
        let is_application = application.is_none_or(|name| {
            let (name, version) = name.split_once(' ').unwrap_or((name, "1"));
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && version.starts_with(|first: char| first.is_ascii_digit())
        });
        if let Some((place, name)) = rest.split_once(": ") {
            let (file, line) = place.rsplit_once(':')?;
            let is_source = [".ex", ".exs", ".erl", ".eex", ".heex"].iter().any(|end| file.ends_with(end));
            let is_row = is_application && is_source && is_number(line) && !name.is_empty();
            return is_row
                .then(|| Some(Self { application, name, place: Some((file, line.parse().ok()?)) }))?;
        }
        // A function without debug info: `(stdlib 4.3) :gen.do_call/4`.
        let (_, arity) = rest.rsplit_once('/')?;
        (is_application && application.is_some() && is_number(arity) && !rest.contains(' ')).then_some(Self {
            application,
            name: rest,
            place: None,
        })
    }

    /// Erlang's `in function  module:function/2 (file.erl, line 12)`, `in call from module:function/2 (file.erl, line 12)`.
    fn erlang(text: &'t str) -> Option<Self> {
        let rest =
            text.strip_prefix("in function ").or_else(|| text.strip_prefix("in call from "))?.trim_start();
        let (name, place) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
            Some((name, place)) => (name, place.split_once(", line ")),
            None => (rest, None),
        };
        let place = place.and_then(|(file, line)| Some((file, line.parse().ok()?)));
        (name.contains(':') && name.contains('/')).then_some(Self { application: None, name, place })
    }
}

/// The stack entries of Erlang's terms in a line: `{gen_server,call,3,[{file,"gen_server.erl"},{line,238}]}`.
fn terms(line: &str) -> Vec<(String, Option<(&str, u32)>)> {
    let mut found = Vec::new();
    for (at, mark) in line.match_indices(",[{file,\"") {
        let Some((before, rest)) = line.get(..at).zip(line.get(at + mark.len()..)) else { continue };
        let head = before.rsplit_once('{').map_or(before, |(_, head)| head);
        let mut parts = head.splitn(3, ',');
        let (Some(module), Some(function), Some(arity)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some((file, rest)) = rest.split_once('"') else { continue };
        let digits = rest.strip_prefix("},{line,").map(|rest| {
            let end = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest.get(..end).unwrap_or_default()
        });
        let place = digits.and_then(|digits| Some((file, digits.parse().ok()?)));
        // In the place of the number there may be a list of arguments.
        let arity = if is_number(arity) { arity } else { "?" };
        found.push((format!("{module}:{function}/{arity}"), place));
        if found.len() >= MAX_TERMS {
            break;
        }
    }
    found
}

/// A line has no more entries of a stack than this.
const MAX_TERMS: usize = 256;

/// `** (Name) text`, also behind other words of the line.
fn raised(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("** (")?;
    let (name, message) = rest.split_once(')')?;
    let is_name = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':'));
    (is_name && (message.is_empty() || message.starts_with(' '))).then(|| (name, message.trim()))
}

/// Erlang's `exception error: no match of right hand side value 1`, with a word or a mark before it.
fn exception(text: &str) -> Option<(&str, &str)> {
    const KINDS: [&str; 3] = ["exception error: ", "exception exit: ", "exception throw: "];
    let text = text.strip_prefix("** ").unwrap_or(text);
    let kind = KINDS.iter().find(|kind| text.starts_with(**kind))?;
    Some((kind.get(..kind.len() - 2)?, text.get(kind.len()..)?.trim()))
}

/// A row as Sentry's library has it: `File "lib/shop.ex", line 12, in Shop.total/2`.
fn sentrys(text: &str) -> Option<Row<'_>> {
    let (file, rest) = text.strip_prefix("File \"")?.split_once("\", line ")?;
    let (line, name) = rest.split_once(", in ")?;
    let is_source = [".ex", ".exs", ".erl", ".eex", ".heex"].iter().any(|end| file.ends_with(end));
    let place = Some((file, line.parse().ok()?));
    (is_source && name.contains('/')).then_some(Row { application: None, name, place })
}

/// What a generic server's report says before the reason for which it ended (`error_logger`, `logger`).
const REASON: &str = "** Reason for termination ==";

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    match line.as_bytes().first() {
        Some(b'F') => sentrys(line).is_some(),
        Some(b'*') if line.starts_with(REASON) => true,
        Some(b'(') => Row::read(line).is_some_and(|row| row.application.is_some() && row.place.is_some()),
        Some(b'*' | b'e') if exception(line).is_some() => true,
        Some(b'*') => line.starts_with("** (") && raised(line).is_some_and(|(name, _)| is_known(name)),
        Some(b'i') => Row::erlang(line).is_some_and(|row| row.place.is_some()),
        _ => false,
    }
}

/// Names that Elixir's exceptions have.
fn is_known(name: &str) -> bool {
    name.ends_with("Error") || matches!(name, "exit" | "stop" | "throw" | "EXIT")
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let text = Text::new(Language::Beam, limits);
    let mut reader = Beam { text, in_arguments: false, reason: None, last: String::new() };
    drive(&mut reader, input, start);
    reader.close_reason();
    reader.text.finish()
}

struct Beam<'l> {
    text: Text<'l>,
    /// Whether what stands there are the arguments of a call, not rows.
    in_arguments: bool,
    /// The term for which a server ended, whose lines are being joined.
    reason: Option<String>,
    /// The last line before rows.
    last: String,
}

/// A reason longer than this is cut.
const MAX_REASON: usize = 64 << 10;

impl<'l> Reader<'l> for Beam<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.text.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if let Some(reason) = text.strip_prefix(REASON) {
            self.close_reason();
            self.reason = Some(reason.trim().to_owned());
            return false;
        }
        if let Some(reason) = &mut self.reason {
            let is_over = text.is_empty() || text.starts_with('=') || reason.len() > MAX_REASON;
            if !is_over {
                reason.push_str(if reason.is_empty() { text.trim_start_matches("** ") } else { text });
                return false;
            }
            self.close_reason();
        }
        if sentrys(text).is_some() && !self.text.has_raised() {
            let said = std::mem::take(&mut self.last);
            let said = said.strip_prefix("Elixir.").unwrap_or(&said);
            let (name, message) = said.split_once(": ").unwrap_or(("", said));
            self.text.raise(name, message);
        }
        if let Some(row) = Row::read(text).or_else(|| Row::erlang(text)).or_else(|| sentrys(text)) {
            self.in_arguments = false;
            let place = row.place.map(|(file, line)| SourcePlace { file, line, column: None });
            let pushed = self.text.push(row.name, place, line);
            if pushed && let Some(application) = row.application {
                return self.text.log.annotate(&format!("({application})"));
            }
            return pushed;
        }
        if let Some((name, message)) = raised(text).or_else(|| exception(text)) {
            if self.text.has_raised() && self.text.log.frames().is_some_and(|frames| !frames.is_empty()) {
                self.text.log.begin_backtrace(format!("{name}: {message}"), false);
            } else if self.text.has_raised() {
                self.caused(name, message);
            }
            self.text.raise(name, message);
            return false;
        }
        if text.contains(",[{file,\"") && self.text.has_raised() {
            for (name, place) in terms(text) {
                let place = place.map(|(file, line)| SourcePlace { file, line, column: None });
                self.text.push(&name, place, line);
            }
        }
        if !text.is_empty() {
            text.clone_into(&mut self.last);
        }
        // A test says its own rows behind those of the server that failed.
        if text == "stacktrace:" && self.text.log.is_in_stack() {
            self.text.log.begin_backtrace("stacktrace", false);
        }
        false
    }
}

/// An entry of a stack in a term, and how deep in the term it stands.
struct Entry<'t> {
    depth: usize,
    name: String,
    place: Option<(&'t str, u32)>,
}

/// The entries of the stacks in a term whose lines were joined: `{shop,price,[1,2],[{file,"shop.erl"},{line,12}]}`. Arguments may have
/// stacks of their own: of the error that led to this one.
fn entries(term: &str) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    // The places where tuples and lists that are open began.
    let mut open: Vec<usize> = Vec::new();
    let mut is_quoted = false;
    for (at, byte) in term.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'{' | b'[' => {
                open.push(at);
                let Some(rest) = term.get(at..).and_then(|rest| rest.strip_prefix("[{file,\"")) else {
                    continue;
                };
                let Some(begin) = open.iter().nth_back(1) else { continue };
                let head = term.get(begin + 1..at).unwrap_or_default().trim_end_matches([',', ' ']);
                let Some((module, rest_of_head)) = head.split_once(',') else { continue };
                let (function, arguments) = rest_of_head.split_once(',').unwrap_or((rest_of_head, ""));
                let module = module.trim().trim_matches('\'');
                let module = module
                    .strip_prefix("Elixir.")
                    .map_or_else(|| format!("{module}:"), |it| format!("{it}."));
                let (file, rest) = rest.split_once('"').unwrap_or((rest, ""));
                let digits = rest.strip_prefix("},{line,").unwrap_or_default();
                let digits = digits.split('}').next().unwrap_or_default();
                found.push(Entry {
                    depth: open.len(),
                    name: format!("{module}{}/{}", function.trim(), arity(arguments.trim())),
                    place: digits.parse().ok().map(|line| (file, line)),
                });
                if found.len() >= MAX_TERMS {
                    break;
                }
            }
            b'}' | b']' => {
                open.pop();
            }
            _ => {}
        }
    }
    found
}

/// How many arguments a function has, by their number or their list.
fn arity(arguments: &str) -> String {
    if is_number(arguments) {
        return arguments.to_owned();
    }
    let Some(inside) = arguments.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return "?".to_owned();
    };
    let (mut depth, mut count, mut is_quoted) = (0_usize, usize::from(!inside.trim().is_empty()), false);
    for byte in inside.bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            b'<' | b'#' => {}
            b',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    count.to_string()
}

impl Beam<'_> {
    /// What a server's reason says: the error, and its stack. Of several the innermost came first.
    fn close_reason(&mut self) {
        let Some(term) = self.reason.take().filter(|term| !term.is_empty() && !self.text.has_raised()) else {
            return;
        };
        let kind = term.trim_start_matches('{').split([',', '}']).next().unwrap_or_default();
        let entries = entries(&term);
        self.text.raise(kind, "");
        let mut depths: Vec<usize> = entries.iter().map(|entry| entry.depth).collect();
        depths.sort_unstable_by(|one, other| other.cmp(one));
        depths.dedup();
        for (number, depth) in depths.into_iter().enumerate() {
            let title = if number == 0 { kind.to_owned() } else { "What it led to".to_owned() };
            if !self.text.log.begin_backtrace(title, false) {
                return;
            }
            for entry in entries.iter().filter(|entry| entry.depth == depth) {
                let index = self.text.log.next_index();
                let place = entry.place.map(|(file, line)| SourcePlace { file, line, column: None });
                let frame = super::super::log::named(index, &entry.name, place);
                self.text.log.push(backtrail_model::Frame { language: Some(Language::Beam), ..frame });
            }
        }
        self.text.log.end_stack();
    }

    /// Why a process that was called ended: `** (EXIT) time out`, `** (EXIT) an exception was raised:` and that exception.
    fn caused(&mut self, name: &str, message: &str) {
        if !self.text.log.has_room() {
            return;
        }
        let said = if name == "EXIT" { message.to_owned() } else { format!("{name}: {message}") };
        let Some(exception) = self.text.log.report.exception.as_mut() else { return };
        let before = exception.codes.take().filter(|before| !before.ends_with(':'));
        exception.codes = Some(before.unwrap_or(said));
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};
    use backtrail_model::Report;

    fn read(text: &str) -> (Report, Vec<String>) {
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let row = |frame: &backtrail_model::Frame| {
            let symbol = frame.reported.clone().unwrap();
            format!("{} {}:{}", symbol.name, symbol.file.unwrap_or_default(), symbol.line.unwrap_or(0))
        };
        let rows = report.process.backtraces.first().map(|stack| stack.frames.iter().map(row).collect());
        (report, rows.unwrap_or_default())
    }

    #[test]
    fn elixirs_rows_and_why_a_server_ended() {
        let (report, rows) = read(
            "10:00:00.123 [error] Task #PID<0.300.0> started from #PID<0.275.0> terminating\n** (stop) exited in: GenServer.call(:shop, :price, 5000)\n    ** (EXIT) time out\n    (elixir 1.15.4) lib/gen_server.ex:1074: GenServer.call/3\n    (shop 0.9.1) lib/shop.ex:12: anonymous fn/1 in Shop.total/2\nFunction: #Function<32.1>\n",
        );
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(exception.kind.as_deref(), Some("stop"));
        assert_eq!(exception.codes.as_deref(), Some("time out"));
        assert_eq!(
            rows,
            ["GenServer.call/3 lib/gen_server.ex:1074", "anonymous fn/1 in Shop.total/2 lib/shop.ex:12"]
        );
        assert_eq!(report.process.backtraces[0].frames[1].annotations, ["(shop 0.9.1)"]);
    }

    #[test]
    fn the_servers_exception_is_the_cause_in_a_test() {
        let (report, rows) = read(
            "  1) test prices (ShopTest)\n     ** (exit) exited in: GenServer.call(:shop, :price, 5000)\n         ** (EXIT) an exception was raised:\n             ** (RuntimeError) no price\n                 (stdlib) gen_server.erl:389: :gen_server.loop/7\n     code: Shop.price()\n     stacktrace:\n       (elixir) lib/gen_server.ex:774: GenServer.call/3\n       test/shop_test.exs:12: (test)\n",
        );
        assert_eq!(report.exception.as_ref().unwrap().codes.as_deref(), Some("RuntimeError: no price"));
        assert_eq!(rows, [":gen_server.loop/7 gen_server.erl:389"]);
        assert_eq!(report.process.backtraces[1].frames.len(), 2);
    }

    #[test]
    fn erlangs_rows_and_terms() {
        let (report, rows) = read(
            "** exception error: no match of right hand side value 2\n     in function  shop:price/1 (shop.erl, line 12)\n     in call from shop:total/1 (shop.erl, line 20)\n",
        );
        assert_eq!(report.exception.unwrap().kind.as_deref(), Some("exception error"));
        assert_eq!(rows, ["shop:price/1 shop.erl:12", "shop:total/1 shop.erl:20"]);
        let (_, rows) = read(
            "=CRASH REPORT==== 1-Jan-2024::10:00:00 ===\n  crasher:\n    exception error: badarg\n      in function  ets:lookup/2\n        called as ets:lookup(shop,1)\n    stack: {shop,price,[1],[{file,\"src/shop.erl\"},{line,12}]},{shop,total,1,[{file,\"src/shop.erl\"},{line,20}]}\n",
        );
        assert_eq!(rows, ["ets:lookup/2 :0", "shop:price/? src/shop.erl:12", "shop:total/1 src/shop.erl:20"]);
    }

    #[test]
    fn the_reason_of_a_server_and_rows_of_sentry() {
        let (report, rows) = read(
            "=ERROR REPORT==== 1-Jan-2024::10:00:00 ===\n** Generic server <0.106.0> terminating \n** Last message in was {price,<<\"a\">>}\n** Reason for termination == \n** {function_clause,\n       [{'Elixir.Shop',terminate,\n            [{function_clause,\n                 [{'Elixir.Shop',price,\n                      [<<\"a\">>,{b,[]}],\n                      [{file,\"lib/shop.ex\"},{line,12}]},\n                  {gen_server,handle_msg,5,[{file,\"gen_server.erl\"},{line,639}]}]},\n             []],\n            [{file,\"lib/shop.ex\"},{line,40}]},\n        {proc_lib,init_p_do_apply,3,[{file,\"proc_lib.erl\"},{line,237}]}]}\n\nBye\n",
        );
        assert_eq!(report.exception.as_ref().unwrap().kind.as_deref(), Some("function_clause"));
        assert_eq!(rows, ["Shop.price/2 lib/shop.ex:12", "gen_server:handle_msg/5 gen_server.erl:639"]);
        assert_eq!(report.process.backtraces[1].frames.len(), 2);
        let (report, rows) = read(
            "It says:\nElixir.KeyError: key :price not found\n  File \"lib/shop.ex\", line 12, in Shop.total/1\n  File \"gen_server.erl\", line 637, in :gen_server.try_dispatch/4\n",
        );
        assert_eq!(report.exception.as_ref().unwrap().kind.as_deref(), Some("KeyError"));
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn words_are_no_report() {
        for text in [
            "** (see below) the server failed\n",
            "in function f of main.erl\n",
            "(elixir) lib/x.ex is at fault\n",
        ] {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }
}
