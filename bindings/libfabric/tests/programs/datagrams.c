/* Datagrams, and both ways to wait for several queues at once: poll sets and wait sets. Prints
 * "good", or the fault. */
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_tagged.h>

static struct fid_domain *domain;
static struct fid_wait *waits;
static struct fid_ep *ep[2];
static struct fid_cq *cq[2];
static struct fid_cntr *received;
static fi_addr_t other[2];

static struct fi_cq_msg_entry next(int side)
{
	struct fi_cq_msg_entry entry;
	time_t deadline = time(NULL) + 20;
	ssize_t got;
	while ((got = fi_cq_read(cq[side], &entry, 1)) == -FI_EAGAIN)
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "a completion", __LINE__);
	SAME(got, 1);
	return entry;
}

int main(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_av *av;
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->fabric_attr->prov_name = strdup("bellwire");
	/* Datagram endpoints offer messages only. */
	hints->caps = FI_MSG | FI_TAGGED;
	SAME(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->caps = FI_MSG;
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	SAME(info->next == NULL, 1);
	size_t longest = info->ep_attr->max_msg_size;
	SAME(longest <= 1 << 16, 1);
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	struct fi_wait_attr waiting = { .wait_obj = FI_WAIT_UNSPEC };
	MUST(fi_wait_open(fabric, &waiting, &waits));
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_SET, .wait_set = waits };
	struct fi_cntr_attr counter = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr vector = { .type = FI_AV_TABLE };
	MUST(fi_av_open(domain, &vector, &av, NULL));
	MUST(fi_cntr_open(domain, &counter, &received, &received));
	for (int side = 0; side < 2; side++) {
		char name[64];
		size_t length = sizeof name;
		MUST(fi_endpoint(domain, info, &ep[side], NULL));
		MUST(fi_cq_open(domain, &queue, &cq[side], &cq[side]));
		MUST(fi_ep_bind(ep[side], &av->fid, 0));
		MUST(fi_ep_bind(ep[side], &cq[side]->fid, FI_TRANSMIT | FI_RECV));
		if (side)
			MUST(fi_ep_bind(ep[side], &received->fid, FI_RECV));
		MUST(fi_enable(ep[side]));
		MUST(fi_getname(&ep[side]->fid, name, &length));
		SAME(fi_av_insert(av, name, 1, &other[!side], 0, NULL), 1);
	}
	struct fid_poll *polls;
	struct fi_poll_attr polling = { 0 };
	MUST(fi_poll_open(domain, &polling, &polls));
	MUST(fi_poll_add(polls, &cq[1]->fid, 0));
	MUST(fi_poll_add(polls, &received->fid, 0));
	void *found[4];
	SAME(fi_poll(polls, found, 4), 0);
	/* There is nothing to wait for. */
	SAME(fi_wait(waits, 10), -FI_ETIMEDOUT);
	SAME(fi_close(&waits->fid), -FI_EBUSY);

	struct fi_cq_msg_entry entry;
	char *out = malloc(longest + 1), *in = malloc(longest);
	memset(out, 'd', longest);
	MUST(fi_recv(ep[1], in, longest, NULL, FI_ADDR_UNSPEC, in));
	MUST(fi_send(ep[0], out, longest, NULL, other[0], out));
	/* Both are reported: the queue until it is read, the counter once. */
	time_t deadline = time(NULL) + 20;
	for (int all = 0; all != 3;) {
		/* Reading drives the sender too. */
		SAME(fi_cq_read(cq[0], &entry, 0) <= 0, 1);
		int count = fi_poll(polls, found, 4);
		for (int at = 0; at < count; at++)
			all |= found[at] == &cq[1] ? 1 : found[at] == &received ? 2 : 4;
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "something to be found", __LINE__);
	}
	SAME(fi_poll(polls, found, 4), 1);
	SAME(found[0] == &cq[1], 1);
	SAME(fi_cntr_read(received), 1);
	MUST(fi_wait(waits, 20000));
	entry = next(1);
	SAME(entry.len, longest);
	SAME(entry.op_context == in, 1);
	SAME(memcmp(in, out, longest), 0);
	SAME(next(0).op_context == out, 1);
	SAME(fi_poll(polls, found, 4), 0);
	MUST(fi_poll_del(polls, &received->fid, 0));
	SAME(fi_poll_del(polls, &received->fid, 0), -FI_EINVAL);
	SAME(fi_send(ep[0], out, longest + 1, NULL, other[0], out), -FI_EMSGSIZE);
	SAME(fi_tsend(ep[0], out, 1, NULL, other[0], 7, out), -FI_ENOSYS);
	/* A datagram to nobody gives no error. */
	struct sockaddr_in nobody = { .sin_family = AF_INET };
	size_t length = sizeof nobody;
	fi_addr_t there;
	MUST(fi_getname(&ep[0]->fid, &nobody, &length));
	nobody.sin_port = htons(49664 + (ntohs(nobody.sin_port) - 49664 + 100) % 255);
	SAME(fi_av_insert(av, &nobody, 1, &there, 0, NULL), 1);
	MUST(fi_send(ep[0], out, 8, NULL, there, out));
	SAME(next(0).op_context == out, 1);

	MUST(fi_close(&polls->fid));
	for (int side = 0; side < 2; side++) {
		MUST(fi_close(&ep[side]->fid));
		MUST(fi_close(&cq[side]->fid));
	}
	MUST(fi_close(&waits->fid));
	MUST(fi_close(&received->fid));
	MUST(fi_close(&av->fid));
	MUST(fi_close(&domain->fid));
	MUST(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	puts("good");
	return 0;
}
