/* Counters of peers' accesses to memory (FI_RMA_EVENT), of a region and of an endpoint; and a
 * counter of an endpoint that is enabled already. Prints "good", or the fault. */
#include "check.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

static struct fid_domain *domain;
static struct fid_ep *ep[2];
static struct fid_cq *cq[2];
static struct fid_stx *stx;
static struct fid_cntr *late, *writes, *reads, *region_writes, *region_reads;
static fi_addr_t to;

static struct fid_cntr *counter(int wait)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = wait };
	struct fid_cntr *made;
	MUST(fi_cntr_open(domain, &attr, &made, NULL));
	return made;
}

/* Waits for the end of an access; then the owner has its event. */
static void ended(void)
{
	struct fi_cq_tagged_entry entry;
	time_t deadline = time(NULL) + 20;
	while (fi_cq_read(cq[0], &entry, 1) == -FI_EAGAIN) {
		/* The owner reads only this counter. */
		fi_cntr_read(region_writes);
		if (time(NULL) > deadline)
			must(-FI_ETIMEDOUT, "an access", __LINE__);
	}
}

static void counted(uint64_t written, uint64_t read, int line)
{
	same(fi_cntr_read(writes), written, "writes at the endpoint", line);
	same(fi_cntr_read(reads), read, "reads at the endpoint", line);
	same(fi_cntr_read(region_writes), written, "writes to the region", line);
	same(fi_cntr_read(region_reads), read, "reads of the region", line);
}

int main(void)
{
	static char in[50000], out[50000];
	static uint64_t memory[50000 / 8], one = 1, was;
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_av *av;
	struct fid_mr *mr;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("bellwire");
	/* The capability must be requested. */
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	SAME(info->caps & FI_RMA_EVENT, 0);
	fi_freeinfo(info);
	hints->caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	struct fi_av_attr vector = { .type = FI_AV_TABLE };
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE };
	MUST(fi_av_open(domain, &vector, &av, NULL));
	writes = counter(FI_WAIT_NONE);
	reads = counter(FI_WAIT_NONE);
	region_writes = counter(FI_WAIT_UNSPEC);
	region_reads = counter(FI_WAIT_NONE);
	for (int side = 0; side < 2; side++) {
		MUST(fi_endpoint(domain, info, &ep[side], NULL));
		MUST(fi_cq_open(domain, &queue, &cq[side], NULL));
		MUST(fi_ep_bind(ep[side], &av->fid, 0));
		MUST(fi_ep_bind(ep[side], &cq[side]->fid, FI_TRANSMIT | FI_RECV));
		if (side) {
			MUST(fi_ep_bind(ep[side], &writes->fid, FI_REMOTE_WRITE));
			MUST(fi_ep_bind(ep[side], &reads->fid, FI_REMOTE_READ));
		}
		MUST(fi_enable(ep[side]));
	}
	/* Counters and shared transmit contexts may come late; other objects may not. */
	late = counter(FI_WAIT_UNSPEC);
	MUST(fi_stx_context(domain, info->tx_attr, &stx, NULL));
	MUST(fi_ep_bind(ep[0], &stx->fid, 0));
	MUST(fi_ep_bind(ep[0], &late->fid, FI_WRITE));
	SAME(fi_ep_bind(ep[0], &late->fid, FI_WRITE), -FI_EINVAL);
	SAME(fi_ep_bind(ep[0], &cq[0]->fid, FI_TRANSMIT), -FI_EOPBADSTATE);
	MUST(fi_close(&stx->fid));
	SAME(fi_close(&late->fid), -FI_EBUSY);
	char name[64];
	size_t length = sizeof name;
	MUST(fi_getname(&ep[1]->fid, name, &length));
	SAME(fi_av_insert(av, name, 1, &to, 0, NULL), 1);
	MUST(fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 7, 0, &mr, NULL));
	MUST(fi_mr_bind(mr, &region_writes->fid, FI_REMOTE_WRITE));
	MUST(fi_mr_bind(mr, &region_reads->fid, FI_REMOTE_READ));
	SAME(fi_mr_bind(mr, &region_reads->fid, FI_WRITE), -FI_EBADFLAGS);
	counted(0, 0, __LINE__);
	/* Short and long writes, and one with data, which the queue reports too. */
	memset(out, 'w', sizeof out);
	MUST(fi_write(ep[0], out, 8, NULL, to, 0, 7, out));
	ended();
	counted(1, 0, __LINE__);
	MUST(fi_write(ep[0], out, sizeof out, NULL, to, 0, 7, out));
	ended();
	counted(2, 0, __LINE__);
	MUST(fi_writedata(ep[0], out, 1, NULL, 99, to, 0, 7, out));
	ended();
	counted(3, 0, __LINE__);
	struct fi_cq_tagged_entry entry;
	SAME(fi_cq_read(cq[1], &entry, 1), 1);
	SAME(entry.data, 99);
	MUST(fi_read(ep[0], in, sizeof in, NULL, to, 0, 7, in));
	ended();
	counted(3, 1, __LINE__);
	SAME(memcmp(in, out, sizeof in), 0);
	/* Atomics count as writes, and as reads, too, if they fetch. */
	memset(memory, 0, sizeof memory);
	MUST(fi_atomic(ep[0], &one, 1, NULL, to, 0, 7, FI_UINT64, FI_SUM, out));
	ended();
	counted(4, 1, __LINE__);
	MUST(fi_fetch_atomic(ep[0], &one, 1, NULL, &was, NULL, to, 0, 7, FI_UINT64, FI_SUM, out));
	ended();
	counted(5, 2, __LINE__);
	SAME(memory[0], 2);
	/* One that only fetches is no write. */
	MUST(fi_fetch_atomic(ep[0], &one, 1, NULL, &was, NULL, to, 0, 7, FI_UINT64, FI_ATOMIC_READ, out));
	ended();
	counted(5, 3, __LINE__);
	SAME(was, 2);
	/* A refused access counts nowhere. */
	MUST(fi_write(ep[0], out, 8, NULL, to, sizeof memory, 7, out));
	ended();
	struct fi_cq_err_entry failed = { 0 };
	SAME(fi_cq_readerr(cq[0], &failed, 0), 1);
	SAME(failed.err, FI_EACCES);
	counted(5, 3, __LINE__);
	/* A waiting thread wakes up. */
	MUST(fi_inject_write(ep[0], out, 8, to, 0, 7));
	SAME(fi_cntr_wait(region_writes, 6, 20000), 0);
	counted(6, 3, __LINE__);
	SAME(fi_cntr_wait(late, 5, 20000), 0);
	SAME(fi_cntr_readerr(late), 1);

	MUST(fi_close(&mr->fid));
	for (int side = 0; side < 2; side++) {
		MUST(fi_close(&ep[side]->fid));
		MUST(fi_close(&cq[side]->fid));
	}
	MUST(fi_close(&late->fid));
	MUST(fi_close(&writes->fid));
	MUST(fi_close(&reads->fid));
	MUST(fi_close(&region_writes->fid));
	MUST(fi_close(&region_reads->fid));
	MUST(fi_close(&av->fid));
	MUST(fi_close(&domain->fid));
	MUST(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	puts("good");
	return 0;
}
