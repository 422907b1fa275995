/* probe: says "yes" where a process may seize, stop and read another that is not its child, or which call failed and why. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#ifndef PTRACE_SEIZE
#define PTRACE_SEIZE 0x4206
#define PTRACE_INTERRUPT 0x4207
#endif

static int failed(const char *call) {
    printf("%s: %s\n", call, strerror(errno));
    return 1;
}

static int probe(pid_t target) {
    int status, copy, value = 1;
    struct iovec here = {&copy, sizeof copy}, there = {&value, sizeof value};
    if (ptrace(PTRACE_SEIZE, target, 0, 0) != 0)
        return failed("PTRACE_SEIZE");
    if (ptrace(PTRACE_INTERRUPT, target, 0, 0) != 0)
        return failed("PTRACE_INTERRUPT");
    if (waitpid(target, &status, __WALL) != target)
        return failed("waitpid");
    if (process_vm_readv(target, &here, 1, &there, 1, 0) != sizeof copy)
        return failed("process_vm_readv");
    puts("yes");
    return 0;
}

int main(void) {
    pid_t target, tracer;
    int status = 1;
    target = fork();
    if (target == 0)
        for (;;)
            pause();
    tracer = fork();
    if (tracer == 0) {
        int code = probe(target);
        fflush(stdout);
        _exit(code);
    }
    waitpid(tracer, &status, 0);
    kill(target, SIGKILL);
    waitpid(target, NULL, 0);
    return status != 0;
}
