//! What debuggers of Windows say of a program that they stopped: Visual Studio's message, in any language; WinDbg's words of an
//! exception, its `!analyze -v` of a program's dump; x64dbg's.
//!
//! Sources: Microsoft's documentation of `!analyze`, of `.exr` (the fields of EXCEPTION_RECORD: for an access violation the first
//! parameter is 0 for a read, 1 for a write, 8 for execution, the second the address) and of Visual Studio's "access violation".

use super::log::{Log, Reader, drive, file_name, named, place, word};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{Exception, Field, Frame, Report, Source, Thread};

/// Words for reading, writing and executing in the languages of Visual Studio, as they stand in its messages.
const HOW: [(&str, &[&str]); 3] = [
    (
        "read",
        &[
            "read",
            "Lese",
            "lecture",
            "lectura",
            "leer",
            "lettura",
            "leitura",
            "ler ",
            "чтени",
            "読み取",
            "读取",
            "讀取",
            "읽",
            "odczyt",
            "čtení",
            "oku",
        ],
    ),
    (
        "write",
        &[
            "writ",
            "Schreib",
            "criture",
            "escritura",
            "escribir",
            "scrittura",
            "escrita",
            "gravar",
            "запис",
            "書き込",
            "写入",
            "寫入",
            "쓰",
            "zapis",
            "zápis",
            "yaz",
        ],
    ),
    (
        "execute",
        &[
            "execut",
            "Ausführ",
            "exécution",
            "ejecu",
            "esecuzione",
            "выполнени",
            "実行",
            "执行",
            "執行",
            "실행",
        ],
    ),
];

/// What Visual Studio says where it stopped: `… at 0x00007FF7891A4A56 in shop.exe: 0xC0000005: … 0x0000000000000010.`
struct Message<'t> {
    at: Option<u64>,
    /// Where it happened, if that is another file than the program's.
    module: Option<&'t str>,
    program: &'t str,
    code: u32,
    rest: &'t str,
}

impl<'t> Message<'t> {
    fn read(line: &'t str) -> Option<Self> {
        // This is asked of every line: most have no such number.
        let (before, rest) = line.split_once(": 0x").or_else(|| line.split_once(" : 0x"))?;
        let (digits, rest) = rest.split_at_checked(8)?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        let rest =
            rest.strip_prefix(':').or_else(|| rest.strip_prefix(" :")).or_else(|| rest.strip_prefix('：'))?;
        let words = || before.split(|c: char| c.is_whitespace() || "()（）\"„“”«»".contains(c));
        let is_file = |word: &&str| {
            let ends = [".exe", ".dll", ".node", ".pyd", ".ocx"];
            ends.iter().any(|end| word.len() > end.len() && word.to_ascii_lowercase().ends_with(end))
        };
        // The program is named last; a library in which it happened stands before it, in parentheses.
        let mut files = words().filter(is_file);
        let first = files.next()?;
        let last = files.next_back();
        let at = words().find_map(|word| hex_of(word.trim_matches([',', ':'])));
        let (module, program) = last.map_or((None, first), |last| (Some(first), last));
        (code >= 0x4000_0000).then_some(Self { at, module, program, code, rest: rest.trim() })
    }
}

/// `0x` and digits, whatever the case, with the backquote that WinDbg puts into the middle; WinDbg has no `0x`.
fn hex_of(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"))?;
    bare_hex(digits)
}

fn bare_hex(digits: &str) -> Option<u64> {
    let plain: String = digits.chars().filter(|c| *c != '`').collect();
    let is_hex = (8..=16).contains(&plain.len()) && plain.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(&plain, 16).ok())?
}

/// `Exception thrown: read access violation.`, `Unhandled exception thrown: write access violation.`
fn thrown(line: &str) -> Option<&'static str> {
    let at = line.find("xception thrown: ")?;
    let rest = line.get(at + "xception thrown: ".len()..)?;
    match rest {
        _ if rest.starts_with("read access violation") => Some("read"),
        _ if rest.starts_with("write access violation") => Some("write"),
        _ if rest.starts_with("Exec access violation") => Some("execute"),
        _ => None,
    }
}

/// What was null: `**shader** was nullptr.`, `this was nullptr. occurred`, `**x** war "nullptr"`; or what it was: `**p** was
/// 0xCDCDCDCD.`
fn pointer(line: &str) -> Option<(&str, u64)> {
    let (before, value) = match line.find("nullptr") {
        Some(at) => (line.get(..at)?, 0),
        None => {
            let (before, rest) = line.split_once(" was 0x")?;
            (before, u64::from_str_radix(rest.split(|c: char| !c.is_ascii_hexdigit()).next()?, 16).ok()?)
        }
    };
    let name = match before.rsplit_once("**").and_then(|(inside, _)| inside.rsplit_once("**")) {
        Some((_, name)) => name,
        // The verb and a quote may stand between.
        None => before.split_whitespace().rev().nth(usize::from(value == 0))?,
    };
    let is_name = !name.is_empty()
        && name.len() <= 200
        && name.chars().all(|c| c.is_alphanumeric() || "_.->[]()*:&<>".contains(c));
    is_name.then_some((name, value))
}

/// WinDbg's `(1208.17b8): Access violation - code c0000005 (first chance)`.
fn raised(line: &str) -> Option<u32> {
    let (ids, rest) = line.strip_prefix('(')?.split_once("): ")?;
    let (process, thread) = ids.split_once('.')?;
    let is_id = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (_, code) = rest.split_once(" - code ")?;
    (is_id(process) && is_id(thread)).then(|| u32::from_str_radix(word(code).0, 16).ok())?
}

/// `ExceptionCode: c0000005 (Access violation)`, `EXCEPTION_CODE: (NTSTATUS) 0xc0000005 - …`.
fn stated(line: &str) -> Option<u32> {
    let rest = line.strip_prefix("ExceptionCode:").or_else(|| line.strip_prefix("EXCEPTION_CODE:"))?.trim();
    let rest =
        rest.strip_prefix("(NTSTATUS)").or_else(|| rest.strip_prefix("(HRESULT)")).unwrap_or(rest).trim();
    let digits = word(rest).0;
    u32::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16)
        .ok()
        .filter(|code| *code >= 0x4000_0000)
}

/// The head of `!analyze` for a program's dump.
fn is_analysis(line: &str) -> bool {
    line.starts_with('*') && line.trim_matches(['*', ' ']) == "Exception Analysis"
}

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    match line.as_bytes().first() {
        Some(b'*') if is_analysis(line) => true,
        Some(b'(') if raised(line).is_some() => true,
        Some(b'E') if stated(line).is_some() => true,
        _ => {
            memchr::memmem::find(line.as_bytes(), b": 0x").is_some() && Message::read(line).is_some()
                || memchr::memmem::find(line.as_bytes(), b"xception thrown: ").is_some()
                    && thrown(line).is_some()
        }
    }
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::WindowsEvent, limits);
    let mut reader = Debugger { log, found: Found::default(), key: String::new(), part: Part::Other };
    drive(&mut reader, input, start);
    let Debugger { log, found, .. } = reader;
    let mut report = log.finish();
    if found.code.is_none() && found.how.is_none() && !found.is_analysis {
        return None;
    }
    found.put(&mut report);
    Some(report)
}

#[derive(Default)]
struct Found {
    code: Option<u32>,
    how: Option<&'static str>,
    address: Option<u64>,
    at: Option<u64>,
    module: Option<String>,
    /// The function, as `module!function+0x12` names it.
    symbol: Option<String>,
    /// What pointer was null, or had a value that is none.
    pointer: Option<(String, u64)>,
    is_null: bool,
    is_analysis: bool,
    stack: Vec<Frame>,
}

#[derive(PartialEq, Eq)]
enum Part {
    Other,
    /// The next line is the place.
    Place,
    Stack,
}

struct Debugger<'l> {
    log: Log<'l>,
    found: Found,
    /// The last `Key  : …` of the table at the head.
    key: String,
    part: Part,
}

impl<'l> Reader<'l> for Debugger<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if text.is_empty() {
            self.part = Part::Other;
            return false;
        }
        match std::mem::replace(&mut self.part, Part::Other) {
            Part::Place => {
                self.found.symbol.get_or_insert_with(|| text.to_owned());
                return false;
            }
            Part::Stack => {
                self.part = Part::Stack;
                let index = u32::try_from(self.found.stack.len()).unwrap_or(u32::MAX);
                let room = self.found.stack.len() < self.log.limits.max_frames;
                if let Some(frame) =
                    text.rsplit_once(" : ").and_then(|(_, call)| call_of(call, index)).filter(|_| room)
                {
                    self.found.stack.push(Frame { span: Some(line.span.clone()), ..frame });
                    return true;
                }
                return false;
            }
            Part::Other => {}
        }
        self.visual_studio(text);
        self.windbg(text);
        false
    }
}

impl Debugger<'_> {
    fn visual_studio(&mut self, text: &str) {
        let found = &mut self.found;
        if let Some(message) = Message::read(text).filter(|_| found.code.is_none()) {
            found.code = Some(message.code);
            found.at = message.at;
            found.module = Some(message.module.unwrap_or(message.program).to_owned());
            self.log.report.process.name.get_or_insert_with(|| message.program.to_owned());
            found.how = HOW
                .iter()
                .find(|(_, words)| words.iter().any(|it| message.rest.contains(it)))
                .map(|(how, _)| *how);
            let mut words = message.rest.rsplit(|c: char| c.is_whitespace() || "()（）。".contains(c));
            found.address = words.find_map(|word| hex_of(word.trim_matches(['.', ',', '"'])));
        }
        if let Some(how) = thrown(text) {
            found.code = found.code.or(Some(ACCESS_VIOLATION));
            found.how = found.how.or(Some(how));
        }
        if found.code.is_some()
            && let Some((name, value)) = pointer(text)
        {
            found.pointer.get_or_insert_with(|| (name.to_owned(), value));
            found.is_null |= value == 0;
        }
    }

    fn windbg(&mut self, text: &str) {
        self.found.is_analysis |= is_analysis(text);
        if let Some(code) = raised(text).or_else(|| stated(text)) {
            self.found.code = self.found.code.or(Some(code));
        } else if let Some(address) = unreadable(text).filter(|_| self.found.code.is_some()) {
            self.found.address = self.found.address.or(Some(address));
        } else if let Some(key) = text.strip_prefix("Key  : ").or_else(|| text.strip_prefix("Key: ")) {
            key.trim().clone_into(&mut self.key);
        } else if let Some(value) = text.strip_prefix("Value: ") {
            self.value(value.trim());
        } else if text == "FAULTING_IP:" {
            self.part = Part::Place;
        } else if text == "STACK_TEXT:" {
            self.part = Part::Stack;
        } else if let Some(rest) = text.strip_prefix("ExceptionAddress:") {
            let (address, rest) = word(rest.trim());
            match address.rsplit_once('.') {
                // x64dbg's `shop.7F2ADE50`.
                Some((module, digits)) => {
                    self.found.at = self.found.at.or(bare_hex(digits));
                    self.found.module.get_or_insert_with(|| module.to_owned());
                }
                None => self.found.at = self.found.at.or(bare_hex(address)),
            }
            if let Some(symbol) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
                self.found.symbol.get_or_insert_with(|| symbol.0.to_owned());
            }
        } else if let Some(rest) = text.strip_prefix("Attempt to ") {
            let (what, rest) = word(rest);
            self.how(what);
            self.found.address =
                self.found.address.or_else(|| bare_hex(word(rest.split_once("address ")?.1).0));
        } else if let Some((how, rest)) = ["READ", "WRITE"]
            .iter()
            .find_map(|how| Some((*how, text.strip_prefix(how)?.strip_prefix("_ADDRESS:")?)))
        {
            self.how(how);
            self.found.address = self.found.address.or(bare_hex(word(rest.trim()).0));
        } else if let Some(rest) = text.strip_prefix("ExceptionInformation[") {
            self.information(rest);
        } else if let Some(name) = text.strip_prefix("PROCESS_NAME:") {
            self.log.report.process.name.get_or_insert_with(|| name.trim().to_owned());
        } else if let Some(bucket) = text.strip_prefix("FAILURE_BUCKET_ID:") {
            self.bucket(bucket.trim());
        } else if let Some(symbol) = text.strip_prefix("SYMBOL_NAME:") {
            self.found.symbol.get_or_insert_with(|| symbol.trim().to_owned());
        } else if self.found.code.is_some()
            && self.found.symbol.is_none()
            && let Some(symbol) = text.strip_suffix(':').filter(|it| it.contains('!') && !it.contains(' '))
        {
            self.found.symbol = Some(symbol.to_owned());
        }
    }

    /// What stands beside a key of the table at the head of `!analyze`.
    fn value(&mut self, value: &str) {
        match std::mem::take(&mut self.key).as_str() {
            "AV.Dereference" => self.found.is_null |= value.starts_with("Null"),
            "AV.Fault" | "AV.Type" => self.how(value),
            "Failure.Bucket" => self.bucket(value),
            _ => {}
        }
    }

    fn how(&mut self, word: &str) {
        let known = ["read", "write", "execute"].into_iter().find(|how| word.eq_ignore_ascii_case(how));
        self.found.how = self.found.how.or(known);
    }

    /// x64dbg's `00]: 00000000 Read`, `01]: 00000000 Inaccessible Address`.
    fn information(&mut self, rest: &str) {
        let Some((number, rest)) = rest.split_once("]:") else { return };
        let (digits, what) = word(rest.trim());
        match number {
            "00" => self.how(what),
            "01" => self.found.address = self.found.address.or(bare_hex(digits)),
            _ => {}
        }
    }

    /// `NULL_CLASS_PTR_READ_c0000005_shop.exe!shop::total`.
    fn bucket(&mut self, bucket: &str) {
        self.log.report.fields.push(Field { key: "failure bucket".to_owned(), value: bucket.to_owned() });
        let mut parts = bucket.split('_');
        let code =
            parts.find_map(|part| (part.len() == 8).then(|| u32::from_str_radix(part, 16).ok()).flatten());
        self.found.code = self.found.code.or(code);
        self.found.is_null |= bucket.starts_with("NULL_");
        let Some(code) = code else { return };
        let symbol = bucket.split_once(&format!("_{code:08x}_")).map(|(_, symbol)| symbol);
        if let Some(symbol) = symbol.filter(|symbol| symbol.contains('!')) {
            self.found.symbol.get_or_insert_with(|| symbol.to_owned());
        }
    }
}

/// The address that an instruction works on, where WinDbg could not read it: `… word ptr [rdx] ds:00000000`00000010=????`.
fn unreadable(text: &str) -> Option<u64> {
    let (before, value) = text.rsplit_once('=')?;
    let is_unknown = value.len() >= 2 && value.bytes().all(|byte| byte == b'?');
    let operand = before.rsplit(' ').next()?;
    let (segment, rest) = operand.split_once(':')?;
    let is_segment = matches!(segment, "cs" | "ds" | "es" | "fs" | "gs" | "ss");
    // 32-bit programs have the segment's number before it.
    let digits = rest.rsplit(':').next()?;
    (is_unknown && is_segment).then(|| bare_hex(digits)).flatten()
}

/// STATUS_ACCESS_VIOLATION.
const ACCESS_VIOLATION: u32 = 0xc000_0005;

/// `shop!Cart::total+0x1d [C:\src\cart.cpp @ 12]`, `shop+0x12`.
fn call_of(call: &str, index: u32) -> Option<Frame> {
    let (call, source) = match call.trim().strip_suffix(']').and_then(|call| call.rsplit_once(" [")) {
        Some((call, source)) => (call, Some(source.replace(" @ ", ":"))),
        None => (call.trim(), None),
    };
    let (module, symbol) = call.split_once('!').unwrap_or((call.split('+').next()?, ""));
    if module.is_empty() || module.contains(' ') {
        return None;
    }
    let (name, offset) = symbol.rsplit_once('+').unwrap_or((symbol, ""));
    let offset = u64::from_str_radix(offset.strip_prefix("0x").unwrap_or(offset), 16).ok();
    let is_known = !name.is_empty() && name != "Unknown" && !name.starts_with("unknown");
    let mut frame = match is_known {
        true => named(index, name, source.as_deref().and_then(place)),
        false => Frame::new(index),
    };
    if let Some(symbol) = &mut frame.reported {
        symbol.offset = offset;
    }
    frame.image_name = Some(module.to_owned());
    Some(frame)
}

impl Found {
    fn put(self, report: &mut Report) {
        let code = self.code.unwrap_or(ACCESS_VIOLATION);
        let address =
            self.address.or((self.is_null && self.pointer.as_ref().is_none_or(|it| it.1 == 0)).then_some(0));
        report.exception = Some(Exception {
            codes: Some(format!("{code:#x}")),
            raw_codes: vec![u64::from(code)],
            subtype: self.how.map(str::to_owned),
            address: address.map(Avma::new),
            ..Exception::default()
        });
        if let Some((name, value)) = self.pointer {
            let value = if value == 0 { "nullptr".to_owned() } else { format!("{value:#x}") };
            report.fields.push(Field { key: POINTER.to_owned(), value: format!("{name} = {value}") });
        }
        let mut frames = self.stack;
        if frames.is_empty() {
            frames.extend(self.symbol.as_deref().and_then(|symbol| call_of(symbol, 0)));
        }
        if frames.is_empty()
            && let Some(module) = &self.module
        {
            frames.push(Frame { image_name: Some(file_name(module).to_owned()), ..Frame::new(0) });
        }
        if let Some(first) = frames.first_mut().filter(|first| first.address.is_none()) {
            first.address = self.at.map(|at| FrameAddress::Exact(Avma::new(at)));
        }
        let process = &mut report.process;
        if !frames.is_empty() {
            process.threads.push(Thread { crashed: true, frames, ..Thread::default() });
            process.crashed_thread = Some(0);
        }
    }
}

/// The field that names the pointer which was null, with its value.
pub(crate) const POINTER: &str = "pointer";

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    /// Code, how, address, place, pointer.
    fn read(text: &str) -> String {
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        let frame = report.crashed().and_then(|thread| thread.frames.first());
        let place = frame.map(|frame| {
            let name = frame.reported.as_ref().map_or("", |symbol| symbol.name.as_str());
            format!("{}!{name}", frame.image_name.as_deref().unwrap_or_default())
        });
        let pointer = report.fields.iter().find(|field| field.key == super::POINTER);
        format!(
            "{} {} {} {} {}",
            exception.codes.as_deref().unwrap_or_default(),
            exception.subtype.as_deref().unwrap_or("?"),
            exception.address.map_or("?".to_owned(), |address| format!("{:#x}", address.get())),
            place.unwrap_or_else(|| "?".to_owned()),
            pointer.map_or("-", |field| field.value.as_str())
        )
    }

    #[test]
    fn visual_studio_in_any_language() {
        for (text, expected) in [
            (
                "Unhandled exception at 0x00007FF7891A4A56 in shop.exe: 0xC0000005: Access violation writing location 0x0000000000000010.\n",
                "0xc0000005 write 0x10 shop.exe! -",
            ),
            (
                "Ausnahme ausgelöst bei 0x00000000004794E7 in shop.exe: 0xC0000005: Zugriffsverletzung beim Lesen an Position 0xFFFFFFFFFFFFFFFF.\n",
                "0xc0000005 read 0xffffffffffffffff shop.exe! -",
            ),
            (
                "0x00007FF6 (shop.dll) で例外がスローされました (shop.exe 内): 0xC0000005: 場所 0x0000000000000000 の読み取り中にアクセス違反が発生しました。\n",
                "0xc0000005 read 0x0 shop.dll! -",
            ),
            (
                "Exception non gérée à 0x5B8E24C7 (kit.dll) dans shop.exe : 0xC0000005 : Violation d'accès lors de la lecture de l'emplacement 0x00000000.\n",
                "0xc0000005 read 0x0 kit.dll! -",
            ),
            (
                "It stops: Exception thrown: read access violation.\n**cart** was nullptr.\n",
                "0xc0000005 read 0x0 ? cart = nullptr",
            ),
            (
                "Exception thrown: write access violation. this->p was 0xCDCDCDCD.\n",
                "0xc0000005 write ? ? this->p = 0xcdcdcdcd",
            ),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn windbg_and_x64dbg() {
        let stars = "*                        Exception Analysis                                   *\n";
        for (text, expected) in [
            (
                format!("0:000> !analyze -v\n{stars}\nKEY_VALUES_STRING: 1\n\n    Key  : AV.Dereference\n    Value: NullClassPtr\n\n    Key  : AV.Fault\n    Value: Read\n\n    Key  : Failure.Bucket\n    Value: NULL_CLASS_PTR_READ_c0000005_shop.exe!Cart::total\n"),
                "0xc0000005 read 0x0 shop.exe!Cart::total -",
            ),
            (
                "(1208.17b8): Access violation - code c0000005 (first chance)\nKERNELBASE!lstrcpynW+0x1d:\n00007ffd`d39d8a81 440fb70a movzx r9d,word ptr [rdx] ds:00000000`00000010=????\n".to_owned(),
                "0xc0000005 ? 0x10 KERNELBASE!lstrcpynW -",
            ),
            (
                "EXCEPTION_RECORD:  (.exr -1)\nExceptionAddress: 00007ff6`12345678 (shop!Cart::total+0x0000000000000012)\n   ExceptionCode: c0000005 (Access violation)\nAttempt to write to address 0000000000000018\n\nSTACK_TEXT:\n00000000`0012f8d0 00007ff6`12345678 : 00000000`0 00000000`0 : shop!Cart::total+0x12 [C:\\src\\cart.cpp @ 12]\n00000000`0012f900 00007ff6`12345700 : 00000000`0 00000000`0 : shop!main+0x40\n".to_owned(),
                "0xc0000005 write 0x18 shop!Cart::total -",
            ),
            (
                "EXCEPTION_DEBUG_INFO:\n           ExceptionCode: C0000005 (EXCEPTION_ACCESS_VIOLATION)\n        ExceptionAddress: shop.7F2ADE50\nExceptionInformation[00]: 00000000 Read\nExceptionInformation[01]: 00000004 Inaccessible Address\n".to_owned(),
                "0xc0000005 read 0x4 shop! -",
            ),
        ] {
            assert_eq!(read(&text), expected, "{text}");
        }
    }

    #[test]
    fn sentences_are_none() {
        for text in [
            "Exception thrown: what is it?\n",
            "The code: 0xC0000005: is an access violation\n",
            "An Exception Analysis follows\n",
        ] {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }
}
