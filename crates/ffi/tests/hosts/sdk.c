/* An app with two SDKs, each with a copy of the library of its own, and a crash reporter of the app:
 * LIBRARY-A LIBRARY-B DIRECTORY-A DIRECTORY-B FILE-OF-THE-APP KIND ORDER. */
#include "backtrail.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IN(SECTION) __attribute__((noinline, section(SECTION)))

extern const char __start_text_a[], __stop_text_a[], __start_text_b[], __stop_text_b[];

static int *volatile nowhere = (int *)0x18;
static const char *file;

IN("text_app") static void app(void)
{
    *nowhere = 1;
    __asm__ volatile("");
}

IN("text_a") static void a(void (*callback)(void))
{
    if (callback)
        callback();
    *nowhere = 1;
    __asm__ volatile("");
}

IN("text_b") static void b(void)
{
    *nowhere = 1;
    __asm__ volatile("");
}

static void report(int number, siginfo_t *info, void *context)
{
    int out = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)context;
    if (info->si_addr == (void *)0x18)
        (void)!write(out, "x", 1);
    close(out);
    signal(number, SIG_DFL);
}

static void install_app(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = report;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
}

static uint32_t not_abort(const backtrail_crash_seen *crash)
{
    return crash->size >= sizeof *crash && crash->signal != SIGABRT && crash->frame_count > 1 && crash->frames[0] != 0;
}

static void install(const char *library, const char *directory, const char *start, const char *end)
{
    backtrail_crash_code code = {(uint64_t)start, (uint64_t)end}, image;
    backtrail_crash_options options;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int32_t (*of)(const void *, backtrail_crash_code *);
    int32_t (*call)(const backtrail_crash_options *);
    if (!handle)
        exit(3);
    *(void **)&of = dlsym(handle, "backtrail_crash_image_of");
    *(void **)&call = dlsym(handle, "backtrail_crash_install");
    if (of((const void *)start, &image) != BACKTRAIL_OK || image.start > code.start || image.end < code.end)
        exit(4);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.directory = directory;
    options.own_code = &code;
    options.own_code_count = 1;
    options.filter = not_abort;
    if (call(&options) != BACKTRAIL_OK)
        exit(5);
}

int main(int count, char **arguments)
{
    if (count < 8)
        return 2;
    file = arguments[5];
    if (!strcmp(arguments[7], "first"))
        install_app();
    install(arguments[1], arguments[3], __start_text_a, __stop_text_a);
    install(arguments[2], arguments[4], __start_text_b, __stop_text_b);
    if (!strcmp(arguments[7], "last"))
        install_app();
    switch (arguments[6][0]) {
    case 'a':
        a(NULL);
        break;
    case 'b':
        b();
        break;
    case 'c':
        a(app);
        break;
    default:
        app();
    }
    return 1;
}
