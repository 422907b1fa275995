/* Backtrail: stacks of this process, names for addresses, a monitor for threads that hang, and a crash handler.
 *
 * Linux; macOS and iOS, where nobody has run it yet. C99 or C++11. Link with -lbacktrail (pkg-config: backtrail).
 *
 * ERRORS. Functions that can fail return a status: BACKTRAIL_OK or why not. backtrail_last_error() says it in words, for
 * the calling thread, until its next call that fails.
 *
 * OWNERSHIP. What a function hands out through `out` belongs to the caller, who frees it with the function of its type.
 * Pointers inside of what is handed out (names, frames, stacks of threads) live as long as that. Texts are UTF-8 and end
 * with a zero; those given to the library are copied. Freeing null does nothing.
 *
 * SIZES. A structure that begins with `size` gets sizeof of itself there before the call, so that older programs work with
 * newer libraries and the other way round. The rest of an options structure is zeroed: zero is always the default.
 *
 * THREADS. Every function may be called on any thread. A handle that is const in a signature may be used by several threads
 * at once; one that is not, by one at a time. Nothing may be used while or after it is freed.
 *
 * SIGNALS. Functions marked [signal-safe] may be called in a signal handler: they neither allocate nor lock. No other may.
 *
 * FORK. A child process needs a capturer and a watch of its own. Its crashes leave files of their own.
 */
#ifndef BACKTRAIL_H
#define BACKTRAIL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ABI that this header describes; compare with backtrail_abi_version(). */
#define BACKTRAIL_ABI_VERSION 0

/* Statuses. */
#define BACKTRAIL_OK 0         /* it worked */
#define BACKTRAIL_INVALID 1    /* an argument is wrong */
#define BACKTRAIL_SYSTEM 2     /* the system refused */
#define BACKTRAIL_UNREADABLE 3 /* a file cannot be read, or not for what was asked */
#define BACKTRAIL_GONE 4       /* there is no such thread or row */
#define BACKTRAIL_SILENT 5     /* the thread did not answer: it blocks the signal, or sleeps deep in the kernel */
#define BACKTRAIL_PANIC 6      /* a mistake in the library; nothing was done */
#define BACKTRAIL_ABSENT 7     /* the library was built without this part */

/* The library's ABI. [signal-safe] */
uint32_t backtrail_abi_version(void);
/* The library's version, "0.1.0". Static. [signal-safe] */
const char *backtrail_version(void);
/* Why the last call of this thread failed; empty where none did. Valid until the thread's next call that fails. */
const char *backtrail_last_error(void);
/* Frees a text that a function handed out as `char *`. */
void backtrail_string_free(char *text);

/* ---- Capturing ---- */

typedef struct backtrail_capturer backtrail_capturer;
typedef struct backtrail_stack backtrail_stack;
typedef struct backtrail_threads backtrail_threads;
typedef struct backtrail_names backtrail_names;

#define BACKTRAIL_BY_RULES 0          /* by the images' unwind tables, compiled ahead of time */
#define BACKTRAIL_BY_FRAME_POINTERS 1 /* along the frame pointers: cheapest, for programs that keep them throughout */
#define BACKTRAIL_BY_COPY 2           /* bytes of the stack are copied and walked afterwards */

typedef struct backtrail_capture_options {
    uint32_t size;
    int32_t signal;       /* asks other threads; 0: the highest real-time signal that nothing handles */
    uint32_t timeout_ms;  /* how long a thread is waited for; 0: 200 */
    uint32_t max_frames;  /* of one thread, in backtrail_capture_all; 0: 256 */
    uint32_t method;      /* BACKTRAIL_BY_… */
    uint32_t stack_bytes; /* copied of a stack; 0: 65536 */
} backtrail_capture_options;

/* Reads what unwinding needs of all images, and installs a signal handler that stays. Takes some milliseconds. Options may
 * be null. Free it when no other thread uses it. */
int32_t backtrail_capturer_new(const backtrail_capture_options *options, backtrail_capturer **out);
void backtrail_capturer_free(backtrail_capturer *capturer);
/* Takes note of images that were loaded since. Captures of other threads do so by themselves. */
int32_t backtrail_capturer_refresh(const backtrail_capturer *capturer);

typedef struct backtrail_frame {
    uint64_t address;
    uint64_t stack_pointer;
    uint32_t exact; /* 1: the address is that of an instruction that ran; 0: the one behind a call */
    uint32_t trust; /* how it was found: 1 registers, 2 DWARF, 3 compact unwind, 4 exidx, 5 frame pointer, 6 link register,
                       7 reading the code, 8 scanning the stack,
                       9 the table of a language's runtime */
} backtrail_frame;

/* Room for frames; 0: 256. Null where there is no memory for it. */
backtrail_stack *backtrail_stack_new(size_t max_frames);
void backtrail_stack_free(backtrail_stack *stack);
/* The frames, innermost first; valid until the stack is captured into again. [signal-safe] */
const backtrail_frame *backtrail_stack_frames(const backtrail_stack *stack, size_t *count);
/* The kernel id of the thread whose stack it is, or 0. [signal-safe] */
uint32_t backtrail_stack_thread(const backtrail_stack *stack);
/* 1: the outermost frame is where the thread began. [signal-safe] */
uint32_t backtrail_stack_is_complete(const backtrail_stack *stack);

/* Kernel ids (gettid) of the calling thread and of the process's first. [signal-safe] */
uint32_t backtrail_current_thread(void);
uint32_t backtrail_main_thread(void);

/* The calling thread's stack, from the caller on, without the `skip` innermost frames. Sets no error text. [signal-safe] */
int32_t backtrail_capture_current(const backtrail_capturer *capturer, size_t skip, backtrail_stack *stack);
/* The stack that a signal has interrupted: `context` is the third argument of a handler with SA_SIGINFO, on its thread,
 * before it returns. Sets no error text. [signal-safe] */
int32_t backtrail_capture_interrupted(const backtrail_capturer *capturer, const void *context, backtrail_stack *stack);
/* The stack of any thread of this process, by kernel id. */
int32_t backtrail_capture_thread(const backtrail_capturer *capturer, uint32_t thread, backtrail_stack *stack);

typedef struct backtrail_thread {
    uint32_t size;
    uint32_t id;
    const char *name;
    const char *state;            /* or null */
    const backtrail_stack *stack; /* or null; belongs to the threads */
    const char *problem;          /* why there is no stack, or null */
    double cpu_seconds;           /* on a processor; below zero: not known */
    double cpu_usage;             /* share of one processor since the last backtrail_capture_all; below zero: not known */
    uint32_t is_main;
    uint32_t reserved;
} backtrail_thread;

/* All threads' stacks. */
int32_t backtrail_capture_all(const backtrail_capturer *capturer, backtrail_threads **out);
size_t backtrail_threads_count(const backtrail_threads *threads);
int32_t backtrail_threads_get(const backtrail_threads *threads, size_t index, backtrail_thread *out);
void backtrail_threads_free(backtrail_threads *threads);

/* ---- Names ---- */

typedef struct backtrail_name {
    uint32_t size;
    uint32_t frame; /* position of the frame in its stack; inlined functions share their caller's */
    uint64_t address;
    const char *image;        /* file name of the image, or null */
    const char *name;         /* readable, or null */
    const char *linkage_name; /* the linker's, or null */
    const char *file;         /* source file, or null */
    const char *reason;       /* why there is no name, or null: "no-image", "missing-symbols", "stripped", … */
    uint32_t line;            /* or 0 */
    uint32_t column;          /* or 0 */
    uint64_t offset;          /* bytes from the start of the function or symbol; UINT64_MAX: not known */
    uint32_t inlined;         /* 1: into the function of the next row */
    uint32_t reserved;
} backtrail_name;

/* Names of a stack's frames: a row a function, innermost first, at least one a frame. Opens files, which stay open. */
int32_t backtrail_stack_symbolize(const backtrail_capturer *capturer, const backtrail_stack *stack, backtrail_names **out);
/* Names of one address of this process. `exact` is 0 for return addresses, which are looked up one byte earlier. */
int32_t backtrail_address_symbolize(const backtrail_capturer *capturer, uint64_t address, uint32_t exact, backtrail_names **out);
size_t backtrail_names_count(const backtrail_names *names);
int32_t backtrail_names_get(const backtrail_names *names, size_t index, backtrail_name *out);
void backtrail_names_free(backtrail_names *names);

typedef struct backtrail_binary backtrail_binary;

/* Opens a binary, debug file or symbol table with what belongs to it. `arch` chooses a slice of a fat file ("arm64"), null
 * takes the only one. */
int32_t backtrail_binary_open(const char *path, const char *arch, backtrail_binary **out);
void backtrail_binary_free(backtrail_binary *binary);

#define BACKTRAIL_STATED 0    /* addresses are those that the file states; `base` is ignored */
#define BACKTRAIL_LOADED_AT 1 /* addresses are those of a process that has the image's first byte at `base` */
#define BACKTRAIL_SLID 2      /* addresses are those of a process that has the image `base` bytes higher than stated */

/* What lies at an address. It is taken as it is: lower return addresses by one. */
int32_t backtrail_binary_lookup(const backtrail_binary *binary, uint64_t address, uint32_t placement, uint64_t base, backtrail_names **out);

/* ---- Hangs ---- */

typedef struct backtrail_watch backtrail_watch;
typedef struct backtrail_hang backtrail_hang;

typedef struct backtrail_watch_options {
    uint32_t size;
    uint32_t threshold_ms; /* how late a beat is when the thread hangs; 0: 250 */
    uint32_t interval_ms;  /* between captures of a hanging thread; 0: 10 */
    uint32_t keep;         /* 1: files of hangs that are over stay, completed; 0: they are removed */
    const char *directory;    /* where hangs are written while they last, or null */
    const backtrail_capturer *capturer; /* or null: one of the watch's own */
    uint64_t max_bytes;    /* of one hang's file; 0: 1048576 */
} backtrail_watch_options;

#define BACKTRAIL_HANG_BEGAN 1   /* the thread hangs; `hang` has its first stack */
#define BACKTRAIL_HANG_ENDED 2   /* it got on, ended, or is no longer watched; `hang` has all */
#define BACKTRAIL_HANG_PROBLEM 3 /* something does not work: `problem` says what, `hang` is null */

/* Called on the watching thread. `hang` and `problem` live for the call. Must not throw, nor stop its own watch. */
typedef void (*backtrail_hang_handler)(void *context, uint32_t event, const backtrail_hang *hang, const char *problem);

/* Watches a thread, by kernel id; 0: the calling one. It rests until its first tick. Options and handler may be null.
 * `context` goes to the handler, on another thread. */
int32_t backtrail_watch_start(uint32_t thread, const backtrail_watch_options *options, backtrail_hang_handler handler, void *context, backtrail_watch **out);
/* The thread works, and got on just now: the next tick is expected within the threshold. [signal-safe] */
void backtrail_watch_tick(const backtrail_watch *watch);
/* The thread waits for something to do, for as long as that takes. [signal-safe] */
void backtrail_watch_rest(const backtrail_watch *watch);
/* Stops watching and frees the watch. A hang that lasts ends first, and the handler is called for it. */
void backtrail_watch_stop(backtrail_watch *watch);

typedef struct backtrail_hang_info {
    uint32_t size;
    uint32_t thread;  /* kernel id, or 0 */
    double lasted_ms; /* without a beat, what was not the thread's fault left out */
    double cpu_ms;    /* on a processor; below zero: not known */
    uint32_t activity; /* 0 not known, 1 busy, 2 waiting, 3 starved (wanted a processor), 4 some of each */
    uint32_t ended;    /* 0 not, 1 recovered, 2 the thread ended, 3 no longer watched */
    uint64_t samples;
    uint64_t missed;
} backtrail_hang_info;

int32_t backtrail_hang_info_get(const backtrail_hang *hang, backtrail_hang_info *out);

#define BACKTRAIL_TEXT 0      /* for people */
#define BACKTRAIL_JSON 1      /* one line, schema backtrail-hang/1 */
#define BACKTRAIL_COLLAPSED 2 /* `outermost;…;innermost milliseconds`, for flame graphs */

/* The hang as a text, with names; free it with backtrail_string_free. Opens files: the watch does not look meanwhile. */
int32_t backtrail_hang_format(const backtrail_hang *hang, uint32_t format, char **out);

/* Called for each hang that was still on when its process ended. `hang` is null where the file cannot be read, and
 * `problem` says why. Returns 1 to have the file removed. Must not throw. */
typedef uint32_t (*backtrail_unfinished_handler)(void *context, const char *path, const backtrail_hang *hang, const char *problem);

int32_t backtrail_hang_unfinished(const char *directory, backtrail_unfinished_handler handler, void *context);

/* ---- Crashes: Linux, and macOS and iOS, where nobody has run it; on x86_64 and aarch64. Elsewhere the library does not have these. ---- */

/* Signals that are caught beside those of faults (SEGV, BUS, ILL, FPE, TRAP, ABRT, SYS). */
#define BACKTRAIL_CRASH_QUIT 1           /* SIGQUIT */
#define BACKTRAIL_CRASH_TERMINATE 2      /* SIGTERM */
#define BACKTRAIL_CRASH_PROCESSOR_TIME 4 /* SIGXCPU */

/* Code of this process: from `start` to before `end`. */
typedef struct backtrail_crash_code {
    uint64_t start;
    uint64_t end;
} backtrail_crash_code;

typedef struct backtrail_crash_seen {
    uint32_t size;
    int32_t signal;         /* signal and code by Linux's numbers, on every system */
    int32_t code;           /* si_code */
    uint32_t thread;        /* kernel id of the thread that crashed */
    uint64_t address;       /* of the bad access, or 0 */
    const uint64_t *frames; /* of that thread, innermost first: an instruction, then return addresses, as sdk_range.h wants them */
    uint32_t frame_count;   /* 256 at most */
    uint32_t reserved;
} backtrail_crash_seen;

/* Says whether a crash is kept: 1 or 0. Runs in the midst of the crash: it must not allocate, lock or throw. */
typedef uint32_t (*backtrail_crash_filter)(const backtrail_crash_seen *crash);

typedef struct backtrail_crash_options {
    uint32_t size;
    uint32_t requests;          /* BACKTRAIL_CRASH_…, any number of them, or'ed */
    const char *directory;      /* where crash files are written; made where it is not there. Not null */
    uint32_t stack_bytes;       /* of the stack of the thread that crashed; 0: 65536 */
    uint32_t other_stack_bytes; /* of each other stack; 0: 16384 */
    uint32_t max_threads;       /* beside the one that crashed; 0: 1000 */
    uint32_t max_frames;        /* of one thread; 0: 256 */
    uint32_t patience_ms;       /* how long the thread that crashed waits for the file; 0: 5000 */
    uint32_t own_code_count;    /* for an SDK in somebody's program: only crashes are kept that have a frame in `own_code`; 0: all */
    const backtrail_crash_code *own_code; /* read by the call that installs */
    backtrail_crash_filter filter;        /* or null */
    const char *watcher;        /* path of the program `backtrail`, which is to write the file from outside; or null */
    const char *release;        /* of the program, NAME@VERSION: runs are counted (backtrail_crash_pending_sessions); or null */
} backtrail_crash_options;

/* Installs a handler that leaves a file when a signal ends the process. Once a process, as early as possible: handlers that
 * are installed later come first. It stays. */
int32_t backtrail_crash_install(const backtrail_crash_options *options);
/* The process id of the watcher that the options wanted; 0: there is none, and the process itself writes the file. */
uint32_t backtrail_crash_watcher(void);
/* The image (a library, or the program) that a function lies in: the own code of an SDK that is a library of its own. */
int32_t backtrail_crash_image_of(const void *function, backtrail_crash_code *out);
/* Lists the images anew: after dlopen. */
int32_t backtrail_crash_refresh_images(void);
/* Gives the calling thread a stack for signal handlers until it ends, if it has none: without one an overflow of its stack
 * leaves no file. The thread that installs has one. */
int32_t backtrail_crash_protect_thread(void);
/* Keeps a value for the file, under a key that may have one already: 64 of them, of 64 and 512 bytes, the rest is cut off. */
int32_t backtrail_crash_note(const char *key, const char *value);
/* Keeps a line of what the program does: the file has the last 128. It is cut to 192 bytes, and where it is no UTF-8.
 * [signal-safe] */
void backtrail_crash_breadcrumb(const char *text);

/* Tells which C++ exception is about to end the process: what std::type_info::name() gives, and what() or null. To be called
 * in a terminate handler, as backtrail_crash.hpp does; the file has it if this thread aborts next. [signal-safe] */
void backtrail_crash_exception(const char *type_name, const char *what);

/* Called for each crash file; `path` lives for the call. Must not throw. */
typedef void (*backtrail_crash_file_handler)(void *context, const char *path);

/* Calls the handler with every whole crash file of a directory, oldest first, before it returns. No directory: no files. */
int32_t backtrail_crash_pending(const char *directory, backtrail_crash_file_handler handler, void *context);
/* Calls the handler with the file of every run that is over, oldest first: each is the body of a post that tells a server of it.
 * How a run ended is found by its crash file: to be called before these are removed. */
int32_t backtrail_crash_pending_sessions(const char *directory, backtrail_crash_file_handler handler, void *context);
/* Removes a crash file, or that of a run: it was sent, or is not wanted. One that is gone is no error. */
int32_t backtrail_crash_sent(const char *path);

#define BACKTRAIL_CRASH_BODY 0   /* a file is the body of a POST: backtrail's server, or one of your own. 200 to 299: it is kept */
#define BACKTRAIL_CRASH_SENTRY 1 /* Sentry's envelopes; `url` is a DSN */

/* Where crash files are sent, and how patiently. */
typedef struct backtrail_crash_upload {
    uint32_t size;
    uint32_t protocol;      /* BACKTRAIL_CRASH_BODY or BACKTRAIL_CRASH_SENTRY */
    const char *url;        /* http or https. Not null */
    const char *sessions;   /* where runs are told; null: beside …/api/PROJECT/reports/, with a DSN to the same address, else nowhere */
    uint32_t attempts;      /* how often a file is sent until it is left for the next call; 0: 5 */
    uint32_t first_wait_ms; /* before the second attempt; twice as long before each further one, five minutes at most; 0: 2000 */
    uint32_t timeout_ms;    /* how long to wait for an answer; 0: 30000 */
} backtrail_crash_upload;

/* What became of the files. */
typedef struct backtrail_crash_outcome {
    uint32_t size;
    uint32_t sent;     /* crash files that were taken, and removed */
    uint32_t sessions; /* runs that were told, and whose files were removed */
    uint32_t left;     /* files that are still there */
} backtrail_crash_outcome;

/* Called for each file that is left, with the reason; both live for the call. Must not throw. */
typedef void (*backtrail_crash_left_handler)(void *context, const char *path, const char *reason);

/* Sends the runs that are over and every whole crash file of a directory, oldest first, and removes what the server has taken.
 * Nothing is ever sent but by this call: whether the user agreed is the program's to know. It blocks, and waits where the server is
 * busy or cannot be reached: call it on a thread of its own. `outcome` and `left` may be null. Files that are left are no failure.
 * BACKTRAIL_ABSENT where the library was built without the feature `upload`; nothing is sent then. */
int32_t backtrail_crash_send_pending(const char *directory, const backtrail_crash_upload *upload, backtrail_crash_outcome *outcome,
                                     backtrail_crash_left_handler left, void *context);

#ifdef __cplusplus
}
#endif

#endif
