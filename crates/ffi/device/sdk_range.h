/* Whose code is it, on the device: does an address, or a stack, lie in the code of an SDK that was linked into the app?
 *
 * For crash handlers of SDKs. Copy this header and sdk_range.c into the SDK; neither needs anything else of backtrail.
 * Every function may be called in a signal handler: none allocates, locks, writes, or calls another library.
 * C99 or later, C++11 or later, Objective-C; Mach-O and ELF; GCC and Clang.
 */
#ifndef SDK_RANGE_H
#define SDK_RANGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where code lies. `start` and `end` (not part of it) are addresses of this process less `slide`. All zero: not known. */
typedef struct sdk_range {
    uintptr_t start;
    uintptr_t end;
    uintptr_t slide;
} sdk_range;

/* What sdk_range_first gives where no frame lies in the range. */
#define SDK_RANGE_NONE ((size_t)-1)

/* By a stamp: `backtrail sdk stamp LIB -n NAME`. At file scope SDK_RANGE_STAMP(NAME); after it, SDK_RANGE_OF_STAMP(NAME) is
 * the sdk_range. Compile it into the SDK itself. Not known where the linker joined the code with other code. */
#if defined(__APPLE__)
#define SDK_RANGE_STAMP(NAME)                                                                                                \
    extern const char sdk_range_start_##NAME __asm("section$start$__TEXT$__text_" #NAME);                                   \
    extern const char sdk_range_end_##NAME __asm("section$end$__TEXT$__text_" #NAME)
#define SDK_RANGE_OF_STAMP(NAME) sdk_range_between(&sdk_range_start_##NAME, &sdk_range_end_##NAME)
#else
#define SDK_RANGE_STAMP(NAME)                                                                                                \
    extern const char __start_text_##NAME[] __attribute__((weak, visibility("hidden")));                                    \
    extern const char __stop_text_##NAME[] __attribute__((weak, visibility("hidden")))
#define SDK_RANGE_OF_STAMP(NAME) sdk_range_between(__start_text_##NAME, __stop_text_##NAME)
#endif

/* By marker functions: the first and the last function of the SDK, or any two pointers into it. The linker must have kept
 * their order; an order file, dead stripping of a marker, or folding of equal functions break it, unnoticed as a rule. */
#define SDK_RANGE_OF_MARKERS(FIRST, LAST) sdk_range_between((const void *)(uintptr_t)(FIRST), (const void *)(uintptr_t)(LAST))

/* From `first` to before `last`; not known where they are in another order. */
sdk_range sdk_range_between(const void *first, const void *last);

/* By two addresses as the file states them (SVMA; `backtrail sdk map` prints them), and the image's slide:
 * _dyld_get_image_vmaddr_slide(index) on Apple's systems, dlpi_addr of dl_iterate_phdr elsewhere. */
sdk_range sdk_range_at(uintptr_t start, uintptr_t end, uintptr_t slide);

/* Whether anything is known: 1 or 0. */
int sdk_range_is_known(const sdk_range *range);

/* Whether an instruction's address lies in the range: 1 or 0. Give the exact address: the program counter of the signal's
 * context, not a return address. Pointer authentication codes and the Thumb bit do not matter. */
int sdk_range_contains(const sdk_range *range, uintptr_t address);

/* Whether a return address lies in the range: one instruction behind the call, which may be the last of its function. */
int sdk_range_contains_return(const sdk_range *range, uintptr_t address);

/* Of a stack, innermost first, how many frames lie in the range; `frames[0]` is exact, all others are return addresses. */
size_t sdk_range_count(const sdk_range *range, const uintptr_t *frames, size_t count);

/* The innermost of them; SDK_RANGE_NONE where there is none. 0: the SDK's own code was running. */
size_t sdk_range_first(const sdk_range *range, const uintptr_t *frames, size_t count);

#ifdef __cplusplus
}
#endif

#endif
