/* One thread that computes (spin-0), one that sleeps (`stay-0`), as many that pause as its argument says (conn-0, conn-2, …), and one
   that ends when its input has a line (going-0); then another one begins (coming-0), and a line says so. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int to_end[2];

static void name(const char *kind, long number) {
    char text[16];
    snprintf(text, sizeof text, "%s-%ld", kind, number);
    pthread_setname_np(pthread_self(), text);
}

static void *spin(void *unused) {
    name("spin", 0);
    for (volatile long turn = 0;; turn++)
        ;
    return unused;
}

static void *stay(void *kind) {
    name(kind, 0);
    for (;;)
        pause();
}

static void *conn(void *number) {
    name("conn", 2 * (long)number);
    for (;;)
        pause();
}

static void *going(void *unused) {
    char byte;
    name("going", 0);
    if (read(to_end[0], &byte, 1) < 0)
        abort();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread, first;
    char line[16];
    long count = argc > 1 ? atol(argv[1]) : 10;
    if (pipe(to_end))
        return 1;
    pthread_create(&thread, NULL, spin, NULL);
    pthread_create(&thread, NULL, stay, "stay");
    for (long number = 0; number < count; number++)
        pthread_create(&thread, NULL, conn, (void *)number);
    pthread_create(&first, NULL, going, NULL);
    printf("%d\n", getpid());
    fflush(stdout);
    if (fgets(line, sizeof line, stdin)) {
        if (write(to_end[1], "x", 1) < 0)
            return 1;
        pthread_join(first, NULL);
        pthread_create(&thread, NULL, stay, "coming");
        printf("changed\n");
        fflush(stdout);
        while (fgets(line, sizeof line, stdin))
            ;
    }
    _exit(0);
}
