/* Kinds of crashes: each a function. None is inlined, so that each crash has the same callers. */
#define _GNU_SOURCE
#include "kinds.h"
#include <assert.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline, noclone))

static const char *the_kind = "";
static const char *the_directory = "";

/* The compiler does not know what is behind these. */
static int *volatile nowhere = (int *)0x18;
static volatile uintptr_t garbage = 0xdeadbeefdeadbee8;

OUT_OF_LINE static void null_pointer(void)
{
    *nowhere = 1;
}

OUT_OF_LINE static void garbage_pointer(void)
{
    *(int *)garbage = 1;
}

OUT_OF_LINE static void failed_assertion(void)
{
    assert(garbage == 17);
}

OUT_OF_LINE static void log_no_object(void)
{
    /* Within the C library, which has the stream's lock. */
    fprintf(stderr, "%s %d\n", (const char *)nowhere, 17);
}

OUT_OF_LINE static void not_executable(void)
{
    static char data[64];
    ((void (*)(void))(uintptr_t)data)();
    garbage++;
}

OUT_OF_LINE static void read_only_page(void)
{
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(volatile char *)page = 1;
}

OUT_OF_LINE static void behind_a_file(void)
{
    int file = memfd_create("empty", 0);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    *(volatile char *)page = 1;
}

OUT_OF_LINE static void freed_twice(void)
{
    char *volatile memory = malloc(40);
    free(memory);
    free(memory);
}

/* A free chunk whose neighbour in the list is nowhere: malloc follows it while it has its lock. */
OUT_OF_LINE static void malloc_locked(void)
{
    void *volatile *volatile chunk = malloc(5000);
    void *volatile *volatile behind = malloc(5000);
    /* Side by side, so that it does not become part of a larger one. */
    while ((uintptr_t)behind - (uintptr_t)chunk > 5100) {
        chunk = behind;
        behind = malloc(5000);
    }
    free((void *)chunk);
    chunk[1] = nowhere;
    behind = malloc(9000);
    free((void *)behind);
}

OUT_OF_LINE static int within_loader(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info, (void)size, (void)data;
    null_pointer();
    return 0;
}

OUT_OF_LINE static void loader_locked(void)
{
    dl_iterate_phdr(within_loader, NULL);
    garbage++;
}

OUT_OF_LINE static void signals_blocked(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    null_pointer();
}

OUT_OF_LINE static int deeper(volatile int depth)
{
    volatile char room[2048];
    room[0] = (char)depth;
    return depth < 0 ? 0 : deeper(depth + 1) + room[0];
}

OUT_OF_LINE static void stack_overflow(void)
{
    garbage += (uintptr_t)deeper(0);
}

OUT_OF_LINE static void *overflow_here(void *unused)
{
    stack_overflow();
    return unused;
}

OUT_OF_LINE static void overflow_in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, overflow_here, NULL);
    pthread_join(thread, NULL);
}

#if defined(__x86_64__)
#define UNDEFINED "ud2"
#define BREAKPOINT "int3"
#define PRIVILEGED "hlt"
#define RETURN_TO_NOWHERE "movq $0x123456, (%%rsp)\n\tret"
#elif defined(__aarch64__)
#define UNDEFINED "udf #0"
#define BREAKPOINT "brk #0"
#define PRIVILEGED "mrs x0, sctlr_el1"
#define RETURN_TO_NOWHERE "mov x30, #0x1234\n\tret"
#endif

OUT_OF_LINE static void undefined_instruction(void)
{
    __asm__ volatile(UNDEFINED);
}

OUT_OF_LINE static void breakpoint(void)
{
    __asm__ volatile(BREAKPOINT);
}

OUT_OF_LINE static void privileged_instruction(void)
{
    __asm__ volatile(PRIVILEGED ::: "memory");
}

OUT_OF_LINE static void return_to_nowhere(void)
{
    __asm__ volatile(RETURN_TO_NOWHERE ::: "memory");
}

OUT_OF_LINE static void divided_by_zero(void)
{
#if defined(__x86_64__)
    __asm__ volatile("xorl %%edx, %%edx\n\tmovl $1, %%eax\n\txorl %%ecx, %%ecx\n\tidivl %%ecx" ::: "eax", "ecx", "edx");
#else
    raise(SIGFPE);
#endif
}

/* What this function would return to, and with, is gone. */
OUT_OF_LINE __attribute__((no_sanitize_address, optimize("O0"))) static void stack_top_smashed(void)
{
    void **frame = __builtin_frame_address(0);
    frame[0] = (void *)garbage;
    frame[1] = (void *)garbage;
    __asm__ volatile(UNDEFINED);
}

static void **bottom;

OUT_OF_LINE __attribute__((no_sanitize_address)) static void stack_bottom_smashed(void)
{
    for (int word = 0; word < 64; word++)
        bottom[word] = (void *)garbage;
    __asm__ volatile(UNDEFINED);
}

/* Ends as a child did. */
static void end_as(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    _exit(WIFSIGNALED(status) ? WTERMSIG(status) : 100 + WEXITSTATUS(status));
}

OUT_OF_LINE static void in_fork(void)
{
    pid_t child = fork();
    if (child == 0) {
        null_pointer();
        _exit(3);
    }
    end_as(child);
}

OUT_OF_LINE static void in_vfork(void)
{
    pid_t child = vfork();
    if (child == 0) {
        null_pointer();
        _exit(3);
    }
    end_as(child);
}

OUT_OF_LINE static void in_exit(void)
{
    atexit(null_pointer);
    exit(0);
}

/* Root may write anywhere: for it the file system has to be made so. */
OUT_OF_LINE static void read_only_directory(void)
{
    if (*the_directory) {
        if (geteuid() != 0)
            chmod(the_directory, 0500);
        else if (mount(NULL, the_directory, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
            _exit(99);
    }
    null_pointer();
}

/* The first program to notice. */
OUT_OF_LINE static void full_disk(void)
{
    char path[4096], bytes[4096];
    memset(bytes, 1, sizeof bytes);
    snprintf(path, sizeof path, "%s/filled", the_directory);
    int file = *the_directory ? open(path, O_WRONLY | O_CREAT, 0600) : -1;
    while (file >= 0 && write(file, bytes, sizeof bytes) > 0)
        continue;
    null_pointer();
}

OUT_OF_LINE static void *crash_here(void *barrier)
{
    pthread_barrier_wait(barrier);
    null_pointer();
    return NULL;
}

OUT_OF_LINE static void two_threads(void)
{
    static pthread_barrier_t barrier;
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    for (int thread = 0; thread < 2; thread++)
        pthread_create(&threads[thread], NULL, crash_here, &barrier);
    pthread_join(threads[0], NULL);
}

OUT_OF_LINE static void bad_system_call(void)
{
    raise(SIGSYS);
}

static const struct kind {
    const char *name;
    void (*crash)(void);
} KINDS[] = {
    {"abort", abort},
    {"assert", failed_assertion},
    {"freed-twice", freed_twice},
    {"null", null_pointer},
    {"garbage", garbage_pointer},
    {"log-no-object", log_no_object},
    {"not-executable", not_executable},
    {"return-to-nowhere", return_to_nowhere},
    {"privileged", privileged_instruction},
    {"read-only-page", read_only_page},
    {"stack-top", stack_top_smashed},
    {"stack-bottom", stack_bottom_smashed},
    {"overflow", stack_overflow},
    {"breakpoint", breakpoint},
    {"undefined", undefined_instruction},
    {"divided", divided_by_zero},
    {"bus", behind_a_file},
    {"sys", bad_system_call},
    {"malloc-locked", malloc_locked},
    {"loader-locked", loader_locked},
    {"signals-blocked", signals_blocked},
    {"overflow-in-thread", overflow_in_thread},
    {"many-threads", null_pointer},
    {"in-fork", in_fork},
    {"in-vfork", in_vfork},
    {"in-exit", in_exit},
    {"disk-short", null_pointer},
    {"disk-full", full_disk},
    {"disk-none", null_pointer},
    {"read-only-directory", read_only_directory},
    {"watcher", null_pointer},
    {"watcher-killed", null_pointer},
    {"watcher-stopped", null_pointer},
    {"two-threads", two_threads},
};

OUT_OF_LINE static void crash_by_name(const char *name)
{
    for (size_t kind = 0; kind < sizeof KINDS / sizeof *KINDS; kind++)
        if (strcmp(KINDS[kind].name, name) == 0)
            KINDS[kind].crash();
    kinds_crash_in_cpp(name);
    garbage++;
}

OUT_OF_LINE void kinds_crash(const char *kind)
{
    bottom = __builtin_frame_address(0);
    char outer[32] = "";
    /* `pair-OUTER-INNER`: the filter does the rest. */
    if (sscanf(kind, "pair-%31[a-z]", outer) == 1)
        kind = outer;
    crash_by_name(kind);
    garbage++;
}

void kinds_crash_within(void)
{
    const char *inner = strrchr(the_kind, '-');
    if (strncmp(the_kind, "pair-", 5) == 0 && inner)
        crash_by_name(inner + 1);
}

static pthread_barrier_t running;

static void *work(void *number)
{
    char name[16];
    snprintf(name, sizeof name, "worker %d", (int)(intptr_t)number);
    prctl(PR_SET_NAME, name);
    pthread_barrier_wait(&running);
    for (;;)
        sleep(600);
    return NULL;
}

void kinds_begin(const char *kind, const char *directory)
{
    the_kind = kind;
    the_directory = directory;
    /* Who never ends is ended by who has started it; nobody wants the cores but for a comparison. */
    struct rlimit cores = {0, 0};
    if (getenv("MATRIX_CORE") && getrlimit(RLIMIT_CORE, &cores) == 0)
        cores.rlim_cur = cores.rlim_max;
    setrlimit(RLIMIT_CORE, &cores);
    int workers = strcmp(kind, "many-threads") == 0 ? 1000 : 3;
    pthread_barrier_init(&running, NULL, (unsigned)workers + 1);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    for (int number = 0; number < workers; number++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, work, (void *)(intptr_t)number) != 0)
            _exit(98);
    }
    pthread_barrier_wait(&running);
}
