/* Peer: UCX over shared memory or TCP. Tagged messages two-sided, puts into memory that UCX
 * allocated one-sided. */
#include "peer.h"

#include <ucp/api/ucp.h>

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h endpoint;
static ucp_rkey_h their_key;
static uint64_t their_address;
static ucp_mem_h window;
static volatile uint64_t *own_window; /* the other side puts into this */
static char *buffers;                 /* the stream's buffers, or a put's source */

enum { WARM_UP = 16 };

static void must(ucs_status_t status, const char *what) {
    if (status != UCS_OK)
        peer_fail("%s: %s", what, ucs_status_string(status));
}

static void must_post(ucs_status_ptr_t request, const char *what) {
    if (UCS_PTR_IS_ERR(request))
        must(UCS_PTR_STATUS(request), what);
}

/* Completions set the flag that the request was posted with. */
static void sent(void *request, ucs_status_t status, void *flag) {
    must(status, "a send failed");
    *(volatile int *)flag = 1;
    ucp_request_free(request);
}

static void received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *flag) {
    (void)info;
    must(status, "a receive failed");
    *(volatile int *)flag = 1;
    ucp_request_free(request);
}

static inline void post_send(const void *message, size_t bytes, int *flag) {
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = sent,
        .user_data = flag,
    };
    *flag = 0;
    ucs_status_ptr_t request = ucp_tag_send_nbx(endpoint, message, bytes, 1, &parameters);
    if (request == NULL)
        *flag = 1;
    else
        must_post(request, "ucp_tag_send_nbx");
}

static inline void post_receive(void *message, size_t bytes, int *flag) {
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv = received,
        .user_data = flag,
    };
    *flag = 0;
    must_post(ucp_tag_recv_nbx(worker, message, bytes, 1, ~(ucp_tag_t)0, &parameters), "ucp_tag_recv_nbx");
}

static inline void await(int *flag) {
    while (!*(volatile int *)flag)
        ucp_worker_progress(worker);
}

/* Each side posts its next receive while its own message is in flight, off the critical path. */
static void ping_pong(size_t bytes, uint64_t count) {
    static char out[LARGEST_LATENCY_BYTES], in[LARGEST_LATENCY_BYTES];
    int sending = 1, receiving;
    if (peer_side == FOLLOWER)
        post_receive(in, bytes, &receiving);
    for (uint64_t number = 0; number < count; number++) {
        if (peer_side == FOLLOWER) {
            await(&receiving);
            peer_check_message(number, in, bytes);
        }
        peer_mark(out, bytes, number);
        post_send(out, bytes, &sending);
        if (peer_side == LEADER || number + 1 < count)
            post_receive(in, bytes, &receiving);
        await(&sending);
        if (peer_side == LEADER) {
            await(&receiving);
            peer_check_message(number, in, bytes);
        }
    }
}

/* Messages from the leader to the follower with `window` in flight, ended by one message back. */
static void one_way(size_t bytes, uint64_t count, unsigned window) {
    static int flags[RATE_WINDOW];
    uint64_t posted = 0;
    if (peer_side == LEADER) {
        for (uint64_t number = 0; number < count; number++) {
            char *message = buffers + number % window * bytes;
            int *flag = &flags[number % window];
            if (number >= window)
                await(flag);
            memcpy(message, &number, sizeof number);
            post_send(message, bytes, flag);
        }
        for (uint64_t slot = 0; slot < window && slot < count; slot++)
            await(&flags[slot]);
    } else {
        for (; posted < window && posted < count; posted++)
            post_receive(buffers + posted % window * bytes, bytes, &flags[posted % window]);
        for (uint64_t number = 0; number < count; number++) {
            uint64_t stamp;
            await(&flags[number % window]);
            memcpy(&stamp, buffers + number % window * bytes, sizeof stamp);
            peer_check(number, stamp);
            if (posted < count) {
                post_receive(buffers + posted % window * bytes, bytes, &flags[posted % window]);
                posted++;
            }
        }
    }
    uint64_t last = count;
    int flag;
    if (peer_side == LEADER) {
        post_receive(&last, sizeof last, &flag);
        await(&flag);
        peer_check(count, last);
    } else {
        post_send(&last, sizeof last, &flag);
        await(&flag);
    }
}

static inline void put(const void *source, size_t bytes, int *flag) {
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = sent,
        .user_data = flag,
    };
    *flag = 0;
    ucs_status_ptr_t request = ucp_put_nbx(endpoint, source, bytes, their_address, their_key, &parameters);
    if (request == NULL)
        *flag = 1;
    else
        must_post(request, "ucp_put_nbx");
}

/* Waits for a value in memory. The put needs no help of ours, so the library is driven only now and
 * then. */
static inline void await_value(uint64_t value) {
    for (unsigned turn = 1; *own_window != value; turn++) {
        if (turn % 256 == 0)
            ucp_worker_progress(worker);
        __builtin_ia32_pause();
    }
}

static void put_ping_pong(uint64_t count) {
    static uint64_t base;
    uint64_t value;
    int flag = 1;
    /* Values never repeat, because the window is not cleared between runs. */
    for (uint64_t number = 0; number < count; number++) {
        value = ++base;
        if (peer_side == FOLLOWER)
            await_value(value);
        await(&flag);
        put(&value, sizeof value, &flag);
        if (peer_side == LEADER)
            await_value(value);
    }
    await(&flag);
}

static void await_request(ucs_status_ptr_t request, const char *what) {
    must_post(request, what);
    if (request == NULL)
        return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    ucp_request_free(request);
}

static void put_stream(size_t bytes, uint64_t count) {
    int flag = 1;
    for (uint64_t number = 0; number < count; number++) {
        await(&flag);
        put(buffers, bytes, &flag);
    }
    await(&flag);
    ucp_request_param_t parameters = {0};
    await_request(ucp_ep_flush_nbx(endpoint, &parameters), "ucp_ep_flush_nbx");
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
    default:
        if (peer_side == LEADER)
            put_stream(bytes, count);
    }
    return peer_now_ns() - start;
}

static void open_ucx(const char *transports) {
    ucp_config_t *config;
    ucp_params_t parameters = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA,
        .estimated_num_eps = 1,
    };
    ucp_worker_params_t worker_parameters = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };
    must(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    must(ucp_config_modify(config, "TLS", transports), "ucp_config_modify");
    must(ucp_init(&parameters, config, &context), "ucp_init");
    ucp_config_release(config);
    must(ucp_worker_create(context, &worker_parameters, &worker), "ucp_worker_create");
}

static void connect_ucx(void) {
    static char theirs[65536];
    ucp_address_t *address;
    size_t len;
    must(ucp_worker_get_address(worker, &address, &len), "ucp_worker_get_address");
    peer_exchange(address, len, theirs, sizeof theirs);
    ucp_worker_release_address(worker, address);
    ucp_ep_params_t parameters = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address = (ucp_address_t *)theirs,
    };
    must(ucp_ep_create(worker, &parameters, &endpoint), "ucp_ep_create");
    ping_pong(sizeof(uint64_t), 1); /* finishes the connection */
}

static void share_window(void) {
    static char theirs[65536];
    void *key;
    size_t len;
    ucp_mem_map_params_t parameters = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .address = NULL,
        .length = LARGEST_PUT_BYTES,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    ucp_mem_attr_t attributes = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    must(ucp_mem_map(context, &parameters, &window), "ucp_mem_map");
    must(ucp_mem_query(window, &attributes), "ucp_mem_query");
    memset(attributes.address, 0, LARGEST_PUT_BYTES);
    own_window = attributes.address;
    uint64_t own_address = (uint64_t)(uintptr_t)attributes.address;
    peer_exchange(&own_address, sizeof own_address, &their_address, sizeof their_address);
    must(ucp_rkey_pack(context, window, &key, &len), "ucp_rkey_pack");
    peer_exchange(key, len, theirs, sizeof theirs);
    ucp_rkey_buffer_release(key);
    must(ucp_ep_rkey_unpack(endpoint, theirs, &their_key), "ucp_ep_rkey_unpack");
}

/* Closes everything in order, so that named shared memory is removed. */
static void close_ucx(void) {
    char done = 0;
    ucp_request_param_t parameters = {0};
    ucp_rkey_destroy(their_key);
    await_request(ucp_ep_close_nbx(endpoint, &parameters), "ucp_ep_close_nbx");
    peer_exchange(&done, 1, &done, 1);
    must(ucp_mem_unmap(context, window), "ucp_mem_unmap");
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4)
        peer_fail("expected two CPU numbers, and transports if it is not to be shared memory");
    peer_fork(atoi(argv[1]), atoi(argv[2]));
    buffers = peer_buffer(LARGEST_PUT_BYTES);
    open_ucx(argc == 4 ? argv[3] : "shm");
    connect_ucx();
    share_window();
    peer_serve("latency put_latency rate stream put_stream put_rate");
    close_ucx();
    return 0;
}
