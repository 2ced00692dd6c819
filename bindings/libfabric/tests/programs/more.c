/* Messages with FI_MORE, which others follow at once: two endpoints of one process talk to each
 * other. They arrive in order, however they are sent, and each completes once. Without a follower
 * they leave by progress, and before their endpoint closes. Whatever else is complete has left.
 * With the argument "auto", only the domain's own progress lets one go. With "lost" or "swapped",
 * messages are lost or swapped, which must be noticed. Prints "good", or the fault. */
#include "check.h"
#include <sys/wait.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

enum { SHORT = 8, LONG = 200000, MANY = 300 };

struct side {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_cntr *sent, *received;
	fi_addr_t other;
};

static struct side a, b;
static struct fid_av *av;
static struct fid_domain *domain;
static char out[MANY][SHORT], in[MANY][SHORT], memory[SHORT];
static char long_out[LONG], long_in[LONG];
static const char *fault = "";
static int limit_s = 20;

static void open_side(struct fi_info *info, struct side *side, struct side *them)
{
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD, .size = 4 * MANY };
	struct fi_cntr_attr counter = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	char name[64];
	size_t length = sizeof name;
	MUST(fi_endpoint(domain, info, &side->ep, NULL));
	MUST(fi_cq_open(domain, &queue, &side->cq, NULL));
	MUST(fi_cntr_open(domain, &counter, &side->sent, NULL));
	MUST(fi_cntr_open(domain, &counter, &side->received, NULL));
	MUST(fi_ep_bind(side->ep, &av->fid, 0));
	MUST(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_ep_bind(side->ep, &side->sent->fid, FI_SEND));
	MUST(fi_ep_bind(side->ep, &side->received->fid, FI_RECV));
	MUST(fi_enable(side->ep));
	MUST(fi_getname(&side->ep->fid, name, &length));
	SAME(fi_av_insert(av, name, 1, &them->other, 0, NULL), 1);
}

static void close_side(struct side *side)
{
	MUST(fi_close(&side->ep->fid));
	MUST(fi_close(&side->cq->fid));
	MUST(fi_close(&side->sent->fid));
	MUST(fi_close(&side->received->fid));
}

/* Waits for the next completion of a side. drive: makes progress for the other side, too. */
static struct fi_cq_tagged_entry next(struct side *side, int drive)
{
	struct fi_cq_tagged_entry entry, none;
	struct side *them = side == &a ? &b : &a;
	time_t deadline = time(NULL) + limit_s;
	for (;;) {
		ssize_t got = fi_cq_read(side->cq, &entry, 1);
		if (got == 1)
			return entry;
		SAME(got, -FI_EAGAIN);
		if (drive && them->cq)
			SAME(fi_cq_read(them->cq, &none, 0), -FI_EAGAIN);
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "a completion", __LINE__);
	}
}

/* Sends these bytes as message number `at`, tagged or not. Retries while there is no room. */
static void post(void *bytes, size_t length, int at, int tagged, uint64_t flags)
{
	struct iovec part = { bytes, length };
	struct fi_msg message = { &part, NULL, 1, a.other, out[at], 0 };
	struct fi_msg_tagged with_tag = { &part, NULL, 1, a.other, 7, 0, out[at], 0 };
	struct fi_cq_tagged_entry none;
	time_t deadline = time(NULL) + 20;
	for (;;) {
		ssize_t sent = tagged ? fi_tsendmsg(a.ep, &with_tag, flags) : fi_sendmsg(a.ep, &message, flags);
		if (sent == 0)
			return;
		SAME(sent, -FI_EAGAIN);
		SAME(fi_cq_read(b.cq, &none, 0) <= 0, 1);
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "room", __LINE__);
	}
}

static void receive(void *into, size_t length, int tagged)
{
	if (tagged)
		MUST(fi_trecv(b.ep, into, length, NULL, FI_ADDR_UNSPEC, 7, 0, into));
	else
		MUST(fi_recv(b.ep, into, length, NULL, FI_ADDR_UNSPEC, into));
}

/* Many short messages; every `each`th one is not followed by another. 0: the last one is, too. */
static void run(int tagged, int each)
{
	uint64_t sent = fi_cntr_read(a.sent), received = fi_cntr_read(b.received);
	memset(in, 0, sizeof in);
	for (int at = 0; at < MANY; at++)
		receive(in[at], SHORT, tagged);
	for (int at = 0; at < MANY; at++) {
		int ends = each && (at % each == each - 1 || at == MANY - 1);
		if (!strcmp(fault, "lost") && at == 40)
			continue;
		memset(out[at], (!strcmp(fault, "swapped") && at / 2 == 20 ? at ^ 1 : at) + each, SHORT);
		post(out[at], SHORT, at, tagged, ends ? FI_COMPLETION : FI_COMPLETION | FI_MORE);
		/* The completion says when the bytes may change. */
		SAME(next(&a, 0).op_context == out[at], 1);
		memset(out[at], 0xee, SHORT);
	}
	for (int at = 0; at < MANY; at++) {
		struct fi_cq_tagged_entry entry = next(&b, 1);
		SAME(entry.op_context == in[at], 1);
		SAME(entry.len, SHORT);
		for (int byte = 0; byte < SHORT; byte++)
			SAME((unsigned char)in[at][byte], (at + each) % 256);
	}
	SAME(fi_cntr_read(a.sent), sent + MANY);
	SAME(fi_cntr_read(b.received), received + MANY);
}

/* Completions that are not read meanwhile come in order, one for each message. */
static void unread(void)
{
	for (int at = 0; at < MANY; at++) {
		receive(in[at], SHORT, 1);
		memset(out[at], at, SHORT);
	}
	for (int at = 0; at < MANY; at++)
		post(out[at], SHORT, at, 1, FI_COMPLETION | (at == MANY - 1 ? 0 : FI_MORE));
	for (int at = 0; at < MANY; at++)
		SAME(next(&a, 1).op_context == out[at], 1);
	for (int at = 0; at < MANY; at++) {
		SAME(next(&b, 1).op_context == in[at], 1);
		SAME(memcmp(in[at], out[at], SHORT), 0);
	}
}

/* Long messages, remote data, injection and accesses to memory overtake nothing. */
static void mixed(void)
{
	struct fid_mr *mr;
	struct iovec part = { out[0], SHORT };
	struct fi_rma_iov there = { 0, SHORT, 42 };
	struct fi_msg_rma access = { &part, NULL, 1, a.other, &there, 1, out[0], 0 };
	MUST(fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_WRITE, 0, 42, 0, &mr, NULL));
	for (int at = 0; at < 6; at++) {
		memset(out[at], 'a' + at, SHORT);
		if (at != 2)
			receive(in[at], SHORT, 1);
		else
			receive(long_in, LONG, 1);
	}
	memset(long_out, 'l', LONG);
	post(out[0], SHORT, 0, 1, FI_COMPLETION | FI_MORE);
	post(out[1], SHORT, 1, 1, FI_COMPLETION | FI_MORE | FI_INJECT);
	post(long_out, LONG, 2, 1, FI_COMPLETION | FI_MORE);
	post(out[3], SHORT, 3, 1, FI_COMPLETION | FI_MORE | FI_REMOTE_CQ_DATA);
	post(out[4], SHORT, 4, 1, FI_COMPLETION | FI_MORE);
	MUST(fi_writemsg(a.ep, &access, FI_COMPLETION | FI_MORE));
	MUST(fi_tinject(a.ep, out[5], SHORT, a.other, 7));
	/* Five messages and one access complete; the injected one does not. */
	for (int at = 0; at < 6; at++)
		next(&a, 1);
	for (int at = 0; at < 6; at++)
		next(&b, 1);
	for (int at = 0; at < 6; at++)
		if (at != 2)
			SAME(memcmp(in[at], out[at], SHORT), 0);
	SAME(memcmp(long_in, long_out, LONG), 0);
	SAME(memcmp(memory, out[0], SHORT), 0);
	SAME(fi_cq_read(a.cq, out, 0), -FI_EAGAIN);
	MUST(fi_close(&mr->fid));
}

/* Wrong arguments are refused as without the flag, and those that wait are not harmed. */
static void refused(void)
{
	struct iovec part = { out[0], SHORT };
	struct fi_msg_tagged message = { &part, NULL, 1, a.other, 7, 0, out[0], 0 };
	receive(in[0], SHORT, 1);
	memset(out[0], 'r', SHORT);
	post(out[0], SHORT, 0, 1, FI_COMPLETION | FI_MORE);
	message.addr = 12345;
	SAME(fi_tsendmsg(a.ep, &message, FI_MORE), -FI_EINVAL);
	message.addr = a.other;
	part.iov_len = 1 << 20;
	SAME(fi_tsendmsg(a.ep, &message, FI_MORE | FI_INJECT), -FI_EMSGSIZE);
	part.iov_base = NULL;
	SAME(fi_tsendmsg(a.ep, &message, FI_MORE), -FI_EINVAL);
	SAME(fi_tsendmsg(a.ep, NULL, FI_MORE), -FI_EINVAL);
	next(&a, 1);
	SAME(next(&b, 1).op_context == in[0], 1);
	SAME(memcmp(in[0], out[0], SHORT), 0);
}

/* Without a follower: a read of a counter, or a wait, lets the message go. */
static void alone(void)
{
	struct fi_cq_tagged_entry entry;
	for (int turn = 0; turn < 2; turn++) {
		receive(in[0], SHORT, 1);
		memset(out[0], 'A' + turn, SHORT);
		post(out[0], SHORT, 0, 1, FI_COMPLETION | FI_MORE);
		SAME(next(&a, 0).op_context == out[0], 1);
		post(out[1], SHORT, 1, 1, FI_COMPLETION | FI_MORE);
		receive(in[1], SHORT, 1);
		if (turn)
			fi_cntr_read(a.sent);
		else
			SAME(fi_cq_sread(a.cq, &entry, 1, NULL, 20000), 1);
		/* Only b is driven. Over a network it acknowledges, and needs nothing more of a. */
		SAME(next(&b, 0).op_context == in[0], 1);
		SAME(next(&b, 0).op_context == in[1], 1);
		SAME(memcmp(in[0], out[0], SHORT), 0);
		if (turn)
			next(&a, 1);
	}
}

/* Messages without the flag that are complete have left: they arrive without further progress of
 * their sender. */
static void left(void)
{
	static const size_t lengths[] = { SHORT, 8192, 9000, 16384, 17000, 65536, 131072, SHORT };
	for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
		memset(long_out, 'a' + (int)at, lengths[at]);
		receive(long_in, lengths[at], 1);
		post(long_out, lengths[at], 0, 1, FI_COMPLETION);
		SAME(next(&a, 1).op_context == out[0], 1);
		SAME(next(&b, 0).len, lengths[at]);
		SAME(memcmp(long_in, long_out, lengths[at]), 0);
	}
	for (int at = 0; at < MANY; at++) {
		receive(in[at], SHORT, 1);
		memset(out[at], at, SHORT);
	}
	for (int at = 0; at < MANY; at++)
		post(out[at], SHORT, at, 1, FI_COMPLETION);
	for (int at = 0; at < MANY; at++)
		SAME(next(&a, 0).op_context == out[at], 1);
	for (int at = 0; at < MANY; at++) {
		SAME(next(&b, 0).op_context == in[at], 1);
		SAME(memcmp(in[at], out[at], SHORT), 0);
	}
}

/* A forked child is refused, and what waits leaves once. */
static void forked(void)
{
	struct iovec part = { out[1], SHORT };
	struct fi_msg_tagged message = { &part, NULL, 1, a.other, 7, 0, out[1], 0 };
	struct fi_cq_tagged_entry entry;
	int status;
	receive(in[0], SHORT, 1);
	receive(in[1], SHORT, 1);
	memset(out[0], 'f', SHORT);
	post(out[0], SHORT, 0, 1, FI_COMPLETION | FI_MORE);
	pid_t child = fork();
	if (child == 0) {
		int refused = fi_tsendmsg(a.ep, &message, FI_COMPLETION | FI_MORE) == -FI_EOPBADSTATE;
		fi_cq_read(a.cq, &entry, 1);
		_exit(refused && fi_close(&a.ep->fid) == 0 ? 0 : 1);
	}
	MUST(child);
	SAME(waitpid(child, &status, 0), child);
	SAME(status, 0);
	SAME(next(&a, 0).op_context == out[0], 1);
	SAME(next(&b, 1).op_context == in[0], 1);
	SAME(memcmp(in[0], out[0], SHORT), 0);
	post(out[1], SHORT, 1, 1, FI_COMPLETION);
	SAME(next(&a, 1).op_context == out[1], 1);
	SAME(next(&b, 1).op_context == in[1], 1);
	SAME(memcmp(in[1], out[1], SHORT), 0);
}

/* The domain makes progress by itself. */
static void automatic(void)
{
	receive(in[0], SHORT, 1);
	memset(out[0], 'p', SHORT);
	post(out[0], SHORT, 0, 1, FI_COMPLETION | FI_MORE);
	SAME(next(&b, 0).op_context == in[0], 1);
	SAME(memcmp(in[0], out[0], SHORT), 0);
	next(&a, 0);
}

/* What waits leaves before its endpoint closes. */
static void closed(void)
{
	for (int at = 0; at < 3; at++) {
		receive(in[at], SHORT, 1);
		memset(out[at], '0' + at, SHORT);
		post(out[at], SHORT, at, 1, FI_COMPLETION | FI_MORE);
	}
	close_side(&a);
	a.cq = NULL;
	for (int at = 0; at < 3; at++) {
		SAME(next(&b, 1).op_context == in[at], 1);
		SAME(memcmp(in[at], out[at], SHORT), 0);
	}
}

int main(int count, char **arguments)
{
	int is_auto = count > 1 && !strcmp(arguments[1], "auto");
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fi_av_attr vector = { .type = FI_AV_TABLE };
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("bellwire");
	hints->domain_attr->mr_mode = 0;
	if (is_auto)
		hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	else if (count > 1) {
		fault = arguments[1];
		limit_s = 2;
	}
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_av_open(domain, &vector, &av, NULL));
	open_side(info, &a, &b);
	open_side(info, &b, &a);
	for (int tagged = 0; tagged < 2; tagged++)
		for (int each = 0; each < 4; each++)
			run(tagged, each);
	run(1, 64);
	unread();
	mixed();
	refused();
	alone();
	left();
	if (is_auto)
		automatic();
	else
		forked();
	closed();
	close_side(&b);
	MUST(fi_close(&av->fid));
	MUST(fi_close(&domain->fid));
	MUST(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	puts("good");
	return 0;
}
