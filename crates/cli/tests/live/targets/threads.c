/* threads N: N threads, each some calls deep and waiting. Says its id, then waits for its input to end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t barrier;

__attribute__((noinline)) int deep(int left) {
    volatile char pad[48];
    pad[left & 31] = 1;
    if (left == 0) {
        pthread_barrier_wait(&barrier);
        for (;;)
            pause();
    }
    int below = deep(left - 1);
    return below + pad[left & 31];
}

static void *work(void *depth) {
    deep((int)(long)depth);
    return NULL;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 0;
    char line[8];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (long index = 0; index < count; index++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, work, (void *)(20 + index % 15)) != 0)
            return 1;
    }
    pthread_barrier_wait(&barrier);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    return fgets(line, sizeof line, stdin) == NULL;
}
