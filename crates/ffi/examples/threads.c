/* Prints the stacks of all threads of this program, and its own; asks a file for an address.
 *
 *     cc threads.c $(pkg-config --cflags --libs backtrail) -o threads && ./threads
 */
#define _POSIX_C_SOURCE 200809L
#include <backtrail.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sem_t ready, done;

__attribute__((noinline)) static int wait_for_work(void)
{
    sem_post(&ready);
    while (sem_wait(&done) != 0) {
    }
    return 1;
}

static void *worker(void *unused)
{
    (void)unused;
    return wait_for_work() ? NULL : &ready;
}

static void check(int32_t status, const char *what)
{
    if (status != BACKTRAIL_OK) {
        fprintf(stderr, "%s: %s\n", what, backtrail_last_error());
        exit(1);
    }
}

/* One line a function. */
static void print_names(const backtrail_names *names)
{
    for (size_t index = 0; index < backtrail_names_count(names); index++) {
        backtrail_name row = {.size = sizeof row};
        check(backtrail_names_get(names, index, &row), "names_get");
        printf("  %2" PRIu32 "  %s", row.frame, row.name ? row.name : "?");
        if (row.file)
            printf("  at %s:%" PRIu32, row.file, row.line);
        if (row.reason)
            printf("  0x%" PRIx64 " [%s]", row.address, row.reason);
        printf("%s\n", row.inlined ? "  [inlined]" : "");
    }
}

static void print_stack(const backtrail_capturer *capturer, const backtrail_stack *stack)
{
    backtrail_names *names = NULL;
    check(backtrail_stack_symbolize(capturer, stack, &names), "stack_symbolize");
    print_names(names);
    backtrail_names_free(names);
}

__attribute__((noinline)) static void print_all(const backtrail_capturer *capturer)
{
    backtrail_threads *threads = NULL;
    check(backtrail_capture_all(capturer, &threads), "capture_all");
    for (size_t index = 0; index < backtrail_threads_count(threads); index++) {
        backtrail_thread thread = {.size = sizeof thread};
        check(backtrail_threads_get(threads, index, &thread), "threads_get");
        printf("Thread %s%s\n", thread.name, thread.is_main ? " (main)" : "");
        if (thread.stack)
            print_stack(capturer, thread.stack);
        else
            printf("  %s\n", thread.problem);
    }
    backtrail_threads_free(threads);
}

static void look_up_in_file(const char *path)
{
    backtrail_binary *binary = NULL;
    backtrail_names *names = NULL;
    check(backtrail_binary_open(path, NULL, &binary), "binary_open");
    check(backtrail_binary_lookup(binary, 1, BACKTRAIL_STATED, 0, &names), "binary_lookup");
    printf("At 1 of the file\n");
    print_names(names);
    backtrail_names_free(names);
    backtrail_binary_free(binary);
}

int main(int count, char **arguments)
{
    (void)count;
    if (backtrail_abi_version() != BACKTRAIL_ABI_VERSION)
        return 2;
    pthread_t thread;
    sem_init(&ready, 0, 0);
    sem_init(&done, 0, 0);
    pthread_create(&thread, NULL, worker, NULL);
    while (sem_wait(&ready) != 0) {
    }

    /* A sanitizer or valgrind may hold signals back for long. */
    backtrail_capture_options options = {.size = sizeof options, .timeout_ms = 20000};
    backtrail_capturer *capturer = NULL;
    check(backtrail_capturer_new(&options, &capturer), "capturer_new");

    printf("This thread\n");
    backtrail_stack *stack = backtrail_stack_new(0);
    check(backtrail_capture_current(capturer, 0, stack), "capture_current");
    print_stack(capturer, stack);
    print_all(capturer);
    look_up_in_file(arguments[0]);

    printf("A thread that is none\n");
    int32_t status = backtrail_capture_thread(capturer, 0x7ffffff, stack);
    printf("  status %" PRId32 ": %s\n", status, backtrail_last_error());

    sem_post(&done);
    pthread_join(thread, NULL);
    backtrail_stack_free(stack);
    backtrail_capturer_free(capturer);
    return status == BACKTRAIL_GONE ? 0 : 1;
}
