/* Bytes, order, events and limits of RC, UC and UD. */
#include "pair.h"

static struct side sides[2];
static struct side *const a = &sides[0], *const b = &sides[1];

static void fill(char *at, size_t length, unsigned seed)
{
    for (size_t i = 0; i < length; i++)
        at[i] = (char)(seed = seed * 1103515245 + 12345);
}

/* Messages of many lengths, gathered from three parts and scattered into two. */
static void lists(enum ibv_qp_type type)
{
    struct how how = USUAL;
    how.type = type;
    make_pair(sides, how);
    const uint32_t lengths[] = { 0, 1, 3, 100, 4096, 8064, 8065, 20000, 300000 };
    fill(a->memory, SIZE, 1);
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint32_t length = lengths[i], third = length / 3, half = length / 2 + 7;
        memset(b->memory, 0, SIZE);
        struct ibv_sge to[2] = { part(b, 5, half), part(b, 600000, SIZE / 4) };
        struct ibv_recv_wr receive = { .wr_id = i, .sg_list = to, .num_sge = 2 }, *bad;
        CHECK(!ibv_post_recv(b->qp, &receive, &bad));
        struct ibv_sge from[3] = { part(a, 9, third), part(a, 400000, third),
                                   part(a, 20, length - 2 * third) };
        struct ibv_send_wr wr = request(IBV_WR_SEND_WITH_IMM, 100 + i, from);
        wr.num_sge = 3;
        wr.imm_data = 0x01020304 + i;
        post(a, &wr);
        struct ibv_wc wc = expect(b, i, IBV_WC_SUCCESS);
        CHECK(wc.byte_len == length && wc.opcode == IBV_WC_RECV && wc.wc_flags == IBV_WC_WITH_IMM);
        CHECK(wc.imm_data == 0x01020304 + i && wc.qp_num == b->qp->qp_num);
        CHECK(expect(a, 100 + i, IBV_WC_SUCCESS).opcode == IBV_WC_SEND);
        char *all = malloc(length + 1);
        memcpy(all, a->memory + 9, third);
        memcpy(all + third, a->memory + 400000, third);
        memcpy(all + 2 * third, a->memory + 20, length - 2 * third);
        uint32_t first = length < half ? length : half;
        CHECK(!memcmp(all, b->memory + 5, first));
        CHECK(!memcmp(all + first, b->memory + 600000, length - first));
        CHECK(!b->memory[600000 + length - first] && !b->memory[4]);
        free(all);
    }
    close_pair(sides);
}

/* Requests of one queue complete in order, whatever they are, and only those that ask for it. */
static void order(void)
{
    make_pair(sides, USUAL);
    fill(a->memory, SIZE, 2);
    for (uint64_t round = 0; round < 20; round++) {
        receive(b, round, 300000, 300000);
        receive(b, 1000 + round, 0, 8);
        struct ibv_sge large = part(a, 0, 200000), small = part(a, 0, 64), word = part(a, 700000, 8);
        struct ibv_send_wr wr[5] = {
            request(IBV_WR_SEND, 1, &large),
            request(IBV_WR_RDMA_WRITE, 2, &small),
            request(IBV_WR_RDMA_WRITE_WITH_IMM, 3, &large),
            request(IBV_WR_ATOMIC_FETCH_AND_ADD, 4, &word),
            request(IBV_WR_RDMA_READ, 5, &small),
        };
        for (int i = 0; i < 4; i++)
            wr[i].next = &wr[i + 1];
        wr[1].send_flags = 0;
        for (int i = 1; i < 5; i++) {
            wr[i].wr.rdma.remote_addr = (uintptr_t)b->memory + 800000;
            wr[i].wr.rdma.rkey = b->mr->rkey;
        }
        wr[2].imm_data = 77;
        wr[2].wr.rdma.remote_addr = (uintptr_t)b->memory;
        wr[3].wr.atomic.remote_addr = (uintptr_t)b->memory + SIZE - 8;
        wr[3].wr.atomic.compare_add = 3;
        wr[3].wr.atomic.rkey = b->mr->rkey;
        post(a, wr);
        expect(b, round, IBV_WC_SUCCESS);
        struct ibv_wc wc = expect(b, 1000 + round, IBV_WC_SUCCESS);
        CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 200000 && wc.imm_data == 77);
        CHECK(!memcmp(a->memory, b->memory, 200000));
        expect(a, 1, IBV_WC_SUCCESS);
        CHECK(expect(a, 3, IBV_WC_SUCCESS).opcode == IBV_WC_RDMA_WRITE);
        CHECK(expect(a, 4, IBV_WC_SUCCESS).opcode == IBV_WC_FETCH_ADD);
        CHECK(expect(a, 5, IBV_WC_SUCCESS).opcode == IBV_WC_RDMA_READ);
        uint64_t before;
        memcpy(&before, a->memory + 700000, 8);
        CHECK(before == 3 * round);
    }
    nothing(a);
    close_pair(sides);
}

/* A write and a read start after an earlier message is in its receive. */
static void behind_a_message(int rnr_retry, uint32_t length)
{
    struct how how = USUAL;
    how.rnr_retry = rnr_retry;
    make_pair(sides, how);
    struct ibv_qp_attr attr = { .min_rnr_timer = 22 };
    CHECK(!ibv_modify_qp(b->qp, &attr, IBV_QP_MIN_RNR_TIMER));
    fill(a->memory, length, 7);
    send_bytes(a, 1, 0, length);
    a->memory[900000] = 9;
    struct ibv_sge byte = part(a, 900000, 1), back = part(a, 400000, length);
    struct ibv_send_wr write = request(IBV_WR_RDMA_WRITE, 2, &byte);
    write.wr.rdma.remote_addr = (uintptr_t)b->memory + 900000;
    write.wr.rdma.rkey = b->mr->rkey;
    post(a, &write);
    struct ibv_send_wr read = request(IBV_WR_RDMA_READ, 3, &back);
    read.wr.rdma.remote_addr = (uintptr_t)b->memory + 64;
    read.wr.rdma.rkey = b->mr->rkey;
    post(a, &read);
    struct timespec pause = { 0, 30000000 };
    nanosleep(&pause, NULL);
    nothing(a);
    nothing(b);
    CHECK(((volatile char *)b->memory)[900000] == 0);
    receive(b, 4, 64, length);
    expect(b, 4, IBV_WC_SUCCESS);
    for (uint64_t id = 1; id <= 3; id++)
        expect(a, id, IBV_WC_SUCCESS);
    CHECK(b->memory[900000] == 9 && !memcmp(a->memory, a->memory + 400000, length));
    close_pair(sides);
}

/* Writes with immediate value behind one that has no receive wait, too. */
static void behind_an_immediate(void)
{
    make_pair(sides, USUAL);
    struct ibv_sge byte = part(a, 0, 1);
    for (uint64_t i = 0; i < 40; i++) {
        if (i < 20)
            receive(b, i, 0, 8);
        a->memory[0] = 1;
        struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE_WITH_IMM, i, &byte);
        wr.wr.rdma.remote_addr = (uintptr_t)b->memory + i;
        wr.wr.rdma.rkey = b->mr->rkey;
        post(a, &wr);
    }
    for (uint64_t i = 0; i < 20; i++) {
        expect(b, i, IBV_WC_SUCCESS);
        expect(a, i, IBV_WC_SUCCESS);
    }
    struct timespec pause = { 0, 30000000 };
    nanosleep(&pause, NULL);
    nothing(a);
    /* The first without a receive is written, and none behind it. */
    CHECK(((volatile char *)b->memory)[21] == 0);
    for (uint64_t i = 20; i < 40; i++) {
        receive(b, i, 0, 8);
        CHECK(expect(b, i, IBV_WC_SUCCESS).byte_len == 1);
        expect(a, i, IBV_WC_SUCCESS);
        CHECK(b->memory[i] == 1);
    }
    close_pair(sides);
}

static void compare_swap(void)
{
    make_pair(sides, USUAL);
    struct ibv_sge word = part(a, 0, 8);
    struct ibv_send_wr wr = request(IBV_WR_ATOMIC_CMP_AND_SWP, 1, &word);
    wr.wr.atomic.remote_addr = (uintptr_t)b->memory;
    wr.wr.atomic.rkey = b->mr->rkey;
    for (uint64_t i = 0; i < 3; i++) {
        wr.wr.atomic.compare_add = i == 2 ? 9 : i;
        wr.wr.atomic.swap = i + 1;
        post(a, &wr);
        CHECK(expect(a, 1, IBV_WC_SUCCESS).opcode == IBV_WC_COMP_SWAP);
        CHECK(*(uint64_t *)a->memory == i);
    }
    CHECK(*(volatile uint64_t *)b->memory == 2);
    close_pair(sides);
}

/* Messages without a receive wait, more of them than are under way at once. */
static void patience(void)
{
    make_pair(sides, USUAL);
    for (uint64_t i = 0; i < 200; i++) {
        struct ibv_sge sge = part(a, i, 1);
        struct ibv_send_wr wr = request(IBV_WR_SEND, i, &sge);
        wr.send_flags |= i % 2 ? 0 : IBV_SEND_INLINE;
        a->memory[i] = (char)i;
        post(a, &wr);
        if (i % 2 == 0)
            a->memory[i] = 0;
    }
    for (uint64_t i = 0; i < 200; i++) {
        receive(b, i, i, 1);
        expect(b, i, IBV_WC_SUCCESS);
        CHECK(b->memory[i] == (char)i);
    }
    for (uint64_t i = 0; i < 200; i++)
        expect(a, i, IBV_WC_SUCCESS);
    close_pair(sides);
}

/* A channel's descriptor is readable exactly while an event waits. */
static void channels(void)
{
    make_pair(sides, USUAL);
    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_req_notify_cq(b->cq, 1));
    CHECK(!is_readable(b->channel->fd, 0));
    receive(b, 1, 0, 8);
    receive(b, 2, 0, 8);
    send_bytes(a, 3, 0, 8);
    CHECK(!is_readable(b->channel->fd, 50));
    struct ibv_sge sge = part(a, 0, 8);
    struct ibv_send_wr wr = request(IBV_WR_SEND, 4, &sge);
    wr.send_flags |= IBV_SEND_SOLICITED;
    post(a, &wr);
    CHECK(is_readable(b->channel->fd, 10000));
    CHECK(!ibv_get_cq_event(b->channel, &cq, &context) && cq == b->cq && context == b);
    CHECK(!is_readable(b->channel->fd, 0));
    ibv_ack_cq_events(cq, 1);
    expect(b, 1, IBV_WC_SUCCESS);
    expect(b, 2, IBV_WC_SUCCESS);
    /* One event for each request, for any completion. */
    CHECK(!ibv_req_notify_cq(b->cq, 0));
    for (uint64_t i = 0; i < 3; i++) {
        receive(b, i, 0, 8);
        send_bytes(a, i, 0, 8);
    }
    CHECK(!ibv_get_cq_event(b->channel, &cq, &context));
    ibv_ack_cq_events(cq, 1);
    for (uint64_t i = 0; i < 3; i++)
        expect(b, i, IBV_WC_SUCCESS);
    CHECK(!is_readable(b->channel->fd, 0));
    close_pair(sides);
}

static void shared_receives(void)
{
    struct how how = USUAL;
    for (int i = 0; i < 2; i++)
        open_side(&sides[i], &how);
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 2 } };
    struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
    CHECK(srq);
    create_qp(a, &how, NULL);
    create_qp(b, &how, srq);
    ready(a, b, &how);
    ready(b, a, &how);
    struct ibv_sge sge = part(b, 0, 8);
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
    CHECK(ibv_post_recv(b->qp, &wr, &bad) == EINVAL);
    send_bytes(a, 1, 0, 8);
    for (wr.wr_id = 0; wr.wr_id < 4; wr.wr_id++)
        CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
    struct ibv_srq_attr attr = { .srq_limit = 2 };
    CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
    expect(b, 0, IBV_WC_SUCCESS);
    expect(a, 1, IBV_WC_SUCCESS);
    CHECK(!is_readable(b->context->async_fd, 0));
    for (uint64_t i = 1; i < 3; i++) {
        send_bytes(a, i, 0, 8);
        expect(b, i, IBV_WC_SUCCESS);
    }
    CHECK(next_event(b) == IBV_EVENT_SRQ_LIMIT_REACHED);
    CHECK(!ibv_query_srq(srq, &attr) && attr.srq_limit == 0 && attr.max_wr == 16);
    CHECK(ibv_destroy_srq(srq) == EBUSY);
    CHECK(!ibv_destroy_qp(b->qp));
    b->qp = NULL;
    CHECK(!ibv_destroy_srq(srq));
    close_pair(sides);
}

/* A window of type 1 is bound by a call, which gives it another key each time. */
static void windows_of_type_1(void)
{
    struct how how = USUAL;
    how.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
    make_pair(sides, how);
    struct ibv_mw *mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
    CHECK(mw);
    uint32_t before = mw->rkey;
    struct ibv_mw_bind bind = {
        .wr_id = 1,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = { b->mr, (uintptr_t)b->memory + 100, 50, IBV_ACCESS_REMOTE_WRITE },
    };
    struct ibv_sge sge = part(a, 0, 50);
    struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 2, &sge);
    memset(a->memory, 7, 64);
    for (int i = 0; i < 2; i++) {
        CHECK(!ibv_bind_mw(b->qp, mw, &bind));
        CHECK(expect(b, 1, IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW);
        CHECK(mw->rkey != before);
        before = mw->rkey;
        wr.wr.rdma.remote_addr = bind.bind_info.addr;
        wr.wr.rdma.rkey = mw->rkey;
        post(a, &wr);
        expect(a, 2, IBV_WC_SUCCESS);
        CHECK(b->memory[bind.bind_info.addr - (uintptr_t)b->memory] == 7);
        bind.bind_info.addr += 1000;
    }
    CHECK(b->memory[99] == 0 && b->memory[150] == 0 && b->memory[1099] == 0 && b->memory[1150] == 0);
    /* The two types are bound each in its own way. */
    struct ibv_mw *other = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
    CHECK(other && ibv_bind_mw(b->qp, other, &bind) == EINVAL);
    struct ibv_send_wr posted = request(IBV_WR_BIND_MW, 3, NULL), *bad;
    posted.bind_mw.mw = mw;
    posted.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    posted.bind_mw.bind_info = bind.bind_info;
    CHECK(ibv_post_send(b->qp, &posted, &bad) == EINVAL && bad == &posted);
    CHECK(!ibv_dealloc_mw(other));
    /* A length of 0 ends it. */
    bind.bind_info.length = 0;
    CHECK(!ibv_bind_mw(b->qp, mw, &bind));
    expect(b, 1, IBV_WC_SUCCESS);
    post(a, &wr);
    expect(a, 2, IBV_WC_REM_ACCESS_ERR);
    CHECK(!ibv_dealloc_mw(mw));
    close_pair(sides);
}

/* A window of type 2 opens a part of a region until the peer or the owner ends it. */
static void windows(void)
{
    struct how how = USUAL;
    how.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
    make_pair(sides, how);
    struct ibv_mw *mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
    CHECK(mw);
    uint32_t key = ibv_inc_rkey(mw->rkey);
    struct ibv_send_wr bind = request(IBV_WR_BIND_MW, 1, NULL);
    bind.bind_mw.mw = mw;
    bind.bind_mw.rkey = key;
    bind.bind_mw.bind_info = (struct ibv_mw_bind_info){ b->mr, (uintptr_t)b->memory + 100, 50,
                                                        IBV_ACCESS_REMOTE_WRITE };
    post(b, &bind);
    CHECK(expect(b, 1, IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW);
    struct ibv_sge sge = part(a, 0, 50);
    memset(a->memory, 7, 64);
    struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 2, &sge);
    wr.wr.rdma.remote_addr = (uintptr_t)b->memory + 100;
    wr.wr.rdma.rkey = key;
    post(a, &wr);
    expect(a, 2, IBV_WC_SUCCESS);
    CHECK(b->memory[99] == 0 && b->memory[100] == 7 && b->memory[149] == 7 && b->memory[150] == 0);
    CHECK(ibv_dereg_mr(b->mr) == EBUSY);
    receive(b, 3, 0, 8);
    struct ibv_send_wr end = request(IBV_WR_SEND_WITH_INV, 4, NULL);
    end.invalidate_rkey = key;
    post(a, &end);
    struct ibv_wc wc = expect(b, 3, IBV_WC_SUCCESS);
    CHECK(wc.wc_flags == IBV_WC_WITH_INV && wc.invalidated_rkey == key);
    expect(a, 4, IBV_WC_SUCCESS);
    post(a, &wr);
    expect(a, 2, IBV_WC_REM_ACCESS_ERR);
    CHECK(!ibv_dealloc_mw(mw));
    close_pair(sides);
}

/* Datagrams: a wrong key or no receive drops them, and the route header leads back. */
static void datagrams(void)
{
    struct how how = USUAL;
    how.type = IBV_QPT_UD;
    make_pair(sides, how);
    struct ibv_ah_attr path = { .is_global = 1, .port_num = 1, .grh = { .dgid = b->gid } };
    struct ibv_ah *ah = ibv_create_ah(a->pd, &path);
    CHECK(ah);
    struct ibv_sge sge = part(a, 0, 4096);
    fill(a->memory, 4096, 3);
    struct ibv_send_wr wr = request(IBV_WR_SEND_WITH_IMM, 1, &sge);
    wr.imm_data = 99;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = b->qp->qp_num;
    wr.wr.ud.remote_qkey = 0x1234;
    post(a, &wr); /* no receive */
    expect(a, 1, IBV_WC_SUCCESS);
    struct timespec pause = { 0, 50000000 };
    nanosleep(&pause, NULL);
    nothing(b);
    receive(b, 2, 0, 4096 + 40);
    wr.wr.ud.remote_qkey = 0x1235;
    post(a, &wr); /* a wrong key */
    expect(a, 1, IBV_WC_SUCCESS);
    wr.wr.ud.remote_qkey = 0x1234;
    post(a, &wr);
    expect(a, 1, IBV_WC_SUCCESS);
    struct ibv_wc wc = expect(b, 2, IBV_WC_SUCCESS);
    CHECK(wc.byte_len == 4096 + 40 && wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM));
    CHECK(wc.imm_data == 99 && wc.src_qp == a->qp->qp_num);
    CHECK(!memcmp(a->memory, b->memory + 40, 4096));
    struct ibv_ah *back = ibv_create_ah_from_wc(b->pd, &wc, (struct ibv_grh *)b->memory, 1);
    CHECK(back);
    receive(a, 5, 0, 100);
    struct ibv_sge answer = part(b, 0, 10);
    wr.wr.ud.ah = back;
    wr.wr.ud.remote_qpn = wc.src_qp;
    wr.sg_list = &answer;
    post(b, &wr);
    CHECK(expect(a, 5, IBV_WC_SUCCESS).byte_len == 50);
    CHECK(!ibv_destroy_ah(back));
    CHECK(!ibv_destroy_ah(ah));
    close_pair(sides);
}

/* A failed request of UD stops the send queue alone, until the program makes it ready again. */
static void send_errors(void)
{
    struct how how = USUAL;
    how.type = IBV_QPT_UD;
    make_pair(sides, how);
    struct ibv_ah_attr to_a = { .is_global = 1, .port_num = 1, .grh = { .dgid = a->gid } };
    struct ibv_ah_attr to_b = { .is_global = 1, .port_num = 1, .grh = { .dgid = b->gid } };
    struct ibv_ah *ah[2] = { ibv_create_ah(a->pd, &to_b), ibv_create_ah(b->pd, &to_a) };
    struct ibv_sge good = part(a, 0, 8), bad = part(a, 0, 8), answer = part(b, 0, 8);
    bad.lkey ^= 0x100;
    struct ibv_send_wr wr = request(IBV_WR_SEND, 1, &bad);
    wr.wr.ud.ah = ah[0];
    wr.wr.ud.remote_qpn = b->qp->qp_num;
    wr.wr.ud.remote_qkey = 0x1234;
    receive(a, 7, 0, 100);
    receive(b, 8, 0, 100);
    post(a, &wr);
    expect(a, 1, IBV_WC_LOC_PROT_ERR);
    CHECK(state_of(a) == IBV_QPS_SQE);
    wr.sg_list = &good;
    wr.wr_id = 2;
    post(a, &wr);
    expect(a, 2, IBV_WC_WR_FLUSH_ERR);
    /* It still receives. */
    struct ibv_send_wr back = request(IBV_WR_SEND, 3, &answer);
    back.wr.ud.ah = ah[1];
    back.wr.ud.remote_qpn = a->qp->qp_num;
    back.wr.ud.remote_qkey = 0x1234;
    post(b, &back);
    expect(b, 3, IBV_WC_SUCCESS);
    expect(a, 7, IBV_WC_SUCCESS);
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
    CHECK(!ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
    wr.wr_id = 4;
    post(a, &wr);
    expect(a, 4, IBV_WC_SUCCESS);
    expect(b, 8, IBV_WC_SUCCESS);
    CHECK(!ibv_destroy_ah(ah[0]) && !ibv_destroy_ah(ah[1]));
    close_pair(sides);
}

/* Two messages under one completion queue entry: the queue overflows, and says so. */
static void overflow(void)
{
    struct how how = USUAL;
    for (int i = 0; i < 2; i++)
        open_side(&sides[i], &how);
    struct ibv_cq *own = b->cq;
    b->cq = ibv_create_cq(b->context, 2, NULL, NULL, 0);
    create_qp(a, &how, NULL);
    create_qp(b, &how, NULL);
    ready(a, b, &how);
    ready(b, a, &how);
    for (uint64_t i = 0; i < 3; i++) {
        receive(b, i, 0, 8);
        send_bytes(a, i, 0, 8);
        expect(a, i, IBV_WC_SUCCESS);
    }
    CHECK(next_event(b) == IBV_EVENT_CQ_ERR);
    CHECK(next_event(b) == IBV_EVENT_QP_FATAL && state_of(b) == IBV_QPS_ERR);
    CHECK(!ibv_destroy_qp(b->qp));
    b->qp = NULL;
    CHECK(!ibv_destroy_cq(b->cq));
    b->cq = own;
    close_pair(sides);
}

/* The extended calls of queue pairs and completion queues. */
static void extended(void)
{
    struct how how = USUAL;
    for (int i = 0; i < 2; i++)
        open_side(&sides[i], &how);
    struct ibv_cq_init_attr_ex cq_init = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
    struct ibv_cq_ex *cq = ibv_create_cq_ex(a->context, &cq_init);
    CHECK(cq);
    struct ibv_qp_init_attr_ex init = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .cap = { 16, 16, 4, 4, 64 },
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = a->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE,
    };
    a->qp = ibv_create_qp_ex(a->context, &init);
    CHECK(a->qp);
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    CHECK(!ibv_modify_qp(a->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    create_qp(b, &how, NULL);
    CHECK(!ibv_qp_to_qp_ex(b->qp));
    ready(a, b, &how);
    ready(b, a, &how);
    receive(b, 8, 0, 64);
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(a->qp);
    CHECK(qp);
    ibv_wr_start(qp);
    qp->wr_id = 1;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qp, b->mr->rkey, (uintptr_t)b->memory + 100);
    ibv_wr_set_inline_data(qp, "written", 7);
    qp->wr_id = 2;
    ibv_wr_send_imm(qp, 5);
    ibv_wr_set_sge(qp, a->mr->lkey, (uintptr_t)a->memory, 10);
    CHECK(!ibv_wr_complete(qp));
    struct ibv_wc wc = expect(b, 8, IBV_WC_SUCCESS);
    CHECK(wc.imm_data == 5 && wc.byte_len == 10 && !memcmp(b->memory + 100, "written", 7));
    struct ibv_poll_cq_attr poll_attr = { 0 };
    for (uint64_t id = 1; id <= 2; id++) {
        int result;
        while ((result = ibv_start_poll(cq, &poll_attr)) == ENOENT)
            ;
        CHECK(!result && cq->wr_id == id && cq->status == IBV_WC_SUCCESS);
        CHECK(ibv_wc_read_opcode(cq) == (id == 1 ? IBV_WC_RDMA_WRITE : IBV_WC_SEND));
        CHECK(ibv_wc_read_qp_num(cq) == a->qp->qp_num);
        ibv_end_poll(cq);
    }
    init.send_ops_flags = IBV_QP_EX_WITH_TSO;
    CHECK(!ibv_create_qp_ex(a->context, &init) && errno == EOPNOTSUPP);
    CHECK(!ibv_destroy_qp(a->qp));
    a->qp = NULL;
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    close_pair(sides);
}

/* A state that drains, and a reset queue pair that works again. */
static void states(void)
{
    make_pair(sides, USUAL);
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
    CHECK(!ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    CHECK(next_event(a) == IBV_EVENT_SQ_DRAINED);
    receive(b, 1, 0, 8);
    send_bytes(a, 2, 0, 8);
    struct timespec pause = { 0, 20000000 };
    nanosleep(&pause, NULL);
    nothing(b);
    attr.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(a->qp, &attr, IBV_QP_STATE));
    expect(b, 1, IBV_WC_SUCCESS);
    expect(a, 2, IBV_WC_SUCCESS);
    attr.qp_state = IBV_QPS_RESET;
    for (int i = 0; i < 2; i++) {
        CHECK(!ibv_modify_qp(sides[i].qp, &attr, IBV_QP_STATE));
        CHECK(state_of(&sides[i]) == IBV_QPS_RESET);
        struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
        CHECK(!ibv_modify_qp(sides[i].qp, &init,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    }
    struct how how = USUAL;
    ready(a, b, &how);
    ready(b, a, &how);
    receive(b, 3, 0, 8);
    send_bytes(a, 4, 0, 8);
    expect(b, 3, IBV_WC_SUCCESS);
    expect(a, 4, IBV_WC_SUCCESS);
    close_pair(sides);
}

int main(void)
{
    lists(IBV_QPT_RC);
    lists(IBV_QPT_UC);
    order();
    behind_a_message(7, 100);
    behind_a_message(7, 100000);
    behind_a_message(6, 100);
    behind_an_immediate();
    compare_swap();
    patience();
    channels();
    shared_receives();
    windows_of_type_1();
    windows();
    datagrams();
    send_errors();
    overflow();
    extended();
    states();
    return 0;
}
