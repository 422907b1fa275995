//! What dynamic loaders and kernels say of a program that cannot be loaded: glibc's, musl's, and shells of `exec`.
//!
//! Sources: glibc `elf/dl-load.c`, `elf/dl-lookup.c`, `elf/dl-version.c`, `elf/dl-reloc.c`, `elf/rtld.c`, `elf/dl-error-skeleton.c`;
//! musl `ldso/dynlink.c`.

use super::logged::Logged;

/// Whose words they are, as the model names the image that left them.
pub(super) const LOADER: &str = "ld.so";

/// The field that has the readable name of a symbol which the message names as linkers do.
pub(super) const SYMBOL: &str = "symbol";

/// The readable name of the mangled one that a message says is missing.
pub(super) fn readable_symbol(text: &str) -> Option<String> {
    let mangled =
        text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '\'' | '`')).find(|word| {
            word.starts_with("_Z")
                || word.starts_with("__Z")
                || word.starts_with("_R")
                || word.starts_with("$s")
        })?;
    let readable = backtrail_demangle::demangle(mangled, &backtrail_demangle::Options::default());
    (readable != mangled).then(|| readable.into_owned())
}

/// A message of a loader.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Message<'t> {
    pub(super) program: Option<&'t str>,
    pub(super) text: &'t str,
}

/// How glibc words what is wrong with a file; the reason of the system may follow behind a colon.
const OF_FILES: [&str; 21] = [
    "cannot open shared object file",
    "wrong ELF class: ELFCLASS32",
    "wrong ELF class: ELFCLASS64",
    "invalid ELF header",
    "file too short",
    "cannot read file data",
    "ELF file data encoding not little-endian",
    "ELF file data encoding not big-endian",
    "ELF file OS ABI invalid",
    "ELF file ABI version invalid",
    "ELF file version does not match current one",
    "ELF file's phentsize not the expected size",
    "ELF load command alignment not page-aligned",
    "only ET_DYN and ET_EXEC can be loaded",
    "object file has no dynamic section",
    "cannot dynamically load executable",
    "cannot dynamically load position-independent executable",
    "failed to map segment from shared object",
    "cannot allocate memory in static TLS block",
    "cannot enable executable stack as shared object requires",
    "cannot restore segment prot after reloc",
];

/// The message that a line is.
pub(super) fn read<'t>(line: &Logged<'t>) -> Option<Message<'t>> {
    let text = line.text;
    // This is asked of every line.
    if !text.contains(": ") {
        return None;
    }
    at_start(text)
        .or_else(|| missing_version(text))
        .or_else(|| of_musl(text))
        .or_else(|| of_exec(text))
        .or_else(|| of_dlopen(text))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// `prog: error while loading shared libraries: libx.so.1: cannot open shared object file: No such file or directory`,
/// `prog: symbol lookup error: prog: undefined symbol: f`, `prog: relocation error: prog: symbol f version V not defined in
/// file libx.so with link time reference`.
fn at_start(text: &str) -> Option<Message<'_>> {
    const KINDS: [&str; 3] =
        [": error while loading shared libraries: ", ": symbol lookup error: ", ": relocation error: "];
    let (program, what) = KINDS.iter().find_map(|kind| text.split_once(kind))?;
    let (file, what) = what.split_once(": ")?;
    let is_reason = is_file_reason(what)
        || what.strip_prefix("undefined symbol: ").is_some_and(is_symbol)
        || what.starts_with("symbol ") && what.contains("not defined in file ")
        || what.starts_with("IFUNC symbol ")
        || what.starts_with("unexpected ")
        || what.starts_with("cannot ");
    (is_word(program) && is_word(file) && is_reason).then_some(Message { program: Some(program), text })
}

/// `_ZN3foo3barEv`, and the version that glibc may put behind it.
fn is_symbol(text: &str) -> bool {
    let (name, version) = text.split_once(", version ").unwrap_or((text, ""));
    is_word(name.trim()) && !version.contains(' ')
}

/// A reason, with what the system says behind it: `: No such file or directory`.
fn is_file_reason(text: &str) -> bool {
    let known = OF_FILES.iter().find_map(|reason| text.strip_prefix(reason));
    known.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(": ").is_some_and(is_system_error))
}

fn is_system_error(text: &str) -> bool {
    const ERRORS: [&str; 10] = [
        "No such file or directory",
        "Permission denied",
        "Cannot allocate memory",
        "Operation not permitted",
        "Too many open files",
        "Invalid argument",
        "Input/output error",
        "Error 24",
        "Is a directory",
        "Exec format error",
    ];
    ERRORS.contains(&text.trim().trim_end_matches('.'))
}

/// ``prog: /lib/libc.so.6: version `GLIBC_2.34' not found (required by prog)``; Markdown and forums change the quotes or take
/// them away.
fn missing_version(text: &str) -> Option<Message<'_>> {
    let (before, rest) = text.split_once(": version ")?;
    let (version, rest) = rest.split_once(" not found (required by ")?;
    let version = version.trim_matches(['`', '\'', '"']);
    let is_version = version.contains(|c: char| c.is_ascii_digit()) && version.contains('_');
    let is_whole = rest.ends_with(')') && is_word(version) && is_version;
    let mut parts = before.split(": ").filter(|part| is_word(part));
    let (first, second) = (parts.next()?, parts.last());
    let program = second.map(|_| first).filter(|first| !is_exception(first));
    is_whole.then_some(Message { program, text })
}

/// musl's `Error loading shared library libx.so.1: No such file or directory (needed by prog)`, `Error relocating prog: f: symbol
/// not found`.
fn of_musl(text: &str) -> Option<Message<'_>> {
    if let Some(rest) = text.strip_prefix("Error loading shared library ") {
        let (file, rest) = rest.split_once(": ")?;
        let (reason, needed) = match rest.strip_suffix(')').and_then(|rest| rest.split_once(" (needed by ")) {
            Some((reason, needed)) => (reason, Some(needed)),
            None => (rest, None),
        };
        let is_whole = is_word(file) && (is_system_error(reason) || needed.is_some());
        return is_whole.then_some(Message { program: needed, text });
    }
    let (program, rest) = text.strip_prefix("Error relocating ")?.split_once(": ")?;
    let symbol = rest
        .strip_suffix(": symbol not found")
        .or_else(|| rest.strip_suffix(": initial-exec TLS resolves to dynamic definition"));
    (is_word(program) && symbol.is_some_and(is_word)).then_some(Message { program: Some(program), text })
}

/// `exec /app: exec format error`, `bash: ./app: cannot execute binary file: Exec format error`, `bash: ./app: cannot execute:
/// required file not found`.
fn of_exec(text: &str) -> Option<Message<'_>> {
    const BEHIND: [&str; 4] = [
        ": cannot execute binary file: Exec format error",
        ": cannot execute: required file not found",
        ": exec format error",
        ": Exec format error",
    ];
    let before = BEHIND.iter().find_map(|behind| text.strip_suffix(behind))?;
    let begins =
        before.strip_prefix("exec ").or_else(|| before.rsplit_once(": ").map(|(_, program)| program));
    let program = begins.unwrap_or(before).trim_matches(['"', '\'']);
    let program = program.strip_prefix("exec ").unwrap_or(program);
    let is_path = program.contains('/') && is_word(program);
    is_path.then_some(Message { program: Some(program), text })
}

/// Classes by which languages hand on what the loader said.
fn is_exception(word: &str) -> bool {
    matches!(
        word,
        "ImportError" | "OSError" | "LoadError" | "Error" | "error" | "java.lang.UnsatisfiedLinkError"
    )
}

/// What dlopen() says, as languages hand it on: `ImportError: /usr/lib/libx.so: undefined symbol: f`, `OSError: libx.so.1: cannot
/// open shared object file: No such file or directory`.
fn of_dlopen(text: &str) -> Option<Message<'_>> {
    let (first, rest) = text.split_once(": ")?;
    let (file, what) = if is_exception(first) { rest.split_once(": ")? } else { (first, rest) };
    let is_file = is_word(file) && (file.contains(".so") || file.contains('/'));
    let is_reason = is_file_reason(what) || what.strip_prefix("undefined symbol: ").is_some_and(is_symbol);
    (is_file && is_reason).then_some(Message { program: None, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(line: &str) -> Option<Option<&str>> {
        read(&Logged::read(line)).map(|message| message.program)
    }

    #[test]
    fn messages_of_loaders() {
        for (line, expected) in [
            (
                "./shop: error while loading shared libraries: libledger.so.2: cannot open shared object file: No such file or directory",
                Some("./shop"),
            ),
            (
                "shop: error while loading shared libraries: libledger.so.2: wrong ELF class: ELFCLASS32",
                Some("shop"),
            ),
            ("./shop: error while loading shared libraries: ./libz.so: file too short", Some("./shop")),
            (
                "/opt/shop: symbol lookup error: /opt/libledger.so: undefined symbol: _ZN6ledger4bookEv",
                Some("/opt/shop"),
            ),
            (
                "shop: relocation error: libssl.so.3: symbol f version OPENSSL_3.0 not defined in file libcrypto.so.3 with link time reference",
                Some("shop"),
            ),
            (
                "./shop: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./shop)",
                Some("./shop"),
            ),
            ("./shop: /lib/libc.so.6: version GLIBC_2.34 not found (required by ./shop)", Some("./shop")),
            (
                "./shop: /lib/libc.so.6: version 'GLIBC_2.32' not found (required by /opt/New Folder/shop)",
                Some("./shop"),
            ),
            (
                "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /opt/_core.so)",
                None,
            ),
            ("OSError: /opt/libgomp.so.1: cannot allocate memory in static TLS block", None),
            ("ImportError: libGL.so.1: cannot open shared object file: No such file or directory", None),
            ("/opt/_core.so: undefined symbol: PyUnicode_New", None),
            (
                "Error loading shared library libledger.so.2: No such file or directory (needed by /opt/shop)",
                Some("/opt/shop"),
            ),
            ("Error relocating /opt/shop: __res_init: symbol not found", Some("/opt/shop")),
            ("exec /opt/shop: exec format error", Some("/opt/shop")),
            ("web-1  | exec /opt/shop: exec format error", Some("/opt/shop")),
            ("-bash: ./shop: cannot execute binary file: Exec format error", Some("./shop")),
            ("bash: ./shop: cannot execute: required file not found", Some("./shop")),
        ] {
            assert_eq!(program(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn sentences_about_them_are_none() {
        for line in [
            "I get ./shop: error while loading shared libraries: libz.so: file too short",
            "./shop: error while loading shared libraries: what does it mean?",
            "libz.so: cannot open shared object file: is printed when it is missing",
            "An undefined symbol: what is it?",
            "note: libz.so: undefined symbol: it comes from the linker",
            "Error loading shared library is musl's",
            "Error relocating my life: it did not work",
            "We saw an exec format error",
            "version `GLIBC_2.34' not found (required by ./shop), so what?",
            "npm: version 2 not found (required by the app)",
            "shop.cc:12: undefined symbol: f",
        ] {
            assert_eq!(program(line), None, "{line}");
        }
    }
}
