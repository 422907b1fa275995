/* Writes down what a process does to the files of MATRIX_DIRECTORY, into MATRIX_RECORD: to be loaded before the C library.
 *
 * A record is its kind (1 byte), and twice a size (4 bytes, little-endian) and so many bytes. Nothing here allocates, since a
 * crash handler calls it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *directory, *record;

__attribute__((constructor)) static void begin(void)
{
    directory = getenv("MATRIX_DIRECTORY");
    record = getenv("MATRIX_RECORD");
}

static int is_ours(const char *path)
{
    return directory && record && strncmp(path, directory, strlen(directory)) == 0;
}

/* The path of an open file; 0 where it is none of ours. */
static int path_of(int file, char *path, size_t room)
{
    char link[32];
    int digits = 0;
    for (int rest = file; rest > 0 || digits == 0; rest /= 10)
        digits++;
    memcpy(link, "/proc/self/fd/", 14);
    link[14 + digits] = 0;
    for (int rest = file, at = digits; at > 0; rest /= 10)
        link[14 + --at] = (char)('0' + rest % 10);
    long size = file < 0 ? -1 : syscall(SYS_readlinkat, AT_FDCWD, link, path, room - 1);
    if (size <= 0)
        return 0;
    path[size] = 0;
    return is_ours(path);
}

static void put(char kind, const void *first, uint32_t first_size, const void *second, uint32_t second_size)
{
    int before = errno;
    struct iovec parts[] = {
        {&kind, 1}, {&first_size, 4}, {(void *)first, first_size}, {&second_size, 4}, {(void *)second, second_size},
    };
    long file = syscall(SYS_openat, AT_FDCWD, record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
        /* One call, so that records of several processes do not mix. */
        syscall(SYS_writev, file, parts, 5);
        syscall(SYS_close, file);
    }
    errno = before;
}

static void put_path(char kind, const char *path)
{
    put(kind, path, (uint32_t)strlen(path), "", 0);
}

/* A path that may begin at an open directory, as a whole one; 0 where it is none of ours. */
static int whole(int at, const char *path, char *room, size_t size)
{
    size_t before = 0;
    if (path[0] != '/') {
        if (at == AT_FDCWD || !path_of(at, room, size - 1))
            return 0;
        before = strlen(room);
        room[before++] = '/';
    }
    size_t rest = strlen(path) + 1;
    if (rest > size - before)
        return 0;
    memcpy(room + before, path, rest);
    return is_ours(room);
}

static int open_at(int at, const char *path, int flags, unsigned mode)
{
    char room[4096];
    long file = syscall(SYS_openat, at, path, flags, mode);
    if (file < 0 || !(flags & (O_CREAT | O_TRUNC)) || !whole(at, path, room, sizeof room))
        return (int)file;
    if (flags & O_CREAT)
        put_path('c', room);
    if (flags & O_TRUNC)
        put_path('t', room);
    return (int)file;
}

#define OPEN(name)                                                                                                                 \
    int name(const char *path, int flags, ...)                                                                                     \
    {                                                                                                                              \
        va_list rest;                                                                                                              \
        va_start(rest, flags);                                                                                                     \
        unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, unsigned) : 0;                                              \
        va_end(rest);                                                                                                              \
        return open_at(AT_FDCWD, path, flags, mode);                                                                               \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                                               \
    int name(int at, const char *path, int flags, ...)                                                                             \
    {                                                                                                                              \
        va_list rest;                                                                                                              \
        va_start(rest, flags);                                                                                                     \
        unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, unsigned) : 0;                                              \
        va_end(rest);                                                                                                              \
        return open_at(at, path, flags, mode);                                                                                     \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int file, const void *bytes, size_t size)
{
    char path[4096];
    ssize_t done = syscall(SYS_write, file, bytes, size);
    if (done > 0 && path_of(file, path, sizeof path))
        put('w', path, (uint32_t)strlen(path), bytes, (uint32_t)done);
    return done;
}

static int synced(long number, int file)
{
    char path[4096];
    int answer = (int)syscall(number, file);
    if (answer == 0 && path_of(file, path, sizeof path))
        put_path('s', path);
    return answer;
}

int fsync(int file)
{
    return synced(SYS_fsync, file);
}

int fdatasync(int file)
{
    return synced(SYS_fdatasync, file);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    char before[4096], after[4096];
    int answer = (int)syscall(SYS_renameat2, from_at, from, to_at, to, 0);
    if (answer == 0 && whole(from_at, from, before, sizeof before) && whole(to_at, to, after, sizeof after))
        put('r', before, (uint32_t)strlen(before), after, (uint32_t)strlen(after));
    return answer;
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int at, const char *path, int flags)
{
    char room[4096];
    int answer = (int)syscall(SYS_unlinkat, at, path, flags);
    if (answer == 0 && whole(at, path, room, sizeof room))
        put_path('u', room);
    return answer;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}
