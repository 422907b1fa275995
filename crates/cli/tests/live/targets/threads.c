/* threads N: N threads, each some calls deep and waiting. Says its id when all of them wait, then waits for its input to
 * end. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int about_to_pause;

__attribute__((noinline)) int deep(int left) {
    volatile char pad[48];
    pad[left & 31] = 1;
    if (left == 0) {
        about_to_pause++;
        for (;;)
            pause();
    }
    int below = deep(left - 1);
    return below + pad[left & 31];
}

static void *work(void *depth) {
    deep((int)(long)depth);
    return NULL;
}

/* Whether a thread of this process other than the first sleeps, by proc(5). */
static int sleeps(const char *thread) {
    char text[512];
    snprintf(text, sizeof text, "/proc/self/task/%s/stat", thread);
    FILE *file = fopen(text, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    const char *name_end = strrchr(text, ')');
    return atoi(thread) == getpid() || (name_end && strncmp(name_end, ") S", 3) == 0);
}

static int all_sleep(void) {
    int all = 1;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *entry; threads && (entry = readdir(threads));)
        all &= entry->d_name[0] == '.' || sleeps(entry->d_name);
    closedir(threads);
    return all;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 0;
    char line[8];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    for (long index = 0; index < count; index++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, work, (void *)(20 + index % 15)) != 0)
            return 1;
    }
    while (about_to_pause < count || !all_sleep())
        usleep(1000);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    return fgets(line, sizeof line, stdin) == NULL;
}
