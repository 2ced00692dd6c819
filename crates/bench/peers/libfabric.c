/* Peer: libfabric's provider `shm`, or one for a network. Tagged messages two-sided, writes into
 * registered memory one-sided. */
#include "peer.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

static struct fid_domain *domain;
static struct fid_ep *endpoint;
static struct fid_cq *completions;
static fi_addr_t other;
static uint64_t their_key, their_address;
static volatile uint64_t *own_window;
static char *buffers;

enum { WARM_UP = 16, BATCH = 16 };

static void must(long status, const char *what) {
    if (status < 0)
        peer_fail("%s: %s", what, fi_strerror((int)-status));
}

/* A posted operation: its completion sets `done`. The provider owns the first part until then. */
struct posted {
    struct fi_context context;
    int done;
};

/* Takes completions, which also drives the library. */
static inline void progress(void) {
    struct fi_cq_entry entries[BATCH];
    ssize_t got = fi_cq_read(completions, entries, BATCH);
    if (got == -FI_EAGAIN)
        return;
    must(got, "fi_cq_read");
    for (ssize_t at = 0; at < got; at++)
        if (entries[at].op_context != NULL)
            ((struct posted *)entries[at].op_context)->done = 1;
}

static inline void await(struct posted *posted) {
    while (!posted->done)
        progress();
}

/* Repeats a call while the provider has no room. */
#define POST(call)                                                                                                    \
    do {                                                                                                              \
        ssize_t status;                                                                                               \
        while ((status = (call)) == -FI_EAGAIN)                                                                       \
            progress();                                                                                               \
        must(status, #call);                                                                                          \
    } while (0)

/* Small messages are injected: the buffer is free at once, and no completion follows. */
static inline void send_small(uint64_t number) {
    POST(fi_tinject(endpoint, &number, sizeof number, other, 1));
}

/* Longest message that can be injected. */
static size_t inject_bytes;

static inline void send_message(char *message, size_t bytes) {
    static struct posted sending;
    if (bytes <= inject_bytes) {
        POST(fi_tinject(endpoint, message, bytes, other, 1));
        return;
    }
    sending.done = 0;
    POST(fi_tsend(endpoint, message, bytes, NULL, other, 1, &sending.context));
    await(&sending);
}

static inline void post_receive(void *message, size_t bytes, struct posted *posted) {
    posted->done = 0;
    POST(fi_trecv(endpoint, message, bytes, NULL, other, 1, 0, &posted->context));
}

static void ping_pong(size_t bytes, uint64_t count) {
    static char out[LARGEST_LATENCY_BYTES], in[LARGEST_LATENCY_BYTES];
    static struct posted receiving;
    if (peer_side == FOLLOWER)
        post_receive(in, bytes, &receiving);
    for (uint64_t number = 0; number < count; number++) {
        if (peer_side == FOLLOWER) {
            await(&receiving);
            peer_check_message(number, in, bytes);
        }
        peer_mark(out, bytes, number);
        send_message(out, bytes);
        if (peer_side == LEADER || number + 1 < count)
            post_receive(in, bytes, &receiving);
        if (peer_side == LEADER) {
            await(&receiving);
            peer_check_message(number, in, bytes);
        }
    }
}

/* Messages from the leader to the follower with `slots` in flight, ended by one message back. */
static void one_way(size_t bytes, uint64_t count, unsigned slots) {
    static struct posted requests[RATE_WINDOW];
    uint64_t posted = 0, last = count;
    if (peer_side == LEADER) {
        for (uint64_t number = 0; number < count; number++) {
            if (bytes == sizeof number) {
                send_small(number);
                continue;
            }
            char *message = buffers + number % slots * bytes;
            struct posted *request = &requests[number % slots];
            if (number >= slots)
                await(request);
            memcpy(message, &number, sizeof number);
            request->done = 0;
            POST(fi_tsend(endpoint, message, bytes, NULL, other, 1, &request->context));
        }
        for (uint64_t slot = 0; bytes > sizeof last && slot < slots && slot < count; slot++)
            await(&requests[slot]);
        post_receive(&last, sizeof last, &requests[0]);
        await(&requests[0]);
        peer_check(count, last);
        return;
    }
    for (; posted < slots && posted < count; posted++)
        post_receive(buffers + posted % slots * bytes, bytes, &requests[posted % slots]);
    for (uint64_t number = 0; number < count; number++) {
        char *message = buffers + number % slots * bytes;
        uint64_t stamp;
        await(&requests[number % slots]);
        memcpy(&stamp, message, sizeof stamp);
        peer_check(number, stamp);
        if (posted < count)
            post_receive(message, bytes, &requests[posted++ % slots]);
    }
    send_small(count);
}

static void await_value(uint64_t value) {
    while (*own_window != value) /* a write progresses only while its target is driven too */
        progress();
}

static void put_ping_pong(uint64_t count) {
    static uint64_t value; /* never repeats, because the window is not cleared between runs */
    for (uint64_t number = 0; number < count; number++) {
        value++;
        if (peer_side == FOLLOWER)
            await_value(value);
        POST(fi_inject_write(endpoint, &value, sizeof value, other, their_address, their_key));
        if (peer_side == LEADER)
            await_value(value);
    }
}

/* The follower drives its side until a message from the leader says that all writes are
 * complete. */
static void put_stream(size_t bytes, uint64_t count) {
    static struct posted requests[STREAM_WINDOW];
    static uint64_t last;
    if (peer_side == FOLLOWER) {
        post_receive(&last, sizeof last, &requests[0]);
        await(&requests[0]);
        return;
    }
    for (uint64_t number = 0; number < count; number++) {
        struct posted *request = &requests[number % STREAM_WINDOW];
        if (number >= STREAM_WINDOW)
            await(request);
        request->done = 0;
        POST(fi_write(endpoint, buffers, bytes, NULL, other, their_address, their_key, &request->context));
    }
    for (uint64_t slot = 0; slot < STREAM_WINDOW && slot < count; slot++)
        await(&requests[slot]);
    send_small(count);
}

static uint64_t peer_run(enum op op, size_t bytes, uint64_t count) {
    if (op == PUT_LATENCY)
        put_ping_pong(WARM_UP);
    else
        ping_pong(sizeof(uint64_t), WARM_UP);
    uint64_t start = peer_now_ns();
    switch (op) {
    case LATENCY: ping_pong(bytes, count); break;
    case PUT_LATENCY: put_ping_pong(count); break;
    case RATE: one_way(bytes, count, RATE_WINDOW); break;
    case STREAM: one_way(bytes, count, STREAM_WINDOW); break;
    default: put_stream(bytes, count);
    }
    return peer_now_ns() - start;
}

/* `address`: ours on the network, or NULL for shared memory. */
static struct fi_info *find_provider(const char *name, const char *address) {
    struct fi_info *hints = fi_allocinfo(), *info;
    uint64_t flags = address == NULL ? 0 : FI_SOURCE;
    hints->caps = address == NULL ? FI_TAGGED | FI_RMA : FI_TAGGED;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->fabric_attr->prov_name = strdup(name);
    must(fi_getinfo(FI_VERSION(1, 11), address, NULL, flags, hints, &info), "fi_getinfo");
    inject_bytes = info->tx_attr->inject_size;
    fi_freeinfo(hints);
    return info;
}

static void open_fabric(struct fi_info *info) {
    struct fid_fabric *fabric;
    struct fid_av *addresses;
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = 1024};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 2};
    char own[512], theirs[512];
    size_t len = sizeof own;
    must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    must(fi_cq_open(domain, &cq, &completions, NULL), "fi_cq_open");
    must(fi_av_open(domain, &av, &addresses, NULL), "fi_av_open");
    must(fi_endpoint(domain, info, &endpoint, NULL), "fi_endpoint");
    must(fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    must(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
    must(fi_enable(endpoint), "fi_enable");
    must(fi_getname(&endpoint->fid, own, &len), "fi_getname");
    peer_exchange(own, len, theirs, sizeof theirs);
    if (fi_av_insert(addresses, theirs, 1, &other, 0, NULL) != 1)
        peer_fail("fi_av_insert took no address");
}

static void share_window(struct fi_info *info) {
    struct fid_mr *region;
    void *memory = peer_buffer(LARGEST_PUT_BYTES);
    memset(memory, 0, LARGEST_PUT_BYTES);
    own_window = memory;
    must(fi_mr_reg(domain, memory, LARGEST_PUT_BYTES, FI_REMOTE_WRITE, 0, 1, 0, &region, NULL), "fi_mr_reg");
    uint64_t key = fi_mr_key(region);
    uint64_t address = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
    peer_exchange(&key, sizeof key, &their_key, sizeof their_key);
    peer_exchange(&address, sizeof address, &their_address, sizeof their_address);
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 6)
        peer_fail("expected two CPU numbers, and a network's provider and two addresses");
    peer_fork(atoi(argv[1]), atoi(argv[2]));
    buffers = peer_buffer(LARGEST_PUT_BYTES);
    struct fi_info *info = argc == 3 ? find_provider("shm", NULL) : find_provider(argv[3], argv[4 + peer_side]);
    open_fabric(info);
    if (argc == 3)
        share_window(info);
    peer_serve(argc == 3 ? "latency put_latency rate stream put_stream put_rate" : "latency rate stream");
    fi_close(&endpoint->fid);
    return 0;
}
