/* Each completion status arises from its own cause, and both sides learn what they must. */
#include "pair.h"

static struct side sides[2];
static struct side *const a = &sides[0], *const b = &sides[1];

static struct ibv_send_wr access_of(enum ibv_wr_opcode opcode, struct ibv_sge *sge, uint64_t address,
                                    uint32_t rkey)
{
    struct ibv_send_wr wr = request(opcode, 1, sge);
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    return wr;
}

/* The request fails at the peer: both queue pairs end in the error state, and the peer is told. */
static void fails_at_peer(struct how how, enum ibv_wr_opcode opcode, int64_t shift, uint32_t length,
                          uint32_t wrong_key, enum ibv_wc_status status)
{
    make_pair(sides, how);
    receive(b, 7, 0, 8);
    struct ibv_sge sge = part(a, 0, length);
    uint64_t address = (uintptr_t)b->memory + (uint64_t)shift;
    struct ibv_send_wr wr = access_of(opcode, &sge, address, b->mr->rkey ^ wrong_key);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.rkey = b->mr->rkey ^ wrong_key;
    }
    wr.send_flags = 0;
    post(a, &wr);
    send_bytes(a, 2, 0, 4);
    CHECK(expect(a, 1, status).vendor_err != 0);
    expect(a, 2, IBV_WC_WR_FLUSH_ERR);
    CHECK(state_of(a) == IBV_QPS_ERR);
    expect(b, 7, IBV_WC_WR_FLUSH_ERR);
    CHECK(state_of(b) == IBV_QPS_ERR);
    enum ibv_event_type event = next_event(b);
    CHECK(event == (status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR
                                                     : IBV_EVENT_QP_REQ_ERR));
    close_pair(sides);
}

static void remote_errors(void)
{
    struct how how = USUAL;
    const enum ibv_wc_status access = IBV_WC_REM_ACCESS_ERR;
    fails_at_peer(how, IBV_WR_RDMA_WRITE, 0, 8, 0x100, access);
    fails_at_peer(how, IBV_WR_RDMA_READ, 0, 8, 0x10000, access);
    fails_at_peer(how, IBV_WR_RDMA_WRITE, SIZE - 4, 8, 0, access);
    fails_at_peer(how, IBV_WR_RDMA_READ, -8, 8, 0, access);
    fails_at_peer(how, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 8, 0, IBV_WC_REM_INV_REQ_ERR);
    how.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    fails_at_peer(how, IBV_WR_RDMA_WRITE, 0, 8, 0, access);
    fails_at_peer(how, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0, access);
    how = USUAL;
    how.access = IBV_ACCESS_REMOTE_READ;
    fails_at_peer(how, IBV_WR_RDMA_WRITE, 0, 8, 0, access);
    how.access = 0;
    fails_at_peer(how, IBV_WR_RDMA_READ, 0, 8, 0, access);
}

/* A key of another protection domain opens nothing. */
static void other_domain(void)
{
    make_pair(sides, USUAL);
    struct ibv_pd *pd = ibv_alloc_pd(b->context);
    struct ibv_mr *mr = ibv_reg_mr(pd, b->memory, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(mr);
    struct ibv_sge sge = part(a, 0, 8);
    struct ibv_send_wr wr = access_of(IBV_WR_RDMA_WRITE, &sge, (uintptr_t)b->memory, mr->rkey);
    post(a, &wr);
    expect(a, 1, IBV_WC_REM_ACCESS_ERR);
    CHECK(ibv_dealloc_pd(pd) == EBUSY);
    CHECK(!ibv_dereg_mr(mr));
    CHECK(!ibv_dealloc_pd(pd));
    close_pair(sides);
}

/* A key is dead when ibv_dereg_mr has returned, even if the peer has used it before. */
static void dead_key(void)
{
    make_pair(sides, USUAL);
    struct ibv_mr *mr = ibv_reg_mr(b->pd, b->memory, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_sge sge = part(a, 0, 8);
    struct ibv_send_wr wr = access_of(IBV_WR_RDMA_WRITE, &sge, (uintptr_t)b->memory, mr->rkey);
    memset(a->memory, 5, 8);
    post(a, &wr);
    expect(a, 1, IBV_WC_SUCCESS);
    CHECK(b->memory[7] == 5);
    CHECK(!ibv_dereg_mr(mr));
    memset(a->memory, 6, 8);
    post(a, &wr);
    expect(a, 1, IBV_WC_REM_ACCESS_ERR);
    CHECK(b->memory[7] == 5);
    close_pair(sides);
}

static void local_errors(void)
{
    make_pair(sides, USUAL);
    struct ibv_sge sge = part(a, 0, 8);
    sge.lkey ^= 0x100;
    struct ibv_send_wr wr = request(IBV_WR_SEND, 1, &sge);
    post(a, &wr);
    expect(a, 1, IBV_WC_LOC_PROT_ERR);
    CHECK(state_of(a) == IBV_QPS_ERR);
    close_pair(sides);

    make_pair(sides, USUAL);
    sge = part(a, SIZE - 4, 8);
    post(a, &wr);
    expect(a, 1, IBV_WC_LOC_PROT_ERR);
    close_pair(sides);

    /* A read into memory that may not be written. */
    make_pair(sides, USUAL);
    struct ibv_mr *mr = ibv_reg_mr(a->pd, a->memory, 64, 0);
    sge = (struct ibv_sge){ (uintptr_t)a->memory, 8, mr->lkey };
    wr = access_of(IBV_WR_RDMA_READ, &sge, (uintptr_t)b->memory, b->mr->rkey);
    post(a, &wr);
    expect(a, 1, IBV_WC_LOC_PROT_ERR);
    CHECK(!ibv_dereg_mr(mr));
    close_pair(sides);
}

static void receive_errors(void)
{
    for (uint32_t length = 16; length <= 200000; length += 199984) {
        make_pair(sides, USUAL);
        receive(b, 1, 0, 15);
        receive(b, 2, 0, 64);
        send_bytes(a, 3, 0, length);
        expect(b, 1, IBV_WC_LOC_LEN_ERR);
        expect(b, 2, IBV_WC_WR_FLUSH_ERR);
        expect(a, 3, IBV_WC_REM_INV_REQ_ERR);
        close_pair(sides);
    }

    make_pair(sides, USUAL);
    struct ibv_sge sge = part(b, 0, 64);
    sge.lkey ^= 0x100;
    struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
    CHECK(!ibv_post_recv(b->qp, &wr, &bad));
    send_bytes(a, 3, 0, 8);
    expect(b, 1, IBV_WC_LOC_PROT_ERR);
    expect(a, 3, IBV_WC_REM_OP_ERR);
    close_pair(sides);
}

static void no_receive(void)
{
    struct how how = USUAL;
    how.rnr_retry = 2;
    make_pair(sides, how);
    send_bytes(a, 1, 0, 8);
    expect(a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    close_pair(sides);

    /* A receive that comes in time ends the trouble, and later messages follow in order. */
    how.rnr_retry = 6;
    struct ibv_qp_attr attr = { .min_rnr_timer = 20 };
    make_pair(sides, how);
    CHECK(!ibv_modify_qp(b->qp, &attr, IBV_QP_MIN_RNR_TIMER));
    for (uint64_t id = 0; id < 5; id++)
        send_bytes(a, id, id, 1);
    for (uint64_t id = 0; id < 5; id++)
        receive(b, id, 64, 8);
    for (uint64_t id = 0; id < 5; id++) {
        expect(b, id, IBV_WC_SUCCESS);
        expect(a, id, IBV_WC_SUCCESS);
    }
    close_pair(sides);
}

static void no_peer(void)
{
    struct how how = USUAL;
    how.timeout = 12;
    how.sides_ready = 1;
    make_pair(sides, how);
    send_bytes(a, 1, 0, 8);
    expect(a, 1, IBV_WC_RETRY_EXC_ERR);
    close_pair(sides);

    /* The sides count from different numbers. */
    how = USUAL;
    how.timeout = 12;
    how.wrong_psn = 3;
    make_pair(sides, how);
    receive(b, 2, 0, 8);
    send_bytes(a, 1, 0, 8);
    expect(a, 1, IBV_WC_RETRY_EXC_ERR);
    close_pair(sides);

    /* A peer that gets ready later gets the message. */
    how = USUAL;
    how.timeout = 20;
    how.sides_ready = 1;
    make_pair(sides, how);
    receive(b, 2, 0, 8);
    send_bytes(a, 1, 0, 8);
    struct timespec pause = { 0, 20000000 };
    nanosleep(&pause, NULL);
    nothing(a);
    ready(b, a, &how);
    expect(b, 2, IBV_WC_SUCCESS);
    expect(a, 1, IBV_WC_SUCCESS);
    close_pair(sides);
}

static void flush(void)
{
    make_pair(sides, USUAL);
    receive(a, 1, 0, 8);
    receive(a, 2, 0, 8);
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    CHECK(!ibv_modify_qp(a->qp, &attr, IBV_QP_STATE));
    send_bytes(a, 3, 0, 8);
    receive(a, 4, 0, 8);
    expect(a, 1, IBV_WC_WR_FLUSH_ERR);
    expect(a, 2, IBV_WC_WR_FLUSH_ERR);
    expect(a, 3, IBV_WC_WR_FLUSH_ERR);
    expect(a, 4, IBV_WC_WR_FLUSH_ERR);
    close_pair(sides);
}

/* Calls that the state or an argument does not allow. */
static void refusals(void)
{
    struct how how = USUAL;
    how.sides_ready = 0;
    make_pair(sides, how);
    struct ibv_sge sge[9];
    for (int i = 0; i < 9; i++)
        sge[i] = part(a, 0, 1);
    struct ibv_send_wr wr = request(IBV_WR_SEND, 1, sge), *bad = NULL;
    CHECK(ibv_post_send(a->qp, &wr, &bad) == EINVAL && bad == &wr);
    ready(a, b, &how);
    wr.num_sge = 9;
    CHECK(ibv_post_send(a->qp, &wr, &bad) == EINVAL);
    wr.num_sge = -1;
    CHECK(ibv_post_send(a->qp, &wr, &bad) == EINVAL);
    wr.num_sge = 1;
    wr.opcode = IBV_WR_TSO;
    CHECK(ibv_post_send(a->qp, &wr, &bad) == EINVAL);
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
    sge[0].length = 129;
    CHECK(ibv_post_send(a->qp, &wr, &bad) != 0);
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
    CHECK(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE) == EINVAL);
    CHECK(ibv_destroy_cq(a->cq) == EBUSY);
    CHECK(ibv_dealloc_pd(a->pd) == EBUSY);
    CHECK(!ibv_reg_mr(a->pd, a->memory, 64, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
    for (uint64_t id = 0; id < DEPTH; id++)
        receive(a, id, 0, 8);
    struct ibv_recv_wr over = { .sg_list = sge, .num_sge = 1 }, *bad_receive;
    CHECK(ibv_post_recv(a->qp, &over, &bad_receive) == ENOMEM && bad_receive == &over);
    close_pair(sides);
}

int main(void)
{
    remote_errors();
    other_domain();
    dead_key();
    local_errors();
    receive_errors();
    no_receive();
    no_peer();
    flush();
    refusals();
    return 0;
}
