/* An SDK that tells in its crash handler whether its own code is on the stack. See docs/sdk.md.
 *
 *     cc -c example.c sdk_range.c && ar rcs libmeter.a example.o sdk_range.o
 *     backtrail sdk stamp libmeter.a -n meter --lib-version 1.0 -o libmeter-stamped.a
 *     cc app.c libmeter-stamped.a -o app
 */
#define _GNU_SOURCE
#include "sdk_range.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <ucontext.h>
#endif

SDK_RANGE_STAMP(meter);

enum { MOST_FRAMES = 64 };

static void say(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

/* The stack of what the signal interrupted, by frame pointers: of code that keeps them. */
static size_t walk(uintptr_t pc, uintptr_t frame, uintptr_t *frames)
{
    size_t count = 0;
    frames[count++] = pc;
    while (count < MOST_FRAMES && frame != 0 && frame % sizeof(uintptr_t) == 0) {
        const uintptr_t *record = (const uintptr_t *)frame;
        uintptr_t caller = record[0];
        if (record[1] == 0)
            break;
        frames[count++] = record[1];
        /* A stack grows downwards; whatever is no frame ends the walk. */
        if (caller <= frame || caller - frame > 1 << 20)
            break;
        frame = caller;
    }
    return count;
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)info;
    uintptr_t pc = 0, frame = 0;
    uintptr_t frames[MOST_FRAMES];
#if defined(__linux__) && defined(__x86_64__)
    const ucontext_t *state = (const ucontext_t *)context;
    pc = (uintptr_t)state->uc_mcontext.gregs[REG_RIP];
    frame = (uintptr_t)state->uc_mcontext.gregs[REG_RBP];
#elif defined(__linux__) && defined(__aarch64__)
    const ucontext_t *state = (const ucontext_t *)context;
    pc = (uintptr_t)state->uc_mcontext.pc;
    frame = (uintptr_t)state->uc_mcontext.regs[29];
#else
    (void)context; /* <mach/ucontext.h>: uc_mcontext->__ss */
#endif
    const sdk_range meter = SDK_RANGE_OF_STAMP(meter);
    size_t first = sdk_range_first(&meter, frames, walk(pc, frame, frames));
    say(!sdk_range_is_known(&meter)  ? "not known\n"
        : first == 0                 ? "crashed in the SDK\n"
        : first != SDK_RANGE_NONE    ? "the SDK called\n"
                                     : "not the SDK\n");
    signal(number, SIG_DFL);
    raise(number);
}

void meter_watch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
}

int meter_read(const volatile int *from)
{
    return *from + 1;
}

int meter_call(int (*callback)(void))
{
    return callback() + 1;
}
