//! A function's name without what differs between builds of the same source: arguments, template arguments, hashes, numbers
//! of closures, compilers' suffixes and clones, thunks, inline namespaces.

use crate::names::without_place;

/// No name is read further; those of real templates reach tens of kilobytes and differ in front.
const MAX_NAME: usize = 4096;

/// How deep closures and local functions of Swift may lie in each other.
const MAX_DEPTH: usize = 16;

/// What stands in front of a name and says how the code was made, not what it is.
const PREFIXES: [&str; 32] = [
    "specialized ",
    "static ",
    "@objc ",
    "@nonobjc ",
    "merged ",
    "async ",
    "dispatch thunk of ",
    "vtable thunk for ",
    "protocol witness for ",
    "non-virtual thunk to ",
    "virtual thunk to ",
    "covariant return thunk to ",
    "partial apply forwarder for ",
    "partial apply for ",
    "generic not re-abstracted specialization of ",
    "generic specialization of ",
    "function signature specialization of ",
    "suspend resume partial function for ",
    "await resume partial function for ",
    "(0) ",
    "(1) ",
    "(2) ",
    "(3) ",
    "(4) ",
    "(5) ",
    "(6) ",
    "(7) ",
    "(8) ",
    "(9) ",
    "distributed thunk ",
    "curry thunk of ",
    "override ",
];

/// Specializations that say for which types: `generic specialization <Swift.Int> of f`.
const WITH_TYPES: [&str; 4] = [
    "generic specialization <",
    "generic not re-abstracted specialization <",
    "generic partial specialization <",
    "function signature specialization <",
];

/// What tools write where they know no name.
const NO_NAMES: [&str; 10] = [
    "sub_",
    "FUN_",
    "func_0x",
    "___lldb_unnamed_symbol",
    "0x",
    "?",
    "<unknown",
    "<redacted>",
    "<deduplicated_symbol>",
    "_mh_execute_header",
];

/// Inline namespaces of C++ libraries, which version them.
const INLINE_NAMESPACES: [&str; 7] = ["__1", "__2", "__cxx11", "__ndk1", "__debug", "_V2", "__fs"];

/// The name as keys and titles have it; `None` where it is none (`sub_1040`, `???`).
pub(super) fn normalised(name: &str) -> Option<String> {
    let name = without_place(cut(name.trim()));
    if name.is_empty()
        || NO_NAMES.iter().any(|none| name.trim_start_matches('_').starts_with(none.trim_start_matches('_')))
    {
        return None;
    }
    if is_image(name) || is_ordinal(name) {
        return None;
    }
    let normal = with_depth(name, 0);
    (!normal.is_empty()).then_some(normal)
}

/// Whether it is a file's name in the place of a function's: `libc.so`, `/usr/lib/libx.so.1`, `<libclang_rt.asan.so>+0x56d71`.
fn is_image(name: &str) -> bool {
    if name.contains([' ', '(', ':']) {
        return false;
    }
    let is_file = |name: &str| {
        let ends = [".so", ".dll", ".dylib", ".exe"];
        name.contains(".so.") || ends.iter().any(|end| name.ends_with(end))
    };
    let inner = name.strip_prefix('<').and_then(|rest| rest.split_once(">+0x"));
    inner.map_or(is_file(name), |(inner, _)| is_file(inner))
}

/// What debuggers of Windows call a function that a library exports by its number.
fn is_ordinal(name: &str) -> bool {
    let digits = name.strip_prefix("Ordinal").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn cut(name: &str) -> &str {
    let end = (0..=MAX_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    name.get(..end).unwrap_or_default()
}

fn with_depth(name: &str, depth: usize) -> String {
    let name = without_prefixes(name);
    if let Some(rest) = name.strip_prefix("invocation function for block in ").filter(|_| depth < MAX_DEPTH) {
        return format!("{} {{block}}", with_depth(rest, depth + 1));
    }
    if let Some(inner) = block(name) {
        return format!("{} {{block}}", with_depth(inner, MAX_DEPTH));
    }
    if name.starts_with("-[") || name.starts_with("+[") {
        // The end of a method's name is its bracket: what follows are a compiler's marks.
        return name.split_inclusive(']').next().unwrap_or(name).to_owned();
    }
    if let Some((head, outer)) = local(name).filter(|_| depth < MAX_DEPTH) {
        let outer = with_depth(outer, depth + 1);
        return if outer.ends_with(&head) { outer } else { format!("{outer} {head}") };
    }
    let mut text = Reader::new(name).read();
    for space in INLINE_NAMESPACES {
        text = text.replace(&format!("::{space}::"), "::");
    }
    // Debug information of GCC leaves out that a lambda is one: `export_rows::operator()`.
    let text = text.replace("::{lambda}::operator()", "::operator()");
    without_ends(&text).to_owned()
}

/// Functions of C++ libraries that call what was put into a `std::function` or `std::thread`.
const CALLERS: [&str; 6] =
    ["_Function_handler<", "__invoke_impl<", "__invoke_r<", "__invoke<", "__func<", "_Invoker<"];

/// The lambda that such a function calls, by the type in its name:
/// `std::_Function_handler<void (long), f()::{lambda(long)#1}>::_M_invoke`. Lambdas are called from where they are handed to,
/// and mostly put into these functions.
pub(super) fn called_lambda(name: &str) -> Option<String> {
    let name = cut(name.trim());
    let is_library = name.starts_with("std::") || name.contains(" std::");
    let (_, rest) = CALLERS.iter().filter(|_| is_library).find_map(|caller| name.split_once(caller))?;
    let mut depth = 0_usize;
    let mut start = 0;
    let mut before = b' ';
    for (at, byte) in rest.bytes().enumerate() {
        let is_end = depth == 0 && matches!(byte, b',' | b'>');
        if is_end {
            let argument = rest.get(start..at)?.trim().trim_end_matches(['&', ' ']);
            if ["{lambda", "'lambda", "<lambda", "$_"].iter().any(|mark| argument.contains(mark)) {
                return normalised(&format!("{argument}::operator()"));
            }
            start = at + 1;
        }
        match byte {
            b'<' | b'(' | b'{' => depth += 1,
            b'>' if before == b'-' => {}
            b'>' if depth == 0 => return None,
            b'>' | b')' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = byte;
    }
    None
}

fn without_prefixes(name: &str) -> &str {
    let mut name = name;
    // Each round takes something away.
    loop {
        let before = name;
        for prefix in PREFIXES {
            name = name.strip_prefix(prefix).unwrap_or(name);
        }
        if WITH_TYPES.iter().any(|prefix| name.starts_with(prefix)) {
            name = name.split_once("> of ").map_or(name, |(_, rest)| rest);
        }
        if let Some(rest) = name.strip_prefix("(extension in ") {
            name = rest.split_once("):").map_or(name, |(_, rest)| rest);
        }
        if name.len() == before.len() {
            return name;
        }
    }
}

/// The function that a block of C or Objective-C was written in: `__23-[Foo bar:]_block_invoke_2`.
fn block(name: &str) -> Option<&str> {
    let (inner, _) = name.split_once("_block_invoke")?;
    let inner = inner.trim_start_matches('_');
    let inner = inner.trim_start_matches(|digit: char| digit.is_ascii_digit());
    (!inner.is_empty()).then_some(inner)
}

/// A closure or local function of Swift and what it was written in: `closure #1 (Int) -> () in f(x:)`. Numbers change when
/// another closure is written in front, so they go.
fn local(name: &str) -> Option<(String, &str)> {
    let (head, rest) = name.split_once(" #")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = rest.get(digits..).filter(|_| digits > 0)?;
    let (_, outer) = rest.split_at_checked(find_in(rest)?)?;
    let outer = outer.strip_prefix(" in ")?;
    let head = match head {
        "closure" | "implicit closure" => "{closure}".to_owned(),
        other => other.split_whitespace().last().unwrap_or_default().to_owned(),
    };
    Some((head, outer))
}

/// Where the first ` in ` stands that is in no brackets.
fn find_in(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'[' => depth += 1,
            b'>' if text.as_bytes().get(at.wrapping_sub(1)) == Some(&b'-') => {}
            b')' | b'>' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && text.get(at..).is_some_and(|rest| rest.starts_with(" in ")) => {
                return Some(at);
            }
            _ => {}
        }
    }
    None
}

/// Endings that compilers and linkers append to names that are not mangled, and hashes of Rust.
fn without_ends(name: &str) -> &str {
    const ENDS: [&str; 14] = [
        ".cold",
        ".part",
        ".isra",
        ".constprop",
        ".llvm",
        ".lto_priv",
        ".resume",
        ".destroy",
        ".cleanup",
        ".actor",
        ".clone",
        ".warm",
        ".hot",
        ".__uniq",
    ];
    let mut name = name.trim_end();
    if let Some((front, hash)) = name.rsplit_once("::h")
        && hash.len() == 16
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        name = front;
    }
    let ends = ENDS.iter().filter_map(|end| name.find(end).filter(|at| *at > 0));
    let is_end = |at: &usize| {
        let rest = name.get(*at..).unwrap_or_default();
        rest.split('.').skip(1).all(|word| {
            word.bytes().all(|byte| byte.is_ascii_digit())
                || ENDS.iter().any(|end| end.strip_prefix('.') == Some(word))
        })
    };
    let end = ends.filter(is_end).min();
    let name = end.and_then(|at| name.get(..at)).unwrap_or(name);
    // Go: `main.run.func1.2`, `main.run.gowrap1`; closures are numbered in the order of the source.
    let is_closure = |word: &str| {
        ["func", "gowrap", "deferwrap"].iter().any(|start| {
            word.strip_prefix(start)
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let mut name = name;
    while let Some((front, word)) = name.rsplit_once('.') {
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if !(is_closure(word) || is_number) || front.is_empty() {
            break;
        }
        name = front;
    }
    name
}

/// Reads a name of C++, Rust, Swift, Go or D from left to right and keeps what names the function.
struct Reader<'n> {
    rest: &'n str,
    out: String,
    /// How many `<` were kept, as those of Rust's `<Type as Trait>`.
    kept: usize,
}

impl<'n> Reader<'n> {
    fn new(name: &'n str) -> Self {
        // Accessors of Swift state their type: `Demo.count.getter : Swift.Int`.
        let name = name.split(" : ").next().unwrap_or(name);
        let name = name.split(" in conformance ").next().unwrap_or(name);
        Self { rest: name, out: String::new(), kept: 0 }
    }

    fn read(mut self) -> String {
        while let Some(next) = self.rest.chars().next() {
            let go_on = match next {
                'o' if self.is_operator() => self.operator(),
                '<' => self.angle(),
                '>' => self.close(),
                '(' => self.parameters(),
                '[' => self.square(),
                '{' => self.braces(),
                '\'' => self.quoted(),
                '$' => self.dollar(),
                '`' => self.backtick(),
                ' ' => self.space(),
                _ => self.keep(next),
            };
            if !go_on {
                break;
            }
        }
        self.out
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn keep(&mut self, next: char) -> bool {
        self.out.push(next);
        self.advance(next.len_utf8());
        true
    }

    fn is_operator(&self) -> bool {
        let starts = self.out.is_empty() || self.out.ends_with([':', ' ', '.']);
        starts && self.rest.strip_prefix("operator").is_some_and(|rest| !rest.starts_with(is_word))
    }

    /// `operator<<`, `operator()`, `operator bool`, `operator new[]`, `operator"" _s`.
    fn operator(&mut self) -> bool {
        self.out.push_str("operator");
        self.advance("operator".len());
        let signs = match self.rest.as_bytes() {
            [b'(', b')', ..] | [b'[', b']', ..] => 2,
            [b' ', ..] => self.rest.find('(').unwrap_or(self.rest.len()),
            rest => rest.iter().take_while(|byte| b"<>=!+-*/%^&|~,".contains(byte)).count(),
        };
        // A template's arguments follow its sign: `operator<< <char>`, but `operator<<char>` is less-than of char.
        let text = self.rest.get(..signs).unwrap_or_default();
        self.out
            .push_str(text.split('<').next().filter(|_| text.starts_with(' ')).unwrap_or(text).trim_end());
        self.advance(signs);
        true
    }

    /// Template arguments go; `<T as Trait>::f` of Rust stays, for it is part of the path, as do `__main__.<module>` of Python,
    /// `Object.<anonymous>` of JavaScript and `Program.<Main>b__0` of .NET.
    fn angle(&mut self) -> bool {
        let is_path = self.out.is_empty() || self.out.ends_with(['<', '&', ' ', '(', ',', '.']);
        if is_path {
            self.kept += 1;
            return self.keep('<');
        }
        self.skip('<', '>');
        if self.out.ends_with("::") {
            self.out.truncate(self.out.len().saturating_sub(2));
        }
        true
    }

    fn close(&mut self) -> bool {
        if self.kept > 0 {
            self.kept -= 1;
        }
        self.keep('>')
    }

    /// Parameters go, and what follows them, but for names of what is inside of that function.
    fn parameters(&mut self) -> bool {
        if self.rest.starts_with("(anonymous namespace)") {
            self.out.push_str("(anonymous)");
            self.advance("(anonymous namespace)".len());
            return true;
        }
        // Go's methods: `main.(*Server).Serve`.
        if self.rest.starts_with("(*") && self.out.ends_with('.') {
            let end = self.rest.find(')').map_or(self.rest.len(), |at| at + 1);
            self.out.push_str(self.rest.get(..end).unwrap_or_default());
            self.advance(end);
            return true;
        }
        let is_type = self.out.ends_with("decltype");
        self.skip('(', ')');
        if self.kept > 0 || is_type {
            return true;
        }
        // `f(int) const::{lambda()#1}::operator()`.
        for qualifier in [" const", " volatile", " &", " &&"] {
            if self.rest.starts_with(qualifier) && self.rest.contains("::") {
                self.advance(qualifier.len());
            }
        }
        self.rest.starts_with("::") || self.rest.starts_with('.')
    }

    /// `[abi:cxx11]`, `[clone .cold]`, a crate's hash and Go's type arguments go; slices and arrays of Rust stay.
    fn square(&mut self) -> bool {
        if self.kept > 0 && !self.out.ends_with(is_word) {
            return self.keep('[');
        }
        self.skip('[', ']');
        true
    }

    /// `{lambda(int)#1}`, `{{closure}}`, `{closure#0}`, `{impl#2}`, `{shim:vtable#0}`: the word alone.
    fn braces(&mut self) -> bool {
        let inner = self.skip('{', '}').trim_matches(['{', '}']);
        let end = inner.find(|c: char| !(is_word(c) || c == ' ' || c == '-')).unwrap_or(inner.len());
        let word = inner.get(..end).unwrap_or_default().trim();
        let word = match word {
            "closure_env" => "closure",
            word => word,
        };
        let marked = format!("{{{word}}}");
        // A closure in a closure is told by the function that both are in.
        if self.out.ends_with(&format!("{marked}::")) {
            self.out.truncate(self.out.len().saturating_sub(2));
        } else {
            self.out.push_str(&marked);
        }
        true
    }

    /// Microsoft's `anonymous namespace'.
    fn backtick(&mut self) -> bool {
        let spellings = ["`anonymous namespace'", "`anonymous-namespace'"];
        let Some(found) = spellings.iter().find(|it| self.rest.starts_with(**it)) else {
            return self.keep('`');
        };
        self.out.push_str("(anonymous)");
        self.advance(found.len());
        true
    }

    /// `'lambda0'(int)`, as LLVM's tools write it.
    fn quoted(&mut self) -> bool {
        let rest = self.rest.get(1..).unwrap_or_default();
        let Some(end) = rest.find('\'').filter(|_| rest.starts_with("lambda") || rest.starts_with("unnamed"))
        else {
            return self.keep('\'');
        };
        self.out.push_str(if rest.starts_with("lambda") { "{lambda}" } else { "{unnamed}" });
        self.advance(end + 2);
        true
    }

    /// `$_0` is clang's lambda; `$VARIANT$Haswell` a processor's copy of a function.
    fn dollar(&mut self) -> bool {
        if let Some(digits) = self.rest.strip_prefix("$_") {
            let count = digits.bytes().take_while(u8::is_ascii_digit).count();
            if count > 0 {
                self.out.push_str("{lambda}");
                self.advance(2 + count);
                return true;
            }
        }
        if self.rest.starts_with("$VARIANT$") || self.rest.starts_with("$NOCANCEL") {
            return false;
        }
        self.keep('$')
    }

    /// What stands in front of a space is a return type, unless what follows it are marks.
    fn space(&mut self) -> bool {
        if self.kept > 0 {
            return self.keep(' ');
        }
        let rest = self.rest.trim_start();
        let is_mark = rest.starts_with(['(', '[', '@', '-']) && !rest.starts_with("(anonymous namespace)");
        if is_mark || rest.is_empty() {
            return false;
        }
        self.out.clear();
        self.advance(1);
        true
    }

    /// Goes behind the bracket that closes the one that comes next, and returns what is inside.
    fn skip(&mut self, open: char, close: char) -> &'n str {
        let text = self.rest;
        let mut depth = 0_usize;
        let mut before = ' ';
        for (at, next) in text.char_indices() {
            if next == open {
                depth += 1;
            } else if next == close && !(close == '>' && before == '-') {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    self.advance(at + next.len_utf8());
                    return text.get(open.len_utf8()..at).unwrap_or_default();
                }
            }
            before = next;
        }
        // Never closed: reporters cut long names.
        self.rest = "";
        text.get(open.len_utf8()..).unwrap_or_default()
    }
}

fn is_word(next: char) -> bool {
    next.is_alphanumeric() || next == '_'
}

/// A method of Java or Kotlin without the numbers of its anonymous classes and lambdas: `Main$1.run`, `lambda$start$0`,
/// `Main$$ExternalSyntheticLambda3.run`.
pub(super) fn normalised_java(name: &str) -> Option<String> {
    let name = cut(name.trim());
    let name = name.split('(').next().unwrap_or(name);
    let mut out = String::with_capacity(name.len());
    let mut after_mark = false;
    for next in name.chars() {
        let is_number = next.is_ascii_digit() && (after_mark || out.ends_with("Lambda"));
        if is_number {
            continue;
        }
        after_mark = next == '$';
        out.push(next);
    }
    (!out.is_empty()).then_some(out)
}

/// The same for Python and JavaScript: `async f`, `new Feed`, `Object.f [as g]`.
pub(super) fn normalised_script(name: &str) -> Option<String> {
    let name = cut(name.trim());
    let name = name.strip_prefix("async ").unwrap_or(name);
    let name = name.strip_prefix("new ").unwrap_or(name);
    let name = name.split(" [as ").next().unwrap_or(name).trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// A message without what differs from one run to the next: numbers, addresses, identifiers, paths' directories.
pub(super) fn normalised_message(text: &str) -> String {
    /// What follows says no more which message it is.
    const MAX: usize = 160;
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        let word = if word.contains('/') { word.rsplit('/').next().unwrap_or(word) } else { word };
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        let is_hex = word.len() >= 6
            && has_digit
            && word.bytes().all(|b| b.is_ascii_hexdigit() || b"-:x<>(),.;".contains(&b));
        if is_hex {
            out.push('#');
        } else {
            let mut in_number = false;
            for next in word.chars() {
                if !next.is_ascii_digit() {
                    out.push(next);
                } else if !in_number {
                    out.push('#');
                }
                in_number = next.is_ascii_digit();
            }
        }
        if out.len() > MAX {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_function_are_one_name() {
        for (name, normal) in [
            ("main", "main"),
            ("__main__.<module>", "__main__.<module>"),
            ("Object.<anonymous>", "Object.<anonymous>"),
            ("void ns::run<int, std::less<int>>(int)", "ns::run"),
            ("std::vector<int> const& ns::Pool<char>::get<4>(unsigned long) const", "ns::Pool::get"),
            ("(anonymous namespace)::f(int)", "(anonymous)::f"),
            ("void (anonymous namespace)::f<int>(int)", "(anonymous)::f"),
            ("ns::f(int)::{lambda(char)#2}::operator()(char) const", "ns::f::operator()"),
            ("ns::f(int)::$_0::operator()() const", "ns::f::operator()"),
            ("ns::f(int)::'lambda'(int)::operator()(int) const", "ns::f::operator()"),
            ("ns::f(int) const::{lambda()#1}::operator()() const", "ns::f::operator()"),
            ("parse(char const*) [clone .cold]", "parse"),
            ("parse(char const*) (.cold)", "parse"),
            ("parse.constprop.0", "parse"),
            ("parse.part.3.cold", "parse"),
            ("parse_block.isra.0", "parse_block"),
            ("std::__1::basic_string<char>::append(char const*)", "std::basic_string::append"),
            ("std::__cxx11::basic_string<char>::at(unsigned long)", "std::basic_string::at"),
            ("name[abi:cxx11](int)", "name"),
            ("non-virtual thunk to ns::A::f()", "ns::A::f"),
            ("ns::operator<<(std::ostream&, ns::A const&)", "ns::operator<<"),
            ("ns::A::operator()(int)", "ns::A::operator()"),
            ("ns::A::operator bool() const", "ns::A::operator bool"),
            ("ns::A::operator->() const", "ns::A::operator->"),
            ("demo::run::h0123456789abcdef", "demo::run"),
            ("demo[1f2e3d4c5b6a7988]::run::{closure#0}", "demo::run::{closure}"),
            ("demo::run::{{closure}}::h0123456789abcdef", "demo::run::{closure}"),
            ("demo::run::{{closure}}::{{closure}}", "demo::run::{closure}"),
            ("demo::pick::<alloc::string::String>", "demo::pick"),
            ("<demo::Store as core::ops::drop::Drop>::drop", "<demo::Store as core::ops::drop::Drop>::drop"),
            (
                "<alloc::vec::Vec<T> as core::ops::Index<I>>::index",
                "<alloc::vec::Vec as core::ops::Index>::index",
            ),
            (
                "closure #1 (Swift.Int) -> () in Demo.Feed.load(page: Swift.Int) -> ()",
                "Demo.Feed.load {closure}",
            ),
            (
                "closure #3 () -> () in closure #1 () -> () in Demo.Feed.load() -> ()",
                "Demo.Feed.load {closure}",
            ),
            ("closure #1 in Feed.load(page:)", "Feed.load {closure}"),
            ("specialized Feed.load(page:)", "Feed.load"),
            ("generic specialization <Swift.Int> of Demo.f<A>(A) -> ()", "Demo.f"),
            ("partial apply forwarder for closure #1 () -> () in Demo.run() -> ()", "Demo.run {closure}"),
            ("(1) await resume partial function for Demo.load() async -> ()", "Demo.load"),
            ("Demo.Feed.count.getter : Swift.Int", "Demo.Feed.count.getter"),
            ("(extension in Demo):Swift.Array.second() -> A", "Swift.Array.second"),
            ("-[Foo bar:]", "-[Foo bar:]"),
            ("-[Foo bar:].cold.1", "-[Foo bar:]"),
            ("__23-[Foo bar:]_block_invoke_2", "-[Foo bar:] {block}"),
            ("__main_block_invoke", "main {block}"),
            ("invocation function for block in ns::f(int)", "ns::f {block}"),
            ("main.(*Server).Serve", "main.(*Server).Serve"),
            ("main.run.func1.2", "main.run"),
            ("main.Map[...]", "main.Map"),
            ("_platform_memmove$VARIANT$Haswell", "_platform_memmove"),
            ("-[A b:] (in Demo) + 12", "-[A b:]"),
            ("v8::internal::`anonymous namespace'::f(int)", "v8::internal::(anonymous)::f"),
            ("sp::load.so", "sp::load.so"),
        ] {
            assert_eq!(normalised(name).as_deref(), Some(normal), "{name}");
        }
    }

    /// Seen with GCC 12 at -O2: the lambda has no inlined function in the debug information.
    #[test]
    fn lambdas_are_known_from_what_calls_them() {
        for name in [
            "std::_Function_handler<void (long), export_rows()::'lambda'(long)>::_M_invoke(std::_Any_data const&, long&&)",
            "std::_Function_handler<void (long), export_rows()::{lambda(long)#1}>::_M_invoke(std::_Any_data const&, long&&)",
            "void std::__invoke_impl<void, export_rows()::'lambda'(long)&, long>(std::__invoke_other, long&&)",
            "std::__invoke_impl<void, export_rows()::<lambda(long int)>&, long int>",
            "std::__1::__function::__func<export_rows()::$_0, std::__1::allocator<export_rows()::$_0>, void (long)>::operator()(long&&)",
        ] {
            assert_eq!(called_lambda(name).as_deref(), Some("export_rows::operator()"), "{name}");
        }
        for name in [
            "std::_Function_handler<void (long), Compare>::_M_invoke(std::_Any_data const&, long&&)",
            "std::vector<f()::{lambda()#1}>::at(unsigned long)",
            "std::__invoke_impl<",
            "std::__invoke_impl<>>",
            "main",
        ] {
            assert_eq!(called_lambda(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_none() {
        for name in [
            "",
            "???",
            "sub_10004af0",
            "___lldb_unnamed_symbol12",
            "0x1040",
            "<redacted>",
            "<deduplicated_symbol>",
        ] {
            assert_eq!(normalised(name), None, "{name}");
        }
    }

    #[test]
    fn different_functions_keep_different_names() {
        for (one, other) in [
            ("a::f(int)", "b::f(int)"),
            ("A::operator+(int)", "A::operator-(int)"),
            ("A::operator new(unsigned long)", "A::operator delete(void*)"),
            ("<A as T>::f", "<B as T>::f"),
            ("-[A f]", "+[A f]"),
            ("-[A f]", "__5-[A f]_block_invoke"),
            ("Demo.A.f() -> ()", "closure #1 () -> () in Demo.A.f() -> ()"),
        ] {
            assert_ne!(normalised(one), normalised(other));
        }
    }

    #[test]
    fn hostile_names_end() {
        for name in [
            "<".repeat(9000),
            "(".repeat(9000),
            "closure #1 in ".repeat(900),
            "{".repeat(9000),
            "operator".repeat(900),
        ] {
            let _ = normalised(&name);
        }
        let _ = normalised(&format!("{}ä", "a".repeat(4095)));
    }

    #[test]
    fn numbers_of_java_go() {
        assert_eq!(normalised_java("com.acme.Main$1.run").as_deref(), Some("com.acme.Main$.run"));
        assert_eq!(
            normalised_java("com.acme.Main.lambda$start$0").as_deref(),
            Some("com.acme.Main.lambda$start$")
        );
        let synthetic = normalised_java("com.acme.Main$$ExternalSyntheticLambda12.run");
        assert_eq!(synthetic.as_deref(), Some("com.acme.Main$$ExternalSyntheticLambda.run"));
    }

    #[test]
    fn messages_lose_what_varies() {
        assert_eq!(
            normalised_message("index 17 out of range at 0x16fdff2a0 in /a/b/c.swift:12"),
            "index # out of range at # in c.swift:#"
        );
    }
}
