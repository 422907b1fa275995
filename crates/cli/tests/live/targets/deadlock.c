/* As many threads as its argument says, each of which waits for the lock of the next, the last for that of the first; two more
   wait for the first one's, and one for a lock whose thread has ended. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 8 };
static pthread_mutex_t locks[MOST], orphan = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_hold;
static long count;

static void name(const char *kind, long number) {
    char text[16];
    snprintf(text, sizeof text, "%s-%ld", kind, number);
    pthread_setname_np(pthread_self(), text);
}

static void *in_cycle(void *number) {
    long own = (long)number;
    name("conn", own);
    pthread_mutex_lock(&locks[own]);
    pthread_barrier_wait(&all_hold);
    pthread_mutex_lock(&locks[(own + 1) % count]);
    return NULL;
}

static void *behind(void *number) {
    name("late", (long)number);
    pthread_barrier_wait(&all_hold);
    pthread_mutex_lock(&locks[0]);
    return NULL;
}

static void *end_with_lock(void *unused) {
    pthread_mutex_lock(&orphan);
    return unused;
}

static void *after_the_end(void *unused) {
    name("after", 0);
    pthread_mutex_lock(&orphan);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    char byte;
    count = argc > 1 ? atol(argv[1]) : 2;
    pthread_barrier_init(&all_hold, NULL, count + 2);
    pthread_create(&thread, NULL, end_with_lock, NULL);
    pthread_join(thread, NULL);
    for (long number = 0; number < count; number++) {
        pthread_mutex_init(&locks[number], NULL);
        pthread_create(&thread, NULL, in_cycle, (void *)number);
    }
    for (long number = 0; number < 2; number++)
        pthread_create(&thread, NULL, behind, (void *)number);
    pthread_create(&thread, NULL, after_the_end, NULL);
    printf("%d\n", getpid());
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    _exit(0);
}
