/* Two connected queue pairs of one process, each in a context of its own. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s: not so: %s (errno %d)\n", __FILE__, __LINE__, __func__, \
                    #condition, errno); \
            exit(1); \
        } \
    } while (0)

enum { SIZE = 1 << 20, DEPTH = 256 };

/* The GID of IPv4: of Bellwire the only one, of the kernel's devices the second one. */
static uint8_t gid_index;

struct side {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *memory;
    union ibv_gid gid;
};

/* How a pair is made. */
struct how {
    enum ibv_qp_type type;
    unsigned access;
    unsigned mr_access;
    int rnr_retry;
    int timeout;
    int wrong_psn;
    int sides_ready;
    int loopback;
};

static const struct how USUAL = {
    .type = IBV_QPT_RC,
    .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    .mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
        IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
    .rnr_retry = 7,
    .timeout = 14,
    .sides_ready = 2,
};

static void open_side(struct side *side, const struct how *how)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list && count > 0);
    memset(side, 0, sizeof *side);
    /* The loopback's device is the last one. */
    side->context = ibv_open_device(list[how->loopback ? count - 1 : 0]);
    CHECK(side->context);
    ibv_free_device_list(list);
    side->pd = ibv_alloc_pd(side->context);
    side->channel = ibv_create_comp_channel(side->context);
    CHECK(side->pd && side->channel);
    side->cq = ibv_create_cq(side->context, 4 * DEPTH, side, side->channel, 0);
    CHECK(side->cq && side->cq->cqe >= 4 * DEPTH);
    side->memory = calloc(1, SIZE);
    side->mr = ibv_reg_mr(side->pd, side->memory, SIZE, (int)how->mr_access);
    CHECK(side->mr);
    CHECK(!ibv_query_gid(side->context, 1, gid_index, &side->gid));
}

static void create_qp(struct side *side, const struct how *how, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = side->cq,
        .recv_cq = side->cq,
        .srq = srq,
        .cap = { DEPTH, DEPTH, 8, 8, 128 },
        .qp_type = how->type,
    };
    side->qp = ibv_create_qp(side->pd, &init);
    CHECK(side->qp);
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = how->access,
        .qkey = 0x1234,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    CHECK(!ibv_modify_qp(side->qp, &attr,
                         mask | (how->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

static void ready(struct side *side, const struct side *peer, const struct how *how)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = peer->qp->qp_num,
        .rq_psn = 0xfffff0 + (uint32_t)how->wrong_psn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {
            .is_global = 1,
            .port_num = 1,
            .grh = { .dgid = peer->gid, .sgid_index = gid_index, .hop_limit = 1 },
        },
    };
    int rtr = IBV_QP_STATE, rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (how->type != IBV_QPT_UD)
        rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (how->type == IBV_QPT_RC) {
        rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    CHECK(!ibv_modify_qp(side->qp, &attr, rtr));
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0xfffff0;
    attr.timeout = (uint8_t)how->timeout;
    attr.retry_cnt = 1;
    attr.rnr_retry = (uint8_t)how->rnr_retry;
    attr.max_rd_atomic = 4;
    CHECK(!ibv_modify_qp(side->qp, &attr, rts));
}

static void make_pair(struct side sides[2], struct how how)
{
    for (int i = 0; i < 2; i++) {
        open_side(&sides[i], &how);
        create_qp(&sides[i], &how, NULL);
    }
    for (int i = 0; i < how.sides_ready; i++)
        ready(&sides[i], &sides[1 - i], &how);
}

/* A process and its child each have one side. They tell each other by pipes how to reach it, and
   connect. */
static void make_half(struct side *side, const struct how *how, int pipes[2][2], int is_child)
{
    struct message {
        uint32_t number;
        union ibv_gid gid;
    } mine, theirs;
    open_side(side, how);
    create_qp(side, how, NULL);
    mine = (struct message){ side->qp->qp_num, side->gid };
    CHECK(write(pipes[is_child][1], &mine, sizeof mine) == sizeof mine);
    CHECK(read(pipes[!is_child][0], &theirs, sizeof theirs) == sizeof theirs);
    struct ibv_qp number = { .qp_num = theirs.number };
    ready(side, &(struct side){ .qp = &number, .gid = theirs.gid }, how);
}

static void close_side(struct side *side)
{
    if (side->qp)
        CHECK(!ibv_destroy_qp(side->qp));
    CHECK(!ibv_destroy_cq(side->cq));
    CHECK(!ibv_destroy_comp_channel(side->channel));
    CHECK(!ibv_dereg_mr(side->mr));
    CHECK(!ibv_dealloc_pd(side->pd));
    CHECK(!ibv_close_device(side->context));
    free(side->memory);
}

static void close_pair(struct side sides[2])
{
    close_side(&sides[0]);
    close_side(&sides[1]);
}

static struct ibv_sge part(const struct side *side, size_t offset, uint32_t length)
{
    return (struct ibv_sge){ (uintptr_t)side->memory + offset, length, side->mr->lkey };
}

static void receive(struct side *side, uint64_t id, size_t offset, uint32_t length)
{
    struct ibv_sge sge = part(side, offset, length);
    struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;
    CHECK(!ibv_post_recv(side->qp, &wr, &bad));
}

static struct ibv_send_wr request(enum ibv_wr_opcode opcode, uint64_t id, struct ibv_sge *sge)
{
    return (struct ibv_send_wr){
        .wr_id = id,
        .opcode = opcode,
        .sg_list = sge,
        .num_sge = sge ? 1 : 0,
        .send_flags = IBV_SEND_SIGNALED,
    };
}

static void post(struct side *side, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    CHECK(!ibv_post_send(side->qp, wr, &bad));
}

static void send_bytes(struct side *side, uint64_t id, size_t offset, uint32_t length)
{
    struct ibv_sge sge = part(side, offset, length);
    struct ibv_send_wr wr = request(IBV_WR_SEND, id, &sge);
    post(side, &wr);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The next completion; the other side makes progress by its own thread, or by this one. */
static struct ibv_wc next(struct side *side)
{
    struct ibv_wc wc;
    double end = now() + 60;
    int count;
    while ((count = ibv_poll_cq(side->cq, 1, &wc)) == 0)
        CHECK(now() < end);
    CHECK(count == 1);
    return wc;
}

static void nothing(struct side *side)
{
    struct ibv_wc wc;
    CHECK(ibv_poll_cq(side->cq, 1, &wc) == 0);
}

/* The next completion has this number and status. */
static struct ibv_wc expect(struct side *side, uint64_t id, enum ibv_wc_status status)
{
    struct ibv_wc wc = next(side);
    if (wc.wr_id != id || wc.status != status)
        fprintf(stderr, "completion %llu with \"%s\" (vendor_err %u), expected %llu with \"%s\"\n",
                (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), wc.vendor_err,
                (unsigned long long)id, ibv_wc_status_str(status));
    CHECK(wc.wr_id == id && wc.status == status);
    return wc;
}

static enum ibv_qp_state state_of(struct side *side)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(!ibv_query_qp(side->qp, &attr, IBV_QP_STATE, &init));
    return attr.qp_state;
}

static int is_readable(int fd, int timeout_ms)
{
    struct pollfd entry = { .fd = fd, .events = POLLIN };
    return poll(&entry, 1, timeout_ms) == 1;
}

/* The next asynchronous event of the side, acknowledged. */
static enum ibv_event_type next_event(struct side *side)
{
    struct ibv_async_event event;
    CHECK(is_readable(side->context->async_fd, 60000));
    CHECK(!ibv_get_async_event(side->context, &event));
    ibv_ack_async_event(&event);
    return event.event_type;
}
