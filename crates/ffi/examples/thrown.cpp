// Ends by an exception that nobody catches, in the way that the second argument says, or tells what earlier runs left.
//
//     c++ thrown.cpp $(pkg-config --cflags --libs backtrail) -o thrown
//     ./thrown crashes uncaught; ./thrown crashes; backtrail explain crashes/…
#include <backtrail_crash.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace shop {
struct NoOrder : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// what() may be no pointer to text.
struct NoWords : std::exception {
    const char *what() const noexcept override
    {
        return reinterpret_cast<const char *>(8);
    }
};
} // namespace shop

__attribute__((noinline)) static void find_order(int number)
{
    if (number > 0)
        throw shop::NoOrder("no order 17");
}

__attribute__((noinline)) static void cannot_throw() noexcept
{
    find_order(17);
}

static void earlier()
{
    std::puts("the handler from before");
    std::fflush(stdout);
}

static void print(void *, const char *path)
{
    std::puts(path);
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    if (count < 3)
        return backtrail_crash_pending(arguments[1], print, nullptr) == BACKTRAIL_OK ? 0 : 1;
    backtrail_crash_options options = backtrail_crash_options();
    options.size = sizeof options;
    options.directory = arguments[1];
    if (backtrail_crash_install(&options) != BACKTRAIL_OK) {
        std::fprintf(stderr, "%s\n", backtrail_last_error());
        return 1;
    }
    std::string kind = arguments[2];
    if (kind == "chained")
        std::set_terminate(earlier);
    backtrail::keep_uncaught_exceptions();
    if (kind == "number")
        throw 17;
    if (kind == "no-words")
        throw shop::NoWords();
    if (kind == "nothing")
        throw;
    if (kind == "noexcept")
        cannot_throw();
    if (kind == "caught") {
        try {
            find_order(17);
        } catch (const std::exception &) {
        }
        std::abort();
    }
    find_order(17);
    return 1;
}
