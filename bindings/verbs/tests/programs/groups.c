/* Multicast: two contexts of one process, by libibverbs and by librdmacm. */
#include "pair.h"
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <unistd.h>

enum { GRH = 40, GROUP_QP = 0xffffff, QKEY = 0x1234 };

/* A group of this process alone. */
static struct in_addr group_address(int which)
{
    unsigned pid = (unsigned)getpid();
    return (struct in_addr){ htonl(0xef000000 | (pid & 0xffff) << 8 | (unsigned)which) };
}

static union ibv_gid group(int which)
{
    union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };
    struct in_addr address = group_address(which);
    memcpy(gid.raw + 12, &address, 4);
    return gid;
}

static struct ibv_ah *handle(struct ibv_pd *pd, union ibv_gid gid)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 1 },
    };
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    CHECK(ah);
    return ah;
}

static void send_to_group(struct side *side, struct ibv_ah *ah, uint64_t id, uint32_t qkey)
{
    struct ibv_sge sge = part(side, 0, 64);
    struct ibv_send_wr wr = request(IBV_WR_SEND_WITH_IMM, id, &sge);
    wr.imm_data = htonl(7);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = GROUP_QP;
    wr.wr.ud.remote_qkey = qkey;
    post(side, &wr);
}

/* A copy of what side `from` sent, in the receive `id`. */
static void copied(struct side *side, struct side *from, uint64_t id, int which)
{
    struct ibv_wc wc = expect(side, id, IBV_WC_SUCCESS);
    CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == GRH + 64 && wc.src_qp == from->qp->qp_num);
    CHECK(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM) && wc.imm_data == htonl(7));
    struct in_addr to = group_address(which);
    const char *bytes = side->memory + 4096;
    CHECK(!memcmp(bytes + 32, from->gid.raw + 12, 4) && !memcmp(bytes + 36, &to, 4));
    CHECK(!memcmp(bytes + GRH, from->memory, 64));
    /* The way back to the sender. */
    struct ibv_ah_attr attr;
    CHECK(!ibv_init_ah_from_wc(side->context, 1, &wc, (struct ibv_grh *)bytes, &attr));
    CHECK(!memcmp(&attr.grh.dgid, &from->gid, sizeof from->gid));
}

static void attachments(void)
{
    struct side sides[2];
    struct how how = USUAL;
    how.type = IBV_QPT_UD;
    make_pair(sides, how);
    struct ibv_device_attr limits;
    CHECK(!ibv_query_device(sides[0].context, &limits));
    CHECK(limits.max_mcast_grp == 128 && limits.max_mcast_qp_attach == 256);
    union ibv_gid one = group(1);
    /* Errors as ibv_attach_mcast(3) and ibv_destroy_qp(3) say. */
    CHECK(ibv_attach_mcast(sides[0].qp, &sides[0].gid, 0) == EINVAL);
    CHECK(ibv_detach_mcast(sides[0].qp, &one, 0) == EINVAL);
    for (int i = 0; i < 2; i++) {
        CHECK(!ibv_attach_mcast(sides[i].qp, &one, 0));
        CHECK(!ibv_attach_mcast(sides[i].qp, &one, 0));
        receive(&sides[i], 1, 4096, GRH + 64);
        CHECK(ibv_destroy_qp(sides[i].qp) == EBUSY);
    }
    memset(sides[0].memory, 'x', 64);
    struct ibv_ah *ah = handle(sides[0].pd, one);
    send_to_group(&sides[0], ah, 9, QKEY + 1);
    expect(&sides[0], 9, IBV_WC_SUCCESS);
    send_to_group(&sides[0], ah, 10, QKEY);
    expect(&sides[0], 10, IBV_WC_SUCCESS);
    copied(&sides[0], &sides[0], 1, 1);
    copied(&sides[1], &sides[0], 1, 1);
    /* Asleep: an event says that a datagram is there. */
    CHECK(!ibv_req_notify_cq(sides[1].cq, 0));
    receive(&sides[1], 2, 4096, GRH + 64);
    send_to_group(&sides[0], ah, 11, QKEY);
    expect(&sides[0], 11, IBV_WC_SUCCESS);
    CHECK(is_readable(sides[1].channel->fd, 10000));
    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_get_cq_event(sides[1].channel, &cq, &context));
    ibv_ack_cq_events(cq, 1);
    copied(&sides[1], &sides[0], 2, 1);
    for (int i = 0; i < 2; i++) {
        CHECK(!ibv_detach_mcast(sides[i].qp, &one, 0));
        CHECK(ibv_detach_mcast(sides[i].qp, &one, 0) == EINVAL);
    }
    CHECK(!ibv_destroy_ah(ah));
    close_pair(sides);

    make_pair(sides, USUAL);
    CHECK(ibv_attach_mcast(sides[0].qp, &one, 0) == EINVAL);
    close_pair(sides);
}

/* The next event of the channel, which the caller acknowledges. */
static struct rdma_cm_event *next_of(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    CHECK(is_readable(channel->fd, 10000));
    CHECK(!rdma_get_cm_event(channel, &event));
    if (event->event != type)
        fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event), rdma_event_str(type));
    CHECK(event->event == type);
    return event;
}

static void acknowledged(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    CHECK(!rdma_ack_cm_event(next_of(channel, type)));
}

static struct rdma_cm_id *identifier(struct rdma_event_channel *channel, struct sockaddr *to)
{
    struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct rdma_cm_id *id;
    CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_UDP));
    CHECK(rdma_join_multicast(id, to, NULL) == -1 && errno == EINVAL);
    CHECK(!rdma_resolve_addr(id, (struct sockaddr *)&from, to, 1000));
    acknowledged(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 64 } };
    CHECK(!rdma_create_qp(id, NULL, &attr));
    return id;
}

static struct ibv_wc completion(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    double end = now() + 10;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
        CHECK(now() < end);
    CHECK(count == 1 && wc.status == IBV_WC_SUCCESS);
    return wc;
}

static void joins(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    CHECK(channel);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = group_address(2) };
    struct sockaddr *to = (struct sockaddr *)&address;
    struct rdma_cm_id *receiver = identifier(channel, to), *sender = identifier(channel, to);
    char memory[2][GRH + 8] = { "" };
    struct ibv_mr *mr = ibv_reg_mr(receiver->pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr && receiver->pd == sender->pd);

    /* Who receives is attached; the call's context comes back in the event. */
    CHECK(!rdma_join_multicast(receiver, to, memory));
    struct rdma_cm_event *event = next_of(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    union ibv_gid gid = group(2);
    CHECK(event->id == receiver && event->status == 0);
    CHECK(event->param.ud.private_data == memory && event->param.ud.private_data_len == 0);
    CHECK(event->param.ud.qp_num == GROUP_QP && event->param.ud.qkey == RDMA_UDP_QKEY);
    CHECK(event->param.ud.ah_attr.is_global && event->param.ud.ah_attr.port_num == 1);
    CHECK(!memcmp(&event->param.ud.ah_attr.grh.dgid, &gid, sizeof gid));
    struct ibv_ah *ah = ibv_create_ah(sender->pd, &event->param.ud.ah_attr);
    CHECK(ah && !rdma_ack_cm_event(event));

    /* Who only sends is not. */
    struct rdma_cm_join_mc_attr_ex attr = {
        .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
        .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
        .addr = to,
    };
    CHECK(!rdma_join_multicast_ex(sender, &attr, NULL));
    acknowledged(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    CHECK(ibv_detach_mcast(sender->qp, &gid, 0) == EINVAL);
    attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
    CHECK(rdma_join_multicast_ex(sender, &attr, NULL) == -1 && errno == EOPNOTSUPP);
    attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    CHECK(rdma_join_multicast_ex(sender, &attr, NULL) == -1 && errno == EINVAL);

    CHECK(!rdma_post_recv(receiver, NULL, memory[0], GRH + 8, mr));
    memcpy(memory[1], "multicas", 8);
    CHECK(!rdma_post_ud_send(sender, NULL, memory[1], 8, mr, IBV_SEND_SIGNALED, ah, GROUP_QP));
    completion(sender->send_cq);
    struct ibv_wc wc = completion(receiver->recv_cq);
    CHECK(wc.byte_len == GRH + 8 && wc.src_qp == sender->qp->qp_num);
    CHECK(!memcmp(memory[0] + GRH, "multicas", 8));

    /* A group is left as often as it was joined; an event that waits goes along. */
    struct sockaddr_in none = address, wrong = address;
    none.sin_addr = group_address(3);
    wrong.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(rdma_leave_multicast(receiver, (struct sockaddr *)&none) == -1 && errno == EADDRNOTAVAIL);
    CHECK(rdma_join_multicast(receiver, (struct sockaddr *)&wrong, NULL) == -1 && errno == EINVAL);
    CHECK(!rdma_join_multicast(receiver, (struct sockaddr *)&none, NULL));
    CHECK(is_readable(channel->fd, 10000));
    CHECK(!rdma_leave_multicast(receiver, (struct sockaddr *)&none));
    CHECK(!is_readable(channel->fd, 0));
    CHECK(!rdma_leave_multicast(sender, to));
    CHECK(!rdma_leave_multicast(receiver, to));
    CHECK(rdma_leave_multicast(receiver, to) == -1 && errno == EADDRNOTAVAIL);
    CHECK(ibv_detach_mcast(receiver->qp, &gid, 0) == EINVAL);

    /* A queue pair ends although its identifier has joined. */
    CHECK(!rdma_join_multicast(receiver, to, NULL));
    acknowledged(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    rdma_destroy_qp(receiver);
    rdma_destroy_qp(sender);
    CHECK(!ibv_destroy_ah(ah) && !ibv_dereg_mr(mr));
    CHECK(!rdma_destroy_id(receiver) && !rdma_destroy_id(sender));
    rdma_destroy_event_channel(channel);
}

/* A call without a channel waits for its event. */
static void joins_and_waits(void)
{
    struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = group_address(4) };
    struct rdma_cm_id *id;
    CHECK(!rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP));
    CHECK(!rdma_bind_addr(id, (struct sockaddr *)&from));
    struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 64 } };
    CHECK(!rdma_create_qp(id, NULL, &attr));
    CHECK(!rdma_join_multicast(id, (struct sockaddr *)&to, id));
    CHECK(id->event && id->event->event == RDMA_CM_EVENT_MULTICAST_JOIN);
    CHECK(id->event->param.ud.private_data == id);
    CHECK(!rdma_leave_multicast(id, (struct sockaddr *)&to));
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
}

int main(void)
{
    attachments();
    joins();
    joins_and_waits();
    return 0;
}
