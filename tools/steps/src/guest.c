/* Recursion, many arguments, large frames, aligned frames, alloca, tail calls, function pointers, libc's assembly,
   floating point, signals in a function's midst and in a call to nowhere. Watched instruction by instruction. */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static jmp_buf back;
static sigjmp_buf out;
static volatile int seen;
#define N __attribute__((noinline, noclone))
N int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
N int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
N int large(int n) { volatile char room[5000]; room[n] = (char)n; return room[n] + fib(3); }
N int huge(int n) { volatile char room[70000]; room[n] = (char)n; return room[n] + fib(2); }
N int aligned(int n) {
    volatile __attribute__((aligned(64))) char room[128]; room[n] = 1; return room[n] + fib(2);
}
N int variable(int n) { char *room = alloca(n); memset(room, n, n); return room[n / 2] + fib(2); }
N int tail(int n) { return n > 50 ? fib(n - 50) : fib(n); }
N int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j) {
    int x = fib(a % 3), y = fib(b % 3), z = fib(c % 3);
    return x * y + z + d * e + f * g + h + i * j + fib(h % 2);
}
N double reals(double a, double b, double c, double d) {
    double x = a * fib(3), y = b * fib(2), z = c * fib(1);
    return x + y * z + d + x * y * z * fib(2);
}
N int early(int n) {
    if (n == 0) return 1;
    if (n == 1) { puts("one"); return 2; }
    int x = fib(n % 4);
    if (x > 2) return early(n - 3) + 1;
    return x + early(n - 1) * 2;
}
struct big { long words[12]; };
N struct big give(int n) { struct big b; memset(&b, n, sizeof b); b.words[n % 12] = fib(3); return b; }
N int choose(int n) {
    switch (n) {
    case 0: return fib(1); case 1: return early(2); case 2: return fib(3); case 3: return large(4);
    case 4: return tail(2); case 5: return fib(2) * 3; default: return n; }
}
N int variadic(int n, ...) {
    va_list list; int sum = 0; va_start(list, n);
    while (n--) sum += va_arg(list, int) + fib(1);
    va_end(list); return sum;
}
N void leap(int n) { if (n == 0) longjmp(back, 1); leap(n - 1); }
N int leaf(int a, int b) { return a * 3 + b; }
N void on_signal(int number) {
    seen += leaf(number, 2) + fib(2);
    if (number == SIGSEGV) siglongjmp(out, 1);
}
typedef int (*nowhere)(int);
static volatile nowhere target;
N int call_nowhere(int n) { int x = target(n); return x + fib(n); }
N int spoil(int n) { volatile int *bad = (int *)(long)(n + 16); return *bad + fib(n); }
int main(void) {
    int numbers[40]; char text[400];
    struct sigaction action;
    for (int i = 0; i < 40; i++) numbers[i] = (i * 7919) % 101;
    qsort(numbers, 40, sizeof *numbers, order);
    int sum = large(17) + huge(9) + aligned(3) + variable(100) + tail(5) + many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    sum += (int)reals(1.5, 2.5, 3.5, 4.5) + early(7) + (int)give(3).words[3] + variadic(4, 1, 2, 3, 4);
    for (int i = 0; i < 7; i++) sum += choose(i);
    if (!setjmp(back)) leap(3);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    raise(SIGUSR1);
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    if (!sigsetjmp(out, 1)) call_nowhere(2);
    if (!sigsetjmp(out, 1)) spoil(2);
    snprintf(text, sizeof text, "%d %s %f %p %*d", sum, "text", sum / 3.0, (void *)numbers, 7, seen);
    char *copy = strdup(text); sum += (int)strlen(copy);
    copy = realloc(copy, 5000); memmove(copy + 7, copy, 300); sum += strcmp(copy, text) + (strchr(copy, 'x') != NULL);
    sum += memcmp(copy + 8, text, 100) > 0; free(copy);
    double d = strtod("12.5e3", NULL);
    time_t now = 86400; struct tm when; gmtime_r(&now, &when); strftime(text, sizeof text, "%Y %H:%M", &when);
    sum += getenv("HOME") != NULL; long long big = sum * 1234567ll; sum += (int)(big / (numbers[5] + 3));
    printf("%d %g %s\n", sum, d, text); fflush(stdout);
    return 0;
}
