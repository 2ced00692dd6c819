/* What becomes of wrong requests, on any device: prints CASE|SPECIFICATION|OUTCOME, line by line.
 * The second column is what the InfiniBand Architecture Specification, volume 1, has: its states of
 * queue pairs and its statuses of completions. The argument is the index of the GID. Each case is a
 * process of its own. */
#define _GNU_SOURCE
#include "pair.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct side sides[2];
static struct side *const a = &sides[0], *const b = &sides[1];
enum { WAIT_S = 3, LIMIT_S = 40, QKEY = 0x1234 };

static const char *name_of(enum ibv_wc_status status)
{
    static const char *names[] = {
        "SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR",
        "MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR",
        "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR",
    };
    return status < sizeof names / sizeof *names ? names[status] : ibv_wc_status_str(status);
}

/* The status of the request with this number. Others are passed over. */
static const char *outcome(struct side *side, uint64_t id)
{
    struct ibv_wc wc;
    for (double end = now() + WAIT_S; now() < end;)
        if (ibv_poll_cq(side->cq, 1, &wc) == 1 && wc.wr_id == id)
            return name_of(wc.status);
    return "nothing";
}

/* Posts a request, and waits for its outcome. */
static const char *sent(struct side *side, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    int error = ibv_post_send(side->qp, wr, &bad);
    return error ? strerrorname_np(error) : outcome(side, wr->wr_id);
}

static const char *sent_bytes(struct side *side, uint32_t length)
{
    struct ibv_sge sge = part(side, 0, length);
    struct ibv_send_wr wr = request(IBV_WR_SEND, 1, &sge);
    return sent(side, &wr);
}

static void pair(void)
{
    struct how how = USUAL;
    how.rnr_retry = 2;
    how.timeout = 12;
    make_pair(sides, how);
}

static void move(struct side *side, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };
    CHECK(!ibv_modify_qp(side->qp, &attr, IBV_QP_STATE));
}

static void send_key(void)
{
    pair();
    receive(b, 2, 0, 64);
    struct ibv_sge sge = part(a, 0, 8);
    sge.lkey ^= 0x10000;
    struct ibv_send_wr wr = request(IBV_WR_SEND, 1, &sge);
    printf("%s", sent(a, &wr));
}

static void receive_key(void)
{
    pair();
    struct ibv_sge sge = part(b, 0, 64);
    sge.lkey ^= 0x10000;
    struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;
    CHECK(!ibv_post_recv(b->qp, &wr, &bad));
    const char *sender = sent_bytes(a, 8);
    printf("%s, receiver %s", sender, outcome(b, 2));
}

static void remote(enum ibv_wr_opcode opcode, size_t offset, uint32_t length, uint32_t wrong)
{
    pair();
    struct ibv_sge sge = part(a, 0, length);
    struct ibv_send_wr wr = request(opcode, 1, &sge);
    uint64_t address = (uintptr_t)b->memory + offset;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = b->mr->rkey ^ wrong;
    } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = b->mr->rkey ^ wrong;
    }
    printf("%s", sent(a, &wr));
}

static void write_key(void) { remote(IBV_WR_RDMA_WRITE, 0, 8, 0x10000); }
static void read_key(void) { remote(IBV_WR_RDMA_READ, 0, 8, 0x10000); }
static void atomic_key(void) { remote(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0x10000); }
static void write_end(void) { remote(IBV_WR_RDMA_WRITE, SIZE - 4, 8, 0); }
static void read_end(void) { remote(IBV_WR_RDMA_READ, SIZE - 4, 8, 0); }
static void atomic_address(void) { remote(IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 8, 0); }
static void atomic_length(void) { remote(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 4, 0); }

static void receive_short(void)
{
    pair();
    receive(b, 2, 0, 8);
    const char *sender = sent_bytes(a, 64);
    printf("%s, receiver %s", sender, outcome(b, 2));
}

static void receive_none(void)
{
    pair();
    printf("%s", sent_bytes(a, 8));
}

static void peer_in_init(void)
{
    struct how how = USUAL;
    how.timeout = 12;
    how.sides_ready = 1;
    make_pair(sides, how);
    printf("%s", sent_bytes(a, 8));
}

static void peer_destroyed(void)
{
    pair();
    CHECK(!ibv_destroy_qp(b->qp));
    printf("%s", sent_bytes(a, 8));
}

static void peer_killed(void)
{
    struct how how = USUAL;
    how.timeout = 12;
    int pipes[2][2];
    CHECK(!pipe(pipes[0]) && !pipe(pipes[1]));
    pid_t child = fork();
    int own = child == 0;
    make_half(a, &how, pipes, own);
    if (own) {
        CHECK(write(pipes[1][1], "", 1) == 1);
        for (;;)
            pause();
    }
    char is_ready;
    CHECK(read(pipes[1][0], &is_ready, 1) == 1);
    CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
    printf("%s", sent_bytes(a, 8));
}

static void send_in_reset(void)
{
    pair();
    move(a, IBV_QPS_RESET);
    printf("%s", sent_bytes(a, 8));
}

static void send_in_error(void)
{
    pair();
    move(a, IBV_QPS_ERR);
    printf("%s", sent_bytes(a, 8));
}

static void receive_in_error(void)
{
    pair();
    move(a, IBV_QPS_ERR);
    receive(a, 2, 0, 8);
    printf("%s", outcome(a, 2));
}

static void receive_before_error(void)
{
    pair();
    receive(a, 2, 0, 8);
    move(a, IBV_QPS_ERR);
    printf("%s", outcome(a, 2));
}

static void send_drained(void)
{
    pair();
    receive(b, 2, 0, 8);
    move(a, IBV_QPS_SQD);
    printf("in SQD %s", sent_bytes(a, 8));
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD };
    CHECK(!ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
    printf(", after RTS %s", outcome(a, 1));
}

static void overflow(void)
{
    struct how how = USUAL;
    how.sides_ready = 0;
    make_pair(sides, how);
    /* The queue pair of a small completion queue. */
    CHECK(!ibv_destroy_qp(a->qp));
    struct ibv_cq *usual = a->cq;
    a->cq = ibv_create_cq(a->context, 4, a, NULL, 0);
    CHECK(a->cq);
    create_qp(a, &how, NULL);
    ready(a, b, &how);
    ready(b, a, &how);
    for (int id = 0; id <= a->cq->cqe; id++) {
        receive(b, 2, 0, 8);
        send_bytes(a, 1, 0, 8);
        outcome(b, 2);
    }
    struct ibv_async_event event = { .event_type = IBV_EVENT_PORT_ACTIVE };
    while (is_readable(a->context->async_fd, WAIT_S * 1000)) {
        CHECK(!ibv_get_async_event(a->context, &event));
        ibv_ack_async_event(&event);
        if (event.event_type == IBV_EVENT_CQ_ERR)
            break;
    }
    printf("%s", event.event_type == IBV_EVENT_CQ_ERR ? "CQ_ERR" : "no event");
    enum ibv_qp_state state = state_of(a);
    for (double end = now() + WAIT_S; state != IBV_QPS_ERR && now() < end;)
        state = state_of(a);
    printf(", queue pair %s", state == IBV_QPS_ERR ? "fails" : "goes on");
    fflush(stdout);
    (void)usual;
}

static const char *datagram(uint32_t length, uint32_t room, uint32_t key, const char **receiver)
{
    struct how how = USUAL;
    how.type = IBV_QPT_UD;
    make_pair(sides, how);
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = { .dgid = b->gid, .sgid_index = gid_index, .hop_limit = 1 },
    };
    struct ibv_ah *ah = ibv_create_ah(a->pd, &attr);
    CHECK(ah);
    receive(b, 2, 0, room);
    struct ibv_sge sge = part(a, 0, length);
    struct ibv_send_wr wr = request(IBV_WR_SEND, 1, &sge);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = b->qp->qp_num;
    wr.wr.ud.remote_qkey = key;
    const char *sender = sent(a, &wr);
    *receiver = outcome(b, 2);
    return sender;
}

static void datagram_short(void)
{
    const char *receiver, *sender = datagram(64, 48, QKEY, &receiver);
    printf("%s, receiver %s", sender, receiver);
}

static void datagram_long(void)
{
    const char *receiver;
    printf("%s", datagram(8192, 16384, QKEY, &receiver));
}

static void datagram_key(void)
{
    const char *receiver, *sender = datagram(8, 64, QKEY + 1, &receiver);
    printf("%s, receiver %s", sender, receiver);
}

static const struct {
    const char *name, *specification;
    void (*run)(void);
} CASES[] = {
    { "a wrong local key in a send", "LOC_PROT_ERR", send_key },
    { "a wrong local key in a receive", "REM_OP_ERR, receiver LOC_PROT_ERR", receive_key },
    { "a wrong key of a write", "REM_ACCESS_ERR", write_key },
    { "a wrong key of a read", "REM_ACCESS_ERR", read_key },
    { "a wrong key of an atomic", "REM_ACCESS_ERR", atomic_key },
    { "a write past the end of its region", "REM_ACCESS_ERR", write_end },
    { "a read past the end of its region", "REM_ACCESS_ERR", read_end },
    { "an atomic at an address that is no multiple of 8", "REM_INV_REQ_ERR", atomic_address },
    { "an atomic with a local part of 4 bytes", "LOC_LEN_ERR", atomic_length },
    { "a message longer than its receive", "REM_INV_REQ_ERR, receiver LOC_LEN_ERR", receive_short },
    { "no receive, `rnr_retry` 2", "RNR_RETRY_EXC_ERR", receive_none },
    { "a peer in INIT", "RETRY_EXC_ERR", peer_in_init },
    { "a peer whose queue pair is destroyed", "RETRY_EXC_ERR", peer_destroyed },
    { "a peer that was killed", "RETRY_EXC_ERR", peer_killed },
    { "a send in RESET", "EINVAL", send_in_reset },
    { "a send in ERR", "WR_FLUSH_ERR", send_in_error },
    { "a receive in ERR", "WR_FLUSH_ERR", receive_in_error },
    { "a receive before ERR", "WR_FLUSH_ERR", receive_before_error },
    { "a send in SQD, and RTS", "in SQD nothing, after RTS SUCCESS", send_drained },
    { "a completion queue overflows", "CQ_ERR, queue pair fails", overflow },
    { "a datagram longer than its receive", "SUCCESS, receiver LOC_LEN_ERR", datagram_short },
    { "a datagram above the MTU", "LOC_LEN_ERR", datagram_long },
    { "a datagram with a wrong Q_Key", "SUCCESS, receiver nothing", datagram_key },
};

int main(int count, char **arguments)
{
    gid_index = (uint8_t)(count > 1 ? atoi(arguments[1]) : 0);
    int failed = 0;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        printf("%s|%s|", CASES[i].name, CASES[i].specification);
        fflush(stdout);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(LIMIT_S);
            CASES[i].run();
            fflush(stdout);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        if (status) {
            printf("not run");
            failed = 1;
        }
        printf("\n");
        fflush(stdout);
    }
    return failed;
}
