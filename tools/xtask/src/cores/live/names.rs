//! Functions' names, ours against gdb's.

use stacks_compared::gdb::Stack;
use stacks_compared::ours::Thread;

/// How many frames of the same address have the same name.
#[derive(Default)]
pub(super) struct Counts {
    same: usize,
    explained: usize,
    different: usize,
}

impl Counts {
    pub(super) fn shown(&self) -> String {
        format!("{} | {} | {}", self.same, self.explained, self.different)
    }
}

/// Compares the names of the machine's functions, frame by frame as far as the addresses are the same; the differences that
/// no rule explains.
pub(super) fn compare(family: &str, thread: &Thread, stack: &Stack, counts: &mut Counts) -> Vec<String> {
    let mut different = Vec::new();
    let pairs = thread.frames.iter().zip(&stack.frames);
    for (ours, theirs) in pairs.take_while(|(ours, theirs)| ours.address == theirs.address) {
        let our_name = ours.functions.last().map_or("None", String::as_str);
        let (one, other) = (bare(our_name), bare(&theirs.name));
        if one == other {
            counts.same += 1;
        } else if RULES.iter().any(|(holds, _)| holds(family, &one, &other)) {
            counts.explained += 1;
        } else {
            counts.different += 1;
            different.push(format!("{}: {our_name}, to gdb {}", ours.image, theirs.name));
        }
    }
    different
}

/// A name without white space, parameters, the type of what a template's function returns, a compiler's clones and the version
/// of a symbol.
fn bare(name: &str) -> String {
    let mut name = name.split_once('@').map_or(name, |(name, _)| name).trim();
    while let Some((before, _)) = name.rsplit_once("[clone ").or_else(|| name.rsplit_once("(.")) {
        name = before.trim();
    }
    let name = name.strip_suffix(" const").filter(|name| name.ends_with(')')).unwrap_or(name);
    without_result(without_parameters(name)).split_whitespace().collect()
}

/// Cuts off what stands before the last space that no bracket is open at: only functions of templates have it, and only where
/// their name comes from a symbol.
fn without_result(name: &str) -> &str {
    let mut depth = 0;
    let mut start = 0;
    for (at, letter) in name.char_indices() {
        match letter {
            '(' | '<' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            '>' if !name.get(..at).is_some_and(|before| before.ends_with('-')) => depth -= 1,
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    // `operator new`, `operator<`.
    if name.contains("operator") { name } else { name.get(start..).unwrap_or(name) }
}

/// Cuts the last pair of parentheses off, unless it is the name of an operator.
fn without_parameters(name: &str) -> &str {
    if !name.ends_with(')') {
        return name;
    }
    let mut depth = 0;
    for (at, letter) in name.char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let before = name.get(..at).unwrap_or(name);
            return if before.is_empty() || before.ends_with("operator") { name } else { before };
        }
    }
    name
}

/// Of the family of programs and two bare names, ours and gdb's.
type Rule = (fn(&str, &str, &str) -> bool, &'static str);

const RULES: [Rule; 5] = [
    (|_, _, theirs| theirs == "None", "gdb has no name"),
    (
        |_, ours, theirs| theirs.strip_prefix("__GI_") == Some(ours),
        "the C library's own alias of a function at the same address",
    ),
    (
        |family, ours, theirs| family == "rust" && last(ours) == last(theirs),
        "Rust: gdb puts names together from debug info, with numbers for implementations and closures and with generic \
         arguments; ours are the linkage names, which name the type and the trait",
    ),
    (
        |_, ours, theirs| {
            let (ours, theirs) = (with_plain_lambdas(ours), with_plain_lambdas(theirs));
            // What is inside of a function has no more of a name in some debug info.
            ours == theirs || theirs == "operator()" && ours.ends_with("::{lambda}::operator()")
        },
        "C++: the demanglers and the compilers' debug info each write in their own way a lambda, and the function that it is in",
    ),
    (
        |_, ours, theirs| {
            let plain = |name: &str| name.replace(['(', ')'], "");
            ours.contains("<&") && plain(ours) == plain(theirs)
        },
        "C++: GNU's demangler puts a function among template arguments in parentheses",
    ),
];

/// A C++ name with each lambda as `{lambda}`, however it was written, and without the parameters of functions that something
/// is inside of.
fn with_plain_lambdas(name: &str) -> String {
    const FORMS: [(&str, &str); 3] = [("'lambda'(", ")"), ("{lambda(", ")#"), ("<lambda(", ")>")];
    let mut plain = String::new();
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let form = FORMS.iter().find(|(start, _)| rest.starts_with(start));
        let (open, end) = form.map_or((0, ""), |(start, end)| (start.len() - 1, *end));
        let group = rest.get(open..).filter(|group| group.starts_with('(')).and_then(closing);
        let after = group.and_then(|size| rest.get(open + size - 1..)).unwrap_or_default();
        match form {
            Some(_) if after.starts_with(end) => {
                plain.push_str("{lambda}");
                rest = after.get(end.len()..).unwrap_or_default();
                if end.ends_with('#') {
                    rest = rest.split_once('}').map_or("", |(_, rest)| rest);
                }
            }
            None if after.starts_with(")::") && !plain.ends_with(':') => {
                rest = after.get(1..).unwrap_or_default();
            }
            _ => {
                plain.push(letter);
                rest = rest.get(letter.len_utf8()..).unwrap_or_default();
            }
        }
    }
    plain
}

/// How long the pair of parentheses is that the text begins with.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// The last part of a path, without generic arguments; closures are all alike.
fn last(name: &str) -> &str {
    let mut name = name.strip_suffix("{{vtable.shim}}").unwrap_or(name);
    while let Some(start) = name.ends_with('>').then(|| opening(name)).flatten() {
        name = name.get(..start).unwrap_or_default().trim_end_matches("::");
    }
    let part = name.rsplit_once("::").map_or(name, |(_, part)| part);
    if part == "{{closure}}" || part.starts_with("{closure#") { "{closure}" } else { part }
}

/// Where the angle bracket is opened that the name ends with.
fn opening(name: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in name.char_indices().rev() {
        match letter {
            '>' if !name.get(..at)?.ends_with('-') => depth += 1,
            '<' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_versions_are_no_part_of_a_name() {
        for (name, plain) in [
            ("a::b<int>::take(int, char) const", "a::b<int>::take"),
            ("operator()", "operator()"),
            ("a::operator()(int)", "a::operator()"),
            ("read@@GLIBC_2.2.5", "read"),
            ("(anonymous namespace)::run", "(anonymousnamespace)::run"),
            ("main.one.take", "main.one.take"),
            ("void a::b<int>(long) [clone .isra.0]", "a::b<int>"),
            ("void a::b<int>(long) (.isra.0)", "a::b<int>"),
            ("a::c<void (*)(int), int>::type a::b<void (*)(int)>(void (*)(int))", "a::b<void(*)(int)>"),
            ("operator new(unsigned long)", "operatornew"),
            ("long a::operator+<int>(a)", "longa::operator+<int>"),
        ] {
            assert_eq!(bare(name), plain);
        }
    }

    #[test]
    fn rules_let_only_that_pass_which_they_say() {
        let rule_of = |family: &str, ours: &str, theirs: &str| {
            let (ours, theirs) = (bare(ours), bare(theirs));
            RULES.iter().position(|(holds, _)| holds(family, &ours, &theirs))
        };
        let rule = |ours: &str, theirs: &str| rule_of("c++", ours, theirs);
        let rust = |ours: &str, theirs: &str| rule_of("rust", ours, theirs);
        assert_eq!(rule("_IO_default_uflow", "__GI__IO_default_uflow"), Some(1));
        assert_eq!(rule("read", "__GI_write"), None);
        assert_eq!(rust("<a::One as a::Step>::take", "a::{impl#0}::take"), Some(2));
        assert_eq!(rust("<a::One as a::Step>::take", "a::{impl#0}::give"), None);
        assert_eq!(rust("a::down::{{closure}}", "a::down::{closure#0}"), Some(2));
        assert_eq!(
            rust(
                "core::ops::FnOnce::call_once{{vtable.shim}}",
                "core::ops::FnOnce::call_once<fn() -> b, ()>"
            ),
            Some(2)
        );
        let lambda = "a::S::go(a::S)::'lambda'(int, void (*)())";
        for (ours, theirs) in [
            ("::_FUN(void*)", "a::S::go(a::S)::{lambda(int, void (*)())#1}::_FUN(void*)"),
            ("::_FUN(void*)", "a::S::go(S)::<lambda(int, void (*)())>::_FUN"),
            ("::operator()(int) const", "operator()"),
        ] {
            assert_eq!(rule(&format!("{lambda}{ours}"), theirs), Some(3), "{theirs}");
        }
        for (ours, theirs) in [
            ("::_FUN(void*)", "a::S::stay(a::S)::{lambda(int, void (*)())#1}::_FUN(void*)"),
            ("::_FUN(void*)", "operator()"),
            ("::operator()(int) const", "call"),
        ] {
            assert_eq!(rule(&format!("{lambda}{ours}"), theirs), None, "{theirs}");
        }
        assert_eq!(rule("f<a::go(a::S)::'lambda'()&, int>()", "f<a::go(S)::<lambda()>&, int>"), Some(3));
        assert_eq!(rule("f<(anonymous namespace)::g>()", "f<g>()"), None);
        assert_eq!(rule("<a::One as a::Step>::take", "a::{impl#0}::take"), None);
        assert_eq!(rule("a::one", "a::other"), None);
        assert_eq!(rule("void f<&int g(long)>(long)", "void f<&(int g(long))>(long)"), Some(4));
    }
}
