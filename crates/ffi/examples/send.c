/* Sends what earlier crashes left, as a program does at its next start, if its user agreed.
 *
 *     cc send.c $(pkg-config --cflags --libs backtrail) -o send
 *     ./send crashes https://KEY@crashes.example.org/api/1/reports/
 */
#include <backtrail.h>
#include <stdio.h>

static void left(void *context, const char *path, const char *reason)
{
    (void)context;
    printf("%s: %s\n", path, reason);
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    backtrail_crash_upload upload = {.size = sizeof upload, .url = arguments[2]};
    backtrail_crash_outcome outcome = {.size = sizeof outcome};
    if (backtrail_crash_send_pending(arguments[1], &upload, &outcome, left, NULL) != BACKTRAIL_OK) {
        fprintf(stderr, "%s\n", backtrail_last_error());
        return 1;
    }
    printf("%u crashes and %u runs sent\n", outcome.sent, outcome.sessions);
    return outcome.left != 0;
}
