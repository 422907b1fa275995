//! What Android's runtime says of a wrong call of JNI.
//!
//! Sources: ART's `runtime/jni/check_jni.cc` and `java_vm_ext.cc`, which have the words; Android's "JNI tips" for the rules.

use super::draft::Draft;
use super::words::one_line;

struct Rule {
    /// Parts of the message, any of which tells it.
    parts: &'static [&'static str],
    meaning: &'static str,
    cause: &'static str,
    next: &'static str,
}

/// The first that fits counts.
const RULES: [Rule; 7] = [
    Rule {
        parts: &["after critical get"],
        meaning: "A thread may make no other JNI call between GetPrimitiveArrayCritical or GetStringCritical and the release: its critical region.",
        cause: "Another JNI call inside the critical region.",
        next: "Make all other JNI calls before the critical region, and leave it before the next one.",
    },
    Rule {
        parts: &["pending exception"],
        meaning: "A Java exception was pending. Most JNI calls are not allowed until it is handled or cleared.",
        cause: "An earlier JNI call threw, and its result was used without ExceptionCheck.",
        next: "Check for an exception after each call that may throw; the message or the log names the exception.",
    },
    Rule {
        parts: &["== null", "non-null"],
        meaning: "null was given where JNI takes none.",
        cause: "The result of an earlier call (FindClass, GetMethodID, GetFieldID, an object of Java) was null and was not checked; R8 may have removed or renamed what was looked for.",
        next: "Check the result of the call that gave the value; keep what native code looks up by name from being shrunk.",
    },
    Rule {
        parts: &[
            "use of deleted",
            "use of invalid",
            "invalid jobject",
            "invalid indirect reference",
            "stale reference",
            "native code passing in reference",
        ],
        meaning: "The reference is not valid, or no longer valid.",
        cause: "A local reference that was kept beyond the call or for another thread, a reference that was deleted before, or a value that never was a reference.",
        next: "Keep objects beyond a call by NewGlobalRef, and delete each reference once.",
    },
    Rule {
        parts: &["using JNIEnv* from thread", "JNIEnv"],
        meaning: "A thread used another thread's JNIEnv.",
        cause: "A JNIEnv that was kept and used on another thread.",
        next: "Keep the JavaVM instead, and ask it for the thread's own JNIEnv (AttachCurrentThread, GetEnv).",
    },
    Rule {
        parts: &["Modified UTF-8"],
        meaning: "The bytes passed for a string are not valid modified UTF-8, which JNI requires.",
        cause: "Text in ordinary UTF-8 with characters beyond the basic plane (emoji), in another encoding, or not ended by a zero byte.",
        next: "Make strings of such text by NewString from UTF-16, or by Java's String(byte[], \"UTF-8\").",
    },
    Rule {
        parts: &[
            "of wrong type",
            "has wrong type",
            "expected reference of kind",
            "bad arguments passed",
            "not an instance of",
            "has return type",
        ],
        meaning: "An object, field or method is of another type than the call says.",
        cause: "A signature that does not fit the method or field, or an object of another class.",
        next: "Compare the signature in the native code with the Java declaration.",
    },
];

/// What the message says without the place in the runtime's own source and the words that all of them have.
pub(super) fn words(message: &str) -> String {
    const JNI: &str = "JNI DETECTED ERROR IN APPLICATION: ";
    let first = message.lines().next().unwrap_or(message);
    let words = first.split_once(JNI).map_or(first, |(_, words)| words);
    one_line(words.trim_end_matches('\''))
}

/// Tells which rule was broken, and by which call of whose. False where the rule is none that is known.
pub(super) fn tell(message: &str, draft: &mut Draft) -> bool {
    let detail = |begin: &str| {
        let line = message.lines().skip(1).map(str::trim).find(|line| line.starts_with(begin))?;
        line.get(begin.len()..).map(|rest| one_line(rest.trim_end_matches('\'')))
    };
    match (detail("in call to "), detail("from ")) {
        (Some(call), Some(method)) => {
            draft.say(format!("It was in the call of {call}, made by the native code of `{method}`."));
        }
        (Some(call), None) => draft.say(format!("It was in the call of {call}.")),
        (None, Some(method)) => draft.say(format!("The call was made by the native code of `{method}`.")),
        (None, None) => {}
    }
    let found = RULES.iter().find(|rule| rule.parts.iter().any(|part| message.contains(part)));
    let Some(rule) = found else { return false };
    draft.say(rule.meaning);
    draft.cause(rule.cause);
    draft.next(rule.next);
    true
}
