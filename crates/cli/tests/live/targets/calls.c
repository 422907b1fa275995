/* Waits in several calls at once while it is captured, counts what was disturbed, and tells when its input ends:
   calls that ended early, signals that were sent and that came, and the longest time that a spinning thread stood. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int over, early, came, child_signals;
static volatile uint64_t longest, rounds;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void *in_sleep(void *nothing) {
    while (!over) {
        struct timespec time = {0, 200000000}, left;
        if (nanosleep(&time, &left) != 0)
            early++;
    }
    return nothing;
}

static void *in_futex(void *nothing) {
    static int word;
    while (!over) {
        struct timespec time = {0, 200000000};
        if (syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, NULL, 0) != -1 || errno != ETIMEDOUT)
            early++;
    }
    return nothing;
}

static void *in_read(void *pipe_end) {
    char byte;
    while (!over)
        if (read(*(int *)pipe_end, &byte, 1) != 1)
            early++;
    return NULL;
}

static void *spinning(void *nothing) {
    uint64_t last = now();
    while (!over) {
        uint64_t time = now();
        if (time - last > longest)
            longest = time - last;
        last = time;
        rounds++;
    }
    return nothing;
}

static void on_signal(int number) {
    if (number == SIGCHLD || number == SIGCONT)
        child_signals++;
    else
        came++;
}

int main(void) {
    int ends[2], sent = 0;
    char line[8];
    pthread_t threads[4];
    if (pipe(ends) != 0)
        return 1;
    signal(SIGRTMIN, on_signal);
    signal(SIGCONT, on_signal);
    signal(SIGCHLD, on_signal);
    pthread_create(&threads[0], NULL, in_sleep, NULL);
    pthread_create(&threads[1], NULL, in_futex, NULL);
    pthread_create(&threads[2], NULL, in_read, &ends[0]);
    pthread_create(&threads[3], NULL, spinning, NULL);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        union sigval value = {0};
        for (int index = 0; index < 200; index++)
            if (sigqueue(getpid(), SIGRTMIN, value) == 0)
                sent++;
        printf("rounds %llu\n", (unsigned long long)rounds);
        fflush(stdout);
    }
    over = 1;
    if (write(ends[1], "x", 1) != 1)
        return 1;
    for (int index = 0; index < 4; index++)
        pthread_join(threads[index], NULL);
    printf("early %d sent %d came %d others %d longest %llu\n", early, sent, came, child_signals,
           (unsigned long long)longest / 1000);
    return 0;
}
