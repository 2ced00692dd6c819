/* Answers to bad arguments: null, nonsense, objects of another kind, closed objects. Each call runs
 * in a process of its own, on objects of its own; then these must still carry a message. Prints
 * "good", or the faults. With the argument "canary" it plants calls that crash, hang, succeed and
 * break the objects, and each must be noticed. */
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdint.h>
#include <sys/wait.h>

static struct fi_info *info, *msg_info;
static struct fid_fabric *fabric, *msg_fabric;
static struct fid_domain *domain, *msg_domain;
static struct fid_ep *ep, *msg_ep, *srx;
static struct fid_pep *pep;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_mr *mr;
static struct fid_eq *eq;
static struct fid_cntr *cntr;
static struct fid_wait *set;
static struct fid_poll *polls;
static struct fid_stx *stx;

/* Places for anything that a call writes. */
static char memory[4096], text[64], name[64];
static size_t length;
static uint32_t event;
static fi_addr_t number;
static void *context, *made;
static struct fi_cq_tagged_entry entry;

static const struct iovec nowhere = { NULL, 8 }, part = { memory, 8 }, endless = { memory, SIZE_MAX };
static struct fi_ioc no_number = { NULL, 1 }, numbers = { memory, 1 };
static struct fi_rma_iov there = { 0, 8, 7 };
static struct fi_rma_ioc place = { 0, 1, 7 };

#define MSG(...) (&(struct fi_msg){ __VA_ARGS__ })
#define TAGGED(...) (&(struct fi_msg_tagged){ __VA_ARGS__ })
#define RMA(...) (&(struct fi_msg_rma){ __VA_ARGS__ })
#define ATOMIC(...) (&(struct fi_msg_atomic){ .datatype = FI_UINT64, .op = FI_SUM, __VA_ARGS__ })

static struct fi_info *found(enum fi_ep_type type, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo(), *answer;
	hints->fabric_attr->prov_name = strdup("bellwire");
	hints->ep_attr->type = type;
	hints->caps = caps;
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &answer));
	fi_freeinfo(hints);
	return answer;
}

static void open_all(void)
{
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr vector = { .type = FI_AV_TABLE };
	struct fi_eq_attr events = { .wait_obj = FI_WAIT_NONE, .flags = FI_WRITE };
	struct fi_cntr_attr counter = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_wait_attr wait = { .wait_obj = FI_WAIT_FD };
	struct fi_poll_attr poll = { 0 };
	info = found(FI_EP_RDM, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC);
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_endpoint(domain, info, &ep, NULL));
	MUST(fi_cq_open(domain, &queue, &cq, NULL));
	MUST(fi_av_open(domain, &vector, &av, NULL));
	MUST(fi_eq_open(fabric, &events, &eq, NULL));
	MUST(fi_cntr_open(domain, &counter, &cntr, NULL));
	MUST(fi_wait_open(fabric, &wait, &set));
	MUST(fi_poll_open(domain, &poll, &polls));
	MUST(fi_stx_context(domain, info->tx_attr, &stx, NULL));
	MUST(fi_srx_context(domain, NULL, &srx, NULL));
	MUST(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_ep_bind(ep, &av->fid, 0));
	MUST(fi_enable(ep));
	length = sizeof name;
	MUST(fi_getname(&ep->fid, name, &length));
	SAME(fi_av_insert(av, name, 1, &number, 0, NULL), 1);
	MUST(fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
}

/* Connected endpoints, which few calls need. */
static void open_connected(void)
{
	msg_info = found(FI_EP_MSG, FI_MSG);
	MUST(fi_fabric(msg_info->fabric_attr, &msg_fabric, NULL));
	MUST(fi_domain(msg_fabric, msg_info, &msg_domain, NULL));
	MUST(fi_endpoint(msg_domain, msg_info, &msg_ep, NULL));
	MUST(fi_passive_ep(msg_fabric, msg_info, &pep, NULL));
}

/* A message from the endpoint to itself arrives. */
static void still_works(void)
{
	static char in[16];
	time_t deadline = time(NULL) + 20;
	int received = 0;
	MUST(fi_trecv(ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, 77, 0, in));
	while (fi_tinject(ep, "still here", 11, 0, 77) == -FI_EAGAIN && time(NULL) < deadline)
		(void)!fi_cq_read(cq, NULL, 0);
	while (!received && time(NULL) < deadline)
		received = fi_cq_read(cq, &entry, 1) == 1 && entry.op_context == in;
	SAME(received, 1);
	SAME(strcmp(in, "still here"), 0);
}

static int calls, wrong;

static void row(pid_t child, const char *what)
{
	int status;
	calls++;
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	wrong++;
	if (!WIFSIGNALED(status) && WEXITSTATUS(status) == 1)
		printf("WRONG: %s\n", what);
	else
		printf("%s: %s\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "HANGS" : "CRASHES", what);
}

/* A child process that a watchdog ends; crashes end it in the system's own way. */
static pid_t child(void)
{
	fflush(stdout);
	pid_t child = fork();
	if (child)
		return child;
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	alarm(60);
	return 0;
}

#define ROW(OPEN, CHECK, what) do { \
	pid_t pid = child(); \
	if (!pid) { OPEN; CHECK; fflush(stdout); _exit(0); } \
	row(pid, what); \
} while (0)
/* The call gives this answer, and everything still works. */
#define IS(answer, call) ROW(open_all(), SAME(call, answer); still_works(), #call)
/* The same, with connected endpoints too. */
#define CM_IS(answer, call) ROW(open_all(); open_connected(), SAME(call, answer); still_works(), #call)
/* The call gives this answer; afterwards nothing need work. */
#define LAST_IS(answer, call) ROW(open_all(), SAME(call, answer), #call)
#define BAD(call) IS(-FI_EINVAL, call)
#define CM_BAD(call) CM_IS(-FI_EINVAL, call)
/* Calls that return a pointer. */
#define NONE(call) IS(0, (call) ? 1 : 0)

static void opening(void)
{
	BAD(fi_fabric(info->fabric_attr, NULL, NULL));
	BAD(fi_domain(fabric, info, NULL, NULL));
	BAD(fi_domain(fabric, NULL, (struct fid_domain **)&made, NULL));
	BAD(fi_endpoint(domain, NULL, (struct fid_ep **)&made, NULL));
	BAD(fi_endpoint(domain, info, NULL, NULL));
	BAD(fi_passive_ep(fabric, NULL, (struct fid_pep **)&made, NULL));
	CM_BAD(fi_passive_ep(fabric, msg_info, NULL, NULL));
	BAD(fi_passive_ep(fabric, info, (struct fid_pep **)&made, NULL));
	BAD(fi_cq_open(domain, NULL, (struct fid_cq **)&made, NULL));
	BAD(fi_cq_open(domain, &(struct fi_cq_attr){ 0 }, NULL, NULL));
	BAD(fi_cq_open(domain, &(struct fi_cq_attr){ .size = SIZE_MAX, .format = 77 }, (struct fid_cq **)&made, NULL));
	BAD(fi_cq_open(domain, &(struct fi_cq_attr){ .wait_obj = FI_WAIT_SET }, (struct fid_cq **)&made, NULL));
	BAD(fi_cq_open(domain, &(struct fi_cq_attr){ .wait_obj = FI_WAIT_SET, .wait_set = (struct fid_wait *)cq }, (struct fid_cq **)&made, NULL));
	BAD(fi_av_open(domain, NULL, (struct fid_av **)&made, NULL));
	BAD(fi_av_open(domain, &(struct fi_av_attr){ .type = FI_AV_TABLE }, NULL, NULL));
	BAD(fi_av_open(domain, &(struct fi_av_attr){ .type = 9, .count = SIZE_MAX }, (struct fid_av **)&made, NULL));
	BAD(fi_eq_open(fabric, NULL, (struct fid_eq **)&made, NULL));
	BAD(fi_eq_open(fabric, &(struct fi_eq_attr){ 0 }, NULL, NULL));
	BAD(fi_eq_open(fabric, &(struct fi_eq_attr){ .wait_obj = FI_WAIT_SET }, (struct fid_eq **)&made, NULL));
	BAD(fi_cntr_open(domain, NULL, (struct fid_cntr **)&made, NULL));
	BAD(fi_cntr_open(domain, &(struct fi_cntr_attr){ 0 }, NULL, NULL));
	BAD(fi_wait_open(fabric, NULL, (struct fid_wait **)&made));
	BAD(fi_wait_open(fabric, &(struct fi_wait_attr){ .wait_obj = FI_WAIT_FD }, NULL));
	BAD(fi_poll_open(domain, &(struct fi_poll_attr){ 0 }, NULL));
	BAD(fi_stx_context(domain, NULL, NULL, NULL));
	BAD(fi_srx_context(domain, NULL, NULL, NULL));
	BAD(fi_mr_reg(domain, memory, 8, FI_REMOTE_READ, 0, 9, 0, NULL, NULL));
	BAD(fi_mr_reg(domain, NULL, 8, FI_REMOTE_READ, 0, 9, 0, (struct fid_mr **)&made, NULL));
	BAD(fi_mr_reg(domain, memory, 0, FI_REMOTE_READ, 0, 9, 0, (struct fid_mr **)&made, NULL));
	BAD(fi_mr_reg(domain, memory, SIZE_MAX, UINT64_MAX, 0, 9, 0, (struct fid_mr **)&made, NULL));
	BAD(fi_mr_regv(domain, NULL, 1, FI_REMOTE_READ, 0, 9, 0, (struct fid_mr **)&made, NULL));
	BAD(fi_mr_regv(domain, &part, 2, FI_REMOTE_READ, 0, 9, 0, (struct fid_mr **)&made, NULL));
	BAD(fi_mr_regattr(domain, NULL, 0, (struct fid_mr **)&made));
	BAD(fi_mr_regattr(domain, &(struct fi_mr_attr){ .iov_count = 1 }, 0, (struct fid_mr **)&made));
	BAD(fi_query_atomic(domain, FI_UINT64, FI_SUM, NULL, 0));
}

/* A second endpoint without bound objects. */
static struct fid_ep *fresh(void)
{
	struct fid_ep *fresh;
	MUST(fi_endpoint(domain, info, &fresh, NULL));
	return fresh;
}

static void binding(void)
{
	BAD(fi_ep_bind(fresh(), NULL, 0));
	BAD(fi_ep_bind(fresh(), &domain->fid, 0));
	BAD(fi_ep_bind(fresh(), &mr->fid, UINT64_MAX));
	BAD(fi_ep_bind(fresh(), &ep->fid, 0));
	IS(-FI_EBADFLAGS, fi_ep_bind(fresh(), &cq->fid, 0));
	IS(-FI_EOPBADSTATE, fi_ep_bind(ep, NULL, 0));
	BAD(fi_av_bind(av, NULL, 0));
	BAD(fi_av_bind(av, &cq->fid, 0));
	BAD(fi_mr_bind(mr, NULL, FI_REMOTE_WRITE));
	BAD(fi_mr_bind(mr, &eq->fid, FI_REMOTE_WRITE));
	CM_BAD(fi_pep_bind(pep, NULL, 0));
	CM_BAD(fi_pep_bind(pep, &cq->fid, 0));
	BAD(fi_poll_add(polls, NULL, 0));
	BAD(fi_poll_add(polls, &ep->fid, 0));
	BAD(fi_poll_del(polls, NULL, 0));
	BAD(fi_poll_del(polls, &cq->fid, 0));
	BAD(fi_poll(polls, NULL, 1));
	BAD(fi_poll(polls, &context, -1));
	BAD(fi_trywait(fabric, NULL, 1));
	BAD(fi_trywait(fabric, (struct fid *[]){ NULL }, 1));
	BAD(fi_trywait(fabric, (struct fid *[]){ &ep->fid }, 1));
	BAD(fi_trywait(fabric, (struct fid *[]){ &cq->fid }, -1));
}

static void asking(void)
{
	BAD(fi_getname(&ep->fid, name, NULL));
	IS(-FI_ETOOSMALL, fi_getname(&ep->fid, NULL, &length));
	CM_BAD(fi_getname(&pep->fid, name, NULL));
	CM_IS(-FI_ENOTCONN, fi_getpeer(msg_ep, name, &length));
	CM_BAD(fi_getpeer(msg_ep, name, NULL));
	BAD(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, &length));
	BAD(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, memory, NULL));
	CM_BAD(fi_getopt(&pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, NULL, NULL));
	BAD(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, 8));
	BAD(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, memory, 0));
	IS(-FI_ENOPROTOOPT, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, 999, NULL, 8));
	IS(-FI_ENOSYS, fi_control(&ep->fid, 12345, NULL));
	BAD(fi_control(&ep->fid, FI_GETOPSFLAG, NULL));
	BAD(fi_control(&ep->fid, FI_SETOPSFLAG, NULL));
	BAD(fi_control(&cntr->fid, FI_GETWAIT, NULL));
	BAD(fi_control(&cq->fid, FI_GETWAIT, NULL));
	BAD(fi_control(&eq->fid, FI_GETWAIT, NULL));
	BAD(fi_control(&set->fid, FI_GETWAIT, NULL));
	IS(0, fi_cancel(&ep->fid, (void *)77));
	BAD(fi_av_insert(av, NULL, 1, &number, 0, NULL));
	BAD(fi_av_insert(av, NULL, 2, &number, 0, NULL));
	BAD(fi_av_insert(av, name, SIZE_MAX, &number, 0, NULL));
	IS(1, fi_av_insert(av, name, 1, NULL, 0, NULL));
	IS(-FI_EBADFLAGS, fi_av_insert(av, name, 1, &number, UINT64_MAX, NULL));
	BAD(fi_av_insertsvc(av, NULL, "1", &number, 0, NULL));
	BAD(fi_av_insertsvc(av, "127.0.0.1", NULL, &number, 0, NULL));
	BAD(fi_av_insertsym(av, "127.0.0.1", SIZE_MAX, "1", SIZE_MAX, &number, 0, NULL));
	BAD(fi_av_insertsym(av, "127.0.0.1", 1, "1", 1 << 20, &number, 0, NULL));
	BAD(fi_av_remove(av, NULL, 1, 0));
	BAD(fi_av_remove(av, &(fi_addr_t){ 999 }, 1, 0));
	BAD(fi_av_lookup(av, 0, name, NULL));
	BAD(fi_av_lookup(av, 55, name, &length));
	NONE(fi_av_straddr(av, name, text, NULL));
	IS(0, (length = sizeof text, strcmp(fi_av_straddr(av, NULL, text, &length), "not an address")));
}

static void queues(void)
{
	BAD(fi_cq_read(cq, NULL, 1));
	BAD(fi_cq_readfrom(cq, NULL, 1, &number));
	BAD(fi_cq_sread(cq, NULL, 1, NULL, 1));
	BAD(fi_cq_sreadfrom(cq, NULL, 1, &number, NULL, 1));
	IS(-FI_EAGAIN, fi_cq_read(cq, NULL, 0));
	IS(-FI_EAGAIN, fi_cq_readfrom(cq, &entry, 1, NULL));
	BAD(fi_cq_readerr(cq, NULL, 0));
	IS(0, fi_cq_strerror(cq, FI_EINVAL, NULL, NULL, 9) == NULL);
	BAD(fi_eq_read(eq, NULL, memory, 8, 0));
	BAD(fi_eq_read(eq, &event, NULL, 8, 0));
	BAD(fi_eq_sread(eq, NULL, NULL, 8, 1, 0));
	BAD(fi_eq_readerr(eq, NULL, 0));
	BAD(fi_eq_write(eq, 0, NULL, 8, 0));
	BAD(fi_eq_write(eq, 0, memory, SIZE_MAX, 0));
	IS(0, fi_eq_strerror(eq, FI_EINVAL, NULL, NULL, 9) == NULL);
}

static void messages(void)
{
	BAD(fi_send(ep, NULL, 8, NULL, 0, NULL));
	BAD(fi_send(ep, memory, SIZE_MAX, NULL, 0, NULL));
	BAD(fi_send(ep, memory, 8, NULL, FI_ADDR_UNSPEC, NULL));
	BAD(fi_senddata(ep, NULL, 8, NULL, 1, 0, NULL));
	BAD(fi_inject(ep, NULL, 8, 0));
	BAD(fi_inject(ep, memory, SIZE_MAX, 0));
	BAD(fi_injectdata(ep, NULL, 8, 1, 0));
	BAD(fi_sendv(ep, NULL, NULL, 1, 0, NULL));
	BAD(fi_sendv(ep, &nowhere, NULL, 1, 0, NULL));
	BAD(fi_sendv(ep, &part, NULL, 9999, 0, NULL));
	BAD(fi_sendmsg(ep, NULL, 0));
	BAD(fi_sendmsg(ep, MSG(.iov_count = 1), 0));
	BAD(fi_sendmsg(ep, MSG(.iov_count = 9999), 0));
	BAD(fi_sendmsg(ep, MSG(.msg_iov = &endless, .iov_count = 1), 0));
	BAD(fi_recv(ep, NULL, 8, NULL, FI_ADDR_UNSPEC, NULL));
	BAD(fi_recv(ep, memory, SIZE_MAX, NULL, FI_ADDR_UNSPEC, NULL));
	BAD(fi_recvv(ep, NULL, NULL, 1, FI_ADDR_UNSPEC, NULL));
	BAD(fi_recvv(ep, &nowhere, NULL, 1, FI_ADDR_UNSPEC, NULL));
	BAD(fi_recvv(ep, &part, NULL, 9999, FI_ADDR_UNSPEC, NULL));
	BAD(fi_recvmsg(ep, NULL, 0));
	BAD(fi_recvmsg(ep, MSG(.iov_count = 1), FI_MULTI_RECV));
	BAD(fi_tsend(ep, NULL, 8, NULL, 0, 1, NULL));
	BAD(fi_tsend(ep, memory, SIZE_MAX, NULL, 0, 1, NULL));
	BAD(fi_tsenddata(ep, NULL, 8, NULL, 1, 0, 1, NULL));
	BAD(fi_tinject(ep, NULL, 8, 0, 1));
	BAD(fi_tinjectdata(ep, NULL, 8, 1, 0, 1));
	BAD(fi_tsendv(ep, NULL, NULL, 1, 0, 1, NULL));
	BAD(fi_tsendv(ep, &nowhere, NULL, 1, 0, 1, NULL));
	BAD(fi_tsendmsg(ep, NULL, 0));
	BAD(fi_tsendmsg(ep, TAGGED(.iov_count = 9999), 0));
	BAD(fi_tsendmsg(ep, TAGGED(.msg_iov = &nowhere, .iov_count = 1), UINT64_MAX));
	BAD(fi_trecv(ep, NULL, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	BAD(fi_trecv(ep, memory, SIZE_MAX, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	BAD(fi_trecvv(ep, NULL, NULL, 1, FI_ADDR_UNSPEC, 1, 0, NULL));
	BAD(fi_trecvv(ep, &nowhere, NULL, 1, FI_ADDR_UNSPEC, 1, 0, NULL));
	BAD(fi_trecvmsg(ep, NULL, 0));
	BAD(fi_trecvmsg(ep, TAGGED(.iov_count = 1), 0));
	IS(0, fi_tsend(ep, NULL, 0, NULL, 0, 1, NULL));
	IS(0, fi_trecv(ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	BAD(fi_recv(srx, NULL, 8, NULL, FI_ADDR_UNSPEC, NULL));
	BAD(fi_recvv(srx, NULL, NULL, 1, FI_ADDR_UNSPEC, NULL));
	BAD(fi_recvmsg(srx, NULL, 0));
	BAD(fi_trecv(srx, NULL, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	BAD(fi_trecvv(srx, NULL, NULL, 1, FI_ADDR_UNSPEC, 1, 0, NULL));
	BAD(fi_trecvmsg(srx, NULL, 0));
}

static void accesses(void)
{
	BAD(fi_read(ep, NULL, 8, NULL, 0, 0, 7, NULL));
	BAD(fi_read(ep, memory, SIZE_MAX, NULL, 0, 0, 7, NULL));
	BAD(fi_readv(ep, NULL, NULL, 1, 0, 0, 7, NULL));
	BAD(fi_readv(ep, &part, NULL, 9999, 0, 0, 7, NULL));
	BAD(fi_readmsg(ep, NULL, 0));
	BAD(fi_readmsg(ep, RMA(.msg_iov = &part, .iov_count = 1, .rma_iov_count = 1), 0));
	BAD(fi_readmsg(ep, RMA(.iov_count = 1, .rma_iov = &there, .rma_iov_count = 1), 0));
	BAD(fi_write(ep, NULL, 8, NULL, 0, 0, 7, NULL));
	BAD(fi_write(ep, memory, SIZE_MAX, NULL, 0, 0, 7, NULL));
	BAD(fi_writev(ep, NULL, NULL, 1, 0, 0, 7, NULL));
	BAD(fi_writev(ep, &nowhere, NULL, 1, 0, 0, 7, NULL));
	BAD(fi_writemsg(ep, NULL, 0));
	BAD(fi_writemsg(ep, NULL, FI_REMOTE_CQ_DATA));
	BAD(fi_writemsg(ep, RMA(.msg_iov = &nowhere, .iov_count = 1, .rma_iov = &there, .rma_iov_count = 1), 0));
	BAD(fi_inject_write(ep, NULL, 8, 0, 0, 7));
	BAD(fi_writedata(ep, NULL, 8, NULL, 1, 0, 0, 7, NULL));
	BAD(fi_inject_writedata(ep, NULL, 8, 1, 0, 0, 7));
	BAD(fi_atomic(ep, NULL, 1, NULL, 0, 0, 7, FI_UINT64, FI_SUM, NULL));
	BAD(fi_atomic(ep, memory, SIZE_MAX, NULL, 0, 0, 7, FI_UINT64, FI_SUM, NULL));
	BAD(fi_atomicv(ep, NULL, NULL, 1, 0, 0, 7, FI_UINT64, FI_SUM, NULL));
	BAD(fi_atomicv(ep, &no_number, NULL, 1, 0, 0, 7, FI_UINT64, FI_SUM, NULL));
	BAD(fi_atomicmsg(ep, NULL, 0));
	BAD(fi_atomicmsg(ep, ATOMIC(.msg_iov = &numbers, .iov_count = 1, .rma_iov_count = 1), 0));
	BAD(fi_atomicmsg(ep, ATOMIC(.iov_count = 1, .rma_iov = &place, .rma_iov_count = 1), 0));
	BAD(fi_inject_atomic(ep, NULL, 1, 0, 0, 7, FI_UINT64, FI_SUM));
	BAD(fi_fetch_atomic(ep, NULL, 1, NULL, memory, NULL, 0, 0, 7, FI_UINT64, FI_SUM, NULL));
	BAD(fi_fetch_atomic(ep, memory, 1, NULL, NULL, NULL, 0, 0, 7, FI_UINT64, FI_SUM, NULL));
	IS(0, fi_fetch_atomic(ep, NULL, 1, NULL, memory + 64, NULL, 0, 0, 7, FI_UINT64, FI_ATOMIC_READ, NULL));
	BAD(fi_fetch_atomicv(ep, &numbers, NULL, 1, NULL, NULL, 1, 0, 0, 7, FI_UINT64, FI_SUM, NULL));
	BAD(fi_fetch_atomicmsg(ep, NULL, &numbers, NULL, 1, 0));
	BAD(fi_compare_atomic(ep, memory, 1, NULL, NULL, NULL, memory, NULL, 0, 0, 7, FI_UINT64, FI_CSWAP, NULL));
	BAD(fi_compare_atomic(ep, memory, 1, NULL, memory, NULL, NULL, NULL, 0, 0, 7, FI_UINT64, FI_CSWAP, NULL));
	BAD(fi_compare_atomicv(ep, &numbers, NULL, 1, NULL, NULL, 1, &numbers, NULL, 1, 0, 0, 7, FI_UINT64, FI_CSWAP, NULL));
	BAD(fi_compare_atomicmsg(ep, NULL, &numbers, NULL, 1, &numbers, NULL, 1, 0));
	IS(-FI_EOPNOTSUPP, fi_atomic(ep, memory, 1, NULL, 0, 0, 7, 99, 99, NULL));
	IS(0, fi_atomicvalid(ep, FI_UINT64, FI_SUM, NULL));
}

static void connections(void)
{
	CM_BAD(fi_connect(msg_ep, NULL, NULL, 0));
	CM_BAD(fi_connect(msg_ep, name, NULL, 8));
	CM_BAD(fi_connect(msg_ep, name, memory, SIZE_MAX));
	CM_BAD(fi_accept(msg_ep, NULL, 8));
	CM_IS(-FI_ENOEQ, fi_accept(msg_ep, NULL, 0));
	CM_IS(-FI_ENOTCONN, fi_shutdown(msg_ep, 0));
	CM_IS(-FI_ENOEQ, fi_listen(pep));
	CM_BAD(fi_reject(pep, NULL, NULL, 0));
	CM_BAD(fi_reject(pep, &ep->fid, NULL, 0));
	CM_BAD(fi_reject(pep, (fid_t)memory, NULL, 8));
	CM_BAD(fi_setname(&pep->fid, NULL, 16));
	CM_BAD(fi_setname(&pep->fid, memory, 1));
	CM_BAD((msg_info->handle = &ep->fid, fi_endpoint(msg_domain, msg_info, (struct fid_ep **)&made, NULL)));
}

/* Closes the endpoint, and what it was bound to. */
static long close_endpoint(void)
{
	MUST(fi_close(&mr->fid));
	MUST(fi_close(&ep->fid));
	return 0;
}

static long close_all(void)
{
	struct fid *all[] = { &mr->fid, &ep->fid, &cq->fid, &av->fid, &cntr->fid, &polls->fid, &stx->fid, &srx->fid, &domain->fid, &eq->fid, &set->fid, &fabric->fid };
	for (size_t at = 0; at < sizeof all / sizeof *all; at++)
		MUST(fi_close(all[at]));
	for (size_t at = 0; at < sizeof all / sizeof *all; at++)
		SAME(fi_close(all[at]), -FI_EBADF);
	return 0;
}

/* Many objects of each kind are made and closed. The last closed ones still answer, and freeing
 * older ones breaks nothing. */
static long churn(void)
{
	struct fid_mr *region;
	for (int round = 0; round < 5000; round++) {
		MUST(fi_mr_reg(domain, memory, 8, FI_REMOTE_READ, 0, 1000, 0, &region, NULL));
		MUST(fi_close(&region->fid));
		SAME(fi_close(&region->fid), -FI_EBADF);
	}
	return 0;
}

static long close_connected(void)
{
	struct fid *all[] = { &msg_ep->fid, &pep->fid, &msg_domain->fid, &msg_fabric->fid };
	for (int at = 0; at < 4; at++)
		MUST(fi_close(all[at]));
	for (int at = 0; at < 4; at++)
		SAME(fi_close(all[at]), -FI_EBADF);
	return 0;
}

static void closing(void)
{
	/* An object is not closed before its users. */
	IS(-FI_EBUSY, fi_close(&cq->fid));
	IS(-FI_EBUSY, fi_close(&av->fid));
	IS(-FI_EBUSY, fi_close(&domain->fid));
	IS(-FI_EBUSY, fi_close(&fabric->fid));
	IS(-FI_EBUSY, (MUST(fi_ep_bind(fresh(), &cntr->fid, FI_SEND)), fi_close(&cntr->fid)));
	IS(-FI_EBUSY, (MUST(fi_ep_bind(fresh(), &srx->fid, 0)), fi_close(&srx->fid)));
	IS(-FI_EBUSY, (MUST(fi_ep_bind(fresh(), &stx->fid, 0)), fi_close(&stx->fid)));
	IS(-FI_EBUSY, (MUST(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE)), fi_close(&cntr->fid)));
	IS(-FI_EBUSY, (MUST(fi_av_bind(av, &eq->fid, 0)), fi_close(&eq->fid)));
	IS(-FI_EBUSY, (MUST(fi_poll_add(polls, &eq->fid, 0)), fi_close(&eq->fid)));
	IS(0, (MUST(fi_poll_add(polls, &eq->fid, 0)), MUST(fi_poll_del(polls, &eq->fid, 0)), fi_close(&eq->fid)));
	CM_IS(-FI_EBUSY, (MUST(fi_pep_bind(pep, &eq->fid, 0)), fi_close(&eq->fid)));
	/* Nothing is closed twice. */
	LAST_IS(0, close_all());
	CM_IS(0, close_connected());
	IS(0, churn());
	/* A closed object does not work any more. */
	LAST_IS(-FI_EBADF, (close_endpoint(), fi_tsend(ep, memory, 8, NULL, 0, 1, NULL)));
	LAST_IS(-FI_EBADF, (close_endpoint(), fi_trecv(ep, memory, 8, NULL, 0, 1, 0, NULL)));
	LAST_IS(-FI_EBADF, (close_endpoint(), fi_send(ep, memory, 8, NULL, 0, NULL)));
	LAST_IS(-FI_EBADF, (close_endpoint(), fi_write(ep, memory, 8, NULL, 0, 0, 7, NULL)));
	LAST_IS(-FI_EBADF, (close_endpoint(), fi_atomic(ep, memory, 1, NULL, 0, 0, 7, FI_UINT64, FI_SUM, NULL)));
	LAST_IS(-FI_EBADF, (close_endpoint(), fi_getname(&ep->fid, name, &length)));
	LAST_IS(-FI_EBADF, (close_endpoint(), fi_enable(ep)));
	LAST_IS(-FI_EBADF, (close_endpoint(), fi_cancel(&ep->fid, NULL)));
	LAST_IS(-FI_EBADF, (close_endpoint(), fi_ep_bind(ep, &cq->fid, FI_SEND)));
	LAST_IS(-FI_EBADF, (close_endpoint(), MUST(fi_close(&cq->fid)), fi_cq_read(cq, &entry, 1)));
	LAST_IS(-FI_EBADF, (close_endpoint(), MUST(fi_close(&cq->fid)), fi_cq_sread(cq, &entry, 1, NULL, -1)));
	LAST_IS(0, (close_endpoint(), MUST(fi_close(&cq->fid)), fi_cq_strerror(cq, 1, NULL, NULL, 0) == NULL));
	LAST_IS(-FI_EBADF, (close_endpoint(), MUST(fi_close(&av->fid)), fi_av_insert(av, name, 1, &number, 0, NULL)));
	IS(0, (MUST(fi_close(&cntr->fid)), (long)fi_cntr_read(cntr)));
	IS(-FI_EBADF, (MUST(fi_close(&cntr->fid)), fi_cntr_wait(cntr, 1, -1)));
	IS(-FI_EBADF, (MUST(fi_close(&eq->fid)), fi_eq_read(eq, &event, memory, 64, 0)));
	IS(-FI_EBADF, (MUST(fi_close(&set->fid)), fi_wait(set, -1)));
	IS(-FI_EBADF, (MUST(fi_close(&polls->fid)), fi_poll(polls, &context, 1)));
	IS(-FI_EBADF, (MUST(fi_close(&srx->fid)), fi_recv(srx, memory, 8, NULL, FI_ADDR_UNSPEC, NULL)));
	IS(-FI_EBADF, (MUST(fi_close(&mr->fid)), fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE)));
	CM_IS(-FI_EBADF, (MUST(fi_close(&pep->fid)), fi_listen(pep)));
	/* A closed object is no argument any more. */
	BAD((MUST(fi_close(&cntr->fid)), fi_ep_bind(fresh(), &cntr->fid, FI_SEND)));
	BAD((MUST(fi_close(&cntr->fid)), fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE)));
	BAD((MUST(fi_close(&eq->fid)), fi_av_bind(av, &eq->fid, 0)));
	BAD((MUST(fi_close(&eq->fid)), fi_poll_add(polls, &eq->fid, 0)));
	BAD((MUST(fi_close(&set->fid)), fi_cq_open(domain, &(struct fi_cq_attr){ .wait_obj = FI_WAIT_SET, .wait_set = set }, (struct fid_cq **)&made, NULL)));
}

/* Plants faults of each kind that rows can notice; returns how many were missed. */
static int canary(void)
{
	ROW(open_all(), (void)fi_close(NULL), "canary: a crash");
	ROW(alarm(1), pause(), "canary: a hang");
	BAD(fi_cancel(&ep->fid, NULL));
	IS(0, fi_close(&mr->fid) + fi_close(&ep->fid));
	return calls - wrong;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "canary")) {
		if (canary())
			return 1;
		puts("good");
		return 0;
	}
	opening();
	binding();
	asking();
	queues();
	messages();
	accesses();
	connections();
	closing();
	printf("%d calls, %d wrong\n", calls, wrong);
	if (wrong)
		return 1;
	puts("good");
	return 0;
}
