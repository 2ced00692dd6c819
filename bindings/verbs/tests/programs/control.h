/* A clock that a full machine slows down, for limits that the protocol promises.
 *
 * The promise is that a peer's end is noticed within 2 s: the protocol's timers add up to less. A
 * machine whose processors are busy adds to that after each timer, and that is no fault. So the
 * limit is not 2 s of the wall's clock, but 200 sleeps of 10 ms of a thread of a lower priority. On
 * an idle machine they take 2 s and little more. On a full one this thread waits for a processor at
 * least as long as the survivor does after a timer. So the limit can be too patient, and never too
 * strict. Much lower priorities may wait for seconds. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLEEP_MS = 10, SLEEPS = 200 };

static atomic_uint slept;

static void *sleeps(void *unused)
{
    const struct timespec one = { 0, SLEEP_MS * 1000000L };
    /* On Linux a priority is a thread's. */
    errno = 0;
    if (nice(5) == -1 && errno) {
        perror("nice");
        exit(1);
    }
    for (;;) {
        nanosleep(&one, NULL);
        atomic_fetch_add(&slept, 1);
    }
    return unused;
}

static void start_control(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeps, NULL)) {
        fprintf(stderr, "no thread for the clock\n");
        exit(1);
    }
}
