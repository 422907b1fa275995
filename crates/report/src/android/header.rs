//! The lines at the head of a tombstone, and of its threads.

use backtrail_core::{Arch, Avma};
use backtrail_model::{AppInfo, Exception, Field, Report};

/// What a line at the head of a thread says: `pid: 1, tid: 2, name: x  >>> com.example <<<`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ThreadLine<'l> {
    pub(super) pid: u64,
    pub(super) tid: Option<u64>,
    pub(super) name: Option<&'l str>,
    pub(super) process: Option<&'l str>,
}

impl<'l> ThreadLine<'l> {
    pub(super) fn read(line: &'l str) -> Option<Self> {
        let rest = line.trim().strip_prefix("pid: ")?;
        let (rest, process) = match rest.rsplit_once(">>> ") {
            Some((before, process)) => {
                (before.trim_end(), Some(process.strip_suffix("<<<").unwrap_or(process).trim()))
            }
            None => (rest, None),
        };
        let (rest, name) = match rest.split_once(", name: ") {
            Some((before, name)) => (before, Some(name.trim())),
            None => (rest, None),
        };
        let (pid, tid) = match rest.split_once(", tid: ") {
            Some((pid, tid)) => (pid, Some(tid.trim().parse().ok()?)),
            None => (rest, None),
        };
        let pid = pid.trim().trim_end_matches(',').parse().ok()?;
        let process = process.filter(|process| !process.is_empty());
        Some(Self { pid, tid, name: name.filter(|name| !name.is_empty()), process })
    }
}

/// `signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0`.
pub(super) fn signal(line: &str) -> Option<Exception> {
    // Unity hands a signal to Java as an error; Tencent's reporter puts colons behind the words.
    let line = line.trim().trim_start_matches("Caused by: ").trim_start_matches("java.lang.Error: ");
    let rest = line.strip_prefix("signal ").or_else(|| line.strip_prefix("signal: "))?;
    let (number, rest) = rest.split_once(" (")?;
    number.parse::<i64>().ok()?;
    let (name, rest) = rest.split_once(')')?;
    let codes = rest.trim_start_matches(',').trim();
    let address = codes.split_once("fault addr ").or_else(|| codes.split_once("fault addr: ")).and_then(
        |(_, address)| {
            let word = address.split_whitespace().next()?;
            u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
        },
    );
    Some(exception(number, name, codes, address))
}

/// `Fatal signal 11 (SIGSEGV), code 1, fault addr 0x10 in tid 4780 (ui_thread), pid 4755 (com.example)`, as the C library logs it
/// before the tombstone: the exception, the thread's id and name.
pub(super) fn fatal(line: &str) -> Option<(Exception, Option<u64>, Option<&str>)> {
    let line = line.trim();
    let rest = line.strip_prefix("Fatal ").or_else(|| line.split_once(" Fatal ").map(|(_, rest)| rest))?;
    let (said, thread) = match rest.split_once(" in tid ") {
        Some((said, thread)) => (said, Some(thread)),
        None => (rest, None),
    };
    let exception = signal(said)?;
    let id = thread.and_then(|thread| thread.split([' ', ',']).next()?.parse().ok());
    let name = thread.and_then(|thread| thread.split_once('(')?.1.split_once(')').map(|(name, _)| name));
    Some((exception, id, name))
}

/// What Android's runtime logs before it ends the process for a wrong call of JNI:
/// `art/runtime/java_vm_ext.cc:410] JNI DETECTED ERROR IN APPLICATION: use of deleted local reference 0x200015`.
pub(super) fn jni(line: &str) -> Option<&str> {
    let (place, message) = line.split_once("] ").filter(|(place, _)| place.contains(".cc:"))?;
    let is_jni = message.starts_with("JNI DETECTED ERROR IN APPLICATION: ");
    Some(message.trim()).filter(|_| is_jni && !place.contains(' '))
}

/// What follows such a line, each with the place in the runtime before it: `in call to GetObjectClass`, `from void a.B.c()`.
pub(super) fn jni_detail(line: &str) -> Option<&str> {
    let (place, detail) = line.split_once("] ").filter(|(place, _)| place.contains(".cc:"))?;
    let detail = detail.trim();
    let is_detail = detail.starts_with("in call to ") || detail.starts_with("from ");
    Some(detail).filter(|_| is_detail && !place.contains(' '))
}

/// Whether a line with the priority of an end tells why: not one of those that show the crash itself.
pub(super) fn is_last_word(tag: &str, message: &str) -> bool {
    const SHOW: [&str; 8] = ["", "DEBUG", "libc", "CRASH", "art", "AEE_AED", "google-breakpad", "crash_dump"];
    !SHOW.contains(&tag) && !tag.starts_with("crash_dump") && message.trim().len() >= 8
}

/// `A/chromium: [FATAL:…] words`, as people paste a line of the log: its tag and message.
pub(super) fn pasted_last_word(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("A/").or_else(|| line.strip_prefix("F/"))?;
    let (tag, message) = rest.split_once(": ")?;
    (!tag.contains([' ', '('])).then_some((tag, message.trim()))
}

/// `Crashed: Thread :  SIGSEGV  0x0000000000000010`, as Crashlytics heads the stacks of Android.
pub(super) fn crashlytics(line: &str) -> Option<Exception> {
    let line = line.trim_start_matches(['>', ' ']);
    if let Some(found) = titled(line) {
        return Some(found);
    }
    let rest = line.strip_prefix("Crashed: Thread")?;
    let mut words =
        rest.trim_start_matches([' ', ':']).split_whitespace().skip_while(|word| !word.starts_with("SIG"));
    let signal = words.next()?;
    let address = words.next().and_then(|word| word.strip_prefix("0x"));
    let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    Some(exception("", signal, "", address))
}

/// `null pointer dereference: SIGSEGV  0x0000000000000008`, as Firebase's console heads the same.
fn titled(line: &str) -> Option<Exception> {
    let (cause, rest) = line.trim_matches('`').split_once(": SIG")?;
    let is_cause = !cause.is_empty()
        && cause.len() < 64
        && cause.bytes().all(|it| it == b' ' || it.is_ascii_lowercase());
    let (name, address) = rest.split_once("  0x").filter(|_| is_cause)?;
    let address = u64::from_str_radix(address, 16).ok()?;
    name.bytes().all(|byte| byte.is_ascii_uppercase()).then(|| Exception {
        message: Some(cause.to_owned()),
        ..exception("", &format!("SIG{name}"), "", Some(address))
    })
}

/// The exception that a signal is, in the words of a tombstone.
pub(super) fn exception(number: &str, name: &str, codes: &str, address: Option<u64>) -> Exception {
    let signal = if name.starts_with("SIG") { name.to_owned() } else { format!("signal {number} ({name})") };
    Exception {
        signal: Some(signal),
        codes: Some(codes.to_owned()).filter(|codes| !codes.is_empty()),
        address: address.map(Avma::new),
        ..Exception::default()
    }
}

/// A tombstone's own words for an architecture.
pub(super) fn arch(abi: &str) -> Option<Arch> {
    match abi {
        "x86" => Some(Arch::X86),
        "armeabi" => Some(Arch::Arm),
        "armeabi-v7a" => Some(Arch::Armv7),
        "arm64-v8a" => Some(Arch::Arm64),
        other => Arch::from_name(other),
    }
}

/// A value without the quotes that some have around them.
pub(super) fn unquoted(value: &str) -> &str {
    value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')).unwrap_or(value)
}

/// Splits `Key: value`; keys are short and hold no digits but at their end.
pub(super) fn key_value(line: &str) -> Option<(&str, &str)> {
    // Crashlytics' exports mark the lines of their head, which begins by `# Crashlytics - Stack trace`.
    let (key, value) = match line.strip_prefix("# ") {
        Some(marked) => marked.split_once(':').or_else(|| marked.split_once(" -"))?,
        None => line.split_once(':')?,
    };
    let is_key = !key.is_empty()
        && key.len() <= 40
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-'))
        && (value.is_empty() || value.starts_with([' ', '\t']));
    is_key.then(|| (key, value.trim()))
}

/// Puts a line of the head where it belongs. What the model has no field for is kept as one.
pub(super) fn set(report: &mut Report, key: &str, value: &str) {
    let plain = unquoted(value);
    let text = || Some(plain.to_owned()).filter(|text| !text.is_empty());
    match key {
        "ABI" if report.process.arch.is_none() => {
            report.process.arch = arch(plain);
            // Other spellings of an architecture are kept as they are.
            if report.process.arch.is_none_or(|arch| arch.name() != plain) {
                field(report, key, value);
            }
        }
        "Timestamp" | "Crash time" if report.time.is_none() => report.time = text(),
        "Build fingerprint" if report.os.is_none() => {
            report.os = release(plain).map(|release| format!("Android {release}"));
            report.device = plain.split('/').nth(1).map(str::to_owned).filter(|device| !device.is_empty());
            field(report, key, value);
        }
        "Cmdline" | "Cmd line" if report.process.command_line.is_none() => {
            report.process.command_line = text();
            let program = plain.split(' ').next().unwrap_or(plain);
            report.process.name.get_or_insert_with(|| program.to_owned());
        }
        "App ID" if report.process.identifier.is_none() => report.process.identifier = text(),
        "Application" if report.process.identifier.is_none() => {
            report.process.identifier = text();
            report.process.name.get_or_insert_with(|| plain.to_owned());
        }
        "Date" if report.time.is_none() => report.time = text(),
        "App version" | "Version" if report.process.version.is_none() => report.process.version = text(),
        "Abort message" => {
            report.app_info.push(AppInfo { image: None, lines: plain.lines().map(str::to_owned).collect() });
            report.exception.get_or_insert_with(Exception::default).message = text();
        }
        _ => field(report, key, value),
    }
}

/// Keeps a line as a field.
pub(super) fn field(report: &mut Report, key: &str, value: &str) {
    report.fields.push(Field { key: key.to_owned(), value: value.to_owned() });
}

/// The release in a build's fingerprint: `10` of `google/sailfish/sailfish:10/QP1A.190711.020/5800535:user/release-keys`.
pub(super) fn release(fingerprint: &str) -> Option<&str> {
    let (_, rest) = fingerprint.split_once(':')?;
    let release = rest.split('/').next().filter(|release| !release.is_empty())?;
    (release.len() <= 32).then_some(release)
}

/// Whether addresses of this report count from the start of a file instead of from its own addresses: Android's unwinder
/// gave file offsets up to Android 10, see <https://github.com/android/ndk/issues/1366>. Where the report does not tell
/// its version they are taken for what all later ones are.
pub(super) fn states_file_offsets(report: &Report) -> bool {
    let value =
        |key: &str| report.fields.iter().find(|field| field.key == key).map(|field| field.value.as_str());
    let major = |text: &str| -> Option<u32> { text.split('.').next()?.parse().ok() };
    let of_build = value("Build fingerprint").and_then(|text| release(unquoted(text)));
    match of_build.or_else(|| value("OS version").map(unquoted)) {
        // Previews were named by a letter: R became 11.
        Some(letter) if letter.len() == 1 && letter.starts_with(char::is_alphabetic) => letter < "R",
        Some(release) => major(release).is_some_and(|major| major < 11),
        None => false,
    }
}

/// The system's log of an app that did not respond: `ANR in com.example.shop (com.example.shop/.Main)`, and below it the reason.
///
/// Tells whether it is the head; `is_known` says that it stood before.
pub(super) fn not_responding(report: &mut Report, line: &str, is_known: bool) -> bool {
    if let Some(rest) = line.strip_prefix("ANR in ") {
        let name = rest.split([' ', ',']).next().unwrap_or(rest);
        let is_new = report.process.name.is_none() && name.contains('.');
        if is_new {
            report.process.name = Some(name.to_owned());
        }
        return is_new;
    }
    let is_told = || report.fields.iter().any(|known| known.key == "Subject");
    if let Some(reason) = line.strip_prefix("Reason: ").filter(|_| is_known && !is_told()) {
        field(report, "Subject", reason);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_threads() {
        let read = |line| ThreadLine::read(line).map(|line| (line.pid, line.tid, line.name, line.process));
        assert_eq!(
            read("pid: 1, tid: 2, name: a, b  >>> com.example <<<"),
            Some((1, Some(2), Some("a, b"), Some("com.example")))
        );
        assert_eq!(read("pid: 7076  >>> xcrash.sample <<<"), Some((7076, None, None, Some("xcrash.sample"))));
        assert_eq!(read("pid: x"), None);
    }

    #[test]
    fn signals() {
        let read =
            |line| signal(line).map(|it| (it.signal.unwrap(), it.codes.unwrap(), it.address.map(Avma::get)));
        let (name, codes, address) =
            read("signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x10").unwrap();
        assert_eq!((name.as_str(), codes.as_str()), ("SIGSEGV", "code 1 (SEGV_MAPERR), fault addr 0x10"));
        assert_eq!(address, Some(0x10));
        let (name, _, address) =
            read("signal 35 (<debuggerd signal>), code -1 (SI_QUEUE), fault addr --------").unwrap();
        assert_eq!((name.as_str(), address), ("signal 35 (<debuggerd signal>)", None));
    }

    #[test]
    fn the_release_decides_what_addresses_count_from() {
        for (fingerprint, expected) in [
            ("google/sailfish/sailfish:10/QP1A.190711.020/5800535:user/release-keys", true),
            ("google/walleye/walleye:8.1.0/OPM1.171019.021/4565141:user/release-keys", true),
            ("google/bluejay/bluejay:16/BP3A.250905.014/13873947:user/release-keys", false),
            ("google/x/x:R/RPP1.200123.016/6187651:userdebug/dev-keys", false),
            ("google/x/x:Q/QPP1/6187651:userdebug/dev-keys", true),
            ("nothing", false),
        ] {
            let mut report = Report::default();
            set(&mut report, "Build fingerprint", &format!("'{fingerprint}'"));
            assert_eq!(states_file_offsets(&report), expected, "{fingerprint}");
        }
    }
}
