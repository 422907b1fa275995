//! Messages of sanitizers and checkers, and of the system about a process that ends itself.

use super::{Hint, hint};

const FREED: &str = "Look at the stacks of the message: where it was used, where freed, where allocated.";

/// Messages of sanitizers and of Xcode's checkers. The text is where the title begins.
///
/// Sources: compiler-rt's `asan_errors.h`, `ubsan_diag.cpp`, `tsan_report.cpp`; Xcode's documentation of its checkers.
pub(crate) static SANITIZERS: [Hint; 15] = [
    hint(
        "AddressSanitizer: heap-use-after-free",
        "Memory was used after it had been freed.",
        &["A pointer or unowned reference that outlives its memory."],
        &[FREED],
    ),
    hint(
        "AddressSanitizer: heap-buffer-overflow",
        "Memory beyond the end of a block was accessed.",
        &["An index or length that is not checked against the block's size."],
        &["Look at the stacks of the message: where it was accessed, where the block was allocated."],
    ),
    hint(
        "AddressSanitizer: stack-buffer-overflow",
        "Memory beyond the end of a local variable was accessed.",
        &["An index or length that is not checked against the array's size."],
        &["The message names the variable."],
    ),
    hint(
        "AddressSanitizer: stack-use-after-",
        "A local variable was used after its function or block had ended.",
        &["A pointer to a local variable that was kept."],
        &["The message names the variable."],
    ),
    hint(
        "AddressSanitizer: global-buffer-overflow",
        "Memory beyond the end of a global variable was accessed.",
        &["An index or length that is not checked against the array's size."],
        &["The message names the variable."],
    ),
    hint(
        "AddressSanitizer: attempting double-free",
        "Memory was freed twice.",
        &["Two owners free the same block."],
        &[FREED],
    ),
    hint(
        "AddressSanitizer: stack-overflow",
        "A thread used up its stack.",
        &["A recursion without an end, or very large arrays on the stack."],
        &["Look at the frames that repeat."],
    ),
    hint(
        "AddressSanitizer: ",
        "Address Sanitizer found a wrong use of memory and stopped the process.",
        &["The message names the kind of mistake."],
        &["Read the message: it has the stacks."],
    ),
    hint(
        "ThreadSanitizer: data race",
        "Two threads accessed the same memory at once, and one of them wrote.",
        &["A variable that is shared without a lock or queue."],
        &["The message has both stacks: give the variable one queue, actor or lock."],
    ),
    hint(
        "ThreadSanitizer: ",
        "Thread Sanitizer found a mistake between threads and stopped the process.",
        &["The message names the kind of mistake."],
        &["Read the message: it has the stacks."],
    ),
    hint(
        "UndefinedBehaviorSanitizer: ",
        "Undefined Behavior Sanitizer found code whose behavior C does not define.",
        &["The message names the kind of mistake."],
        &["Read the message: it has file and line."],
    ),
    hint(
        "runtime error: ",
        "Undefined Behavior Sanitizer found code whose behavior C does not define.",
        &["The message names the kind of mistake."],
        &["Look at the file and line that the message names."],
    ),
    hint(
        "This application is modifying the autolayout engine from a background thread",
        "Auto layout was used off the main thread, which it checks for. It wrote down where, and the process went on: what that damages shows later, if at all.",
        &["A completion handler that touches views, labels or constraints on a background queue."],
        &[
            "Send the work on the interface to the main queue: the innermost frame of the app on the stack is where.",
        ],
    ),
    hint(
        "Main Thread Checker: ",
        "The interface was used off the main thread.",
        &["A completion handler that touches views on a background queue."],
        &["Call the method that the message names on the main thread."],
    ),
    hint(
        "GuardMalloc[",
        "Guard Malloc found a wrong use of memory.",
        &["An access beyond the end of a block, or after it was freed."],
        &["Look at the access in the named function."],
    ),
];

/// What the system writes down about a process that it lets end itself by abort().
pub(crate) static ENDS: [Hint; 4] = [
    // `__stack_chk_fail` of Apple's Libc (`secure/stack_protector.c`).
    hint(
        "stack buffer overflow",
        "A function wrote beyond an array of its own on the stack; the stack protector noticed when it returned.",
        &["A copy or a loop that writes more than the array holds, in the function that returned."],
        &[
            "Look at the arrays of the function above __stack_chk_fail; run with Address Sanitizer, which stops at the write.",
        ],
    ),
    hint(
        "crashed on child side of fork pre-exec",
        "The process was a child that fork() had made of a process with several threads, and used a library before it called exec. Only one thread lives on in such a child, so that locks of the others stay taken for ever.",
        &["fork() in a process that uses frameworks, Objective-C, Swift or libdispatch."],
        &["Use posix_spawn, or call nothing between fork and exec but what is safe in a signal handler."],
    ),
    hint(
        "multi-threaded process forked",
        "The process is a child that fork() made of a process with several threads.",
        &["fork() without exec in a process that uses frameworks."],
        &["Use posix_spawn instead of fork."],
    ),
    hint(
        "MTLDebug",
        "Metal's validation found a wrong call and stopped the process.",
        &["A call that the Metal API does not allow; the message names it."],
        &["Correct the call that the message names."],
    ),
];
