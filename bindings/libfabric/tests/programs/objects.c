/* The provider's functions through the interface itself: two endpoints of one process talk to each
 * other. With the argument "auto", one of them never polls while it is sent a long message. Prints
 * "good", or the fault. */
#include "check.h"
#include <poll.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

struct side {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_cntr *sent, *received, *wrote, *read;
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
	MUST(fi_cntr_open(domain, &counter, &side->wrote, NULL));
	MUST(fi_cntr_open(domain, &counter, &side->read, NULL));
	MUST(fi_ep_bind(side->ep, &av->fid, 0));
	MUST(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_ep_bind(side->ep, &side->sent->fid, FI_SEND));
	MUST(fi_ep_bind(side->ep, &side->received->fid, FI_RECV));
	MUST(fi_ep_bind(side->ep, &side->wrote->fid, FI_WRITE));
	MUST(fi_ep_bind(side->ep, &side->read->fid, FI_READ));
	MUST(fi_enable(side->ep));
}

static void close_side(struct side *side)
{
	SAME(fi_close(&side->cq->fid), -FI_EBUSY);
	MUST(fi_close(&side->ep->fid));
	MUST(fi_close(&side->cq->fid));
	MUST(fi_close(&side->sent->fid));
	MUST(fi_close(&side->received->fid));
	MUST(fi_close(&side->wrote->fid));
	MUST(fi_close(&side->read->fid));
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

/* The next completion of one side, while the other side is driven too. */
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
		/* Reads no entry: the other side's completions stay. */
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
	/* Unknown peer. */
	SAME(fi_send(a.ep, out, 1, NULL, 12345, NULL), -FI_EINVAL);
	/* Not offered, but no crash. */
	struct fid_mr *mr;
	struct fid_poll *set;
	SAME(fi_ep_alias(a.ep, &a.ep, 0), -FI_ENOSYS);
	(void)mr, (void)set;
}

/* The length of a message; peeks until it has arrived. */
static size_t found(struct fi_msg_tagged *look, uint64_t flags)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	time_t deadline = time(NULL) + 20;
	for (;;) {
		MUST(fi_trecvmsg(b.ep, look, flags));
		ssize_t got = fi_cq_read(b.cq, &entry, 1);
		if (got == 1)
			return entry.len;
		SAME(got, -FI_EAVAIL);
		MUST(fi_cq_readerr(b.cq, &error, 0));
		SAME(fi_cq_read(a.cq, &entry, 0), -FI_EAGAIN);
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "a message to look at", __LINE__);
	}
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
	SAME(found(&look, FI_PEEK | FI_CLAIM), 6);
	SAME(found(&look, FI_PEEK | FI_DISCARD), 7);
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
	SAME(next(&b, NULL).flags & (FI_MULTI_RECV | FI_RECV), FI_MULTI_RECV);
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
	for (time_t until = time(NULL) + 20; fi_trywait(fabric, fids, 1) != 0 && time(NULL) < until;)
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

/* Exposes memory of b, by keys that it chooses; a writes and reads it. */
static struct fid_mr *expose(struct fid_domain *domain, void *at, size_t length, uint64_t access, uint64_t key)
{
	struct fid_mr *mr;
	MUST(fi_mr_reg(domain, at, length, access, 0, key, 0, &mr, NULL));
	SAME(fi_mr_key(mr), key);
	return mr;
}

/* Waits for the end of an access of a; the completion must be of this kind. */
static void ended(uint64_t kind)
{
	struct fi_cq_tagged_entry entry = next(&a, NULL);
	SAME(entry.flags & (FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE), kind);
	SAME(entry.op_context == out, 1);
}

/* The access is refused, and b gets no completion. */
static int refused(void)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	memset(&error, 0, sizeof error);
	time_t deadline = time(NULL) + 20;
	while (fi_cq_read(a.cq, &entry, 1) != -FI_EAVAIL) {
		SAME(fi_cq_read(b.cq, &entry, 1), -FI_EAGAIN);
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "a refusal", __LINE__);
	}
	MUST(fi_cq_readerr(a.cq, &error, 0));
	return error.err;
}

static void count_to(struct fid_cntr *counter, uint64_t value)
{
	struct fi_cq_tagged_entry entry;
	time_t deadline = time(NULL) + 20;
	while (fi_cntr_read(counter) < value) {
		SAME(fi_cq_read(b.cq, &entry, 0), -FI_EAGAIN);
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "a count", __LINE__);
	}
	SAME(fi_cntr_read(counter), value);
}

static char memory[300000];

static void rma(struct fid_domain *domain)
{
	uint64_t key = 0xfeedfacecafebeefULL, wrote = 0, read = 0;
	struct fid_mr *mr = expose(domain, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, key), *other;
	size_t lengths[] = { 1, 8, 4096, 9000, sizeof out };
	for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
		size_t length = lengths[at], half = length / 2;
		struct iovec parts[2] = { { out, half }, { out + half, length - half } };
		struct fi_rma_iov there = { 77, length, key };
		struct fi_msg_rma message = { parts, NULL, 2, a.other, &there, 1, out, 0xabcdef0123456789ULL };
		struct fi_cq_tagged_entry entry;
		fi_addr_t source;
		memset(memory, 0, sizeof memory);
		memset(out, 'A' + (int)at, length);
		MUST(fi_write(a.ep, out, length, NULL, a.other, 77, key, out));
		ended(FI_RMA | FI_WRITE);
		SAME(memcmp(memory + 77, out, length), 0);
		SAME(memory[76] | memory[77 + length], 0);
		memset(in, 0, length);
		MUST(fi_read(a.ep, in, length, NULL, a.other, 77, key, out));
		ended(FI_RMA | FI_READ);
		SAME(memcmp(in, out, length), 0);
		/* In two parts, with a data word for the other side; complete when that side has it. */
		memset(out, 'a' + (int)at, length);
		MUST(fi_writemsg(a.ep, &message, FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE | FI_COMPLETION));
		entry = next(&b, &source);
		SAME(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		SAME(entry.data, 0xabcdef0123456789ULL);
		SAME(entry.len, length);
		SAME(entry.op_context == NULL, 1);
		SAME(source, b.other);
		ended(FI_RMA | FI_WRITE);
		SAME(memcmp(memory + 77, out, length), 0);
		parts[0].iov_base = in;
		parts[1].iov_base = in + half;
		MUST(fi_readmsg(a.ep, &message, FI_COMPLETION));
		ended(FI_RMA | FI_READ);
		MUST(fi_writev(a.ep, parts, NULL, 2, a.other, 0, key, out));
		ended(FI_RMA | FI_WRITE);
		MUST(fi_readv(a.ep, parts, NULL, 2, a.other, 77, key, out));
		ended(FI_RMA | FI_READ);
		SAME(memcmp(in, out, length), 0);
		MUST(fi_writedata(a.ep, out, length, NULL, at, a.other, 0, key, out));
		SAME(next(&b, NULL).data, at);
		ended(FI_RMA | FI_WRITE);
		count_to(a.wrote, wrote += 4);
		count_to(a.read, read += 3);
	}
	/* Injected, without completions, but counted on arrival. */
	memset(out, 'i', 16384);
	MUST(fi_inject_write(a.ep, out, 16384, a.other, 0, key));
	memset(out, 'j', 16384);
	count_to(a.wrote, ++wrote);
	SAME(memory[16383], 'i');
	MUST(fi_inject_writedata(a.ep, out, 1, 5, a.other, 0, key));
	SAME(next(&b, NULL).data, 5);
	SAME(memory[0], 'j');
	count_to(a.wrote, ++wrote);
	SAME(fi_inject_write(a.ep, out, 16385, a.other, 0, key), -FI_EMSGSIZE);
	/* Its own memory, by its own address. */
	fi_addr_t self = b.other;
	MUST(fi_write(a.ep, "self", 5, NULL, self, 9, key, out));
	ended(FI_RMA | FI_WRITE);
	SAME(strcmp(memory + 9, "self"), 0);
	/* Past the end, by a byte or completely. A read of no bytes at the end is no error. */
	memset(memory, 'm', sizeof memory);
	MUST(fi_write(a.ep, out, 2, NULL, a.other, sizeof memory - 1, key, out));
	SAME(refused(), FI_EACCES);
	MUST(fi_write(a.ep, out, 2, NULL, a.other, ~0ULL, key, out));
	SAME(refused(), FI_EACCES);
	MUST(fi_read(a.ep, in, 0, NULL, a.other, sizeof memory, key, out));
	ended(FI_RMA | FI_READ);
	SAME(memory[sizeof memory - 1], 'm');
	/* An unknown key, and a key that is in use. */
	MUST(fi_write(a.ep, out, 2, NULL, a.other, 0, key + 1, out));
	SAME(refused(), FI_ENOKEY);
	SAME(fi_mr_reg(domain, memory, 1, FI_REMOTE_READ, 0, key, 0, &other, NULL), -FI_ENOKEY);
	SAME(fi_mr_reg(domain, NULL, ~0UL, FI_REMOTE_READ, 0, 3, 0, &other, NULL), -FI_EINVAL);
	/* Only the allowed access works. */
	other = expose(domain, memory, 100, FI_REMOTE_READ, 0);
	MUST(fi_write(a.ep, out, 2, NULL, a.other, 0, 0, out));
	SAME(refused(), FI_EACCES);
	MUST(fi_read(a.ep, in, 2, NULL, a.other, 0, 0, out));
	ended(FI_RMA | FI_READ);
	MUST(fi_close(&other->fid));
	other = expose(domain, memory, 100, FI_REMOTE_WRITE, 0);
	MUST(fi_read(a.ep, in, 2, NULL, a.other, 0, 0, out));
	SAME(refused(), FI_EACCES);
	SAME(memory[0], 'm');
	MUST(fi_close(&other->fid));
	/* A reused key means the new memory, and an unused one means none. */
	MUST(fi_close(&mr->fid));
	mr = expose(domain, memory + 1000, 10, FI_REMOTE_READ | FI_REMOTE_WRITE, key);
	MUST(fi_write(a.ep, "new", 4, NULL, a.other, 6, key, out));
	ended(FI_RMA | FI_WRITE);
	SAME(strcmp(memory + 1006, "new"), 0);
	SAME(fi_close(&domain->fid), -FI_EBUSY);
	MUST(fi_close(&mr->fid));
	MUST(fi_write(a.ep, "old", 4, NULL, a.other, 6, key, out));
	SAME(refused(), FI_ENOKEY);
	SAME(strcmp(memory + 1006, "new"), 0);
}

#define FLOATS (1 << FI_FLOAT | 1 << FI_DOUBLE)

/* Every advertised datatype and operation works in each of the three forms, and no other does. */
static void atomics(struct fid_domain *domain)
{
	static const int bits = 1 << FI_BOR | 1 << FI_BAND | 1 << FI_BXOR | 1 << FI_MSWAP;
	uint64_t key = 42, all[4] = { 0 };
	struct fid_mr *mr = expose(domain, all, sizeof all, FI_REMOTE_READ | FI_REMOTE_WRITE, key), *other;
	size_t count;
	int offered = 0;
	for (int type = 0; type < 15; type++)
		for (int op = 0; op < 24; op++) {
			int number = type <= FI_DOUBLE && op <= FI_MSWAP;
			if (number && (1 << type & FLOATS) && (1 << op & bits))
				number = 0;
			int compares = op >= FI_CSWAP;
			SAME(fi_atomicvalid(a.ep, type, op, &count), number && !compares && op != FI_ATOMIC_READ ? 0 : -FI_EOPNOTSUPP);
			SAME(fi_fetch_atomicvalid(a.ep, type, op, &count), number && !compares ? 0 : -FI_EOPNOTSUPP);
			SAME(fi_compare_atomicvalid(a.ep, type, op, &count), number && compares ? 0 : -FI_EOPNOTSUPP);
			struct fi_atomic_attr attr = { 0, 0 };
			SAME(fi_query_atomic(domain, type, op, &attr, compares ? FI_COMPARE_ATOMIC : FI_FETCH_ATOMIC), number ? 0 : -FI_EOPNOTSUPP);
			if (!number)
				continue;
			SAME(attr.count * attr.size, 2048);
			offered++;
			/* All operands are one, so each result is known. */
			char one[16] = { 0 }, was[16];
			double whole = 1;
			float half = 1;
			if (type == FI_DOUBLE)
				memcpy(one, &whole, 8), memcpy(one + 8, &whole, 8);
			else if (type == FI_FLOAT)
				memcpy(one, &half, 4), memcpy(one + 4, &half, 4);
			else
				one[0] = one[attr.size] = 1;
			memcpy(all + 1, one, 16);
			memset(was, 0xee, 16);
			if (compares)
				MUST(fi_compare_atomic(a.ep, one, 2, NULL, one, NULL, was, NULL, a.other, 8, key, type, op, out));
			else
				MUST(fi_fetch_atomic(a.ep, one, 2, NULL, was, NULL, a.other, 8, key, type, op, out));
			ended(FI_ATOMIC | FI_READ);
			SAME(memcmp(was, one, 2 * attr.size), 0);
			double sum = type == FI_DOUBLE ? *(double *)(all + 1) : type == FI_FLOAT ? *(float *)(all + 1) : *(char *)(all + 1);
			SAME(sum, op == FI_SUM ? 2 : op == FI_LXOR || op == FI_BXOR ? 0 : 1);
		}
	SAME(offered, 8 * 19 + 2 * 15);
	/* The forms without a result: in parts, by structure, injected. */
	int64_t *word = (int64_t *)all, five = 5, was = 0, minus = -1, part[2] = { 1, 2 };
	struct fi_ioc operand = { &five, 1 }, result = { &was, 1 }, compared = { &minus, 1 };
	struct fi_ioc two[2] = { { part, 1 }, { part + 1, 1 } };
	struct fi_rma_ioc there = { 0, 1, key };
	struct fi_msg_atomic message = { &operand, NULL, 1, a.other, &there, 1, FI_INT64, FI_SUM, out, 0 };
	memset(all, 0, sizeof all);
	uint64_t wrote = fi_cntr_read(a.wrote);
	MUST(fi_atomic(a.ep, &five, 1, NULL, a.other, 0, key, FI_INT64, FI_SUM, out));
	ended(FI_ATOMIC | FI_WRITE);
	MUST(fi_atomicv(a.ep, two, NULL, 2, a.other, 0, key, FI_INT64, FI_SUM, out));
	ended(FI_ATOMIC | FI_WRITE);
	MUST(fi_atomicmsg(a.ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	ended(FI_ATOMIC | FI_WRITE);
	MUST(fi_inject_atomic(a.ep, &five, 1, a.other, 8, key, FI_INT64, FI_SUM));
	count_to(a.wrote, wrote + 4);
	SAME(word[0], 11);
	SAME(word[1], 7);
	MUST(fi_fetch_atomicv(a.ep, &operand, NULL, 1, &result, NULL, 1, a.other, 0, key, FI_INT64, FI_ATOMIC_READ, out));
	ended(FI_ATOMIC | FI_READ);
	SAME(was, 11);
	MUST(fi_fetch_atomic(a.ep, NULL, 1, NULL, &was, NULL, a.other, 8, key, FI_INT64, FI_ATOMIC_READ, out));
	ended(FI_ATOMIC | FI_READ);
	SAME(was, 7);
	MUST(fi_fetch_atomicmsg(a.ep, &message, &result, NULL, 1, FI_COMPLETION));
	ended(FI_ATOMIC | FI_READ);
	SAME(was, 11);
	message.op = FI_CSWAP;
	MUST(fi_compare_atomicmsg(a.ep, &message, &compared, NULL, 1, &result, NULL, 1, FI_COMPLETION));
	ended(FI_ATOMIC | FI_READ);
	SAME(was, 16);
	SAME(word[0], 16);
	minus = 16;
	MUST(fi_compare_atomicv(a.ep, &operand, NULL, 1, &compared, NULL, 1, &result, NULL, 1, a.other, 0, key, FI_INT64, FI_CSWAP, out));
	ended(FI_ATOMIC | FI_READ);
	SAME(word[0], 5);
	/* Misuse: past the end, unaligned, unknown key, missing right. Nothing changes. */
	MUST(fi_atomic(a.ep, &five, 1, NULL, a.other, 32, key, FI_INT64, FI_SUM, out));
	SAME(refused(), FI_EACCES);
	MUST(fi_atomic(a.ep, &five, 1, NULL, a.other, 4, key, FI_INT64, FI_SUM, out));
	SAME(refused(), FI_EINVAL);
	MUST(fi_atomic(a.ep, &five, 1, NULL, a.other, 0, 41, FI_INT64, FI_SUM, out));
	SAME(refused(), FI_ENOKEY);
	other = expose(domain, all, 8, FI_REMOTE_READ, 41);
	MUST(fi_fetch_atomic(a.ep, &five, 1, NULL, &was, NULL, a.other, 0, 41, FI_INT64, FI_SUM, out));
	SAME(refused(), FI_EACCES);
	MUST(fi_fetch_atomic(a.ep, &five, 1, NULL, &was, NULL, a.other, 0, 41, FI_INT64, FI_ATOMIC_READ, out));
	ended(FI_ATOMIC | FI_READ);
	MUST(fi_close(&other->fid));
	SAME(fi_atomic(a.ep, out, 257, NULL, a.other, 0, key, FI_INT64, FI_SUM, out), -FI_EMSGSIZE);
	SAME(fi_atomic(a.ep, out, 1, NULL, a.other, 0, key, FI_INT64, FI_CSWAP, out), -FI_EOPNOTSUPP);
	SAME(word[0], 5);
	SAME(word[1], 7);
	MUST(fi_close(&mr->fid));
}

/* One side is idle while the other sends it a message that needs both to move. */
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
	hints->caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_RMA | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("bellwire");
	hints->domain_attr->data_progress = automatic ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	hints->domain_attr->threading = automatic ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = 0;
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	SAME(info->domain_attr->mr_mode, 0);
	SAME(info->tx_attr->inject_size >= 4096, 1);
	SAME(info->domain_attr->cq_data_size, 8);
	SAME(info->src_addrlen > 0, 1);
	/* Capabilities that are not offered give no info. */
	struct fi_info *none;
	hints->caps = FI_RMA | FI_TRIGGER;
	SAME(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &none), -FI_ENODATA);
	hints->caps = FI_RMA;
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	SAME(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &none), -FI_ENODATA);
	hints->domain_attr->mr_mode = FI_MR_SCALABLE;
	MUST(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &none));
	SAME(none->domain_attr->mr_mode, FI_MR_SCALABLE);
	fi_freeinfo(none);
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_eq_open(fabric, &events, &eq, NULL));
	/* An address vector that reports insertions by events. */
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
	/* It can be removed only once. */
	SAME(fi_av_remove(av, &number, 1, 0), 0);
	SAME(fi_av_remove(av, &number, 1, 0), -FI_EINVAL);
	/* It reports invalid addresses too. */
	struct fi_eq_err_entry failed = { 0 };
	char nothing[64] = { 0 };
	SAME(fi_av_insert(av, nothing, 1, &number, 0, &number), 0);
	SAME(fi_eq_read(eq, &event, &told, sizeof told, 0), -FI_EAVAIL);
	SAME(fi_eq_readerr(eq, &failed, 0), sizeof failed);
	SAME(failed.err, FI_EINVAL);
	SAME(failed.context == &number, 1);
	SAME(fi_eq_read(eq, &event, &told, sizeof told, 0), sizeof told);
	SAME(told.data, 0);
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
		rma(domain);
		atomics(domain);
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
