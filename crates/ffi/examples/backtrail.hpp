// Handles of backtrail.h that free themselves, and failures as exceptions. To be copied and changed as you like.
#ifndef BACKTRAIL_HPP
#define BACKTRAIL_HPP

#include <backtrail.h>
#include <memory>
#include <stdexcept>
#include <string>

namespace backtrail {

inline void check(int32_t status)
{
    if (status != BACKTRAIL_OK)
        throw std::runtime_error(backtrail_last_error());
}

template <typename T, void (*release)(T *)>
struct Release {
    void operator()(T *handle) const noexcept { release(handle); }
};

template <typename T, void (*release)(T *)>
using Handle = std::unique_ptr<T, Release<T, release>>;

using Capturer = Handle<backtrail_capturer, backtrail_capturer_free>;
using Stack = Handle<backtrail_stack, backtrail_stack_free>;
using Threads = Handle<backtrail_threads, backtrail_threads_free>;
using Names = Handle<backtrail_names, backtrail_names_free>;
using Binary = Handle<backtrail_binary, backtrail_binary_free>;
using Text = Handle<char, backtrail_string_free>;

inline std::string format(const backtrail_hang *hang, uint32_t format)
{
    char *text = nullptr;
    check(backtrail_hang_format(hang, format, &text));
    return Text(text).get();
}

// Watches the thread that makes it.
class Watch {
public:
    explicit Watch(const backtrail_watch_options &options, backtrail_hang_handler handler, void *context)
    {
        backtrail_watch *watch = nullptr;
        check(backtrail_watch_start(0, &options, handler, context, &watch));
        watch_.reset(watch);
    }

    void tick() const noexcept { backtrail_watch_tick(watch_.get()); }
    void rest() const noexcept { backtrail_watch_rest(watch_.get()); }

private:
    Handle<backtrail_watch, backtrail_watch_stop> watch_;
};

// One piece of work: from here to the end of the block the thread is expected to get on.
class Work {
public:
    explicit Work(const Watch &watch) : watch_(watch) { watch_.tick(); }
    ~Work() { watch_.rest(); }
    Work(const Work &) = delete;
    Work &operator=(const Work &) = delete;

private:
    const Watch &watch_;
};

} // namespace backtrail

#endif
