/* Kinds of crashes, for programs of any language. */
#ifndef KINDS_H
#define KINDS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Limits what the process may leave, and starts its threads. To be called after the handler was installed, or where there is none. */
void kinds_begin(const char *kind, const char *directory);
/* Crashes. Does not return, but of a kind that there is not. */
void kinds_crash(const char *kind);
/* Crashes in the way that the last part of `pair-OUTER-INNER` says. For a filter; returns where the kind is no pair. */
void kinds_crash_within(void);
/* Kinds in C++. Returns 0 where there is no such kind. */
int kinds_crash_in_cpp(const char *kind);

/* Installs the handler by the C API; 0 where that worked. No directory: installs nothing. */
int host_install(const char *kind, const char *directory);
/* The whole of it: what a host calls that has no handler of its own. */
int host_run(const char *kind, const char *directory);

#ifdef __cplusplus
}
#endif
#endif
