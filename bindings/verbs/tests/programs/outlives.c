/* A process is killed, and another one ends within 2 s, as control.h counts them.
 * Usage: outlives SIGNAL VICTIM SURVIVOR [SLEEPS]
 * Fails if the survivor still runs after so many sleeps. With SIGSTOP the victim only stops. */
#include "control.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int process(const char *number)
{
    int descriptor = (int)syscall(SYS_pidfd_open, atoi(number), 0);
    if (descriptor < 0) {
        fprintf(stderr, "process %s: %s\n", number, strerror(errno));
        exit(1);
    }
    return descriptor;
}

static int has_ended(int descriptor, int timeout_ms)
{
    struct pollfd entry = { .fd = descriptor, .events = POLLIN };
    return poll(&entry, 1, timeout_ms) == 1;
}

int main(int count, char **arguments)
{
    if (count < 4) {
        fprintf(stderr, "usage: outlives SIGNAL VICTIM SURVIVOR [SLEEPS]\n");
        return 1;
    }
    int signal = atoi(arguments[1]);
    int victim = process(arguments[2]), survivor = process(arguments[3]);
    unsigned limit = count > 4 ? (unsigned)atoi(arguments[4]) : SLEEPS;
    start_control();
    if (has_ended(survivor, 0) || kill(atoi(arguments[2]), signal)) {
        fprintf(stderr, "one of the two had ended before\n");
        return 1;
    }
    /* What the kernel needs for its end is not the survivor's time. */
    if (signal != SIGSTOP)
        has_ended(victim, -1);
    unsigned begin = atomic_load(&slept);
    while (!has_ended(survivor, SLEEP_MS))
        if (atomic_load(&slept) - begin > limit) {
            printf("the other one still runs after %u sleeps of %d ms\n", limit, SLEEP_MS);
            return 1;
        }
    printf("the other one ended after %u sleeps of %d ms\n", atomic_load(&slept) - begin, SLEEP_MS);
    return 0;
}
