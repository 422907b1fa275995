// Watches its main loop, stalls it until the watch tells so, and prints what it was at.
//
//     c++ -std=c++11 watch.cpp $(pkg-config --cflags --libs backtrail) -o watch && ./watch DIRECTORY
#include "backtrail.hpp"
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

// What the handler says, which runs on another thread.
struct Told {
    std::atomic<bool> began{false};
    std::mutex lock;
    unsigned hangs = 0;
    std::string report;
};

void handle(void *context, uint32_t event, const backtrail_hang *hang, const char *problem)
{
    auto *told = static_cast<Told *>(context);
    std::lock_guard<std::mutex> guard(told->lock);
    try {
        if (event == BACKTRAIL_HANG_BEGAN) {
            told->began = true;
        } else if (event == BACKTRAIL_HANG_ENDED) {
            told->hangs++;
            told->report = backtrail::format(hang, BACKTRAIL_TEXT);
        } else if (event == BACKTRAIL_HANG_PROBLEM) {
            std::fprintf(stderr, "%s\n", problem);
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
}

// Until the watch has noticed. A busy machine, or one that valgrind imitates, may need long for that.
__attribute__((noinline)) unsigned long compute_in_vain(const std::atomic<bool> &noticed)
{
    volatile unsigned long work = 1;
    for (auto begin = Clock::now(); !noticed && Clock::now() - begin < std::chrono::seconds(60);)
        for (int round = 0; round < 1000; round++)
            work = work * 31 + 7;
    return work;
}

uint32_t unfinished(void *context, const char *path, const backtrail_hang *, const char *)
{
    std::printf("the last run did not survive %s\n", path);
    ++*static_cast<unsigned *>(context);
    return 1;
}

} // namespace

int main(int count, char **arguments)
try {
    const char *directory = count > 1 ? arguments[1] : ".";
    unsigned earlier = 0;
    backtrail::check(backtrail_hang_unfinished(directory, unfinished, &earlier));

    Told told;
    {
        backtrail_watch_options options{};
        options.size = sizeof options;
        options.threshold_ms = 200;
        options.directory = directory;
        backtrail::Watch watch(options, handle, &told);
        backtrail::Work work(watch);
        compute_in_vain(told.began);
    } // The watch stops here: whatever it has to tell, it has told.
    std::lock_guard<std::mutex> guard(told.lock);
    std::printf("%u hang\n%s", told.hangs, told.report.c_str());
    return told.report.find("compute_in_vain") != std::string::npos ? 0 : 1;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
