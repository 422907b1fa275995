/* Threads that wait for locks, each named by what it waits for. Says `ready`, then waits for its input to end. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t cycle[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t pair[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER, orphan = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive, checked, robust, inheriting, timed = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t of_condition = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t all_hold;
static pthread_t first;

static void make(pthread_mutex_t *mutex, int type, int robustness, int protocol) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    if (robustness)
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (protocol)
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(mutex, &attributes);
}

static void *in_cycle(void *number) {
    long own = (long)number;
    char name[16];
    snprintf(name, sizeof name, "cycle %ld", own);
    prctl(PR_SET_NAME, name);
    pthread_mutex_lock(&cycle[own]);
    pthread_barrier_wait(&all_hold);
    pthread_mutex_lock(&cycle[(own + 1) % 3]);
    return NULL;
}

static void *in_pair(void *number) {
    long own = (long)number;
    char name[16];
    snprintf(name, sizeof name, "pair %ld", own);
    prctl(PR_SET_NAME, name);
    pthread_mutex_lock(&pair[own]);
    pthread_barrier_wait(&all_hold);
    pthread_mutex_lock(&pair[1 - own]);
    return NULL;
}

static void *end_with_lock(void *unused) {
    pthread_mutex_lock(&orphan);
    return unused;
}

static void *wait_for(void *kind) {
    struct timespec later;
    clock_gettime(CLOCK_REALTIME, &later);
    later.tv_sec += 100000;
    pthread_barrier_wait(&all_hold);
    switch ((long)kind) {
    case 0:
        prctl(PR_SET_NAME, "recursive");
        pthread_mutex_lock(&recursive);
        break;
    case 1:
        prctl(PR_SET_NAME, "robust");
        pthread_mutex_lock(&checked);
    pthread_mutex_lock(&robust);
        break;
    case 2:
        prctl(PR_SET_NAME, "inheriting");
        pthread_mutex_lock(&inheriting);
        break;
    case 3:
        prctl(PR_SET_NAME, "timed");
        pthread_mutex_timedlock(&timed, &later);
        break;
    case 4:
        prctl(PR_SET_NAME, "reader");
        pthread_rwlock_rdlock(&written);
        break;
    case 5:
        prctl(PR_SET_NAME, "writer");
        pthread_rwlock_wrlock(&written);
        break;
    case 6:
        prctl(PR_SET_NAME, "join");
        pthread_join(first, NULL);
        break;
    case 7:
        prctl(PR_SET_NAME, "condition");
        pthread_mutex_lock(&of_condition);
        pthread_cond_wait(&condition, &of_condition);
        break;
    case 8:
        prctl(PR_SET_NAME, "semaphore");
        sem_wait(&semaphore);
        break;
    case 9:
        prctl(PR_SET_NAME, "checked");
        pthread_mutex_lock(&checked);
        break;
    case 10:
        prctl(PR_SET_NAME, "itself");
        pthread_mutex_lock(&own);
        pthread_mutex_lock(&own);
        break;
    case 11:
        prctl(PR_SET_NAME, "orphan");
        pthread_mutex_lock(&orphan);
        break;
    case 12:
        prctl(PR_SET_NAME, "timed condition");
        pthread_mutex_lock(&of_condition);
        pthread_cond_timedwait(&condition, &of_condition, &later);
        break;
    }
    return NULL;
}

int main(void) {
    enum { KINDS = 13 };
    pthread_t thread;
    char byte;
    make(&recursive, PTHREAD_MUTEX_RECURSIVE, 0, 0);
    make(&checked, PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    make(&robust, PTHREAD_MUTEX_ERRORCHECK, 1, 0);
    make(&inheriting, PTHREAD_MUTEX_NORMAL, 0, 1);
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&all_hold, NULL, 3 + 2 + KINDS + 1);
    pthread_create(&thread, NULL, end_with_lock, NULL);
    pthread_join(thread, NULL);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&checked);
    pthread_mutex_lock(&robust);
    pthread_mutex_lock(&inheriting);
    pthread_mutex_lock(&timed);
    pthread_rwlock_wrlock(&written);
    for (long number = 0; number < 3; number++) {
        pthread_create(&thread, NULL, in_cycle, (void *)number);
        if (number == 0)
            first = thread;
    }
    for (long number = 0; number < 2; number++)
        pthread_create(&thread, NULL, in_pair, (void *)number);
    for (long kind = 0; kind < KINDS; kind++)
        pthread_create(&thread, NULL, wait_for, (void *)kind);
    pthread_barrier_wait(&all_hold);
    printf("%p %p\n", (void *)cycle, (void *)&written);
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    _exit(0);
}
