/* Crashes on demand, and tells what earlier runs left.
 *
 *     cc crash.c $(pkg-config --cflags --libs backtrail) -o crash
 *     ./crash crashes segv; ./crash crashes; backtrail explain crashes/…
 */
#include <backtrail.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print(void *context, const char *path)
{
    (void)context;
    printf("%s\n", path);
}

__attribute__((noinline)) static void write_order(volatile int *order)
{
    *order = 17;
}

__attribute__((noinline)) static int deeper(volatile int depth)
{
    volatile char room[4096];
    if (depth < 0)
        return 0;
    room[0] = (char)depth;
    return deeper(depth + 1) + room[0];
}

static void *overflow(void *unused)
{
    if (backtrail_crash_protect_thread() != BACKTRAIL_OK)
        fprintf(stderr, "%s\n", backtrail_last_error());
    printf("%d\n", deeper(0));
    return unused;
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    if (count < 3) {
        /* Runs first: how they ended is known by the crash files. */
        int is_told = backtrail_crash_pending_sessions(arguments[1], print, NULL) == BACKTRAIL_OK;
        return backtrail_crash_pending(arguments[1], print, NULL) == BACKTRAIL_OK && is_told ? 0 : 1;
    }
    backtrail_crash_options options = {.size = sizeof options, .directory = arguments[1], .release = "orders@1.4.2"};
    if (backtrail_crash_install(&options) != BACKTRAIL_OK) {
        fprintf(stderr, "%s\n", backtrail_last_error());
        return 1;
    }
    backtrail_crash_note("table", "orders");
    backtrail_crash_breadcrumb("orders loaded");
    if (strcmp(arguments[2], "segv") == 0)
        write_order((volatile int *)16);
    if (strcmp(arguments[2], "abort") == 0)
        abort();
    if (strcmp(arguments[2], "overflow") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, overflow, NULL);
        pthread_join(thread, NULL);
    }
    return 1;
}
