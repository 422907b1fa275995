//! What sanitizers, runtimes and Linux's kernel name, and what it means.

/// What a mistake means that a sanitizer names: a beginning of its name, its meaning, the likeliest cause, where to look.
pub(in crate::explain) type Finding = (&'static str, &'static str, &'static str, &'static str);

const USED_FREED: &str =
    "Compare the three stacks: where it was used, where it was freed, where it was allocated.";
const BOTH: &str =
    "Compare both accesses and what protects them: one lock, or atomic operations, for all of them.";
const ALLOCATED: &str = "Compare the stack of the access with the one of the allocation and its size.";

pub(in crate::explain) static FINDINGS: [Finding; 63] = [
    (
        "Invalid read of freed memory",
        "Memory of the heap was read after it had been freed.",
        "A pointer or reference that outlives what it points to.",
        USED_FREED,
    ),
    (
        "Invalid write of freed memory",
        "Memory of the heap was written after it had been freed.",
        "A pointer or reference that outlives what it points to.",
        USED_FREED,
    ),
    (
        "Invalid read behind a block",
        "Memory behind the end of a block of the heap was read.",
        "An index or length that is not checked against the block's size.",
        ALLOCATED,
    ),
    (
        "Invalid write behind a block",
        "Memory behind the end of a block of the heap was written.",
        "An index or length that is not checked against the block's size.",
        ALLOCATED,
    ),
    (
        "Invalid read",
        "Memory was read that the program may not read.",
        "A pointer that was never set, was overwritten or points outside of its block.",
        "Look at the address, and at the pointer that the innermost function uses.",
    ),
    (
        "Invalid write",
        "Memory was written that the program may not write.",
        "A pointer that was never set, was overwritten or points outside of its block.",
        "Look at the address, and at the pointer that the innermost function uses.",
    ),
    (
        "Invalid free() / delete",
        "Memory was freed that is not an allocated block: freed already, or never allocated.",
        "Two owners free the same block.",
        USED_FREED,
    ),
    (
        "Mismatched free() / delete",
        "A block was freed by another function than the one that belongs to its allocation.",
        "malloc with delete, new[] with delete, or the like.",
        "Use the pair that belongs together.",
    ),
    (
        "Conditional jump or move depends on uninitialised value",
        "The program decided by a value that was never set.",
        "A variable or a member that not every way sets before it is read.",
        "`--track-origins=yes` tells where the memory came from.",
    ),
    (
        "Use of uninitialised value",
        "The program used a value that was never set.",
        "A variable or a member that not every way sets before it is read.",
        "`--track-origins=yes` tells where the memory came from.",
    ),
    (
        "Syscall param",
        "Memory that was never set, or that may not be used, was handed to the system.",
        "A structure or buffer that is not filled before it is written or sent.",
        "Look at the buffer that the call is given, and at who fills it.",
    ),
    (
        "Source and destination overlap",
        "The ranges of a copy overlap, which the function does not allow.",
        "Source and target lie in one buffer.",
        "Use memmove.",
    ),
    (
        "Possible data race",
        "Two threads accessed the same memory without a common lock, at least one of them to write.",
        "A member that is shared without a lock.",
        BOTH,
    ),
    (
        "definitely lost",
        "Memory was allocated and never freed, and nothing points to it any more.",
        "The only pointer to the block was overwritten or went out of scope.",
        "Look at what keeps the block behind the allocation that is named.",
    ),
    (
        "possibly lost",
        "Memory was allocated and never freed; only pointers into its middle are left.",
        "A block whose first byte nothing points to any more.",
        "Look at what keeps the block behind the allocation that is named.",
    ),
    (
        "Process terminating",
        "A signal ended the program while Valgrind watched it.",
        "What Valgrind reported before, as a rule.",
        "Look at the first error of the log.",
    ),
    (
        "Use After Free",
        "Memory of the heap was used after it had been freed.",
        "A pointer or reference that outlives what it points to.",
        USED_FREED,
    ),
    ("Double Free", "A block was freed twice.", "Two owners free the same block.", USED_FREED),
    (
        "Invalid (Wild) Free",
        "An address was freed that no allocation gave.",
        "A pointer into a block, to a local variable or to a global one.",
        "Look at where the pointer comes from.",
    ),
    (
        "Buffer Overflow",
        "Memory behind the end of a block of the heap was accessed.",
        "An index or length that is not checked against the block's size.",
        ALLOCATED,
    ),
    (
        "Buffer Underflow",
        "Memory before the start of a block of the heap was accessed.",
        "A negative index.",
        ALLOCATED,
    ),
    (
        "heap-use-after-free",
        "Memory of the heap was used after it had been freed.",
        "A pointer or reference that outlives what it points to.",
        USED_FREED,
    ),
    (
        "heap-buffer-overflow",
        "Memory outside of a block of the heap was accessed.",
        "An index or length that is not checked against the block's size.",
        ALLOCATED,
    ),
    (
        "container-overflow",
        "Memory of a container was accessed that holds no element.",
        "An index beyond the container's size, within its capacity.",
        ALLOCATED,
    ),
    (
        "stack-buffer-overflow",
        "Memory outside of a local variable was accessed.",
        "An index or length that is not checked against the array's size.",
        "The report names the variables of that frame.",
    ),
    (
        "stack-buffer-underflow",
        "Memory before a local variable was accessed.",
        "A negative index.",
        "The report names the variables of that frame.",
    ),
    (
        "dynamic-stack-buffer-overflow",
        "Memory outside of an array on the stack was accessed.",
        "An index or length that is not checked against the array's size.",
        "Look at the array whose length is known only when the program runs.",
    ),
    (
        "stack-use-after-return",
        "A local variable was used after its function had returned.",
        "A pointer to a local variable that was kept.",
        "The report names the variable.",
    ),
    (
        "stack-use-after-scope",
        "A local variable was used after its block had ended.",
        "A pointer to a local variable that was kept.",
        "The report names the variable.",
    ),
    (
        "global-buffer-overflow",
        "Memory outside of a global variable was accessed.",
        "An index or length that is not checked against the array's size.",
        "The report names the variable.",
    ),
    (
        "use-after-poison",
        "Memory was used that the program itself had declared not to be used.",
        "An object of an arena or pool that was used after it had been given back.",
        "Look at who declares the memory so.",
    ),
    ("attempting double-free", "A block was freed twice.", "Two owners free the same block.", USED_FREED),
    (
        "attempting free on address which was not malloc()-ed",
        "An address was freed that no allocation gave.",
        "A pointer into a block, to a local variable or to a global one.",
        "Look at where the pointer comes from.",
    ),
    (
        "alloc-dealloc-mismatch",
        "A block was freed by another function than the one that belongs to its allocation.",
        "malloc with delete, new[] with delete, or the like.",
        "Use the pair that belongs together.",
    ),
    (
        "new-delete-type-mismatch",
        "An object was deleted with another size than it was made with.",
        "A class without a virtual destructor is deleted through its base.",
        "Give the base a virtual destructor.",
    ),
    (
        "memcpy-param-overlap",
        "The ranges of a copy overlap, which memcpy does not allow.",
        "Source and target lie in one buffer.",
        "Use memmove.",
    ),
    (
        "negative-size-param",
        "A function got a negative size.",
        "A difference of lengths that went below zero.",
        "Look at how the size is computed.",
    ),
    (
        "allocation-size-too-big",
        "An allocation of a size was asked for that no program can have.",
        "A length taken from input without a limit, or a negative one.",
        "Look at how the size is computed.",
    ),
    (
        "out-of-memory",
        "The program asked for more memory than it may have.",
        "A length taken from input without a limit.",
        "Look at the size that was asked for.",
    ),
    (
        "stack-overflow",
        "A thread used up its stack.",
        "A recursion without an end, or very large local variables.",
        "Look at the frames that repeat.",
    ),
    (
        "odr-violation",
        "Two global variables have the same name.",
        "A library is linked in twice, or two definitions differ.",
        "The report names both.",
    ),
    (
        "SEGV",
        "The program accessed memory that is not there, or in a way that is not allowed.",
        "A pointer that is null, was never set, or outlived its memory.",
        "Look at the pointers of the named line; where the address is no small number, look who freed or overwrote what they point to.",
    ),
    (
        "BUS",
        "The program accessed memory in a way that the processor cannot.",
        "A misaligned address, or a file that was cut while it was mapped.",
        "Look at the address.",
    ),
    ("FPE", "An arithmetic operation has no result.", "A division by zero.", "Look at the divisor."),
    (
        "ILL",
        "The processor met an instruction that it does not know.",
        "A trap that the compiler put where code must not be reached, or a wild jump.",
        "Look at the frame that it happened in.",
    ),
    (
        "ABRT",
        "The program ended itself.",
        "An assertion or a check that failed.",
        "Look at what the program printed before.",
    ),
    (
        "tag-mismatch",
        "Memory was accessed through a pointer that does not belong to it.",
        "Memory that was freed, or a neighbor's.",
        USED_FREED,
    ),
    (
        "use-of-uninitialized-value",
        "The program decided by a value that nobody had set.",
        "A variable or member that is not set on every way.",
        "The origins say where the memory was made.",
    ),
    (
        "data race",
        "Two threads accessed the same memory at once, at least one of them to write.",
        "A variable that is shared without a lock.",
        BOTH,
    ),
    (
        "heap-use-after-free (virtual call vs free)",
        "Memory was used on one thread while another freed it.",
        "An object that is shared without shared ownership.",
        BOTH,
    ),
    (
        "lock-order-inversion",
        "Locks are taken in different orders on different threads, which can end in a deadlock.",
        "Two functions that each take the other's lock.",
        "Take the locks in one order everywhere.",
    ),
    (
        "thread leak",
        "A thread ended and nobody asked for its result.",
        "A thread that is neither joined nor detached.",
        "Look at where the thread was made.",
    ),
    (
        "destroy of a locked mutex",
        "A mutex was destroyed while it was locked.",
        "An object that ends while another thread is in it.",
        BOTH,
    ),
    (
        "signal-unsafe call",
        "A signal handler called a function that is not safe there.",
        "malloc or a lock in a signal handler.",
        "Only set a flag in the handler.",
    ),
    (
        "detected memory leaks",
        "The program ended and had not freed memory that nothing points to anymore.",
        "An owner that forgets to free, or a cycle of references.",
        "Begin with the direct leaks: the indirect ones are what they hold.",
    ),
    (
        "timeout",
        "One input took longer than the fuzzer allows.",
        "A loop that does not end, or work that grows faster than the input.",
        "Look at the loop on the stack.",
    ),
    (
        "deadly signal",
        "The program died of a signal while it was fuzzed.",
        "A check that failed, or a fault that no sanitizer caught.",
        "Look at what was printed before.",
    ),
    (
        "fuzz target exited",
        "The program ended itself while it was fuzzed.",
        "exit() in the code under test.",
        "Look at who called exit.",
    ),
    (
        "signed integer overflow",
        "The result of signed arithmetic does not fit, which C does not define.",
        "Values that were not checked.",
        "Check before, or use a wider or an unsigned type.",
    ),
    (
        "index ",
        "An index lies outside of its array.",
        "An index that is not checked.",
        "Check the index against the array's size.",
    ),
    (
        "member access within null pointer",
        "A member of a null pointer was accessed.",
        "A pointer that was not checked, or never set.",
        "Look at where the pointer comes from.",
    ),
    (
        "load of misaligned address",
        "A value was read at an address that its type does not allow.",
        "A pointer that was cast from bytes.",
        "Copy the bytes with memcpy.",
    ),
    (
        "shift exponent",
        "A value was shifted by more bits than its type has, or by a negative number.",
        "A distance that was not checked.",
        "Check the distance.",
    ),
];

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
