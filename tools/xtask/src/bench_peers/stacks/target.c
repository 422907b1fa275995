/* target N [spin]: N threads of about 35 frames that wait, and one that spins and knows how long it stood. For each line of
   input it prints two numbers of microseconds since the line before: the longest time that it did not run, whatever the
   reason, and the longest that it was stopped. The kernel counts how often a thread gave its processor up (here only by
   being stopped: it waits for nothing), and what it waits for a processor (the second number of its schedstat). A pause in
   which it gave nothing up is an interrupt, another thread or the machine's own pause; of one in which it did, what it
   waited for a processor is left out. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Shorter ones are interrupts: below what there is to measure. */
#define SHORT 10000

static volatile uint64_t longest, longest_stop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint64_t waited(int file) {
    char text[128];
    unsigned long long ran = 0, wanted = 0;
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = 0;
    sscanf(text, "%llu %llu", &ran, &wanted);
    return wanted;
}

/* How often the calling thread gave its processor up. */
static long given_up(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static void *spin(void *nothing) {
    int file = open("/proc/thread-self/schedstat", O_RDONLY);
    uint64_t before = waited(file);
    long stops = given_up();
    uint64_t last = now();
    for (;;) {
        uint64_t time = now(), pause = time - last;
        last = time;
        if (pause < SHORT)
            continue;
        uint64_t after = waited(file), wait = after - before;
        uint64_t stop = given_up() != stops && pause > wait ? pause - wait : 0;
        if (pause > longest)
            longest = pause;
        if (stop > longest_stop)
            longest_stop = stop;
        /* What it did not run between the two clocks is missed: that is not the pause that was measured. */
        before = waited(file);
        stops = given_up();
        last = now();
    }
    return nothing;
}

__attribute__((noinline)) static int deep(int left) {
    volatile char pad[64];
    pad[left & 63] = 1;
    if (left == 0) {
        pthread_mutex_lock(&mutex);
        for (;;)
            pthread_cond_wait(&condition, &mutex);
    }
    int below = deep(left - 1);
    return below + pad[left & 63];
}

static void *work(void *depth) {
    deep((int)(long)depth);
    return NULL;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1;
    char line[8];
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    if (argc > 2)
        pthread_create(&thread, NULL, spin, NULL);
    for (int index = 0; index < count; index++)
        if (pthread_create(&thread, &small, work, (void *)30) != 0)
            return 1;
    sleep(1);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        printf("%llu %llu\n", (unsigned long long)longest / 1000, (unsigned long long)longest_stop / 1000);
        fflush(stdout);
        longest = longest_stop = 0;
    }
    return 0;
}
