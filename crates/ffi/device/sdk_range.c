/* See sdk_range.h. */
#include "sdk_range.h"

/* The address of the instruction, without what a pointer to code has besides. */
static uintptr_t plain(uintptr_t address)
{
#if defined(__APPLE__) && defined(__aarch64__)
    /* Authentication codes are in the bits above the 47 that user space has. */
    return address & (uintptr_t)0x00007fffffffffff;
#elif defined(__aarch64__)
    /* Linux has up to 52 bits with large addresses, 48 by default; bits 55 and above may be tags. */
    return address & (uintptr_t)0x0000ffffffffffff;
#elif defined(__arm__)
    return address & ~(uintptr_t)1;
#else
    return address;
#endif
}

sdk_range sdk_range_between(const void *first, const void *last)
{
    return sdk_range_at(plain((uintptr_t)first), plain((uintptr_t)last), 0);
}

sdk_range sdk_range_at(uintptr_t start, uintptr_t end, uintptr_t slide)
{
    sdk_range range = {0, 0, 0};
    if (start < end) {
        range.start = start;
        range.end = end;
        range.slide = slide;
    }
    return range;
}

int sdk_range_is_known(const sdk_range *range)
{
    return range->start < range->end;
}

int sdk_range_contains(const sdk_range *range, uintptr_t address)
{
    uintptr_t stated = plain(address) - range->slide;
    return range->start <= stated && stated < range->end;
}

int sdk_range_contains_return(const sdk_range *range, uintptr_t address)
{
    address = plain(address);
    return address != 0 && sdk_range_contains(range, address - 1);
}

static int contains_frame(const sdk_range *range, const uintptr_t *frames, size_t index)
{
    return index == 0 ? sdk_range_contains(range, frames[0]) : sdk_range_contains_return(range, frames[index]);
}

size_t sdk_range_count(const sdk_range *range, const uintptr_t *frames, size_t count)
{
    size_t found = 0;
    for (size_t index = 0; index < count; index++)
        found += (size_t)contains_frame(range, frames, index);
    return found;
}

size_t sdk_range_first(const sdk_range *range, const uintptr_t *frames, size_t count)
{
    for (size_t index = 0; index < count; index++)
        if (contains_frame(range, frames, index))
            return index;
    return SDK_RANGE_NONE;
}
