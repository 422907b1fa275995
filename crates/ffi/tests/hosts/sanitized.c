/* Crashes under AddressSanitizer, which poisons the memory between variables of stacks.
 *
 *     sanitized DIRECTORY
 */
#include <backtrail.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static sem_t ready;

__attribute__((noinline)) static void wait_for_ever(char *text)
{
    sem_post(&ready);
    for (;;)
        sleep(600);
    puts(text);
}

static void *work(void *unused)
{
    char text[16] = "", more[80] = "";
    wait_for_ever(text);
    puts(more);
    return unused;
}

int main(int count, char **arguments)
{
    backtrail_crash_options options = {.size = sizeof options, .directory = arguments[count - 1]};
    if (backtrail_crash_install(&options) != BACKTRAIL_OK)
        return 1;
    sem_init(&ready, 0, 0);
    for (int number = 0; number < 3; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
        sem_wait(&ready);
    }
    *(volatile int *)16 = 1;
    return 0;
}
