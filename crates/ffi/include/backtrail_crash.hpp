// Has crash files say which C++ exception ended the program. C++11.
//
// Call backtrail::keep_uncaught_exceptions() after backtrail_crash_install, and after whatever else calls std::set_terminate.
#ifndef BACKTRAIL_CRASH_HPP
#define BACKTRAIL_CRASH_HPP

#include <backtrail.h>
#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <typeinfo>

namespace backtrail {
namespace detail {

inline std::terminate_handler &earlier_terminate()
{
    static std::terminate_handler handler = nullptr;
    return handler;
}

[[noreturn]] inline void tell_and_terminate()
{
    if (const std::type_info *type = abi::__cxa_current_exception_type()) {
        // what() is the program's code and may crash: the type is told before.
        backtrail_crash_exception(type->name(), nullptr);
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
        try {
            throw;
        } catch (const std::exception &exception) {
            backtrail_crash_exception(type->name(), exception.what());
        } catch (...) {
        }
#endif
    }
    if (std::terminate_handler earlier = earlier_terminate())
        earlier();
    std::abort();
}

} // namespace detail

// Keeps the type and what() of an exception that nobody catches, then calls the terminate handler from before. Calling it again
// changes nothing.
inline void keep_uncaught_exceptions()
{
    std::terminate_handler now = std::get_terminate();
    if (now == detail::tell_and_terminate)
        return;
    detail::earlier_terminate() = now;
    std::set_terminate(detail::tell_and_terminate);
}

} // namespace backtrail

#endif
