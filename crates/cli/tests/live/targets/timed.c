/* Threads that wait with a time limit, each named by the system call that it waits in. Says its id, then waits for its input to
   end. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct timespec in_a_while(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += 100000;
    return time;
}

static void *wait_in(void *kind) {
    struct timespec long_time = {100000, 0}, later = in_a_while(CLOCK_REALTIME);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    sem_t semaphore;
    int word = 0;
    switch ((long)kind) {
    case 0:
        prctl(PR_SET_NAME, "poll");
        poll(NULL, 0, 100000000);
        break;
    case 1:
        prctl(PR_SET_NAME, "clock_nanosleep");
        clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, NULL);
        break;
    case 2:
        prctl(PR_SET_NAME, "clock_nanosleep");
        clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &long_time, NULL);
        break;
    /* By a function whose code does not tell the call. */
    case 3:
        prctl(PR_SET_NAME, "nanosleep");
        syscall(SYS_nanosleep, &long_time, NULL);
        break;
    case 4:
        prctl(PR_SET_NAME, "clock_nanosleep");
        syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, &long_time, NULL);
        break;
    case 5:
        prctl(PR_SET_NAME, "futex");
        syscall(SYS_futex, &word, 0, 0, &long_time, NULL, 0);
        break;
    case 6:
        prctl(PR_SET_NAME, "poll");
        syscall(SYS_poll, NULL, 0, 100000000);
        break;
    case 7:
        prctl(PR_SET_NAME, "futex");
        pthread_mutex_lock(&mutex);
        pthread_cond_timedwait(&condition, &mutex, &later);
        break;
    case 8:
        prctl(PR_SET_NAME, "futex");
        sem_init(&semaphore, 0, 0);
        sem_timedwait(&semaphore, &later);
        break;
    /* These the kernel begins anew by their own number, or not at all. */
    case 9:
        prctl(PR_SET_NAME, "ppoll");
        ppoll(NULL, 0, &long_time, NULL);
        break;
    case 10:
        prctl(PR_SET_NAME, "pselect6");
        pselect(0, NULL, NULL, NULL, &long_time, NULL);
        break;
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
    char byte;
    for (long kind = 0; kind <= 10; kind++)
        pthread_create(&thread, NULL, wait_in, (void *)kind);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    return 0;
}
