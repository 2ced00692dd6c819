/* What the provider offers, by the interface itself: two endpoints of one process that talk to each other.
 * With the argument "auto", one of them never polls while it is sent a long message. Prints "good", or what is wrong. */
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MUST(what) must((what), #what, __LINE__)
#define SAME(a, b) same((long long)(a), (long long)(b), #a, __LINE__)

static void must(long result, const char *what, int line)
{
	if (result < 0) {
		printf("line %d: %s: %s\n", line, what, fi_strerror((int)-result));
		exit(1);
	}
}

static void same(long long a, long long b, const char *what, int line)
{
	if (a != b) {
		printf("line %d: %s is %lld, not %lld\n", line, what, a, b);
		exit(1);
	}
}

struct side {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_cntr *sent, *received;
	fi_addr_t other;
};

static struct side a, b;
static struct fid_av *av;

static void open_side(struct fid_domain *domain, struct fi_info *info, struct side *side)
{
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD, .size = 512 };
	struct fi_cntr_attr counter = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	MUST(fi_endpoint(domain, info, &side->ep, side));
	MUST(fi_cq_open(domain, &queue, &side->cq, side));
	MUST(fi_cntr_open(domain, &counter, &side->sent, NULL));
	MUST(fi_cntr_open(domain, &counter, &side->received, NULL));
	MUST(fi_ep_bind(side->ep, &av->fid, 0));
	MUST(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_ep_bind(side->ep, &side->sent->fid, FI_SEND));
	MUST(fi_ep_bind(side->ep, &side->received->fid, FI_RECV));
	MUST(fi_enable(side->ep));
}

static void close_side(struct side *side)
{
	SAME(fi_close(&side->cq->fid), -FI_EBUSY);
	MUST(fi_close(&side->ep->fid));
	MUST(fi_close(&side->cq->fid));
	MUST(fi_close(&side->sent->fid));
	MUST(fi_close(&side->received->fid));
}

static fi_addr_t address_of(struct side *side)
{
	char name[64], text[64];
	size_t length = 0, room = sizeof text;
	fi_addr_t number;
	SAME(fi_getname(&side->ep->fid, name, &length), -FI_ETOOSMALL);
	MUST(fi_getname(&side->ep->fid, name, &length));
	SAME(fi_av_insert(av, name, 1, &number, 0, NULL), 1);
	if (!strstr(fi_av_straddr(av, name, text, &room), "fi_sockaddr_in://"))
		must(-FI_EINVAL, text, __LINE__);
	return number;
}

/* The next completion of a side, while the other one is looked after as well. */
static struct fi_cq_tagged_entry next(struct side *side, fi_addr_t *source)
{
	struct fi_cq_tagged_entry entry, other;
	struct side *them = side == &a ? &b : &a;
	time_t deadline = time(NULL) + 20;
	for (;;) {
		ssize_t got = fi_cq_readfrom(side->cq, &entry, 1, source);
		if (got == 1)
			return entry;
		SAME(got, -FI_EAGAIN);
		/* What is there is left there. */
		SAME(fi_cq_read(them->cq, &other, 0), -FI_EAGAIN);
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "a completion", __LINE__);
	}
}

static int next_error(struct side *side, struct fi_cq_err_entry *error)
{
	struct fi_cq_tagged_entry entry;
	memset(error, 0, sizeof *error);
	time_t deadline = time(NULL) + 20;
	while (fi_cq_read(side->cq, &entry, 1) != -FI_EAVAIL)
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "an error", __LINE__);
	MUST(fi_cq_readerr(side->cq, error, 0));
	return error->err;
}

static char out[200000], in[200000];

static void messages(void)
{
	size_t lengths[] = { 0, 1, 8, 4096, 9000, sizeof out };
	for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
		size_t length = lengths[at];
		fi_addr_t source;
		memset(out, 'a' + (int)at, length);
		memset(in, 0, length);
		MUST(fi_trecv(b.ep, in, length, NULL, b.other, 0x70 + at, 0x0f00, &in));
		MUST(fi_tsenddata(a.ep, out, length, NULL, ~0ULL - at, a.other, 0x570 + at, &out));
		struct fi_cq_tagged_entry entry = next(&b, &source);
		SAME(entry.op_context == &in, 1);
		SAME(entry.len, length);
		SAME(entry.tag, 0x570 + at);
		SAME(entry.data, ~0ULL - at);
		SAME(source, b.other);
		SAME(entry.flags & (FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA), FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
		SAME(memcmp(in, out, length), 0);
		entry = next(&a, NULL);
		SAME(entry.op_context == &out, 1);
		SAME(entry.flags & (FI_SEND | FI_TAGGED), FI_SEND | FI_TAGGED);
		SAME(fi_cntr_read(a.sent), at + 1);
		SAME(fi_cntr_read(b.received), at + 1);
	}
	/* Copied, and without a completion. */
	struct fi_info limits;
	memset(&limits, 0, sizeof limits);
	memset(out, 'x', 4096);
	MUST(fi_inject(a.ep, out, 4096, a.other));
	memset(out, 'y', 4096);
	MUST(fi_recv(b.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, in));
	SAME(next(&b, NULL).len, 4096);
	SAME(in[4095], 'x');
	SAME(fi_cq_read(a.cq, in, 1), -FI_EAGAIN);
}

static void errors(void)
{
	struct fi_cq_err_entry error;
	/* Too long for its receive. */
	MUST(fi_trecv(b.ep, in, 10, NULL, FI_ADDR_UNSPEC, 1, 0, in));
	MUST(fi_tinject(a.ep, out, 30, a.other, 1));
	SAME(next_error(&b, &error), FI_ETRUNC);
	SAME(error.len, 10);
	SAME(error.olen, 20);
	/* Cancelled. */
	MUST(fi_trecv(b.ep, in, 10, NULL, FI_ADDR_UNSPEC, 2, 0, in));
	MUST(fi_cancel(&b.ep->fid, in));
	SAME(next_error(&b, &error), FI_ECANCELED);
	SAME(error.op_context == in, 1);
	/* Nobody there. */
	SAME(fi_send(a.ep, out, 1, NULL, 12345, NULL), -FI_EINVAL);
	/* Not offered, and yet not a crash. */
	struct fid_mr *mr;
	struct fid_poll *set;
	SAME(fi_ep_alias(a.ep, &a.ep, 0), -FI_ENOSYS);
	(void)mr, (void)set;
}

static void looks(void)
{
	struct fi_cq_err_entry error;
	struct fi_context claim;
	struct iovec into = { in, 100 };
	struct fi_msg_tagged look = { .addr = FI_ADDR_UNSPEC, .tag = 9, .context = &claim };
	MUST(fi_trecvmsg(b.ep, &look, FI_PEEK));
	SAME(next_error(&b, &error), FI_ENOMSG);
	MUST(fi_tinject(a.ep, "first", 6, a.other, 9));
	MUST(fi_tinject(a.ep, "second", 7, a.other, 9));
	MUST(fi_tinject(a.ep, "third", 6, a.other, 9));
	do {
		MUST(fi_trecvmsg(b.ep, &look, FI_PEEK | FI_CLAIM));
		struct fi_cq_tagged_entry entry;
		ssize_t got = fi_cq_read(b.cq, &entry, 1);
		if (got == 1) {
			SAME(entry.len, 6);
			break;
		}
		SAME(got, -FI_EAVAIL);
		MUST(fi_cq_readerr(b.cq, &error, 0));
	} while (1);
	MUST(fi_trecvmsg(b.ep, &look, FI_PEEK | FI_DISCARD));
	SAME(next(&b, NULL).len, 7);
	MUST(fi_trecv(b.ep, in, 100, NULL, FI_ADDR_UNSPEC, 9, 0, NULL));
	SAME(next(&b, NULL).len, 6);
	SAME(strcmp(in, "third"), 0);
	look.msg_iov = &into;
	look.iov_count = 1;
	MUST(fi_trecvmsg(b.ep, &look, FI_CLAIM));
	SAME(next(&b, NULL).len, 6);
	SAME(strcmp(in, "first"), 0);
}

static void many(void)
{
	struct iovec into = { in, 300 };
	struct fi_msg buffer = { .msg_iov = &into, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in };
	size_t least = 100, length = sizeof least;
	MUST(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
	least = 0;
	MUST(fi_getopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &length));
	SAME(least, 100);
	MUST(fi_recvmsg(b.ep, &buffer, FI_MULTI_RECV));
	for (int at = 0; at < 3; at++) {
		memset(out, '0' + at, 90);
		MUST(fi_inject(a.ep, out, 90, a.other));
		struct fi_cq_tagged_entry entry = next(&b, NULL);
		SAME((char *)entry.buf - in, 90 * at);
		SAME(*(char *)entry.buf, '0' + at);
	}
	SAME(next(&b, NULL).flags & FI_MULTI_RECV, FI_MULTI_RECV);
}

static void delivery(void)
{
	struct iovec from = { out, 50 };
	struct fi_msg message = { .msg_iov = &from, .iov_count = 1, .addr = a.other, .context = out };
	struct fi_cq_tagged_entry entry;
	MUST(fi_sendmsg(a.ep, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
	for (int at = 0; at < 1000; at++) {
		SAME(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
		SAME(fi_cq_read(b.cq, &entry, 1), -FI_EAGAIN);
	}
	MUST(fi_recv(b.ep, in, 50, NULL, FI_ADDR_UNSPEC, in));
	SAME(next(&b, NULL).len, 50);
	SAME(next(&a, NULL).op_context == out, 1);
}

/* Sleeping on a queue's descriptor until something comes. */
static void sleeping(struct fid_fabric *fabric)
{
	struct fid *fids[] = { &b.cq->fid };
	struct fi_cq_tagged_entry entry;
	struct pollfd fd = { .events = POLLIN };
	MUST(fi_control(&b.cq->fid, FI_GETWAIT, &fd.fd));
	MUST(fi_recv(b.ep, in, 50, NULL, FI_ADDR_UNSPEC, in));
	for (int turn = 0; fi_trywait(fabric, fids, 1) != 0 && turn < 1000; turn++)
		SAME(fi_cq_read(b.cq, &entry, 1), -FI_EAGAIN);
	SAME(poll(&fd, 1, 0), 0);
	MUST(fi_inject(a.ep, out, 50, a.other));
	SAME(poll(&fd, 1, 10000), 1);
	SAME(fi_cq_sread(b.cq, &entry, 1, NULL, 10000), 1);
	SAME(fi_cq_sread(b.cq, &entry, 1, NULL, 30), -FI_EAGAIN);
	uint64_t before = fi_cntr_read(b.received);
	SAME(fi_cntr_wait(b.received, before + 1, 30), -FI_ETIMEDOUT);
	MUST(fi_cq_signal(b.cq));
	SAME(fi_cq_sread(b.cq, &entry, 1, NULL, -1), -FI_EAGAIN);
}

/* One side does nothing while the other sends it what takes two to move. */
static void progress(void)
{
	MUST(fi_trecv(b.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, 3, 0, in));
	memset(out, 'z', sizeof out);
	MUST(fi_tsend(a.ep, out, sizeof out, NULL, a.other, 3, out));
	struct fi_cq_tagged_entry entry;
	SAME(fi_cq_sread(a.cq, &entry, 1, NULL, 20000), 1);
	SAME(in[sizeof in - 1], 'z');
	SAME(fi_cq_read(b.cq, &entry, 1), 1);
}

int main(int count, char **arguments)
{
	int automatic = count > 1 && !strcmp(arguments[1], "auto");
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fi_eq_attr events = { .wait_obj = FI_WAIT_UNSPEC };
	hints->caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("bellwire");
	hints->domain_attr->data_progress = automatic ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	hints->domain_attr->threading = automatic ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = 0;
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	SAME(info->domain_attr->mr_mode, 0);
	SAME(info->tx_attr->inject_size >= 4096, 1);
	SAME(info->domain_attr->cq_data_size, 8);
	/* What is not offered is not to be had. */
	struct fi_info *none;
	hints->caps = FI_RMA;
	SAME(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &none), -FI_ENODATA);
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_eq_open(fabric, &events, &eq, NULL));
	/* A vector that tells of insertions. */
	struct fi_av_attr vector = { .type = FI_AV_MAP, .flags = FI_EVENT };
	MUST(fi_av_open(domain, &vector, &av, NULL));
	MUST(fi_av_bind(av, &eq->fid, 0));
	fi_addr_t number;
	SAME(fi_av_insertsvc(av, "127.0.0.1", "50000", &number, 0, &number), 0);
	struct fi_eq_entry told;
	uint32_t event;
	SAME(fi_eq_sread(eq, &event, &told, sizeof told, 1000, 0), sizeof told);
	SAME(event, FI_AV_COMPLETE);
	SAME(told.data, 1);
	SAME(told.context == &number, 1);
	SAME(fi_eq_read(eq, &event, &told, sizeof told, 0), -FI_EAGAIN);
	MUST(fi_close(&av->fid));
	vector = (struct fi_av_attr){ .type = FI_AV_TABLE };
	MUST(fi_av_open(domain, &vector, &av, NULL));
	open_side(domain, info, &a);
	open_side(domain, info, &b);
	b.other = address_of(&a);
	a.other = address_of(&b);

	if (automatic) {
		for (int turn = 0; turn < 5; turn++)
			progress();
	} else {
		messages();
		errors();
		looks();
		many();
		delivery();
		sleeping(fabric);
	}
	SAME(fi_close(&domain->fid), -FI_EBUSY);
	close_side(&a);
	close_side(&b);
	MUST(fi_close(&av->fid));
	MUST(fi_close(&domain->fid));
	MUST(fi_close(&eq->fid));
	MUST(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	puts("good");
	return 0;
}
