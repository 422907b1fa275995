/* target N: N threads of about 35 frames that wait, and one that spins and knows how long it stood. For each line of
   input it prints the longest time in microseconds since the line before. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t longest;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void *spin(void *nothing) {
    uint64_t last = now();
    for (;;) {
        uint64_t time = now();
        if (time - last > longest)
            longest = time - last;
        last = time;
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
    pthread_create(&thread, NULL, spin, NULL);
    for (int index = 0; index < count; index++)
        if (pthread_create(&thread, &small, work, (void *)30) != 0)
            return 1;
    sleep(1);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        printf("%llu\n", (unsigned long long)longest / 1000);
        fflush(stdout);
        longest = 0;
    }
    return 0;
}
