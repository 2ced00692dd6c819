/* Threads that wait for an event are cancelled: each call that waits is a cancellation point. What
 * they waited for goes on, and its events go to the next one that waits. */
#include "pair.h"
#include <rdma/rdma_cma.h>
#include <pthread.h>

static struct side sides[2];
static struct side *const a = &sides[0], *const b = &sides[1];
static struct rdma_event_channel *channel;

static void *waits_for_completion(void *unused)
{
    struct ibv_cq *cq;
    void *context;
    (void)unused;
    CHECK(!ibv_get_cq_event(b->channel, &cq, &context) && cq == b->cq);
    ibv_ack_cq_events(cq, 1);
    return b;
}

static void *waits_for_device(void *unused)
{
    struct ibv_async_event event;
    CHECK(!ibv_get_async_event(b->context, &event));
    return unused;
}

static void *waits_for_connection(void *unused)
{
    struct rdma_cm_event *event;
    CHECK(!rdma_get_cm_event(channel, &event));
    return unused;
}

static pthread_t start(void *(*run)(void *))
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, run, NULL));
    return thread;
}

static void cancel(pthread_t thread)
{
    void *result;
    CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result));
    CHECK(result == PTHREAD_CANCELED);
}

int main(void)
{
    make_pair(sides, USUAL);
    channel = rdma_create_event_channel();
    CHECK(channel && !ibv_req_notify_cq(b->cq, 0));
    void *(*const calls[])(void *) = {
        waits_for_completion, waits_for_device, waits_for_connection
    };
    for (int round = 0; round < 3; round++)
        for (int call = 0; call < 3; call++) {
            /* The second one waits beside the first, and makes no progress itself. */
            pthread_t first = start(calls[call]), second = start(calls[call]);
            /* In the first round they are cancelled before they wait, or when they begin. */
            usleep(round * 30000);
            cancel(second);
            cancel(first);
        }
    /* One thread waits on when the other is cancelled, and gets the event. */
    pthread_t first = start(waits_for_completion);
    usleep(30000);
    pthread_t second = start(waits_for_completion);
    usleep(30000);
    cancel(first);
    receive(b, 1, 0, 8);
    send_bytes(a, 2, 0, 8);
    void *result;
    CHECK(!pthread_join(second, &result) && result == b);
    expect(b, 1, IBV_WC_SUCCESS);
    expect(a, 2, IBV_WC_SUCCESS);
    close_pair(sides);
    /* A thread whose channel is destroyed waits on. rping ends so. */
    start(waits_for_connection);
    usleep(30000);
    rdma_destroy_event_channel(channel);
    usleep(300000);
    printf("threads are cancelled where they wait\n");
    return 0;
}
