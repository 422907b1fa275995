//! What happened, in words, from the report alone.
//!
//! A report is explained by rules. The *leading* rules are asked in a fixed order; the first that applies gives the
//! title and the first sentence, and no other one is asked. The *adding* rules then all run: place, registers, the
//! processor's account. Each rule is a small function over [`facts::Facts`]; what codes and texts mean is data in
//! [`tables`]. A rule quotes the line of the report that it rests on, and says so where the report does not decide.
//!
//! To add a platform: put its codes and texts into tables, its rules into a file, and name them in [`LEADING`].
//! `docs/explain.md` lists the rules, `docs/explain-tables.md` the tables; a test keeps both true.

mod abort;
pub(crate) mod android;
mod android_codes;
mod android_faults;
mod android_waits;
mod bad_access;
pub(crate) mod blamed;
mod captures;
pub(crate) mod debugger_stop;
mod draft;
mod esr;
mod events;
mod exit_code;
pub(crate) mod facts;
mod failed_instruction;
mod fault;
pub(crate) mod file_lock;
mod guard;
mod instruction;
mod java_error_log;
mod java_memory;
mod jni;
pub(crate) mod kill;
mod kills;
mod link_error;
mod loader;
pub(crate) mod objc;
mod off_main;
mod out_of_memory;
mod place;
mod race;
mod region;
pub(crate) mod registers;
mod resource;
mod runtime;
pub(crate) mod runtime_reports;
mod sender;
mod sent_signal;
mod signals;
pub(crate) mod stack;
mod swift;
pub(crate) mod tables;
mod throw_stack;
pub(crate) mod thrown;
mod trap;
mod user_fault;
mod waits;
mod watchdog;
mod watched;
mod windows;
pub(crate) mod words;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use backtrail_model::{Report, Source};
use draft::Draft;
use facts::Facts;

/// What happened, why, and what to do next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Explanation {
    /// The name of the rule that gave the title, as `docs/explain.md` lists it.
    pub rule: &'static str,
    /// One line: what it was.
    pub title: String,
    /// Two to a handful of sentences: what happened, where, why.
    pub summary: String,
    /// What the report says, line by line, that the explanation rests on.
    pub evidence: Vec<String>,
    /// Likely causes, the most likely first.
    pub causes: Vec<String>,
    /// What to do, in this order.
    pub next_steps: Vec<String>,
}

/// A rule that may lead: true where it applied.
struct Leading {
    /// The name by which the documentation knows it.
    id: &'static str,
    apply: fn(&Facts<'_>, &mut Draft) -> bool,
}

/// A rule that adds to what another one leads.
struct Adding {
    /// The name by which the documentation knows it.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test of the documentation reads it"))]
    id: &'static str,
    apply: fn(&Facts<'_>, &mut Draft),
}

const fn leading(id: &'static str, apply: fn(&Facts<'_>, &mut Draft) -> bool) -> Leading {
    Leading { id, apply }
}

const fn adding(id: &'static str, apply: fn(&Facts<'_>, &mut Draft)) -> Adding {
    Adding { id, apply }
}

/// The leading rules, in the order in which they are asked. What somebody said in words stands before what follows
/// from codes, and what is certain before what is likely.
static LEADING: [Leading; 65] = [
    leading("memory-event", events::jetsam::explain),
    leading("kernel-panic", events::panic::explain),
    leading("samples", events::samples::explain),
    leading("stackshot", events::stackshot::explain),
    leading("metrickit", events::metrickit::explain),
    leading("other-kind", events::other::explain),
    leading("simulated", kills::simulated),
    leading("watched-hang", watched::hang),
    leading("failing-exit", watched::failing_exit),
    leading("message", watched::message),
    leading("resource", resource::exceeded),
    leading("guard", guard::violated),
    leading("killed", kills::killed),
    leading("memory-limit", captures::memory_limit),
    leading("launch-hang", signals::launch_hang),
    leading("sanitizer", abort::sanitizer),
    leading("client-bug", trap::client_bug),
    leading("c-library-message", captures::c_library_message),
    leading("loader-message", loader::message),
    leading("qt-platform", loader::qt_platform),
    leading("java-memory", java_memory::alone),
    leading("rust-panic", captures::rust_panic),
    leading("go-panic", captures::go_panic),
    leading("objc-exception", thrown::objc),
    leading("stated-exception", thrown::others),
    leading("malloc-message", abort::malloc),
    leading("swift-message", swift::message),
    leading("swift-runtime-failure", swift::runtime_failure),
    leading("assertion", abort::assertion),
    leading("objc-throw", thrown::objc_throw),
    leading("telling-frame", trap::telling_frame),
    leading("joinable-thread", thrown::joinable_thread),
    leading("cpp-exception", thrown::cpp),
    leading("sent-signal", sent_signal::sent),
    leading("exit-code", exit_code::told),
    leading("signal-alone", signals::alone),
    leading("code-signature", bad_access::codesign),
    leading("bad-stack-pointer", stack::bad_stack_pointer),
    leading("stack-overflow", stack::overflow),
    leading("code-fetch", bad_access::code_fetch),
    leading("objc-message", objc::message),
    leading("reference-counting", objc::counting),
    leading("weak-reference", objc::weak),
    leading("objc-runtime", objc::runtime),
    leading("pointer-authentication", bad_access::pointer_authentication),
    leading("memory-tagging", bad_access::memory_tagging),
    leading("null-pointer", bad_access::null),
    leading("below-null", bad_access::below_null),
    leading("misaligned", bad_access::misaligned),
    leading("memory-error", bad_access::memory_error),
    leading("address-untold", bad_access::untold),
    leading("beyond-address-space", bad_access::beyond_address_space),
    leading("protection", bad_access::protection),
    leading("unmapped", bad_access::unmapped),
    leading("malloc-frames", abort::malloc_frames),
    leading("abort", abort::abort),
    leading("system-words", trap::said_by_system),
    leading("trap", trap::trap),
    leading("bad-instruction", trap::bad_instruction),
    leading("arithmetic", trap::arithmetic),
    leading("signal", signals::signal),
    leading("sigkill", signals::sigkill),
    leading("recursion-alone", stack::recursion_alone),
    leading("reporters-words", signals::reporters_words),
    leading("anything", signals::anything),
];

/// The same for reports of Android and of Java virtual machines.
static ANDROID_LEADING: [Leading; 13] = [
    leading("deadlock", android_waits::deadlock),
    leading("anr", android_waits::anr),
    leading("thread-dump", android_waits::thread_dump),
    leading("java-exception", android::java_exception),
    leading("memory-tool", android::memory_tool),
    leading("abort-message", android::abort_message),
    leading("android-sent-signal", sent_signal::sent),
    leading("android-code-fetch", android_faults::code_fetch),
    leading("deadbaad", android_faults::deadbaad),
    leading("stated-cause", android::stated_cause),
    leading("null-access", android::null_access),
    leading("signal-code", android_codes::signal_code),
    leading("android-anything", android::anything),
];

/// The rules that add to those.
static ANDROID_ADDING: [Adding; 2] =
    [adding("android-place", android::place), adding("other-causes", android::other_causes)];

/// The same for what runtimes, sanitizers, debuggers and Linux's kernel wrote.
static RUNTIMES_LEADING: [Leading; 12] = [
    leading("sanitizer-finding", runtime_reports::sanitizer),
    leading("linux-kernel", runtime_reports::linux_kernel),
    leading("user-fault", user_fault::explain),
    leading("out-of-memory-kill", out_of_memory::explain),
    leading("go-failure", runtime_reports::go),
    leading("rust-failure", runtime_reports::rust),
    leading("v8-fatal", runtime_reports::v8_fatal),
    leading("runtime-exception", runtime_reports::thrown),
    leading("java-error-log", java_error_log::explain),
    leading("debugger-stop", debugger_stop::stopped),
    leading("windows-error", windows::error),
    leading("runtime-anything", runtime_reports::anything),
];

/// The rule that adds to those.
static RUNTIMES_ADDING: [Adding; 1] = [adding("runtime-place", runtime_reports::place)];

/// The rules that add, in this order.
static ADDING: [Adding; 9] = [
    adding("place", place::place),
    adding("non-fatal", signals::non_fatal),
    adding("fault-account", bad_access::account),
    adding("fault-registers", bad_access::holders),
    adding("recursion", stack::mention_recursion),
    adding("race", race::race),
    adding("off-main", off_main::add),
    adding("managed-runtime", runtime::managed),
    adding("ran-as", events::machine::ran_as),
];

/// Whether LLDB stopped a program of Apple's systems, and says why.
fn is_lldbs(report: &Report) -> bool {
    let kind = report.exception.as_ref().and_then(|exception| exception.kind.as_deref());
    let is_its = kind.is_some_and(|kind| kind.starts_with("EXC_"));
    report.source == Source::DebuggerBacktrace && (is_its || kind.is_none() && has_ended_by_apples(report))
}

/// Whether a stack that says nothing else shows how a program of Apple's systems ended itself.
fn has_ended_by_apples(report: &Report) -> bool {
    /// Of Apple's C library and of Objective-C's runtime, and what runs their apps.
    const APPLES: [&str; 7] = [
        "abort_message",
        "_objc_terminate",
        "objc_exception_throw",
        "objc_exception_rethrow",
        "UIApplicationMain",
        "NSApplicationMain",
        "CFRunLoopRunSpecific",
    ];
    let threads = report.process.threads.iter().map(|thread| thread.frames.as_slice());
    let mut stacks = threads.filter(|frames| crate::suspect::skip::has_abort(frames));
    stacks.any(|frames| frames.iter().any(|frame| crate::names::is_any_of(frame, &APPLES)))
}

/// Explains `report`: what happened, why, and what to do next.
pub fn explain(report: &Report) -> Explanation {
    let facts = Facts::new(report);
    let mut draft = Draft::default();
    // The last leading rule always applies.
    // Codes of Apple's kernel have no meaning elsewhere.
    let (leading, adding) = if report.source.is_android_or_java() {
        (ANDROID_LEADING.as_slice(), ANDROID_ADDING.as_slice())
    } else if is_lldbs(report) {
        // What LLDB says of a stop are the codes of Apple's kernel.
        (LEADING.as_slice(), RUNTIMES_ADDING.as_slice())
    } else if report.source.is_runtimes() {
        (RUNTIMES_LEADING.as_slice(), RUNTIMES_ADDING.as_slice())
    } else {
        (LEADING.as_slice(), ADDING.as_slice())
    };
    let lead = leading.iter().find(|rule| (rule.apply)(&facts, &mut draft));
    for rule in adding {
        (rule.apply)(&facts, &mut draft);
    }
    let mut explanation = Explanation { rule: lead.map_or("", |rule| rule.id), ..draft.finish() };
    // Where it happened stands at the head of every output.
    if let Some(blamed) = blamed::blamed(report) {
        let cited = crate::names::cite(report, &blamed.stack, blamed.frame);
        explanation.evidence.retain(|line| *line != cited);
    }
    explanation
}
