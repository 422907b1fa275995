// The handler, by the C API. MATRIX_WATCHER is the program that stands by.
#include "kinds.h"
#include <backtrail_crash.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static uint32_t filter(const backtrail_crash_seen *)
{
    kinds_crash_within();
    return 1;
}

int host_install(const char *kind, const char *directory)
{
    if (!*directory)
        return 0;
    backtrail_crash_options options;
    std::memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.directory = directory;
    // A machine that is busy with something else takes its time.
    options.patience_ms = std::strcmp(kind, "watcher-stopped") == 0 ? 8000 : 60000;
    // Runtimes have some of their own.
    options.max_threads = 2000;
    /* Beside gdb all frames of an overflow are compared. */
    if (std::getenv("MATRIX_CORE"))
        options.max_frames = 7000;
    if (std::strncmp(kind, "pair-", 5) == 0)
        options.filter = filter;
    if (std::strncmp(kind, "watcher", 7) == 0)
        options.watcher = std::getenv("MATRIX_WATCHER");
    if (backtrail_crash_install(&options) != BACKTRAIL_OK) {
        std::fprintf(stderr, "%s\n", backtrail_last_error());
        return 1;
    }
#ifdef HOST_IN_CPP
    backtrail::keep_uncaught_exceptions();
#endif
    backtrail_crash_note("version", "1.2.3");
    backtrail_crash_breadcrumb("about to crash");
    return 0;
}

int host_run(const char *kind, const char *directory)
{
    if (host_install(kind, directory) != 0)
        return 97;
    kinds_begin(kind, directory);
    if (*directory) {
        uint32_t watcher = backtrail_crash_watcher();
        if (std::strncmp(kind, "watcher", 7) == 0 && watcher == 0)
            return 96;
        // The one that is stopped ends with whoever has started this program.
        if (std::strcmp(kind, "watcher-killed") == 0)
            kill(static_cast<pid_t>(watcher), SIGKILL);
        if (std::strcmp(kind, "watcher-stopped") == 0)
            kill(static_cast<pid_t>(watcher), SIGSTOP);
    }
    kinds_crash(kind);
    return 95;
}
