//! What the codes of Windows' exceptions and statuses mean, and what modules tell besides.

/// A code, the title, what it means, the likeliest causes, what to do.
pub(in crate::explain) type Code =
    (u32, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const DUMP: &str = "Get a minidump (Windows Error Reporting's LocalDumps, or `procdump -e`): it has the stack, which an event has not.";
const NET: &str =
    "Look at the event 1026 of the source .NET Runtime at the same time: it has the exception and its stack.";
const LOG: &str = "Look at what the program wrote to its log or standard error right before: the message is there, not in the event.";

/// Codes by the documentation of NTSTATUS values (MS-ERREF 2.3.1), `winnt.h`, and of the runtimes that raise their own.
pub(in crate::explain) static CODES: [Code; 39] = [
    (
        0x8013_1506,
        "Internal error of .NET's runtime",
        "The runtime found its own data damaged, or met a fault in its own code, and ended the program.",
        &[
            "Native code in the process (P/Invoke, a COM component, a profiler, unsafe code) that overwrote memory.",
            "An error of the runtime, in its garbage collector or compiler.",
        ],
        &["Try the newest patch of the runtime; then look at what native code the process has loaded.", DUMP],
    ),
    (
        0x8013_1623,
        "The program asked for its end (FailFast)",
        "Code called Environment.FailFast, since it found itself in a state that it cannot go on from.",
        &[],
        &[NET],
    ),
    (
        0xc000_0005,
        "Access violation",
        "The code read, wrote or jumped to memory that it may not use that way. The event does not tell which address it was.",
        &[
            "A null pointer, or one to memory that was freed or never set.",
            "Memory that other code overwrote.",
        ],
        &[DUMP],
    ),
    (
        0xc000_0006,
        "A page could not be read from its file",
        "A part of the program, a library or a file that it had mapped could not be read when it was needed.",
        &[
            "The file lies on a network share, a removable or a cloud drive that was gone for a while.",
            "The disk fails.",
        ],
        &[
            "Look at the event log for errors of the disk at the same time; run the program from a local disk.",
        ],
    ),
    (
        0xc000_0008,
        "Invalid handle",
        "The code closed or used a handle that is none.",
        &["A handle that was closed twice, or used after it was closed."],
        &["Run with Application Verifier's Handles check: it stops at the first wrong use."],
    ),
    (
        0xc000_0017,
        "Out of memory",
        "Windows could not give the program the memory that it asked for.",
        &["The program's address space or the page file was used up."],
        &["Look at how much memory the process used; a 32-bit program has 2 to 4 GB."],
    ),
    (
        0xc000_001d,
        "Illegal instruction",
        "The processor met an instruction that it does not know.",
        &[
            "The program was built for a newer processor (AVX, AVX2, SSE4) than it ran on.",
            "The compiler put a trap where the code cannot be reached, or a jump went to data.",
        ],
        &["Compare what the processor supports with what the program was built for."],
    ),
    (
        0xc000_0025,
        "An exception that cannot be continued was continued",
        "A handler told Windows to go on after an exception after which nothing can go on.",
        &["A handler of structured exceptions that answers EXCEPTION_CONTINUE_EXECUTION for everything."],
        &[DUMP],
    ),
    (
        0xc000_007b,
        "A library is of the wrong kind",
        "A library could not be loaded since it is for another processor, or damaged.",
        &["A 32-bit library in a 64-bit program, or the other way round."],
        &[
            "List the libraries that are loaded (Process Monitor, `dumpbin /dependents`), and compare their processors.",
        ],
    ),
    (
        0xc000_008c,
        "Array index out of bounds",
        "An index was outside of an array that is checked.",
        &["An index that is not checked."],
        &[DUMP],
    ),
    (
        0xc000_008e,
        "Floating-point division by zero",
        "A calculation divided by zero, with floating-point exceptions switched on.",
        &["Code that switches these exceptions on, of another library (Delphi does by default)."],
        &[DUMP],
    ),
    (
        0xc000_0090,
        "Invalid floating-point operation",
        "A calculation had no result, with floating-point exceptions switched on.",
        &["Code that switches these exceptions on, of another library (Delphi does by default)."],
        &[DUMP],
    ),
    (
        0xc000_0094,
        "Integer division by zero",
        "An integer was divided by zero.",
        &["A divisor that is not checked: a count, a size or a time of 0."],
        &[DUMP],
    ),
    (
        0xc000_0095,
        "Integer overflow in a division",
        "The result of an integer division does not fit: the smallest number divided by -1, or a quotient too large.",
        &["A divisor that is not checked."],
        &[DUMP],
    ),
    (
        0xc000_0096,
        "Privileged instruction",
        "The code met an instruction that only the kernel may run.",
        &["A jump into data or into overwritten code."],
        &[DUMP],
    ),
    (
        0xc000_00fd,
        "Stack overflow",
        "A thread used up its stack.",
        &[
            "A recursion without an end.",
            "Very large local variables; data that is nested deeper than expected.",
        ],
        &["Look for functions that call each other without an end.", DUMP],
    ),
    (
        0xc000_0135,
        "A library is missing",
        "The program could not start, since a library that it needs was not found.",
        &["A redistributable that is not installed (Visual C++, .NET), or a library that was not shipped."],
        &["`dumpbin /dependents` or Dependencies lists what is needed and not there."],
    ),
    (
        0xc000_0138,
        "A library lacks a function",
        "A library that the program needs is there, but does not have a function (by its number).",
        &["An older or newer version of the library was found first."],
        &["Look at which file of that name was loaded, and at its version."],
    ),
    (
        0xc000_0139,
        "A library lacks a function",
        "A library that the program needs is there, but does not have a function.",
        &["An older or newer version of the library was found first.", "The program needs a newer Windows."],
        &["Look at which file of that name was loaded, and at its version."],
    ),
    (
        0xc000_013a,
        "Ended by Ctrl+C",
        "Somebody ended the program with Ctrl+C, or closed its console.",
        &[],
        &[],
    ),
    (
        0xc000_0142,
        "A library failed to initialise",
        "The program could not start, since the initialisation of a library failed.",
        &[
            "The session was ending, or had no more room for windows (desktop heap).",
            "A library that another program put into this one.",
        ],
        &[
            "Look at whether it happens while the user logs off; else which library it was (loader snaps, `gflags +sls`).",
        ],
    ),
    (
        0xc000_0194,
        "Possible deadlock",
        "A critical section was not free within the time that was set.",
        &["Threads that wait for each other."],
        &["Look at who owns the critical section, in a dump with all threads."],
    ),
    (
        0xc000_027b,
        "Exception of the Windows Runtime that nobody caught",
        "An exception was kept (\"stowed\") while it passed through the Windows Runtime, and ended the app when nobody had handled it: UWP, WinUI and Windows' own apps end so.",
        &["An exception in the app's code or XAML, which the Windows Runtime handed on."],
        &[
            "Get a dump; `!pde.dse` of WinDbg prints the stowed exception with its stack, which is not the stack of the crash.",
            "Handle `Application.UnhandledException` and log it.",
        ],
    ),
    (
        0xc000_0374,
        "Heap corruption",
        "Windows found the heap damaged. The code that damaged it ran earlier: neither module nor offset tells it.",
        &[
            "A write beyond the end of a block, or to a block that was freed.",
            "A block that was freed twice, or by another heap than it came from (two C runtimes).",
        ],
        &[
            "Run with page heap (`gflags /p /enable PROGRAM /full`) or AddressSanitizer: they stop at the write.",
        ],
    ),
    (
        0xc000_0409,
        "The program ended itself at once (fast fail)",
        "Code ended the process by `__fastfail`. The code's name, an overrun of a buffer on the stack, is only the oldest of its reasons.",
        &[
            "abort(), std::terminate, a failed check of the C++ library or of a framework.",
            "A stack cookie or control flow guard that found memory overwritten.",
        ],
        &[
            "The first parameter of the exception tells the reason: a dump has it, the event 1001 of Windows Error Reporting as its last value (P9 or P10).",
            LOG,
        ],
    ),
    (
        0xc000_0417,
        "Invalid parameter of a C function",
        "A function of the C library was called with an argument that it refuses (a null pointer, a format, a buffer that is too small), and no handler was set.",
        &[
            "An argument that is not checked, often a buffer too small for `strcpy_s` and its like, or a wrong format.",
        ],
        &[DUMP],
    ),
    (
        0xc000_041d,
        "Exception in a callback",
        "An exception happened in a function that Windows had called back (a window procedure, a timer), and nobody caught it.",
        &[
            "An access violation or C++ exception in code that handles a message; the event of it is often right before.",
        ],
        &["Look for an event of the same process with another code right before.", DUMP],
    ),
    (
        0xc000_0420,
        "Assertion failed",
        "A check in the code failed.",
        &["A condition that the code takes for granted did not hold."],
        &[LOG],
    ),
    (
        0xc000_0602,
        "The program ended itself at once",
        "Code raised a fail-fast exception (RaiseFailFastException): it found itself in a state that it cannot go on from.",
        &["A failed check of the program or its framework."],
        &[LOG, DUMP],
    ),
    (
        0x8000_0001,
        "Guard page",
        "The code touched a page that is guarded.",
        &["Very large local variables, or a pointer beyond the end of a stack."],
        &[DUMP],
    ),
    (
        0x8000_0002,
        "Misaligned access",
        "The code accessed memory at an address that is not aligned as the instruction needs it.",
        &["A pointer to packed or cast data."],
        &[DUMP],
    ),
    (
        0x8000_0003,
        "The code stopped itself at a breakpoint",
        "The code ran into a breakpoint instruction, and no debugger was there.",
        &[
            "A failed check that stops so (CHECK of Chromium, V8 and Electron, `__debugbreak`, an assertion).",
            "Chromium: out of memory, in older versions.",
        ],
        &[LOG],
    ),
    (
        0x4000_0015,
        "The program called abort()",
        "The C library ended the program: abort(), an assertion, or a C++ exception that nobody caught.",
        &["A C++ exception that no caller handles; an assertion; a pure virtual call."],
        &[LOG, DUMP],
    ),
    (
        0xe043_4352,
        ".NET exception that nobody caught",
        "The program threw an exception of .NET that nothing handled. The module KERNELBASE.dll is only what raises it.",
        &[],
        &[NET],
    ),
    (
        0xe043_4f4d,
        ".NET exception that nobody caught",
        "The program threw an exception of .NET (up to 3.5) that nothing handled. The module kernel32.dll is only what raises it.",
        &[],
        &[NET],
    ),
    (
        0xe06d_7363,
        "C++ exception that nobody caught",
        "The program threw a C++ exception that nothing handled. The module KERNELBASE.dll is only what raises it; the event does not tell the exception's type.",
        &["An exception that no caller handles, or that left a noexcept function, a thread or a callback."],
        &[DUMP, LOG],
    ),
    (
        0xe000_0008,
        "Chromium ran out of memory",
        "Chromium (also in Electron, CEF and WebView2) ended a process that got no more memory.",
        &["A page or script that uses too much memory, or a machine without free memory or page file."],
        &["Look at the memory of the process over time, and at the page file's size."],
    ),
    (
        0xc06d_007e,
        "A library was not found when it was first used",
        "A library that is loaded late was not found.",
        &["A library that was not shipped or not installed, or one that it needs."],
        &["Look at which libraries the module loads late (`dumpbin /imports`)."],
    ),
    (
        0xc06d_007f,
        "A library lacks a function",
        "A library that is loaded late does not have a function.",
        &["An older or newer version of the library was found first."],
        &["Look at which file of that name was loaded, and at its version."],
    ),
];

/// Reasons of `__fastfail`, by `winnt.h` (FAST_FAIL_…): what it was.
pub(in crate::explain) static FAST_FAILS: [(u64, &str, &str); 13] = [
    (
        0,
        "an overrun of a buffer on the stack",
        "A write beyond a local array damaged the stack: the cookie behind it had changed (/GS, older way).",
    ),
    (
        1,
        "a damaged table of virtual functions",
        "An object's table of virtual functions was none: the object was freed, overwritten or cast wrongly.",
    ),
    (
        2,
        "an overrun of a buffer on the stack",
        "A write beyond a local array damaged the stack: the cookie behind it had changed (/GS).",
    ),
    (
        3,
        "a damaged list",
        "The links of a list contradicted each other: an element was freed or removed twice, or overwritten.",
    ),
    (4, "an incorrect stack", "The stack pointer was outside of the thread's stack."),
    (5, "an invalid argument", "A function that checks its arguments refused one."),
    (
        7,
        "abort()",
        "The program gave up itself: abort(), std::terminate, an uncaught C++ exception, a panic, qFatal. No buffer was overrun.",
    ),
    (8, "an index out of range", "A check of a range failed."),
    (
        10,
        "a call that control flow guard refused",
        "A call went through a pointer that is no function's: a table or callback was overwritten, or its object freed.",
    ),
    (
        14,
        "a wrong reference count",
        "A reference count would have gone below zero or over its limit: an object was released too often.",
    ),
    (18, "a damaged jump buffer", "longjmp was given a buffer that is none."),
    (
        50,
        "a damaged heap",
        "Windows found the heap's own data damaged. The code that damaged it ran earlier.",
    ),
    (
        57,
        "a return address that was changed",
        "A return went to another address than its call came from (shadow stack): the stack was overwritten.",
    ),
];

/// Modules that belong to a driver or another program's code inside of this one: a beginning of their names, in lower case.
pub(in crate::explain) static MODULES: [(&str, &str); 22] = [
    ("nvoglv", "NVIDIA's OpenGL driver"),
    ("nvwgf2um", "NVIDIA's Direct3D driver"),
    ("nvd3dum", "NVIDIA's Direct3D driver"),
    ("nvlddmkm", "NVIDIA's driver"),
    ("nvcuda", "NVIDIA's CUDA driver"),
    ("atio6axx", "AMD's OpenGL driver"),
    ("atioglxx", "AMD's OpenGL driver"),
    ("atidxx", "AMD's Direct3D driver"),
    ("amdxx", "AMD's Direct3D driver"),
    ("amdxc", "AMD's Direct3D driver"),
    ("amdvlk", "AMD's Vulkan driver"),
    ("ig4icd", "Intel's OpenGL driver"),
    ("ig7icd", "Intel's OpenGL driver"),
    ("ig8icd", "Intel's OpenGL driver"),
    ("ig9icd", "Intel's OpenGL driver"),
    ("ig75icd", "Intel's OpenGL driver"),
    ("igxelpicd", "Intel's OpenGL driver"),
    ("igd10", "Intel's Direct3D driver"),
    ("igd12", "Intel's Direct3D driver"),
    ("igc64", "Intel's shader compiler"),
    ("rtsshooks", "RivaTuner's overlay"),
    ("gameoverlayrenderer", "Steam's overlay"),
];
