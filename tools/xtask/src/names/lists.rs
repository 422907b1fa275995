//! Lists of names and what they are to become, as other projects keep them.

use crate::{Result, sh};
use std::path::Path;

/// A list, and with which arguments our program is to read it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct List {
    pub(super) pairs: Vec<(String, String)>,
    pub(super) arguments: Vec<&'static str>,
}

/// The list in a file; `None` if it is none: a binary.
pub(super) fn read(path: &Path) -> Result<Option<List>> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    let name = sh::shown_path(path);
    let pairs = if name.ends_with("-expected") {
        libiberty(&text)
    } else if name.ends_with(".cpp") {
        libcxxabi(&text)
    } else {
        text.lines().filter_map(plain).collect()
    };
    // The lists of C++ names have types, too.
    let is_cxx = name.ends_with("demangle-expected") || name.ends_with(".cpp");
    let is_simplified = name.contains("simplified");
    let mut arguments = Vec::new();
    arguments.extend(is_cxx.then_some("--types"));
    arguments.extend(is_simplified.then_some("--simplified"));
    let is_empty = pairs.is_empty();
    (!is_empty)
        .then_some(Some(List { pairs, arguments }))
        .ok_or_else(|| format!("{name}: no list known here"))
}

/// `NAME<tab>EXPECTED`, or Swift's `NAME ---> {notes} EXPECTED`.
fn plain(line: &str) -> Option<(String, String)> {
    let (name, expected) = line.split_once(" ---> ").or_else(|| line.split_once('\t'))?;
    let expected =
        expected.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or(expected, |(_, rest)| rest);
    Some((name.trim().to_owned(), expected.trim().to_owned()))
}

/// libiberty's: options, name, expected, and, behind the option `--no-params`, expected without parameters.
///
/// What is for another style than C++ (Java, Ada) or another question (constructors' kinds) is left out.
fn libiberty(text: &str) -> Vec<(String, String)> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut pairs = Vec::new();
    while let (Some(options), Some(name), Some(expected)) = (lines.next(), lines.next(), lines.next()) {
        if options.contains("--no-params") {
            lines.next();
        }
        let is_other = ["java", "gnat", "is-v3", "ret-"].iter().any(|word| options.contains(word));
        if !is_other {
            pairs.push((name.to_owned(), expected.to_owned()));
        }
    }
    pairs
}

/// libc++abi's: pairs of string literals in braces, each in one or more pieces.
fn libcxxabi(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for entry in text.split("{\"").skip(1) {
        let mut rest = entry;
        let name = literal(&mut rest);
        let Some(mut second) =
            rest.trim_start().strip_prefix(',').and_then(|rest| rest.trim_start().strip_prefix('"'))
        else {
            continue;
        };
        pairs.push((name, literal(&mut second)));
    }
    pairs
}

/// The rest of a string literal whose quote is read, and of those that follow it directly.
fn literal(rest: &mut &str) -> String {
    let mut text = String::new();
    loop {
        let mut letters = rest.char_indices();
        let mut end = rest.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => text.extend(letters.next().map(|(_, letter)| letter)),
                _ => text.push(letter),
            }
        }
        *rest = rest.get(end..).unwrap_or_default();
        match rest.trim_start().strip_prefix('"') {
            Some(next) => *rest = next,
            None => return text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, expected: &str) -> (String, String) {
        (name.to_owned(), expected.to_owned())
    }

    #[test]
    fn every_form_of_list() {
        assert_eq!(plain("_Z1fv\tf()"), Some(pair("_Z1fv", "f()")));
        assert_eq!(plain("$s1aM ---> {T:x} a b"), Some(pair("$s1aM", "a b")));
        assert_eq!(plain("nothing"), None);
        let text =
            "# words\n--format=gnu-v3 --no-params\n_Z1fv\nf()\nf\n--format=java\n_ZN1aE\na\n\n_Z1gv\ng()\n";
        assert_eq!(libiberty(text), [pair("_Z1fv", "f()"), pair("_Z1gv", "g()")]);
        let text = "{\"_Z1fv\", \"f()\"}, // words\n{\"_ZN1a\"\n \"1bE\",\n \"\\\"a\\\"\" \"::b\"}, {\"x\"}";
        assert_eq!(libcxxabi(text), [pair("_Z1fv", "f()"), pair("_ZN1a1bE", "\"a\"::b")]);
    }
}
