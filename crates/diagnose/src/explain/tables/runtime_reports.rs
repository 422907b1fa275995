//! What runtimes and Linux's kernel name, and what it means.

/// Kinds of the kernel's errors: meaning, where to look.
pub(in crate::explain) static KERNEL: [(&str, &str, &str); 23] = [
    (
        "kernel panic",
        "The kernel stopped the machine, since it could not go on.",
        "Look at the first message before the panic: it often is the cause.",
    ),
    (
        "null pointer dereference",
        "The kernel accessed memory near address 0.",
        "Look at the pointer that the innermost function uses.",
    ),
    (
        "page fault",
        "The kernel accessed an address that is not there, or not to be accessed so.",
        "Look at the address, and at the pointer that the innermost function uses.",
    ),
    (
        "general protection fault",
        "The processor refused what the kernel's code did: mostly an address that no memory can have; else an operand that is not aligned as its instruction demands, or an instruction that is not allowed there.",
        "Look at the registers for an address that is none: a pattern like 6b6b6b6b is memory that was freed, other values were never pointers.",
    ),
    (
        "failed check of ZFS",
        "A check of ZFS's own failed, and the task that made it was stopped for ever: what waits for it hangs.",
        "Look at the function that made the check. Where the value comes from the disk the pool may be damaged: `zpool status -v`, and a search for the check among the issues of OpenZFS, before the pool is imported for writing again.",
    ),
    (
        "oops",
        "The kernel met a fault in its own code, and ended the task that ran.",
        "Look at the innermost function; the machine's state may be damaged.",
    ),
    (
        "BUG",
        "A condition that the kernel takes for granted did not hold.",
        "Look at the line that the message names.",
    ),
    (
        "warning",
        "The kernel met what it did not expect, and went on.",
        "Look at the line that the message names.",
    ),
    (
        "soft lockup",
        "A processor ran in the kernel for so long that no other task got its turn.",
        "Look for a loop or a lock on the stack.",
    ),
    (
        "hard lockup",
        "A processor ran with interrupts off for too long.",
        "Look for a loop or a lock on the stack.",
    ),
    (
        "hung task",
        "A task waits in the kernel and cannot be interrupted.",
        "Look at what it waits for: a lock, or storage that does not answer.",
    ),
    (
        "RCU stall",
        "A processor or task kept the kernel from freeing memory for too long.",
        "Look for a loop on the stack of that processor.",
    ),
    (
        "KASAN",
        "The kernel accessed memory that was freed, or lies outside of its block.",
        "Compare the stacks of the access, the allocation and the free.",
    ),
    (
        "KMSAN",
        "The kernel used a value that nobody had set, or gave one to a program.",
        "The stacks say where the memory was made and stored.",
    ),
    (
        "KCSAN",
        "Two processors accessed the same memory at once.",
        "Compare both stacks and what protects them.",
    ),
    (
        "KFENCE",
        "The kernel accessed memory that was freed, or lies outside of its block.",
        "Compare the stacks of the access, the allocation and the free.",
    ),
    (
        "UBSAN",
        "The kernel's code did something that C does not define.",
        "Look at the line that the message names.",
    ),
    (
        "lock order",
        "Locks are taken in different orders, which can end in a deadlock.",
        "The chain says who takes which lock after which.",
    ),
    (
        "lock state",
        "A lock is taken in an interrupt and with interrupts on, which can end in a deadlock.",
        "Turn interrupts off where the lock is taken.",
    ),
    (
        "RCU usage",
        "Data that RCU protects was accessed without its protection.",
        "Look at the line that the message names.",
    ),
    (
        "sleep in atomic context",
        "A function that may sleep was called where the kernel must not.",
        "Look for the lock or the interrupt on the stack.",
    ),
    (
        "memory leak",
        "Memory was allocated and nothing points to it anymore.",
        "The stack says who allocated it.",
    ),
    (
        "scheduling while atomic",
        "A task gave up the processor where the kernel must not.",
        "Look for the lock on the stack.",
    ),
];

/// What Go's runtime says: a part of its words, meaning, where to look.
pub(in crate::explain) static GO: [(&str, &str, &str); 13] = [
    (
        "invalid memory address or nil pointer dereference",
        "A nil pointer was followed.",
        "Look at which pointer of that line may be nil.",
    ),
    ("index out of range", "An index lies outside of its slice, array or text.", "Check the index before."),
    (
        "slice bounds out of range",
        "The bounds of a slice lie outside of what is sliced.",
        "Check the bounds before.",
    ),
    ("integer divide by zero", "A number was divided by zero.", "Check the divisor before."),
    (
        "interface conversion",
        "A value is of another type than it was taken for.",
        "Use the form of the conversion that tells (`v, ok := …`).",
    ),
    ("assignment to entry in nil map", "A map was written to that was never made.", "Make the map first."),
    ("close of closed channel", "A channel was closed twice.", "Let one owner close it."),
    (
        "send on closed channel",
        "Something was sent to a channel that was closed.",
        "Let the sender close it.",
    ),
    (
        "all goroutines are asleep",
        "Every goroutine waits for another: nothing can go on.",
        "Look at what each of them waits for.",
    ),
    (
        "concurrent map",
        "Goroutines used one map at once, at least one of them to write.",
        "Protect the map by a lock, or use sync.Map.",
    ),
    (
        "stack overflow",
        "A goroutine's stack grew beyond its limit.",
        "Look at the functions that repeat: a recursion without an end.",
    ),
    (
        "out of memory",
        "The system gave the program no more memory.",
        "Look at who allocates, and at the limits of the container.",
    ),
    (
        "data race",
        "Two goroutines accessed the same memory at once, at least one of them to write.",
        "Compare both stacks and what protects them.",
    ),
];

/// Well-known exceptions of Python, JavaScript and .NET.
pub(in crate::explain) static EXCEPTIONS: [(&str, &str); 52] = [
    ("NoMethodError", "A method was called that the object does not have; often the object is nil."),
    ("NameError", "A name is used that nothing defines."),
    ("ArgumentError", "A function was called with arguments that it does not take."),
    ("ArgumentCountError", "A function was called with too few arguments."),
    ("FunctionClauseError", "No clause of the function fits the arguments."),
    ("function_clause", "No clause of the function fits the arguments."),
    ("badmatch", "A value does not have the form that the code takes for granted."),
    ("case_clause", "A value fits none of the cases."),
    ("badarg", "A function was called with arguments that it does not take."),
    ("badarith", "Arithmetic with something that is no number, or a division by zero."),
    ("undef", "A function was called that does not exist, or whose module is not loaded."),
    ("noproc", "The process that was to be called is not there."),
    ("timeout", "The process that was called did not answer in time."),
    ("MatchError", "A value does not have the form that the code takes for granted."),
    ("UndefinedFunctionError", "A function was called that does not exist, or whose module is not loaded."),
    ("Not_found", "What was looked for is not there."),
    ("Stack_overflow", "A recursion without an end used up the stack."),
    ("UndefVarError", "A name is used that nothing defines."),
    ("BoundsError", "An index lies outside of its array."),
    ("MethodError", "No method of the function fits the types of the arguments."),
    ("AttributeError", "An object has no attribute of that name; often it is None."),
    ("KeyError", "A dictionary has no such key."),
    ("IndexError", "An index lies outside of its list."),
    ("TypeError", "A value is of a type that does not fit what is done with it."),
    ("ValueError", "A value is of the right type, and not one that the function takes."),
    ("ZeroDivisionError", "A number was divided by zero."),
    ("RecursionError", "Calls nest deeper than the interpreter allows."),
    ("ModuleNotFoundError", "A module is not installed, or not on the path."),
    ("ImportError", "A module could not be imported, or has no such name."),
    ("FileNotFoundError", "A file is not there."),
    // .NET: the documentation of System, System.IO and System.Reflection.
    ("System.IO.FileNotFoundException", "A file is not there."),
    ("System.IO.DirectoryNotFoundException", "A directory is not there."),
    (
        "System.IO.FileLoadException",
        "An assembly was found and could not be loaded: another version, mostly.",
    ),
    ("System.BadImageFormatException", "A file is no assembly, or one for another processor."),
    (
        "System.TypeLoadException",
        "A type is missing from its assembly: a library of another version, or trimmed away.",
    ),
    ("System.MissingMethodException", "A method is missing: a library of another version, or trimmed away."),
    (
        "System.DllNotFoundException",
        "A library in machine code was not found: not shipped for this system, or it needs one that is missing.",
    ),
    (
        "System.EntryPointNotFoundException",
        "A function is missing from a library in machine code: one of another version.",
    ),
    ("PermissionError", "The system did not allow it."),
    ("ConnectionRefusedError", "Nobody listens at the other end."),
    ("MemoryError", "The system gave no more memory."),
    ("ExceptionGroup", "Several exceptions happened in tasks that ran together."),
    ("UnicodeDecodeError", "Bytes are not text in the encoding that they were taken for."),
    ("KeyboardInterrupt", "Somebody interrupted the program."),
    ("ReferenceError", "A name is used that was never declared."),
    ("RangeError", "A value lies outside of what is allowed; of a stack: calls nest too deep."),
    ("SyntaxError", "A text is not code, or not the JSON that it was taken for."),
    (
        "MissingPluginException",
        "No code on the phone's side answers on the channel that the message names: the plugin is not there, or does not have the method.",
    ),
    (
        "PlatformException",
        "A plugin's code on the phone's side answered with an error, whose words the message has.",
    ),
    ("System.NullReferenceException", "A null reference was followed."),
    ("System.IndexOutOfRangeException", "An index lies outside of its array."),
    ("System.OutOfMemoryException", "The system gave no more memory."),
];
