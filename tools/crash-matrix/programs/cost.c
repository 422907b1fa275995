/* What a crash costs: HOW DIRECTORY THREADS [LIBRARY]…, which are loaded before. Prints milliseconds from the fault to the end of the
 * process, milliseconds that it took to be ready, kilobytes that stay resident for it, in the process and in the one that stands by, and
 * how many images the process had.
 *
 * HOW is `none`, `backtrail`, `watcher` (MATRIX_WATCHER stands by), or `crashpad` (CRASHPAD stands by: a client of
 * chrome_crashpad_handler that does no more than its protocol asks for, crashpad's util/linux/exception_handler_protocol.h). */
#define _GNU_SOURCE
#include <backtrail.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct measured {
    double fault, ready;
    long own, other, images;
};

static struct measured *measured;
static int *volatile nowhere = (int *)0x18;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static long resident(int process)
{
    char path[64], line[256];
    long size = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", process);
    FILE *file = fopen(path, "r");
    /* Of pages that several processes have, each one's part. */
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "Pss: %ld", &size);
    if (file)
        fclose(file);
    return size;
}

#pragma pack(push, 1)
static struct {
    uint64_t siginfo, context;
    pid_t thread;
} exception;
struct to_server {
    int32_t version;
    uint32_t type;
    uint64_t stack;
    uint64_t exception, sanitization, crash_loop_before;
};
struct to_client {
    uint32_t type;
    pid_t pid;
};
#pragma pack(pop)

/* Types of messages. */
enum { CRASH_DUMP_REQUEST = 1, SET_PTRACER = 2, CRASH_DUMP_COMPLETE = 3 };

static int its_socket;

static void tell_crashpad(int number, siginfo_t *info, void *context)
{
    (void)number;
    exception.siginfo = (uintptr_t)info;
    exception.context = (uintptr_t)context;
    exception.thread = gettid();
    struct to_server asked = {1, CRASH_DUMP_REQUEST, (uintptr_t)&info, (uintptr_t)&exception, 0, 0};
    struct to_client answer;
    if (send(its_socket, &asked, sizeof asked, MSG_NOSIGNAL) < 0)
        _exit(94);
    while (recv(its_socket, &answer, sizeof answer, 0) == sizeof answer) {
        if (answer.type == SET_PTRACER) {
            int32_t done = prctl(PR_SET_PTRACER, answer.pid) == 0 ? 0 : -1;
            send(its_socket, &done, sizeof done, MSG_NOSIGNAL);
        } else if (answer.type == CRASH_DUMP_COMPLETE) {
            signal(SIGSEGV, SIG_DFL);
            return;
        } else {
            _exit(93);
        }
    }
    _exit(92);
}

static int start_crashpad(const char *directory)
{
    int sockets[2], on = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0)
        _exit(91);
    for (int side = 0; side < 2; side++)
        setsockopt(sockets[side], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    pid_t child = fork();
    if (child == 0) {
        char database[4096], client[64];
        close(sockets[0]);
        snprintf(database, sizeof database, "--database=%s", directory);
        snprintf(client, sizeof client, "--initial-client-fd=%d", sockets[1]);
        const char *program = getenv("CRASHPAD");
        execl(program, program, database, client, "--no-periodic-tasks", (char *)NULL);
        _exit(90);
    }
    close(sockets[1]);
    its_socket = sockets[0];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = tell_crashpad;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    return child;
}

static int count_image(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info, (void)size, (void)unused;
    measured->images++;
    return 0;
}

static int install(const char *how, const char *directory)
{
    if (strcmp(how, "crashpad") == 0)
        return start_crashpad(directory);
    backtrail_crash_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.directory = directory;
    options.patience_ms = 60000;
    options.watcher = strcmp(how, "watcher") == 0 ? getenv("MATRIX_WATCHER") : NULL;
    if (backtrail_crash_install(&options) != BACKTRAIL_OK)
        _exit(89);
    return (int)backtrail_crash_watcher();
}

static void *work(void *barrier)
{
    pthread_barrier_wait(barrier);
    for (;;)
        sleep(600);
    return NULL;
}

static void crash(const char *how, const char *directory, int threads)
{
    static pthread_barrier_t running;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    int other = 0;
    dl_iterate_phdr(count_image, NULL);
    double begun = now();
    long before = resident(getpid());
    if (strcmp(how, "none") != 0)
        other = install(how, directory);
    measured->ready = now() - begun;
    measured->own = resident(getpid()) - before;
    pthread_barrier_init(&running, NULL, (unsigned)threads);
    for (int number = 1; number < threads; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, &running);
    }
    pthread_barrier_wait(&running);
    /* Whoever stands by has time to begin, and threads to fall asleep. */
    usleep(300000);
    measured->other = other > 0 ? resident(other) : 0;
    measured->fault = now();
    *nowhere = 1;
}

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    measured = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        for (int library = 4; library < count; library++)
            dlopen(arguments[library], RTLD_LAZY);
        crash(arguments[1], arguments[2], atoi(arguments[3]));
        _exit(88);
    }
    int status = 0;
    waitpid(child, &status, 0);
    double end = now();
    if (!WIFSIGNALED(status)) {
        fprintf(stderr, "ended with %#x\n", status);
        return 1;
    }
    printf("%.2f %.2f %ld %ld %ld\n", end - measured->fault, measured->ready, measured->own, measured->other,
           measured->images);
    return 0;
}
