// A thread so many calls deep. Ends with its input; a signal makes it leave a core.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

__attribute__((noinline)) static int deeper(int left) {
    if (left == 0) {
        printf("%d\n", getpid());
        fflush(stdout);
        char byte;
        return (int)read(0, &byte, 1);
    }
    int below = deeper(left - 1);
    return below + 1;
}

static void *begin(void *calls) { return (void *)(long)deeper((int)(long)calls); }

int main(int count, char **arguments) {
    struct rlimit cores;
    getrlimit(RLIMIT_CORE, &cores);
    cores.rlim_cur = cores.rlim_max;
    setrlimit(RLIMIT_CORE, &cores);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512ul << 20);
    pthread_t thread;
    pthread_create(&thread, &attributes, begin, (void *)(long)atoi(arguments[count - 1]));
    pthread_join(thread, 0);
    return 0;
}
