//! One row of a Java stack: `at com.example.Cart.total(Cart.java:41)`.
//!
//! Before the class may stand a loader and a module: `at java.base@21/java.util.List.of(List.java:1)`, `at app//x.Y.z(…)`.
//! HotSpot's thread dumps have the module before the file instead. Behind the parenthesis logging libraries name the JAR:
//! `~[lib.jar:1.0]`.

/// A row as it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct JavaRow<'l> {
    pub(super) class: &'l str,
    pub(super) method: &'l str,
    /// Loader and module.
    pub(super) module: Option<&'l str>,
    /// What stands in the parentheses without the line; `Native Method`, `Unknown Source` and nothing at all too.
    pub(super) file: &'l str,
    pub(super) line: Option<u32>,
    /// What stands behind the parentheses.
    pub(super) rest: &'l str,
}

impl<'l> JavaRow<'l> {
    /// Reads a row; `None` where the line is none. JavaScript and .NET begin rows by `at`, too, but do not end them so.
    pub(super) fn read(line: &'l str) -> Option<Self> {
        let line = line.trim();
        let row = match line.strip_prefix("at ") {
            Some(row) => row.trim_start(),
            None => Self::without_at(line)?,
        };
        let (name, rest) = row.split_once('(')?;
        let first = rest.find(')')?;
        // A version that a build names its source files by may have parentheses: `(:app@12 (060-33):46)`.
        let has_own = rest.get(..first)?.contains('(');
        let end = if has_own { first + 1 + rest.get(first + 1..)?.find(')')? } else { first };
        let (place, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
        // Crashlytics' export writes the line twice: `at a.b.C.d + 12(C.java:12)`.
        let name = match name.rsplit_once(" + ") {
            Some((before, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => before,
            _ => name,
        };
        // Rows of .NET without a file end so, too.
        let is_nets = ["System.", "Microsoft."].iter().any(|namespace| name.starts_with(namespace));
        if is_nets || are_arguments(place) {
            return None;
        }
        // Google Play's pages have a blank before the place.
        let is_javas = is_place(place);
        let name = if is_javas { name.trim_end() } else { name };
        if name.contains(char::is_whitespace) || name.contains(['"', '\\', ')']) {
            return None;
        }
        let (loader, name) = match name.rsplit_once('/') {
            Some((module, name)) => (Some(module.trim_end_matches('/')), name),
            None => (None, name),
        };
        let (class, method) = name.rsplit_once('.')?;
        if class.is_empty() || method.is_empty() || class.starts_with('.') {
            return None;
        }
        let (module, place) = match place.split_once('/') {
            Some((module, place)) if module.contains('@') || !module.contains(['.', ':']) => {
                (Some(module), place)
            }
            _ => (None, place),
        };
        // So write trackers the rows of other languages for which they know neither class nor file.
        if name.starts_with("null.") && place == "null:null" {
            return None;
        }
        let line = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        // JavaScript's rows end in line and column.
        let is_column = |(file, _): &(&str, u32)| {
            file.rsplit_once(':')
                .is_some_and(|(file, line)| file.contains('.') && line.parse::<u32>().is_ok())
        };
        if line.as_ref().is_some_and(is_column) {
            return None;
        }
        let (file, line) = line.map_or((place, None), |(file, line)| (file, Some(line)));
        let module = loader.filter(|loader| !loader.is_empty()).or(module);
        Some(Self { class, method, module, file, line, rest: rest.trim() })
    }
}

/// Whether what stands in parentheses is a place of Java's rows, and no arguments of another language's: `Cart.java:41`, `PG:307`,
/// `SourceFile:12`, `Native method`, `com.example.part@2029@2029.249`, `:com.example.part@2029.249:2`.
fn is_place(place: &str) -> bool {
    /// What a place may end in that has no ending of Java's files.
    const OTHERS: [&str; 3] = ["PG", "SourceFile", "Unknown Source"];
    let numbered = place.rsplit_once(':').is_some_and(|(file, line)| {
        let is_file = file.ends_with(".java") || file.ends_with(".kt") || OTHERS.contains(&file);
        let is_module = file.trim_start_matches(':').contains('@') && !file.contains([',', ' ', '/']);
        (is_file || is_module) && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
    });
    let is_module = place.contains('@') && place.contains('.') && !place.contains([',', ' ', '/']);
    numbered || is_module || ["Native method", "Native Method", "Unknown Source"].contains(&place)
}

/// Whether what stands in parentheses are arguments with their types, as .NET has them: `String path, Int32 count`.
fn are_arguments(place: &str) -> bool {
    // Old virtual machines' word for what was compiled.
    let is_argument = |argument: &str| {
        argument.rsplit_once(' ').is_some_and(|(kind, name)| {
            let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
            !kind.is_empty()
                && !kind.contains(['@', ':', '/'])
                && is_name
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    };
    !is_place(place) && !place.ends_with("Compiled Code") && place.split(", ").all(is_argument)
}

impl JavaRow<'_> {
    /// A row as Crashlytics' pages show it, without the word before it: `com.example.Cart.total (Cart.java:41)`. The whole line is
    /// the row, and the class has a package.
    fn without_at(line: &str) -> Option<&str> {
        let (name, place) = line.strip_suffix(')')?.rsplit_once('(')?;
        let (file, number) = place.rsplit_once(':').unwrap_or((place, ""));
        let (stem, is_file) = match file.rsplit_once('.') {
            Some((stem, "java" | "kt")) => (stem, !file.contains(char::is_whitespace)),
            _ => return None,
        };
        // Without a blank or a number, the file has to be the class's.
        let class = name.rsplit('.').nth(1).unwrap_or_default();
        let is_classes = class.split('$').next() == Some(stem);
        let name = match name.strip_suffix(' ') {
            Some(name) if !number.is_empty() => name,
            _ if is_classes => name.trim_end(),
            _ => return None,
        };
        let is_name = name.matches('.').count() >= 2
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '-' | '<' | '>'));
        (is_file && is_name && (number.is_empty() || number.parse::<u32>().is_ok())).then_some(line)
    }
}

/// `com.example.Error: message`, split: what an exception prints first. `None` where the line does not begin by a class's
/// name. The name of a class without a package counts where its name says that it is an exception.
pub(super) fn exception_head(line: &str) -> Option<(&str, Option<&str>)> {
    let line = line.trim();
    let (name, message) = match line.split_once(": ") {
        Some((name, message)) => (name, Some(message)),
        None => (line.strip_suffix(':').unwrap_or(line), None),
    };
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'))
    };
    let is_name = name.len() <= MAX_NAME && name.split('.').all(is_part);
    (is_name && (says_error(name) || name.contains('.'))).then_some((name, message))
}

/// Whether a class says by its name that it is thrown.
fn says_error(name: &str) -> bool {
    ["Exception", "Error", "Throwable"].iter().any(|end| name.ends_with(end))
}

/// Names of classes have at most 65535 bytes; real ones are far shorter.
const MAX_NAME: usize = 4096;

/// Words before the class of an exception, each kept with what it says.
const BEFORE: [&str; 8] = [
    // Crashlytics' export writes it without a colon.
    "Caused by ",
    "Caused by: ",
    "Suppressed: ",
    "== Java Exception: ",
    "Wrapped by: ",
    "java stacktrace: ",
    // Crashlytics and Embrace.
    "Fatal Exception: ",
    // Google Play's pages.
    "Exception ",
];

/// What stands before the exception in a line that begins its stack (`Caused by: `), and the exception.
pub(super) fn trace_head(line: &str) -> Option<(&str, &str, Option<&str>)> {
    let trimmed = line.trim().trim_start_matches('`');
    let mut start = 0;
    for word in BEFORE {
        if trimmed.starts_with(word) {
            start = word.len();
        }
    }
    if let Some(rest) = trimmed.strip_prefix("Exception in thread \"") {
        start = trimmed.len() - rest.len() + rest.find("\" ")? + 2;
    }
    // Since Android 8 the class of what was thrown stands behind its process; logcat's own words stand in a line before.
    let (before, rest) = trimmed.split_at_checked(start)?;
    if let Some((name, message)) = exception_head(rest) {
        return Some((before, name, message));
    }
    // Loggers put a word of their own before it: `stacktrace: java.lang.Error: x`.
    let (label, rest) = rest.split_once(": ").filter(|_| start == 0)?;
    let is_label =
        (1..=24).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let (name, message) = exception_head(rest).filter(|(name, _)| is_label && is_librarys(name))?;
    let (before, _) = trimmed.split_at_checked(label.len() + 2)?;
    Some((before, name, message))
}

/// Whether a name is that of an exception of the libraries that every program has.
fn is_librarys(name: &str) -> bool {
    const LIBRARIES: [&str; 6] = ["java.", "javax.", "kotlin.", "kotlinx.", "android.", "androidx."];
    LIBRARIES.iter().any(|begin| name.starts_with(begin)) && says_error(name)
}

/// The first line of an exception that such a library throws, where it has a message and stands alone.
pub(super) fn head_alone(line: &str) -> Option<String> {
    // Some leave the blank behind the colon out.
    let spaced = match line.split_once("Exception:") {
        Some((name, message)) if !message.starts_with([' ', ':']) && !name.contains(' ') => {
            format!("{name}Exception: {message}")
        }
        _ => line.to_owned(),
    };
    let (_, name, message) = trace_head(&spaced)?;
    let is_told = message.is_some_and(|message| !message.trim().is_empty());
    (is_told && is_librarys(name)).then(|| spaced.trim().trim_matches('`').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_writers() {
        let row =
            |line| JavaRow::read(line).map(|row| (row.class, row.method, row.module, row.file, row.line));
        for (line, expected) in [
            ("\tat a.b.C.d(C.java:12)", ("a.b.C", "d", None, "C.java", Some(12))),
            ("  at a.b.C$1.<init>(Native Method)", ("a.b.C$1", "<init>", None, "Native Method", None)),
            ("at a.a.a(Unknown Source:7)", ("a.a", "a", None, "Unknown Source", Some(7))),
            ("at a.t(:foo::bar:)", ("a", "t", None, ":foo::bar:", None)),
            ("at a.t(:foo::bar:1)", ("a", "t", None, ":foo::bar", Some(1))),
            ("at a.t()", ("a", "t", None, "", None)),
            ("at a.t(Compiled Code)", ("a", "t", None, "Compiled Code", None)),
            ("at a.t(:x@1 (06-3):46)", ("a", "t", None, ":x@1 (06-3)", Some(46))),
            ("at a.b.C.d (C.java:12)", ("a.b.C", "d", None, "C.java", Some(12))),
            ("at a.b.C.d + 12(C.java:12)", ("a.b.C", "d", None, "C.java", Some(12))),
            ("a.b.C.d (C.java:12)", ("a.b.C", "d", None, "C.java", Some(12))),
            ("a.b.C$1.d(C.java)", ("a.b.C$1", "d", None, "C.java", None)),
            ("a.b.C.d(C.java:12)", ("a.b.C", "d", None, "C.java", Some(12))),
            ("at java.base/j.L.of(L.java:1)", ("j.L", "of", Some("java.base"), "L.java", Some(1))),
            ("at app//j.L.of(L.java:1)", ("j.L", "of", Some("app"), "L.java", Some(1))),
            ("at j.L.of(java.base@25/L.java:1)", ("j.L", "of", Some("java.base@25"), "L.java", Some(1))),
        ] {
            assert_eq!(row(line), Some(expected), "{line}");
        }
        for line in [
            "at foo (app.js:1:2)",
            "at a.b.c (app.js:1:2)",
            "at Shop.Cart.Add(String name, Int32 count)",
            "at System.Reflection.RuntimeModule.GetTypes()",
            "at app.foo(app.js:1:2)",
            "at Foo.Bar() in file.cs:line 3 (x",
            "at noon (12:00)",
            "at f(x)",
            "attic.a(b)",
            "a.b.look(Cart.java)",
            "at null.-[Cart total](null:null)",
        ] {
            let row = row(line);
            assert!(row.is_none_or(|(.., file, _)| !file.ends_with("js")), "{line}: {row:?}");
        }
        assert_eq!(row("at foo (app.js:1:2)"), None);
        assert_eq!(row("at f(x)"), None);
    }

    #[test]
    fn heads_of_traces() {
        assert_eq!(trace_head("a.b.c: oh"), Some(("", "a.b.c", Some("oh"))));
        assert_eq!(trace_head("Caused by: a.b.c"), Some(("Caused by: ", "a.b.c", None)));
        assert_eq!(
            trace_head("Exception in thread \"main loop\" java.lang.Error: x: y"),
            Some(("Exception in thread \"main loop\" ", "java.lang.Error", Some("x: y")))
        );
        assert_eq!(
            trace_head("Fatal Exception: java.lang.Error: x"),
            Some(("Fatal Exception: ", "java.lang.Error", Some("x")))
        );
        assert_eq!(trace_head("Caused by a.b.c: oh"), Some(("Caused by ", "a.b.c", Some("oh"))));
        assert_eq!(trace_head("MyException"), Some(("", "MyException", None)));
        assert_eq!(trace_head("Exception a.b.CError: oh"), Some(("Exception ", "a.b.CError", Some("oh"))));
        assert_eq!(
            trace_head("stacktrace: java.lang.Error: x: y"),
            Some(("stacktrace: ", "java.lang.Error", Some("x: y")))
        );
        assert_eq!(trace_head("the trace: java.lang.Error: x"), None);
        assert_eq!(trace_head("Exception handling: oh"), None);
        for line in ["words, words", "Hello", "a b.c: d", "", "1.2.3", "http://x.y/"] {
            assert_eq!(trace_head(line), None, "{line}");
        }
    }
}
