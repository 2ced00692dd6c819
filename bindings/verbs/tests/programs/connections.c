/* What connections promise, and how wrong calls fail: both sides in one process. */
#include "pair.h"
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sockaddr_in local(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

/* Whether an event waits, as the descriptor says. */
static int waits(struct rdma_event_channel *channel, int timeout_ms)
{
    struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
    return poll(&fd, 1, timeout_ms) == 1;
}

/* The next event of a channel, which is of this type. */
static struct rdma_cm_event *next_of(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    CHECK(waits(channel, 60000));
    CHECK(!rdma_get_cm_event(channel, &event));
    if (event->event != type)
        fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event), rdma_event_str(type));
    CHECK(event->event == type);
    return event;
}

static void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status)
{
    struct rdma_cm_event *event = next_of(channel, type);
    CHECK(event->status == status);
    CHECK(!rdma_ack_cm_event(event));
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
    attr.cap.max_send_wr = attr.cap.max_recv_wr = attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    CHECK(!rdma_create_qp(id, NULL, &attr));
    CHECK(id->qp && id->pd && id->send_cq && id->recv_cq_channel);
    /* One for each identifier. */
    CHECK(rdma_create_qp(id, NULL, &attr) == -1 && errno == EINVAL);
}

static struct rdma_cm_id *listener(struct rdma_event_channel *channel, enum rdma_port_space space)
{
    struct rdma_cm_id *id;
    struct sockaddr_in any = local(0);
    CHECK(!rdma_create_id(channel, &id, &any, space));
    CHECK(!rdma_bind_addr(id, (struct sockaddr *)&any));
    CHECK(!rdma_listen(id, 3));
    CHECK(id->verbs && rdma_get_src_port(id) != 0);
    return id;
}

/* An identifier whose route to a port is known. */
static struct rdma_cm_id *caller(struct rdma_event_channel *channel, int port)
{
    struct rdma_cm_id *id;
    struct sockaddr_in to = local(port);
    CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(rdma_resolve_route(id, 1000) == -1 && errno == EINVAL);
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000));
    expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    CHECK(id->verbs && rdma_get_dst_port(id) == htons(port));
    CHECK(rdma_connect(id, NULL) == -1 && errno == EINVAL);
    CHECK(!rdma_resolve_route(id, 1000));
    expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    CHECK(id->route.num_paths == 1);
    return id;
}

static void wrong_calls(struct rdma_event_channel *channel)
{
    struct rdma_cm_id *id, *other;
    CHECK(rdma_create_id(channel, &id, NULL, 0x1234) == -1 && errno == EPROTONOSUPPORT);
    CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    struct sockaddr_in6 true_ipv6 = { .sin6_family = AF_INET6, .sin6_addr = { { { 0x20, 1 } } } };
    CHECK(rdma_bind_addr(id, (struct sockaddr *)&true_ipv6) == -1 && errno == EADDRNOTAVAIL);
    struct sockaddr unix_family = { .sa_family = AF_UNIX };
    CHECK(rdma_bind_addr(id, &unix_family) == -1 && errno == EAFNOSUPPORT);
    struct sockaddr_in foreign = local(0);
    foreign.sin_addr.s_addr = htonl(0xc6336401); /* 198.51.100.1, of nobody */
    CHECK(rdma_bind_addr(id, (struct sockaddr *)&foreign) == -1 && errno == EADDRNOTAVAIL);
    CHECK(!rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
    struct sockaddr_in any = local(0);
    CHECK(!rdma_bind_addr(id, (struct sockaddr *)&any));
    struct sockaddr_in taken = local(ntohs(rdma_get_src_port(id)));
    CHECK(rdma_bind_addr(other, (struct sockaddr *)&taken) == -1 && errno == EADDRINUSE);
    CHECK(rdma_accept(id, NULL) == -1 && errno == EINVAL);
    CHECK(rdma_reject(id, NULL, 0) == -1 && errno == EINVAL);
    CHECK(rdma_disconnect(id) == -1);
    CHECK(rdma_get_cm_event(channel, NULL) == -1 && errno == EINVAL);
    CHECK(!rdma_destroy_id(other) && !rdma_destroy_id(id));
    CHECK(!waits(channel, 0));
}

static void refusals(struct rdma_event_channel *channel)
{
    /* Nobody listens: reason 8 of the specification, invalid service. */
    struct rdma_cm_id *id = listener(channel, RDMA_PS_TCP);
    int port = ntohs(rdma_get_src_port(id));
    CHECK(!rdma_destroy_id(id));
    id = caller(channel, port);
    make_qp(id);
    char data[148] = "of a refusal";
    struct rdma_conn_param param = { .private_data = data, .private_data_len = 57 };
    CHECK(rdma_connect(id, &param) == -1 && errno == EINVAL);
    param.private_data_len = 56;
    CHECK(!rdma_connect(id, &param));
    expect_event(channel, RDMA_CM_EVENT_REJECTED, 8);
    CHECK(id->qp->state == IBV_QPS_ERR);
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
    /* The program refuses: 28, and what it adds. */
    struct rdma_cm_id *listening = listener(channel, RDMA_PS_TCP);
    id = caller(channel, ntohs(rdma_get_src_port(listening)));
    make_qp(id);
    CHECK(!rdma_connect(id, NULL));
    struct rdma_cm_event *event = next_of(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *asked = event->id;
    CHECK(event->listen_id == listening && !rdma_ack_cm_event(event));
    CHECK(rdma_reject(asked, data, 149) == -1 && errno == EINVAL);
    CHECK(!rdma_reject(asked, data, 148) && !rdma_destroy_id(asked));
    event = next_of(channel, RDMA_CM_EVENT_REJECTED);
    CHECK(event->status == 28 && event->param.conn.private_data_len == 148);
    CHECK(!memcmp(event->param.conn.private_data, data, 148) && !rdma_ack_cm_event(event));
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id) && !rdma_destroy_id(listening));
}

static void connects(struct rdma_event_channel *passive, struct rdma_event_channel *active)
{
    struct rdma_cm_id *listening = listener(passive, RDMA_PS_TCP);
    struct rdma_cm_id *id = caller(active, ntohs(rdma_get_src_port(listening)));
    make_qp(id);
    CHECK(id->qp->state == IBV_QPS_INIT);
    struct rdma_conn_param param = {
        .private_data = "question", .private_data_len = 8, .responder_resources = 2,
        .initiator_depth = 3, .retry_count = 4, .rnr_retry_count = 5,
    };
    CHECK(!rdma_connect(id, &param));
    struct rdma_cm_event *event = next_of(passive, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *server = event->id;
    CHECK(!memcmp(event->param.conn.private_data, "question", 8));
    /* What one side asks for, the other one is to answer. */
    CHECK(event->param.conn.responder_resources == 3 && event->param.conn.initiator_depth == 2);
    CHECK(event->param.conn.retry_count == 4 && event->param.conn.rnr_retry_count == 5);
    CHECK(rdma_get_dst_port(server) == rdma_get_src_port(id) && server->verbs);
    CHECK(!rdma_ack_cm_event(event));
    make_qp(server);
    param.private_data = "answer";
    param.private_data_len = 6;
    CHECK(!rdma_accept(server, &param));
    event = next_of(active, RDMA_CM_EVENT_ESTABLISHED);
    CHECK(event->id == id && !memcmp(event->param.conn.private_data, "answer", 6));
    CHECK(!rdma_ack_cm_event(event));
    expect_event(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
    CHECK(id->qp->state == IBV_QPS_RTS && server->qp->state == IBV_QPS_RTS);

    /* A message, to show that the queue pairs belong together. */
    char text[16] = "over the wire", room[16] = "";
    struct ibv_mr *mr = ibv_reg_mr(server->pd, room, sizeof room, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr);
    struct ibv_sge part = { (uintptr_t)room, sizeof room, mr->lkey };
    struct ibv_recv_wr receive = { .sg_list = &part, .num_sge = 1 }, *bad_receive;
    CHECK(!ibv_post_recv(server->qp, &receive, &bad_receive));
    struct ibv_sge from = { (uintptr_t)text, sizeof text, 0 };
    struct ibv_send_wr send = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED }, *bad_send;
    CHECK(!ibv_post_send(id->qp, &send, &bad_send));
    struct ibv_wc wc;
    while (ibv_poll_cq(server->recv_cq, 1, &wc) == 0)
        ;
    CHECK(wc.status == IBV_WC_SUCCESS && !strcmp(room, text));
    CHECK(!ibv_dereg_mr(mr));

    /* Events move with their identifier. */
    struct rdma_event_channel *third = rdma_create_event_channel();
    CHECK(third);
    CHECK(!rdma_disconnect(id));
    CHECK(waits(passive, 60000));
    CHECK(!rdma_migrate_id(server, third));
    CHECK(!waits(passive, 0) && server->channel == third);
    expect_event(third, RDMA_CM_EVENT_DISCONNECTED, 0);
    expect_event(active, RDMA_CM_EVENT_DISCONNECTED, 0);
    CHECK(!rdma_disconnect(server));
    CHECK(id->qp->state == IBV_QPS_ERR && server->qp->state == IBV_QPS_ERR);
    expect_event(third, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
    rdma_destroy_qp(id);
    rdma_destroy_qp(server);
    CHECK(!id->qp && !id->send_cq);
    CHECK(!rdma_destroy_id(id) && !rdma_destroy_id(server) && !rdma_destroy_id(listening));
    rdma_destroy_event_channel(third);
}

static void names(void)
{
    struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *found;
    CHECK(!rdma_getaddrinfo(NULL, "7471", &hints, &found));
    CHECK(found->ai_qp_type == IBV_QPT_RC && found->ai_src_addr && !found->ai_dst_addr);
    CHECK(((struct sockaddr_in *)found->ai_src_addr)->sin_port == htons(7471));
    rdma_freeaddrinfo(found);
    hints.ai_flags = RAI_NUMERICHOST;
    CHECK(!rdma_getaddrinfo("127.0.0.1", "7471", &hints, &found));
    CHECK(found->ai_dst_addr && found->ai_dst_len == sizeof(struct sockaddr_in));
    rdma_freeaddrinfo(found);
    /* Without names: what the hints have. */
    struct sockaddr_in from = local(7000);
    struct rdma_addrinfo given = { .ai_port_space = RDMA_PS_UDP,
                                   .ai_src_addr = (struct sockaddr *)&from,
                                   .ai_src_len = sizeof from };
    CHECK(!rdma_getaddrinfo(NULL, NULL, &given, &found));
    CHECK(found->ai_qp_type == IBV_QPT_UD && !found->ai_dst_addr);
    CHECK(!memcmp(found->ai_src_addr, &from, sizeof from));
    rdma_freeaddrinfo(found);
    CHECK(rdma_getaddrinfo(NULL, NULL, NULL, &found) != 0);
    CHECK(rdma_getaddrinfo("no address", "7471", &hints, &found) != 0);
    int count;
    struct ibv_context **devices = rdma_get_devices(&count);
    CHECK(devices && count > 0 && devices[0] && !devices[count]);
    rdma_free_devices(devices);
    CHECK(!strcmp(rdma_event_str(RDMA_CM_EVENT_REJECTED), "RDMA_CM_EVENT_REJECTED"));
}

/* A child of a process with connections makes its own. */
static void forks(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(100);
        struct rdma_event_channel *channel = rdma_create_event_channel();
        CHECK(channel);
        refusals(channel);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    struct rdma_event_channel *passive = rdma_create_event_channel();
    struct rdma_event_channel *active = rdma_create_event_channel();
    CHECK(passive && active);
    names();
    wrong_calls(active);
    refusals(active);
    forks();
    connects(passive, active);
    CHECK(!waits(active, 0) && !waits(passive, 0));
    rdma_destroy_event_channel(active);
    rdma_destroy_event_channel(passive);
    return 0;
}
