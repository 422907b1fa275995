/* odd KIND: a process in an odd state. Says its id from where it then waits for its input to end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <stdlib.h>
#include <unistd.h>

static void say(int id) {
    printf("%d\n", id);
    fflush(stdout);
}

/* What to say first: whoever reads it finds the process in here. */
static int id_to_say;

__attribute__((noinline)) static int wait_for_end(void) {
    char line[8];
    if (id_to_say != 0)
        say(id_to_say);
    return fgets(line, sizeof line, stdin) != NULL;
}

static void *keep_waiting(void *nothing) {
    wait_for_end();
    _exit(0);
    return nothing;
}

/* The parent of a vforked child sleeps uninterruptibly until that ends. */
__attribute__((noinline)) static int uninterruptible(void) {
    say(getpid());
    if (vfork() == 0) {
        char byte;
        while (read(0, &byte, 1) > 0)
            ;
        _exit(0);
    }
    return 0;
}

/* Code made at run time: a function with a frame pointer that calls the one in its argument. */
static int made_at_run_time(void) {
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    unsigned char *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(name, "w");
    if (place == MAP_FAILED || map == NULL)
        return 1;
    memcpy(place, code, sizeof code);
    fprintf(map, "%lx %x made at run time\n", (unsigned long)place, (unsigned)sizeof code);
    fclose(map);
    id_to_say = getpid();
    int result = ((int (*)(int (*)(void)))place)(wait_for_end);
    unlink(name);
    return result;
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    if (strcmp(kind, "vfork") == 0)
        return uninterruptible();
    if (strcmp(kind, "made") == 0)
        return made_at_run_time();
    if (strcmp(kind, "zombie") == 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        siginfo_t info;
        waitid(P_PID, child, &info, WEXITED | WNOWAIT);
        id_to_say = child;
        return wait_for_end();
    }
    if (strcmp(kind, "no-leader") == 0) {
        pthread_t thread;
        id_to_say = getpid();
        pthread_create(&thread, NULL, keep_waiting, NULL);
        pthread_exit(NULL);
    }
    if (strcmp(kind, "traced") == 0) {
        pid_t child = fork();
        if (child == 0) {
            for (;;)
                pause();
        }
        usleep(50000);
        ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_EXITKILL);
        id_to_say = child;
        return wait_for_end();
    }
    if (strcmp(kind, "undumpable") == 0)
        prctl(PR_SET_DUMPABLE, 0);
    id_to_say = getpid();
    return wait_for_end();
}
