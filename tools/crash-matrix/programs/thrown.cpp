// Kinds of crashes in C++.
#include "kinds.h"
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

#define OUT_OF_LINE __attribute__((noinline, noclone))

namespace {

struct BadOrder : std::runtime_error {
    using std::runtime_error::runtime_error;
};

OUT_OF_LINE void throw_order()
{
    throw BadOrder("no order 17");
}

OUT_OF_LINE void through_noexcept() noexcept
{
    throw_order();
}

struct Order {
    Order() { tell(); }
    virtual ~Order() {}
    OUT_OF_LINE void tell() { number(); }
    virtual int number() const = 0;
};

struct Named : Order {
    int number() const override { return 17; }
};

OUT_OF_LINE void pure_virtual()
{
    Named order;
    std::printf("%d\n", order.number());
}

struct Item {
    virtual ~Item() {}
    virtual int price() const { return 1; }
    std::uintptr_t room[4] = {};
};

// The memory is somebody else's by then.
OUT_OF_LINE void released_object()
{
    Item *volatile item = new Item;
    delete item;
    std::uintptr_t *volatile later = new std::uintptr_t[5];
    std::memset(later, 0x11, 5 * sizeof *later);
    std::printf("%d\n", item->price());
}

} // namespace

int kinds_crash_in_cpp(const char *kind)
{
    if (std::strcmp(kind, "throw") == 0 || std::strcmp(kind, "watcher-throw") == 0)
        throw_order();
    if (std::strcmp(kind, "throw-noexcept") == 0)
        through_noexcept();
    if (std::strcmp(kind, "pure-virtual") == 0)
        pure_virtual();
    if (std::strcmp(kind, "released") == 0)
        released_object();
    return 0;
}
