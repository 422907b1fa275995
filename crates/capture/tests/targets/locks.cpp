// Threads that wait for locks of C++'s standard library, each named by what it waits for. Says `0x0 0x0`, then waits for its input
// to end.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <thread>
#include <unistd.h>
#include <vector>

static std::mutex plain, of_condition;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static std::shared_mutex shared, read_by_main;
static std::condition_variable condition;
static std::atomic<int> changed{2};

template <class Wait> static void start(const char *name, Wait wait) {
    std::thread([=] {
        pthread_setname_np(pthread_self(), name);
        wait();
    }).detach();
}

int main() {
    plain.lock();
    recursive.lock();
    recursive.lock();
    timed.lock();
    shared.lock();
    read_by_main.lock_shared();
    start("plain", [] { plain.lock(); });
    start("recursive", [] { recursive.lock(); });
    start("timed", [] { timed.try_lock_for(std::chrono::hours(24)); });
    start("reader", [] { shared.lock_shared(); });
    start("writer", [] { shared.lock(); });
    start("behind a reader", [] { read_by_main.lock(); });
    start("condition", [] {
        std::unique_lock<std::mutex> lock(of_condition);
        condition.wait(lock);
    });
    start("atomic", [] { changed.wait(2); });
    std::puts("0x0 0x0");
    std::fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    _exit(0);
}
