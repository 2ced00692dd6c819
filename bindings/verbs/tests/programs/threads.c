/* Several threads and processes use queue pairs and completion queues as programs do: together,
 * each its own, while others end them; after a fork; and closed in every order. */
#include "pair.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static struct side sides[2];
static struct side *const a = &sides[0], *const b = &sides[1];

enum { THREADS = 4, EACH = 1500 };

static pthread_t start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, run, argument));
    return thread;
}

static void join(pthread_t thread) { CHECK(!pthread_join(thread, NULL)); }

/* How often each message was seen, at its sender and at its receiver. */
static atomic_int sent[THREADS * EACH], received[THREADS * EACH];
static atomic_int polled[2];

/* Sends messages that carry their number. A full queue is tried again. */
static void *sends(void *argument)
{
    uint64_t first = (uintptr_t)argument * EACH;
    for (uint64_t id = first; id < first + EACH; id++) {
        uint64_t bytes = id;
        struct ibv_sge sge = { (uintptr_t)&bytes, sizeof bytes, 0 };
        struct ibv_send_wr wr = request(IBV_WR_SEND, id, &sge), *bad;
        wr.send_flags |= IBV_SEND_INLINE;
        int result;
        double end = now() + 60;
        while ((result = ibv_post_send(a->qp, &wr, &bad)) == ENOMEM)
            CHECK(now() < end);
        CHECK(!result);
    }
    return NULL;
}

/* Polls one side's queue beside another thread, and posts each receive again. */
static void *polls(void *argument)
{
    int which = (int)(uintptr_t)argument;
    struct side *side = &sides[which];
    double end = now() + 60;
    while (atomic_load(&polled[which]) < THREADS * EACH) {
        struct ibv_wc wc[4];
        int count = ibv_poll_cq(side->cq, 4, wc);
        CHECK(count >= 0 && now() < end);
        for (int i = 0; i < count; i++) {
            CHECK(wc[i].status == IBV_WC_SUCCESS);
            uint64_t id = wc[i].wr_id;
            if (which == 1) {
                CHECK(wc[i].opcode == IBV_WC_RECV && wc[i].byte_len == 8);
                memcpy(&id, side->memory + wc[i].wr_id * 8, 8);
                receive(side, wc[i].wr_id, wc[i].wr_id * 8, 8);
            }
            CHECK(id < THREADS * EACH);
            atomic_fetch_add(which ? &received[id] : &sent[id], 1);
            atomic_fetch_add(&polled[which], 1);
        }
    }
    return NULL;
}

/* Four threads send by one queue pair, and two poll each completion queue. */
static void together(void)
{
    make_pair(sides, USUAL);
    for (uint64_t slot = 0; slot < 100; slot++)
        receive(b, slot, slot * 8, 8);
    pthread_t threads[THREADS + 4];
    for (uintptr_t i = 0; i < 4; i++)
        threads[THREADS + i] = start(polls, (void *)(i % 2));
    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = start(sends, (void *)i);
    for (int i = 0; i < THREADS + 4; i++)
        join(threads[i]);
    for (int id = 0; id < THREADS * EACH; id++)
        CHECK(sent[id] == 1 && received[id] == 1);
    close_pair(sides);
}

/* A pair of queue pairs of two contexts that all threads share. */
static void *own_pair(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    struct how how = USUAL;
    struct side own[2] = { *a, *b };
    for (int i = 0; i < 2; i++) {
        own[i].cq = ibv_create_cq(own[i].context, 64, NULL, NULL, 0);
        CHECK(own[i].cq);
        create_qp(&own[i], &how, NULL);
    }
    ready(&own[0], &own[1], &how);
    ready(&own[1], &own[0], &how);
    for (uint64_t round = 0; round < 300; round++)
        for (int i = 0; i < 2; i++) {
            receive(&own[!i], round, 4096 * number, 64);
            own[i].memory[4096 * number + 2048] = (char)round;
            send_bytes(&own[i], round + 1000, 4096 * number + 2048, 64);
            expect(&own[!i], round, IBV_WC_SUCCESS);
            expect(&own[i], round + 1000, IBV_WC_SUCCESS);
            CHECK(own[!i].memory[4096 * number] == (char)round);
        }
    for (int i = 0; i < 2; i++) {
        CHECK(!ibv_destroy_qp(own[i].qp));
        CHECK(!ibv_destroy_cq(own[i].cq));
    }
    return NULL;
}

static void apart(void)
{
    struct how how = USUAL;
    how.sides_ready = 0;
    make_pair(sides, how);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = start(own_pair, (void *)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    close_pair(sides);
}

static atomic_int ends, looked;

static void *polls_on(void *unused)
{
    struct ibv_wc wc;
    while (!ends) {
        CHECK(ibv_poll_cq(b->cq, 1, &wc) >= 0);
        looked++;
    }
    return unused;
}

static void *waits_for_event(void *unused)
{
    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_get_cq_event(b->channel, &cq, &context) && cq == b->cq && context == b);
    ibv_ack_cq_events(cq, 1);
    return unused;
}

static void *waits_for_async(void *unused)
{
    struct ibv_async_event event;
    CHECK(!ibv_get_async_event(b->context, &event));
    CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR && event.element.qp == b->qp);
    ibv_ack_async_event(&event);
    return unused;
}

/* Queue pairs end while a thread polls, and two sleep until something comes. */
static void ended_meanwhile(void)
{
    struct how how = USUAL;
    for (int i = 0; i < 2; i++)
        open_side(&sides[i], &how);
    pthread_t poller = start(polls_on, NULL);
    for (double end = now() + 60; !looked;)
        CHECK(now() < end);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 2; i++)
            create_qp(&sides[i], &how, NULL);
        ready(a, b, &how);
        ready(b, a, &how);
        for (uint64_t id = 0; id < 8; id++) {
            receive(b, id, 0, 64);
            send_bytes(a, id, 0, 64);
        }
        /* Some have arrived by now, and some have not. */
        CHECK(!ibv_destroy_qp(sides[round % 2].qp));
        CHECK(!ibv_destroy_qp(sides[1 - round % 2].qp));
        sides[0].qp = sides[1].qp = NULL;
        struct ibv_wc wc;
        while (ibv_poll_cq(a->cq, 1, &wc))
            CHECK(wc.qp_num != 0);
    }
    ends = 1;
    join(poller);
    for (int i = 0; i < 2; i++)
        create_qp(&sides[i], &how, NULL);
    ready(a, b, &how);
    ready(b, a, &how);
    /* Of the receives of a queue pair that ended nothing is left. */
    nothing(b);
    CHECK(!ibv_req_notify_cq(b->cq, 0));
    pthread_t event = start(waits_for_event, NULL), async = start(waits_for_async, NULL);
    receive(b, 1, 0, 64);
    send_bytes(a, 2, 0, 64);
    join(event);
    expect(b, 1, IBV_WC_SUCCESS);
    struct ibv_sge sge = part(a, 0, 8);
    struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, 3, &sge);
    wr.wr.rdma.remote_addr = (uintptr_t)b->memory;
    wr.wr.rdma.rkey = b->mr->rkey ^ 0x100;
    post(a, &wr);
    join(async);
    close_pair(sides);
}

static void one_message(uint64_t id)
{
    receive(b, id, 64, 8);
    send_bytes(a, id + 1, 0, 8);
    expect(b, id, IBV_WC_SUCCESS);
    expect(a, id + 1, IBV_WC_SUCCESS);
}

/* Children that end in each way, start programs, or open devices themselves, leave their parent's
 * queue pairs alone. */
static void forks(void)
{
    CHECK(!ibv_fork_init());
    make_pair(sides, USUAL);
    for (int way = 0; way < 4; way++) {
        one_message(10);
        receive(b, 5, 0, 8);
        fflush(NULL);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(60);
            /* The child has its own copy of the memory. */
            memset(a->memory, 'c', SIZE);
            if (way == 0)
                _exit(0);
            if (way == 1)
                exit(0);
            if (way == 2) {
                execl("/bin/true", "true", NULL);
                _exit(1);
            }
            /* It opens the devices anew. */
            make_pair(sides, USUAL);
            one_message(20);
            close_pair(sides);
            exit(0);
        }
        memset(a->memory, 'p', 8);
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        send_bytes(a, 6, 0, 8);
        expect(b, 5, IBV_WC_SUCCESS);
        CHECK(!memcmp(b->memory, "pppppppp", 8));
        expect(a, 6, IBV_WC_SUCCESS);
    }
    close_pair(sides);
}

/* Ends one object of a side, if nothing uses it. */
static int end_of(int object, struct side *side)
{
    switch (object) {
    case 0: return ibv_destroy_qp(side->qp);
    case 1: return ibv_destroy_cq(side->cq);
    case 2: return ibv_destroy_comp_channel(side->channel);
    case 3: return ibv_dereg_mr(side->mr);
    default: return ibv_dealloc_pd(side->pd);
    }
}

/* What is in use stays, and says so; all else ends in any order. */
static void orders(void)
{
    enum { OBJECTS = 5 };
    for (int order = 0; order < 120; order += 7) {
        struct how how = USUAL;
        make_pair(sides, how);
        one_message(1);
        int left[OBJECTS] = { 0, 1, 2, 3, 4 }, chosen[OBJECTS], code = order;
        for (int i = 0; i < OBJECTS; i++) {
            int place = code % (OBJECTS - i);
            code /= OBJECTS - i;
            chosen[i] = left[place];
            left[place] = left[OBJECTS - 1 - i];
        }
        int ended[OBJECTS] = { 0 };
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < OBJECTS; i++) {
                int object = chosen[i];
                if (ended[object])
                    continue;
                int is_used = (object == 1 && !ended[0]) || (object == 2 && !ended[1]) ||
                    (object == 4 && !(ended[0] && ended[3]));
                CHECK(end_of(object, a) == (is_used ? EBUSY : 0));
                ended[object] = !is_used;
            }
        for (int i = 0; i < OBJECTS; i++)
            CHECK(ended[i]);
        CHECK(!ibv_close_device(a->context));
        free(a->memory);
        /* The peer's end is no error here. */
        close_side(b);
    }
}

/* A program has a device open twice, and closes either first. */
static void twice(void)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list && count > 0);
    for (int first = 0; first < 2; first++) {
        struct ibv_context *both[2] = { ibv_open_device(list[0]), ibv_open_device(list[0]) };
        CHECK(both[0] && both[1] && both[0] != both[1]);
        CHECK(!ibv_close_device(both[first]));
        struct ibv_port_attr port;
        CHECK(!ibv_query_port(both[!first], 1, &port) && port.state == IBV_PORT_ACTIVE);
        CHECK(!ibv_close_device(both[!first]));
    }
    ibv_free_device_list(list);
}

int main(void)
{
    together();
    apart();
    ended_meanwhile();
    forks();
    orders();
    twice();
    return 0;
}
