/* Ends in the way that its argument names. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int inner(int *value) { return *value + 1; }

static void *hold(void *unused) {
    pthread_mutex_lock(&lock);
    sleep(2);
    pthread_mutex_unlock(&lock);
    return unused;
}

static int outer(const char *how) {
    if (!strcmp(how, "segv")) return inner((int *)0x18);
    if (!strcmp(how, "assert")) assert(how == 0);
    if (!strcmp(how, "exit")) exit(3);
    if (!strcmp(how, "hang")) {
        pthread_t thread;
        pthread_create(&thread, 0, hold, 0);
        usleep(200000);
        pthread_mutex_lock(&lock);
    }
    return 0;
}

int main(int count, char **words) {
    puts("begun");
    fflush(stdout);
    return outer(count > 1 ? words[1] : "");
}
