/* Each completion status arises from its own cause, and both sides learn what they must. The
 * numbers in `vendor_err` are those of docs/verbs.md, Statuses. */
#include "pair.h"
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum cause {
    PEER_GONE = 1,
    UNREACHABLE,
    NO_QUEUE_PAIR,
    WRONG_KEY,
    OUT_OF_BOUNDS,
    NOT_PERMITTED,
    MISALIGNED,
    TOO_LONG,
    FLUSHED,
    NO_RECEIVE,
    LOCAL_KEY,
    LOCAL_BOUNDS,
    PEER_FAILED,
    SEQUENCE,
    BROKEN,
    DEVICE,
};

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

/* The next completion has this number and status, and says why. */
static void fails(struct side *side, uint64_t id, enum ibv_wc_status status, enum cause cause)
{
    uint32_t said = expect(side, id, status).vendor_err;
    if (said != cause)
        fprintf(stderr, "\"%s\" because of %u, expected %u\n", ibv_wc_status_str(status), said, cause);
    CHECK(said == cause);
}

static void flushed(struct side *side, uint64_t id)
{
    fails(side, id, IBV_WC_WR_FLUSH_ERR, FLUSHED);
}

/* The request fails at the peer: both queue pairs end in the error state, and the peer is told. */
static void fails_at_peer(struct how how, enum ibv_wr_opcode opcode, int64_t shift, uint32_t length,
                          uint32_t wrong_key, enum cause cause)
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
    int is_access = cause != MISALIGNED;
    fails(a, 1, is_access ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR, cause);
    flushed(a, 2);
    CHECK(state_of(a) == IBV_QPS_ERR);
    flushed(b, 7);
    CHECK(state_of(b) == IBV_QPS_ERR);
    CHECK(next_event(b) == (is_access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR));
    close_pair(sides);
}

static void remote_errors(void)
{
    struct how how = USUAL;
    fails_at_peer(how, IBV_WR_RDMA_WRITE, 0, 8, 0x100, WRONG_KEY);
    fails_at_peer(how, IBV_WR_RDMA_READ, 0, 8, 0x10000, WRONG_KEY);
    fails_at_peer(how, IBV_WR_RDMA_WRITE, SIZE - 4, 8, 0, OUT_OF_BOUNDS);
    fails_at_peer(how, IBV_WR_RDMA_READ, -8, 8, 0, OUT_OF_BOUNDS);
    fails_at_peer(how, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 8, 0, MISALIGNED);
    how.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    fails_at_peer(how, IBV_WR_RDMA_WRITE, 0, 8, 0, NOT_PERMITTED);
    fails_at_peer(how, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0, NOT_PERMITTED);
    how = USUAL;
    how.access = IBV_ACCESS_REMOTE_READ;
    fails_at_peer(how, IBV_WR_RDMA_WRITE, 0, 8, 0, NOT_PERMITTED);
    how.access = 0;
    fails_at_peer(how, IBV_WR_RDMA_READ, 0, 8, 0, NOT_PERMITTED);
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
    fails(a, 1, IBV_WC_REM_ACCESS_ERR, WRONG_KEY);
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
    fails(a, 1, IBV_WC_REM_ACCESS_ERR, WRONG_KEY);
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
    fails(a, 1, IBV_WC_LOC_PROT_ERR, LOCAL_KEY);
    CHECK(state_of(a) == IBV_QPS_ERR);
    close_pair(sides);

    make_pair(sides, USUAL);
    sge = part(a, SIZE - 4, 8);
    post(a, &wr);
    fails(a, 1, IBV_WC_LOC_PROT_ERR, LOCAL_BOUNDS);
    close_pair(sides);

    /* A read into memory that may not be written. */
    make_pair(sides, USUAL);
    struct ibv_mr *mr = ibv_reg_mr(a->pd, a->memory, 64, 0);
    sge = (struct ibv_sge){ (uintptr_t)a->memory, 8, mr->lkey };
    wr = access_of(IBV_WR_RDMA_READ, &sge, (uintptr_t)b->memory, b->mr->rkey);
    post(a, &wr);
    fails(a, 1, IBV_WC_LOC_PROT_ERR, NOT_PERMITTED);
    CHECK(!ibv_dereg_mr(mr));
    close_pair(sides);

    /* A window on memory that it does not fit, and on a region that allows none. */
    for (int i = 0; i < 2; i++) {
        struct how how = USUAL;
        how.mr_access &= i ? ~(unsigned)IBV_ACCESS_MW_BIND : ~0u;
        make_pair(sides, how);
        struct ibv_mw *mw = ibv_alloc_mw(a->pd, IBV_MW_TYPE_2);
        CHECK(mw);
        struct ibv_send_wr bind = request(IBV_WR_BIND_MW, 1, NULL);
        bind.bind_mw.mw = mw;
        bind.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
        bind.bind_mw.bind_info = (struct ibv_mw_bind_info){ a->mr, (uintptr_t)a->memory + SIZE - 8,
                                                            i ? 8 : 9, IBV_ACCESS_REMOTE_READ };
        post(a, &bind);
        fails(a, 1, IBV_WC_MW_BIND_ERR, i ? NOT_PERMITTED : LOCAL_BOUNDS);
        CHECK(!ibv_dealloc_mw(mw));
        close_pair(sides);
    }

    /* An atomic has eight bytes, and a datagram at most as many as the path takes. */
    make_pair(sides, USUAL);
    sge = part(a, 0, 9);
    wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &sge);
    wr.wr.atomic.remote_addr = (uintptr_t)b->memory;
    wr.wr.atomic.rkey = b->mr->rkey;
    post(a, &wr);
    fails(a, 1, IBV_WC_LOC_LEN_ERR, TOO_LONG);
    close_pair(sides);

    struct how datagrams = USUAL;
    datagrams.type = IBV_QPT_UD;
    make_pair(sides, datagrams);
    struct ibv_ah_attr path = { .is_global = 1, .port_num = 1, .grh = { .dgid = b->gid } };
    struct ibv_ah *ah = ibv_create_ah(a->pd, &path);
    CHECK(ah);
    sge = part(a, 0, 4097);
    wr = request(IBV_WR_SEND, 1, &sge);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = b->qp->qp_num;
    post(a, &wr);
    fails(a, 1, IBV_WC_LOC_LEN_ERR, TOO_LONG);
    CHECK(!ibv_destroy_ah(ah));
    close_pair(sides);
}

static void receive_errors(void)
{
    for (uint32_t length = 16; length <= 200000; length += 199984) {
        make_pair(sides, USUAL);
        receive(b, 1, 0, 15);
        receive(b, 2, 0, 64);
        send_bytes(a, 3, 0, length);
        fails(b, 1, IBV_WC_LOC_LEN_ERR, TOO_LONG);
        flushed(b, 2);
        fails(a, 3, IBV_WC_REM_INV_REQ_ERR, TOO_LONG);
        close_pair(sides);
    }

    make_pair(sides, USUAL);
    struct ibv_sge sge = part(b, 0, 64);
    sge.lkey ^= 0x100;
    struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
    CHECK(!ibv_post_recv(b->qp, &wr, &bad));
    /* A message without bytes needs no memory. */
    send_bytes(a, 3, 0, 0);
    CHECK(expect(b, 1, IBV_WC_SUCCESS).byte_len == 0);
    expect(a, 3, IBV_WC_SUCCESS);
    CHECK(!ibv_post_recv(b->qp, &wr, &bad));
    send_bytes(a, 3, 0, 8);
    fails(b, 1, IBV_WC_LOC_PROT_ERR, LOCAL_KEY);
    fails(a, 3, IBV_WC_REM_OP_ERR, PEER_FAILED);
    close_pair(sides);
}

static void no_receive(void)
{
    struct how how = USUAL;
    how.rnr_retry = 2;
    make_pair(sides, how);
    send_bytes(a, 1, 0, 8);
    fails(a, 1, IBV_WC_RNR_RETRY_EXC_ERR, NO_RECEIVE);
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
    fails(a, 1, IBV_WC_RETRY_EXC_ERR, NO_QUEUE_PAIR);
    close_pair(sides);

    /* The sides count from different numbers. */
    how = USUAL;
    how.timeout = 12;
    how.wrong_psn = 3;
    make_pair(sides, how);
    receive(b, 2, 0, 8);
    send_bytes(a, 1, 0, 8);
    fails(a, 1, IBV_WC_RETRY_EXC_ERR, SEQUENCE);
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

/* Nobody has the peer's address. It is one of the loopback. */
static void nobody(void)
{
    struct how how = USUAL;
    how.loopback = 1;
    how.sides_ready = 0;
    make_pair(sides, how);
    struct side absent = *b;
    struct in_addr address = { htonl(INADDR_LOOPBACK + 76) };
    memcpy(absent.gid.raw + 12, &address, 4);
    ready(a, &absent, &how);
    send_bytes(a, 1, 0, 8);
    fails(a, 1, IBV_WC_RETRY_EXC_ERR, UNREACHABLE);
    close_pair(sides);
}

/* Says nonsense in all conversations of this process with others on the host. */
static void talk_nonsense(void)
{
    int sent = 0;
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        if (!getpeername(fd, (struct sockaddr *)&peer, &length) && peer.ss_family == AF_UNIX)
            sent += send(fd, "nonsense", 8, MSG_NOSIGNAL | MSG_DONTWAIT) == 8;
    }
    CHECK(sent > 0);
}

/* The peer is another process, which is killed, or breaks the protocol below. */
static void lost(int breaks)
{
    struct how how = USUAL;
    int pipes[2][2];
    CHECK(!pipe(pipes[0]) && !pipe(pipes[1]));
    pid_t child = fork();
    int own = child == 0;
    make_half(a, &how, pipes, own);
    if (own) {
        receive(a, 1, 0, 8);
        CHECK(write(pipes[1][1], "", 1) == 1);
        expect(a, 1, IBV_WC_SUCCESS);
        char is_over;
        CHECK(read(pipes[0][0], &is_over, 1) == 1);
        talk_nonsense();
        for (;;)
            pause();
    }
    char is_ready;
    CHECK(read(pipes[1][0], &is_ready, 1) == 1);
    receive(a, 9, 0, 8);
    send_bytes(a, 1, 0, 8);
    expect(a, 1, IBV_WC_SUCCESS);
    /* It waits for a receive that will not come. */
    send_bytes(a, 2, 0, 8);
    send_bytes(a, 3, 0, 8);
    if (breaks) {
        CHECK(write(pipes[0][1], "", 1) == 1);
        fails(a, 2, IBV_WC_REM_OP_ERR, BROKEN);
    }
    CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
    if (!breaks)
        fails(a, 2, IBV_WC_RETRY_EXC_ERR, PEER_GONE);
    int seen = 0;
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = next(a);
        CHECK(wc.status == IBV_WC_WR_FLUSH_ERR && wc.vendor_err == FLUSHED);
        seen |= wc.wr_id == 3 ? 1 : wc.wr_id == 9 ? 2 : 0;
    }
    CHECK(seen == 3);
    close_side(a);
    for (int i = 0; i < 4; i++)
        close(pipes[i / 2][i % 2]);
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
    flushed(a, 1);
    flushed(a, 2);
    flushed(a, 3);
    flushed(a, 4);
    close_pair(sides);
}

/* A peer that has received a message and fails at once has acknowledged it. */
static void acknowledged(void)
{
    for (int round = 0; round < 10; round++) {
        make_pair(sides, USUAL);
        receive(b, 1, 0, 8);
        send_bytes(a, 2, 0, 8);
        expect(b, 1, IBV_WC_SUCCESS);
        struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
        CHECK(!ibv_modify_qp(b->qp, &attr, IBV_QP_STATE));
        CHECK(!ibv_modify_qp(a->qp, &attr, IBV_QP_STATE));
        expect(a, 2, IBV_WC_SUCCESS);
        nothing(a);
        close_pair(sides);
    }
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

/* A device without IP addresses carries no groups. */
static void unsupported(void)
{
    struct how how = USUAL;
    how.type = IBV_QPT_UD;
    how.mr_access = IBV_ACCESS_LOCAL_WRITE;
    make_pair(sides, how);
    struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 1 } };
    struct in_addr group = { htonl(0xef010203) };
    attr.grh.dgid.raw[10] = attr.grh.dgid.raw[11] = 0xff;
    memcpy(attr.grh.dgid.raw + 12, &group, 4);
    struct ibv_ah *ah = ibv_create_ah(a->pd, &attr);
    CHECK(ah);
    struct ibv_sge sge = part(a, 0, 8);
    struct ibv_send_wr wr = request(IBV_WR_SEND, 1, &sge);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = 0xffffff;
    wr.wr.ud.remote_qkey = 0x1234;
    post(a, &wr);
    fails(a, 1, IBV_WC_LOC_QP_OP_ERR, DEVICE);
    CHECK(!ibv_destroy_ah(ah));
    close_pair(sides);
}

int main(int count, char **arguments)
{
    if (count > 1 && !strcmp(arguments[1], "without-groups")) {
        unsupported();
        return 0;
    }
    /* Before this process has opened a device. */
    lost(1);
    lost(0);
    remote_errors();
    other_domain();
    dead_key();
    local_errors();
    receive_errors();
    no_receive();
    no_peer();
    nobody();
    flush();
    acknowledged();
    refusals();
    return 0;
}
