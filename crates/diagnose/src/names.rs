//! How explaining and attributing read a frame: its names, and the words by which a sentence cites it.

use backtrail_core::Trust;
use backtrail_model::{Frame, Image, Report, Source, Thread};

/// Functions in which stacks begin. One that ends elsewhere after a frame or two was not followed to its end.
pub(crate) const BASES: [&str; 20] = [
    "start",
    "_start",
    "main",
    "thread_start",
    "_pthread_start",
    "_pthread_body",
    "start_wqthread",
    "_pthread_wqthread",
    "__workq_kernreturn",
    "_dispatch_worker_thread",
    "_dispatch_worker_thread2",
    "start_sim",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
    "__start_thread",
    "__pthread_start",
    "__libc_init",
];

/// A function's name without what varies: arguments, processor variant, Swift's and the compiler's prefixes, and what
/// tools that symbolicate append (`name (in Image)`, `name + 12`).
///
/// Objective-C methods keep their brackets; `std::terminate()` becomes `std::terminate`.
pub(crate) fn base_name(name: &str) -> &str {
    let mut name = specialized(without_place(name.trim()));
    for prefix in ["specialized ", "static ", "@objc ", "merged "] {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    if name.starts_with("-[") || name.starts_with("+[") {
        return name;
    }
    // `(anonymous namespace)::f(int)` begins with what is no argument.
    let from = if name.starts_with("(anonymous") { name.find("::").unwrap_or(0) } else { 0 };
    let found = name.get(from..).and_then(|rest| rest.find(['(', '$', '<']));
    let end = found.map_or(name.len(), |at| from + at);
    let end = if end == 0 { name.len() } else { end };
    name.get(..end).unwrap_or(name).trim_end()
}

/// What a Swift specialization is of: `function signature specialization <Arg[0] = Dead> of f(_:)`, `generic specialization
/// <Int> of f(_:)`. Angle brackets may be others, as some tools print them.
fn specialized(name: &str) -> &str {
    let mut name = name;
    while name.starts_with("function signature specialization ")
        || name.starts_with("generic specialization ")
        || name.starts_with("generic not re-abstracted specialization ")
    {
        let Some((_, rest)) = name.split_once(" of ") else { return name };
        name = rest;
    }
    name
}

/// `name (in Image) + 12` without what stands behind the name.
pub(crate) fn without_place(name: &str) -> &str {
    // This is asked of every frame, and searching for a word takes longer than for a byte.
    if !name.contains(' ') {
        return name;
    }
    let name = name.split_once(" (in ").map_or(name, |(name, _)| name);
    let offset =
        name.rsplit_once(" + ").filter(|(_, digits)| digits.bytes().all(|byte| byte.is_ascii_digit()));
    offset.map_or(name, |(name, _)| name.trim_end())
}

/// Whether any function at `frame`, inlined ones included, is one of `functions`.
pub(crate) fn is_any_of(frame: &Frame, functions: &[&str]) -> bool {
    frame.names().any(|name| functions.contains(&base_name(name)) || functions.contains(&name))
}

/// The names at a frame as they stand and without what varies, for those who compare them with many functions.
pub(crate) struct Names<'f>(Vec<[&'f str; 2]>);

impl<'f> Names<'f> {
    pub(crate) fn of(frame: &'f Frame) -> Self {
        Self(frame.names().map(|name| [base_name(name), name]).collect())
    }

    /// What [`is_any_of`] says of the frame.
    pub(crate) fn is_any_of(&self, functions: &[&str]) -> bool {
        self.0.iter().flatten().any(|name| functions.contains(name))
    }

    /// Whether any of them begins so, without what varies.
    pub(crate) fn start_with(&self, start: &str) -> bool {
        self.0.iter().any(|[base, _]| base.starts_with(start))
    }
}

/// The image that `frame` lies in.
pub(crate) fn image_of<'r>(report: &'r Report, frame: &Frame) -> Option<&'r Image> {
    report.process.images.get(frame.image?)
}

/// The name of the image that `frame` lies in, as far as the report has one.
pub(crate) fn image_name<'r>(report: &'r Report, frame: &'r Frame) -> Option<&'r str> {
    let image = image_of(report, frame).map(|image| image.name.as_str());
    image.or(frame.image_name.as_deref()).filter(|name| !name.is_empty() && *name != "???")
}

/// Names `frame`'s code in a sentence: `-[Foo bar] (Foo.m:41) in MyApp`, or `MyApp + 33016` where no name is known.
pub(crate) fn describe(report: &Report, frame: &Frame) -> String {
    let image = image_name(report, frame);
    let Some(name) = frame.names().next() else {
        return format!("{}{}", without_name(frame, image), before(frame));
    };
    let source = source_of(frame).map(|source| format!(" ({source})")).unwrap_or_default();
    let image = image.map(|image| format!(" in {image}")).unwrap_or_default();
    format!("`{name}`{source}{image}")
}

/// What is known of a caller whose call is its last instruction.
fn before(frame: &Frame) -> String {
    frame.follows().map(|next| format!(", in the function right before `{next}`")).unwrap_or_default()
}

fn without_name(frame: &Frame, image: Option<&str>) -> String {
    let address = frame.address.map(backtrail_core::FrameAddress::raw);
    match (image, frame.image_offset, address) {
        (Some(image), Some(offset), None) => format!("{image} + {offset:#x}"),
        (Some(image), Some(offset), _) => format!("{image} + {offset}"),
        (Some(image), None, Some(address)) => format!("{address} in {image}"),
        (Some(image), None, None) => image.to_owned(),
        (None, _, Some(address)) => format!("{address}, which lies in no image"),
        (None, _, None) => "a place that the report does not name".to_owned(),
    }
}

/// `Foo.m:41`, where symbolizing or the report knows it.
pub(crate) fn source_of(frame: &Frame) -> Option<String> {
    let function = frame.functions.first();
    let reported = frame.reported.as_ref();
    let file = match function {
        Some(function) => function.file.as_deref()?,
        None => reported?.file.as_deref()?,
    };
    let line = function.map_or_else(|| reported.and_then(|reported| reported.line), |function| function.line);
    let file = file.rsplit('/').next().unwrap_or(file);
    // Compilers give line 0 to code that stands nowhere in the source.
    if file == "<compiler-generated>" {
        return None;
    }
    let line = line.filter(|line| *line != 0);
    Some(line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")))
}

/// Cites a frame as evidence: `Thread 0 frame 3: objc_msgSend + 8 (libobjc.A.dylib)`.
pub(crate) fn cite(report: &Report, stack: &str, frame: &Frame) -> String {
    let image = image_name(report, frame).map(|image| format!(" ({image})")).unwrap_or_default();
    let trust = if frame.trust == Trust::LinkRegister { " [by link-register]" } else { "" };
    let Some(name) = frame.names().next() else {
        let what = without_name(frame, image_name(report, frame));
        return format!("{stack} frame {}: {what}{}{trust}", frame.index, before(frame));
    };
    let reported = frame.reported.as_ref().and_then(|reported| reported.offset);
    let offset = frame.symbol.as_ref().map(|symbol| symbol.offset).or(reported);
    let offset = offset.filter(|_| frame.functions.is_empty());
    let offset = offset.map(|offset| format!(" + {offset}")).unwrap_or_default();
    format!("{stack} frame {}: {name}{offset}{image}{trust}", frame.index)
}

/// The number of the thread that a report blames, whose stack it does not have: it was cut.
pub(crate) fn missing_thread(report: &Report) -> Option<u64> {
    if report.process.crashed_thread.is_some() {
        return None;
    }
    // Behind the number may stand the thread's queue.
    let number = |value: &str| value.split_whitespace().next()?.parse().ok();
    let mut fields = report.fields.iter().filter(|field| field.key == "Crashed Thread");
    fields.find_map(|field| number(&field.value))
}

/// How evidence names a thread.
pub(crate) fn thread_label(thread: &Thread) -> String {
    format!("Thread {}", thread.number)
}

/// The frames that rules may rest on: those in front of the first that was found by scanning, which is a guess, and
/// behind Rosetta's own. Of translated code the crash reporter shows the translator's frame 0, which lies in no image, in
/// front of the program's (`0 ??? 0x7ff8a5e0f9a8 ???`, `1 libsystem_kernel.dylib __pthread_kill + 10`).
pub(crate) fn own_frames<'r>(report: &Report, frames: &'r [Frame]) -> &'r [Frame] {
    // Linux proves some of the rows behind a guess; who looks for a frame passes over the guesses.
    if report.source == Source::LinuxKernel {
        return frames;
    }
    let certain = frames.iter().take_while(|frame| frame.trust != Trust::Scan).count();
    let frames = frames.get(..certain).unwrap_or(frames);
    let translators = frames.iter().take_while(|frame| is_translators(report, frame)).count();
    let rest = frames.get(translators..).unwrap_or_default();
    if rest.is_empty() { frames } else { rest }
}

/// Whether the frame is Rosetta's: in no image, or in the translator's files.
pub(crate) fn is_translators(report: &Report, frame: &Frame) -> bool {
    if !report.process.translated {
        return false;
    }
    let path = image_of(report, frame).and_then(|image| image.path.as_deref()).unwrap_or_default();
    let is_rosettas = path.contains("/usr/libexec/oah/") || path.contains("/usr/libexec/rosetta/");
    let is_file = path.starts_with("/private/var/db/oah/") || path.starts_with("/var/db/oah/");
    // The path may be redacted: `/Library/Apple/*/runtime_t8027`.
    let name = image_name(report, frame);
    let is_named = name.is_some_and(|name| name.starts_with("runtime_t") || name.starts_with("libRosetta"));
    name.is_none() || is_named || is_rosettas || is_file
}

/// The thread of a report that has one only and does not say that it crashed.
pub(crate) fn only_thread(report: &Report) -> Option<&Thread> {
    match report.process.threads.as_slice() {
        // A report that was cut before the thread that it blames may have another one.
        [only] if missing_thread(report).is_none_or(|number| number == only.number) => Some(only),
        _ => thread_of_event(report),
    }
}

/// The thread that a crash file of no crash is about: the first one of a process that hangs, the one that ended the process.
fn thread_of_event(report: &Report) -> Option<&Thread> {
    let id = match report.event.as_deref().filter(|_| report.source == Source::CrashFile)? {
        "hang" => report.process.pid,
        "exit" => {
            let ended = report.fields.iter().find(|field| field.key == "Ended by thread");
            ended.and_then(|field| field.value.parse().ok())
        }
        _ => None,
    }?;
    report.process.threads.iter().find(|thread| thread.id == Some(id))
}

/// The main thread: the one that serves the main queue, else the first.
pub(crate) fn main_thread(report: &Report) -> Option<&Thread> {
    let serves_main = |thread: &&Thread| {
        let is_main = |text: &Option<String>| {
            text.as_deref().is_some_and(|text| text.contains("com.apple.main-thread"))
        };
        is_main(&thread.queue) || is_main(&thread.name)
    };
    report
        .process
        .threads
        .iter()
        .find(serves_main)
        .or_else(|| report.process.threads.iter().find(|thread| thread.number == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_names_drop_what_varies() {
        for (name, base) in [
            ("std::terminate()", "std::terminate"),
            ("specialized _fatalErrorMessage(StaticString, flags : UInt32) -> Never", "_fatalErrorMessage"),
            ("_platform_memmove$VARIANT$Haswell", "_platform_memmove"),
            ("-[NSArray(Foo) objectAtIndex:]", "-[NSArray(Foo) objectAtIndex:]"),
            ("objc_msgSend", "objc_msgSend"),
            ("(anonymous namespace)::f", "(anonymous namespace)::f"),
            ("objc_msgSend + 8", "objc_msgSend"),
            ("-[A b:] (in Demo)", "-[A b:]"),
            ("operator+", "operator+"),
        ] {
            assert_eq!(base_name(name), base);
        }
    }
}
