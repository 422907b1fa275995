/* Writes its stack on SIGUSR1 from the handler itself: nothing but addresses there, names afterwards.
 *
 *     cc on_signal.c $(pkg-config --cflags --libs backtrail) -o on_signal && ./on_signal
 */
#define _POSIX_C_SOURCE 200809L
#include <backtrail.h>
#include <signal.h>
#include <stdio.h>

static backtrail_capturer *capturer;
static backtrail_stack *stack;
static volatile sig_atomic_t captured;

static void handler(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    captured = backtrail_capture_interrupted(capturer, context, stack) == BACKTRAIL_OK;
}

__attribute__((noinline)) static int interrupted_here(void)
{
    raise(SIGUSR1);
    return captured;
}

int main(void)
{
    if (backtrail_capturer_new(NULL, &capturer) != BACKTRAIL_OK) {
        fprintf(stderr, "%s\n", backtrail_last_error());
        return 1;
    }
    stack = backtrail_stack_new(0);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    int was_captured = interrupted_here();

    backtrail_names *names = NULL;
    backtrail_stack_symbolize(capturer, stack, &names);
    for (size_t index = 0; index < backtrail_names_count(names); index++) {
        backtrail_name row = {.size = sizeof row};
        backtrail_names_get(names, index, &row);
        printf("%2u  %s  %s\n", (unsigned)row.frame, row.image ? row.image : "?", row.name ? row.name : "?");
    }
    backtrail_names_free(names);
    backtrail_stack_free(stack);
    backtrail_capturer_free(capturer);
    return was_captured ? 0 : 1;
}
