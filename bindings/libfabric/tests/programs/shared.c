/* Shared contexts: two endpoints receive through one, and a third sends to both. Prints "good", or
 * the fault. */
#include "check.h"
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

static struct fid_ep *ep[3];
static struct fid_cq *cq[3];

/* The next completion of one endpoint, while the others are driven too. */
static struct fi_cq_tagged_entry next(int side)
{
	struct fi_cq_tagged_entry entry;
	time_t deadline = time(NULL) + 20;
	for (;;) {
		ssize_t got = fi_cq_read(cq[side], &entry, 1);
		if (got == 1)
			return entry;
		SAME(got, -FI_EAGAIN);
		for (int other = 0; other < 3; other++)
			(void)!fi_cq_read(cq[other], NULL, 0);
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "a completion", __LINE__);
	}
}

int main(void)
{
	static char in[4][50000], out[50000];
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *srx;
	struct fid_stx *stx;
	fi_addr_t to[3];
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("bellwire");
	hints->ep_attr->rx_ctx_cnt = hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	/* Capabilities that shared receives do not have give no info. */
	hints->caps = FI_MSG | FI_MULTI_RECV;
	SAME(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->caps = FI_MSG | FI_TAGGED;
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	SAME(info->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_srx_context(domain, info->rx_attr, &srx, NULL));
	MUST(fi_stx_context(domain, info->tx_attr, &stx, NULL));
	struct fi_av_attr vector = { .type = FI_AV_TABLE };
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE };
	MUST(fi_av_open(domain, &vector, &av, NULL));
	for (int side = 0; side < 3; side++) {
		char name[64];
		size_t length = sizeof name;
		MUST(fi_endpoint(domain, info, &ep[side], NULL));
		MUST(fi_cq_open(domain, &queue, &cq[side], NULL));
		MUST(fi_ep_bind(ep[side], &av->fid, 0));
		MUST(fi_ep_bind(ep[side], &stx->fid, 0));
		if (side)
			MUST(fi_ep_bind(ep[side], &srx->fid, 0));
		MUST(fi_ep_bind(ep[side], &cq[side]->fid, FI_TRANSMIT | FI_RECV));
		MUST(fi_enable(ep[side]));
		MUST(fi_getname(&ep[side]->fid, name, &length));
		SAME(fi_av_insert(av, name, 1, &to[side], 0, NULL), 1);
	}
	/* Posted before the messages, also for the longest one; the completion is at the endpoint of the
	 * message. */
	MUST(fi_recv(srx, in[0], sizeof in[0], NULL, FI_ADDR_UNSPEC, in[0]));
	MUST(fi_trecv(srx, in[1], sizeof in[1], NULL, FI_ADDR_UNSPEC, 7, 0, in[1]));
	memset(out, 'l', sizeof out);
	MUST(fi_tsend(ep[0], out, sizeof out, NULL, to[2], 7, out));
	struct fi_cq_tagged_entry entry = next(2);
	SAME(entry.op_context == in[1], 1);
	SAME(entry.len, sizeof out);
	SAME(entry.flags & (FI_TAGGED | FI_RECV), FI_TAGGED | FI_RECV);
	SAME(memcmp(in[1], out, sizeof out), 0);
	SAME(next(0).op_context == out, 1);
	MUST(fi_send(ep[0], "to one", 7, NULL, to[1], out));
	SAME(next(1).op_context == in[0], 1);
	SAME(strcmp(in[0], "to one"), 0);
	SAME(next(0).op_context == out, 1);
	/* Posted after the message. */
	MUST(fi_inject(ep[0], "early", 6, to[1]));
	MUST(fi_inject(ep[0], "early", 6, to[2]));
	for (time_t until = time(NULL) + 1; time(NULL) < until;)
		for (int side = 0; side < 3; side++)
			SAME(fi_cq_read(cq[side], &entry, 1), -FI_EAGAIN);
	struct iovec part = { in[2], sizeof in[2] };
	struct fi_msg message = { .msg_iov = &part, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in[2] };
	MUST(fi_recvmsg(srx, &message, FI_COMPLETION | FI_MORE));
	MUST(fi_recvv(srx, &part, NULL, 1, FI_ADDR_UNSPEC, in[2]));
	SAME(next(1).op_context == in[2], 1);
	SAME(next(2).op_context == in[2], 1);
	/* Cancelled. */
	struct fi_cq_err_entry failed = { 0 };
	MUST(fi_recv(srx, in[3], 10, NULL, FI_ADDR_UNSPEC, in[3]));
	MUST(fi_cancel(&srx->fid, in[3]));
	SAME(fi_cq_read(cq[1], &entry, 1), -FI_EAVAIL);
	SAME(fi_cq_readerr(cq[1], &failed, 0), 1);
	SAME(failed.err, FI_ECANCELED);
	SAME(failed.op_context == in[3], 1);
	/* Misuse. */
	SAME(fi_recvmsg(srx, &message, FI_MULTI_RECV), -FI_EBADFLAGS);
	SAME(fi_send(srx, out, 1, NULL, to[1], out), -FI_ENOSYS);
	SAME(fi_write(srx, out, 1, NULL, to[1], 0, 0, out), -FI_ENOSYS);
	SAME(fi_close(&srx->fid), -FI_EBUSY);
	SAME(fi_close(&stx->fid), -FI_EBUSY);
	for (int side = 0; side < 3; side++) {
		MUST(fi_close(&ep[side]->fid));
		MUST(fi_close(&cq[side]->fid));
	}
	MUST(fi_close(&srx->fid));
	MUST(fi_close(&stx->fid));
	MUST(fi_close(&av->fid));
	MUST(fi_close(&domain->fid));
	MUST(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	puts("good");
	return 0;
}
