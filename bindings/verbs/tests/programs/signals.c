/* A program that blocks a signal in its own threads, and reads it from a descriptor, gets it. The
 * library's threads leave it alone, and its default action does not happen. */
#include "pair.h"
#include <rdma/rdma_cma.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int main(void)
{
    struct side sides[2];
    make_pair(sides, USUAL);
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    CHECK(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    /* All of their threads run now. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    CHECK(!sigprocmask(SIG_BLOCK, &signals, NULL));
    int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
    CHECK(descriptor >= 0);
    for (int round = 0; round < 20; round++) {
        struct signalfd_siginfo told;
        struct pollfd entry = { .fd = descriptor, .events = POLLIN };
        CHECK(!kill(getpid(), SIGTERM));
        CHECK(poll(&entry, 1, 60000) == 1);
        CHECK(read(descriptor, &told, sizeof told) == sizeof told && told.ssi_signo == SIGTERM);
    }
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
    printf("signals of the program stay with it\n");
    return 0;
}
