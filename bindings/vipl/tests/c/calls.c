/* Every function of the library from C, rightly and wrongly used. Usage: calls CASE DEVICE */
#include "example.h"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WANT(condition)                                                                                                   \
	do {                                                                                                              \
		if (!(condition)) {                                                                                       \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                           \
			exit(1);                                                                                          \
		}                                                                                                         \
	} while (0)
#define EXPECT(call, code)                                                                                                \
	do {                                                                                                              \
		int returned_ = (call);                                                                                   \
		if (returned_ != (code)) {                                                                                \
			fprintf(stderr, "%s:%d: %s returned %d, not %s\n", __FILE__, __LINE__, #call, returned_, #code);  \
			exit(1);                                                                                          \
		}                                                                                                         \
	} while (0)

static const char *device;
#define BAD ((void *)(uintptr_t)0x1234560)

/* ---- Two end points, connected ------------------------------------------------------------------------------------------- */

struct pair {
	struct endpoint a, b;
};

static void *serve_thread(void *endpoint)
{
	serve(endpoint, "calls");
	return NULL;
}

static void connect_pair(struct pair *p)
{
	pthread_t server;
	char name[64];
	own_name(&p->a, name, sizeof name);
	WANT(!pthread_create(&server, NULL, serve_thread, &p->a));
	call(&p->b, name, "calls");
	pthread_join(server, NULL);
}

static void open_pair(struct pair *p, size_t bytes)
{
	open_endpoint(&p->a, device, bytes);
	open_endpoint(&p->b, device, bytes);
}

/* Gives a VI another reliability level. */
static void set_level(struct endpoint *e, VIP_RELIABILITY_LEVEL level)
{
	VIP_VI_ATTRIBUTES attributes;
	VIP_VI_STATE state;
	VIP_BOOLEAN sends, receives;
	MUST(VipQueryVi(e->vi, &state, &attributes, &sends, &receives));
	attributes.ReliabilityLevel = level;
	if (level == VIP_SERVICE_UNRELIABLE)
		attributes.EnableRdmaRead = VIP_FALSE;
	MUST(VipSetViAttributes(e->vi, &attributes));
}

static VIP_VI_STATE state_of(struct endpoint *e)
{
	VIP_VI_ATTRIBUTES attributes;
	VIP_VI_STATE state;
	VIP_BOOLEAN sends, receives;
	MUST(VipQueryVi(e->vi, &state, &attributes, &sends, &receives));
	return state;
}

static void post_receive(struct endpoint *e, int number, void *bytes, size_t length)
{
	MUST(VipPostRecv(e->vi, fill(e, number, bytes, length), e->handle));
}

static void post_send(struct endpoint *e, int number, void *bytes, size_t length)
{
	MUST(VipPostSend(e->vi, fill(e, number, bytes, length), e->handle));
}

/* An RDMA descriptor for the peer's receive buffer. */
static VIP_DESCRIPTOR *fill_rdma(struct endpoint *e, int number, int op, struct endpoint *peer, void *there, size_t length)
{
	VIP_DESCRIPTOR *d = fill(e, number, NULL, length);
	d->CS.SegCount = 2;
	d->CS.Control = op;
	d->DS[0].Remote.Data.Address = there;
	d->DS[0].Remote.Handle = peer->handle;
	d->DS[0].Remote.Reserved = 0;
	d->DS[1].Local.Data.Address = e->send;
	d->DS[1].Local.Handle = e->handle;
	d->DS[1].Local.Length = length;
	return d;
}

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
}

/* ---- Errors that come by themselves --------------------------------------------------------------------------------------- */

static pthread_mutex_t told = PTHREAD_MUTEX_INITIALIZER;
static int error_count;
static VIP_ERROR_DESCRIPTOR last_error;

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	pthread_mutex_lock(&told);
	WANT(context == (void *)&error_count);
	last_error = *error;
	error_count++;
	pthread_mutex_unlock(&told);
}

/* Waits until a handler was told of `code` at `vi`. */
static void want_error(VIP_VI_HANDLE vi, VIP_ERROR_CODE code)
{
	for (int waited = 0; waited < 20000; waited += 5) {
		pthread_mutex_lock(&told);
		if (error_count > 0 && last_error.ViHandle == vi && last_error.ErrorCode == code) {
			pthread_mutex_unlock(&told);
			return;
		}
		pthread_mutex_unlock(&told);
		sleep_ms(5);
	}
	fprintf(stderr, "no error %d (%d told, the last %d)\n", code, error_count, last_error.ErrorCode);
	exit(1);
}

/* ---- Cases ---------------------------------------------------------------------------------------------------------------- */

/* Objects are made, asked, changed and destroyed; what others use stays. */
static void objects(void)
{
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES limits;
	VIP_PROTECTION_HANDLE ptag, other;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi, second;
	VIP_MEM_HANDLE handle;
	VIP_VI_STATE state;
	VIP_BOOLEAN sends, receives;
	static char memory[8192];

	MUST(VipOpenNic(device, &nic));
	MUST(VipQueryNic(nic, &limits));
	WANT(limits.NicAddressLen == 6 && limits.LocalNicAddress && limits.ThreadSafe);
	WANT(limits.MaxVI >= 64 && limits.MaxDescriptorsPerQueue >= 1024 && limits.MaxSegmentsPerDesc >= 252);
	WANT(limits.MaxTransferSize >= 32768 && limits.MaxDiscriminatorLen >= 16 && limits.NativeMTU > 0);
	WANT(limits.ReliabilityLevelSupport == 7 && limits.RDMAReadSupport == 6);
	WANT(strncmp(limits.Name, device, strlen(device)) == 0);

	MUST(VipCreatePtag(nic, &ptag));
	MUST(VipCreatePtag(nic, &other));
	WANT(ptag != other);
	VIP_MEM_ATTRIBUTES memory_attributes = { ptag, VIP_TRUE, VIP_FALSE }, known;
	MUST(VipRegisterMem(nic, memory, sizeof memory, &memory_attributes, &handle));
	WANT(handle != 0);
	MUST(VipQueryMem(nic, memory + 100, handle, &known));
	WANT(known.Ptag == ptag && known.EnableRdmaWrite && !known.EnableRdmaRead);
	memory_attributes.Ptag = other;
	memory_attributes.EnableRdmaRead = VIP_TRUE;
	MUST(VipSetMemAttributes(nic, memory, handle, &memory_attributes));
	MUST(VipQueryMem(nic, memory, handle, &known));
	WANT(known.Ptag == other && known.EnableRdmaRead);
	EXPECT(VipDestroyPtag(nic, other), VIP_ERROR_RESOURCE);
	MUST(VipDestroyPtag(nic, ptag));
	EXPECT(VipDestroyPtag(nic, ptag), VIP_INVALID_PTAG);

	MUST(VipCreateCQ(nic, 100, &cq));
	MUST(VipResizeCQ(cq, 1000));
	VIP_VI_ATTRIBUTES attributes = { VIP_SERVICE_RELIABLE_DELIVERY, 65536, NULL, other, VIP_TRUE, VIP_TRUE }, asked;
	MUST(VipCreateVi(nic, &attributes, cq, cq, &vi));
	MUST(VipCreateVi(nic, &attributes, NULL, cq, &second));
	EXPECT(VipDestroyCQ(cq), VIP_ERROR_RESOURCE);
	MUST(VipQueryVi(vi, &state, &asked, &sends, &receives));
	WANT(state == VIP_STATE_IDLE && sends && receives);
	WANT(asked.ReliabilityLevel == attributes.ReliabilityLevel && asked.MaxTransferSize == 65536 && asked.Ptag == other);
	attributes.MaxTransferSize = 4096;
	MUST(VipSetViAttributes(vi, &attributes));
	MUST(VipQueryVi(vi, &state, &asked, &sends, &receives));
	WANT(asked.MaxTransferSize == 4096);
	MUST(VipDestroyVi(vi));
	EXPECT(VipDestroyVi(vi), VIP_INVALID_PARAMETER);
	MUST(VipDestroyVi(second));
	MUST(VipDestroyCQ(cq));
	EXPECT(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
	MUST(VipDeregisterMem(nic, memory, handle));
	EXPECT(VipDeregisterMem(nic, memory, handle), VIP_INVALID_PARAMETER);
	MUST(VipDestroyPtag(nic, other));
	/* As many as there can be, twice: what is destroyed is free again. */
	VIP_VI_HANDLE *all = calloc(limits.MaxVI, sizeof *all);
	attributes.Ptag = NULL;
	for (int round = 0; round < 2; round++) {
		for (VIP_ULONG i = 0; i < limits.MaxVI; i++)
			MUST(VipCreateVi(nic, &attributes, NULL, NULL, &all[i]));
		EXPECT(VipCreateVi(nic, &attributes, NULL, NULL, &vi), VIP_ERROR_RESOURCE);
		for (VIP_ULONG i = 0; i < limits.MaxVI; i++)
			MUST(VipDestroyVi(all[i]));
	}
	/* A work queue, and a NIC, take so many descriptors and no more. */
	static VIP_DESCRIPTOR receive __attribute__((aligned(64)));
	VIP_MEM_ATTRIBUTES no_tag = { NULL, VIP_FALSE, VIP_FALSE };
	VIP_ULONG posted = 0;
	MUST(VipRegisterMem(nic, &receive, sizeof receive, &no_tag, &handle));
	while (posted < limits.MaxCQEntries) {
		MUST(VipCreateVi(nic, &attributes, NULL, NULL, &vi));
		for (VIP_ULONG i = 0; i < limits.MaxDescriptorsPerQueue; i++, posted++)
			MUST(VipPostRecv(vi, &receive, handle));
		EXPECT(VipPostRecv(vi, &receive, handle), VIP_ERROR_RESOURCE);
	}
	MUST(VipCreateVi(nic, &attributes, NULL, NULL, &vi));
	EXPECT(VipPostRecv(vi, &receive, handle), VIP_ERROR_RESOURCE);
	EXPECT(VipDeregisterMem(nic, &receive, handle), VIP_ERROR_RESOURCE);
	free(all);
	EXPECT(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, memory), VIP_ERROR_NOT_SUPPORTED);
	EXPECT(VipQuerySystemManagementInfo(nic, 77, memory), VIP_INVALID_PARAMETER);
	MUST(VipCloseNic(nic));
	EXPECT(VipCloseNic(nic), VIP_INVALID_PARAMETER);
	EXPECT(VipQueryNic(nic, &limits), VIP_INVALID_PARAMETER);
}

/* Null, invented and old handles, and arguments that cannot be. */
static void misuse(void)
{
	struct pair p;
	VIP_NIC_ATTRIBUTES limits;
	VIP_PROTECTION_HANDLE ptag;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE handle;
	VIP_DESCRIPTOR *d, *done;
	VIP_BOOLEAN flag;
	VIP_VI_STATE state;
	VIP_CONN_HANDLE connection;
	union address address;
	VIP_ULONG length = 3;
	char text[64];

	EXPECT(VipOpenNic(device, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipOpenNic("shm", NULL), VIP_INVALID_PARAMETER);
	open_pair(&p, 4096);
	struct endpoint *e = &p.a;
	VIP_VI_ATTRIBUTES good = { VIP_SERVICE_RELIABLE_DELIVERY, 4096, NULL, e->ptag, VIP_TRUE, VIP_TRUE }, bad;
	VIP_MEM_ATTRIBUTES memory = { e->ptag, VIP_FALSE, VIP_FALSE };
	void *wrong[] = { NULL, BAD, (void *)-1, e->vi, &p, e->ptag };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		void *w = wrong[i];
		EXPECT(VipCloseNic(w), VIP_INVALID_PARAMETER);
		EXPECT(VipQueryNic(w, &limits), VIP_INVALID_PARAMETER);
		EXPECT(VipErrorCallback(w, NULL, on_error), VIP_INVALID_PARAMETER);
		EXPECT(VipCreatePtag(w, &ptag), VIP_INVALID_PARAMETER);
		EXPECT(VipRegisterMem(w, text, sizeof text, &memory, &handle), VIP_INVALID_PARAMETER);
		EXPECT(VipDeregisterMem(w, text, 1), VIP_INVALID_PARAMETER);
		EXPECT(VipCreateVi(w, &good, NULL, NULL, &vi), VIP_INVALID_PARAMETER);
		EXPECT(VipCreateCQ(w, 1, &cq), VIP_INVALID_PARAMETER);
		EXPECT(VipNSInit(w, NULL), VIP_INVALID_PARAMETER);
		EXPECT(VipDestroyCQ(w), VIP_INVALID_PARAMETER);
		EXPECT(VipResizeCQ(w, 1), VIP_INVALID_PARAMETER);
		EXPECT(VipCQDone(w, &vi, &flag), VIP_INVALID_PARAMETER);
		EXPECT(VipCQWait(w, 0, &vi, &flag), VIP_INVALID_PARAMETER);
		EXPECT(VipConnectAccept(w, e->vi), VIP_INVALID_PARAMETER);
		EXPECT(VipConnectReject(w), VIP_INVALID_PARAMETER);
		if (w == e->vi)
			continue;
		EXPECT(VipDestroyVi(w), VIP_INVALID_PARAMETER);
		EXPECT(VipQueryVi(w, &state, &bad, &flag, &flag), VIP_INVALID_PARAMETER);
		EXPECT(VipSetViAttributes(w, &good), VIP_INVALID_PARAMETER);
		EXPECT(VipDisconnect(w), VIP_INVALID_PARAMETER);
		EXPECT(VipPostSend(w, e->descriptors, e->handle), VIP_INVALID_PARAMETER);
		EXPECT(VipPostRecv(w, e->descriptors, e->handle), VIP_INVALID_PARAMETER);
		EXPECT(VipSendDone(w, &done), VIP_INVALID_PARAMETER);
		EXPECT(VipRecvDone(w, &done), VIP_INVALID_PARAMETER);
		EXPECT(VipSendWait(w, 0, &done), VIP_INVALID_PARAMETER);
		EXPECT(VipRecvWait(w, VIP_INFINITE, &done), VIP_INVALID_PARAMETER);
		EXPECT(VipConnectPeerDone(w, &bad), VIP_INVALID_PARAMETER);
		EXPECT(VipConnectPeerWait(w, &bad), VIP_INVALID_PARAMETER);
		if (w != e->ptag && w != NULL)
			EXPECT(VipDestroyPtag(e->nic, w), VIP_INVALID_PTAG);
	}
	EXPECT(VipDestroyPtag(e->nic, NULL), VIP_INVALID_PTAG);

	/* Places for results that are missing. */
	EXPECT(VipQueryNic(e->nic, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipCreatePtag(e->nic, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipCreateCQ(e->nic, 1, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipCreateCQ(e->nic, 0, &cq), VIP_INVALID_PARAMETER);
	EXPECT(VipCreateVi(e->nic, NULL, NULL, NULL, &vi), VIP_INVALID_PARAMETER);
	EXPECT(VipCreateVi(e->nic, &good, NULL, NULL, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipCreateVi(e->nic, &good, BAD, NULL, &vi), VIP_INVALID_PARAMETER);
	EXPECT(VipQueryVi(e->vi, NULL, NULL, NULL, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipSetViAttributes(e->vi, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipSendDone(e->vi, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipRecvWait(e->vi, 0, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipSendNotify(e->vi, NULL, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipRecvNotify(e->vi, NULL, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipConnectWait(e->nic, NULL, 0, &address.net, &bad, &connection), VIP_INVALID_PARAMETER);
	EXPECT(VipConnectRequest(e->vi, NULL, NULL, 0, &bad), VIP_INVALID_PARAMETER);
	EXPECT(VipConnectRequest(e->vi, NULL, NULL, 0, NULL), VIP_INVALID_PARAMETER);
	EXPECT(VipConnectPeerRequest(e->vi, NULL, NULL, 0), VIP_INVALID_PARAMETER);
	EXPECT(VipConnectPeerDone(e->vi, &bad), VIP_INVALID_STATE);
	EXPECT(VipQuerySystemManagementInfo(e->nic, VIP_SMI_AUTODISCOVERY, NULL), VIP_INVALID_PARAMETER);

	/* Attributes that no VI has. */
	bad = good, bad.ReliabilityLevel = 3;
	EXPECT(VipCreateVi(e->nic, &bad, NULL, NULL, &vi), VIP_INVALID_RELIABILITY_LEVEL);
	bad = good, bad.MaxTransferSize = e->limits.MaxTransferSize + 1;
	EXPECT(VipCreateVi(e->nic, &bad, NULL, NULL, &vi), VIP_INVALID_MTU);
	bad = good, bad.QoS = BAD;
	EXPECT(VipCreateVi(e->nic, &bad, NULL, NULL, &vi), VIP_INVALID_QOS);
	bad = good, bad.Ptag = BAD;
	EXPECT(VipCreateVi(e->nic, &bad, NULL, NULL, &vi), VIP_INVALID_PTAG);
	bad = good, bad.Ptag = p.b.ptag;
	EXPECT(VipCreateVi(e->nic, &bad, NULL, NULL, &vi), VIP_INVALID_PTAG);
	bad = good, bad.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	EXPECT(VipSetViAttributes(e->vi, &bad), VIP_INVALID_RDMAREAD);

	/* Memory that is not there, not the program's to write, or not of this NIC. */
	EXPECT(VipRegisterMem(e->nic, NULL, 64, &memory, &handle), VIP_INVALID_PARAMETER);
	EXPECT(VipRegisterMem(e->nic, text, 0, &memory, &handle), VIP_INVALID_PARAMETER);
	EXPECT(VipRegisterMem(e->nic, BAD, 64, &memory, &handle), VIP_INVALID_PARAMETER);
	EXPECT(VipRegisterMem(e->nic, (void *)-64, 640, &memory, &handle), VIP_INVALID_PARAMETER);
	EXPECT(VipRegisterMem(e->nic, (void *)"constant", 8, &memory, &handle), VIP_INVALID_PARAMETER);
	EXPECT(VipRegisterMem(e->nic, text, sizeof text, &memory, NULL), VIP_INVALID_PARAMETER);
	memory.Ptag = BAD;
	EXPECT(VipRegisterMem(e->nic, text, sizeof text, &memory, &handle), VIP_INVALID_PTAG);
	EXPECT(VipDeregisterMem(e->nic, e->send, e->handle + 1), VIP_INVALID_PARAMETER);
	EXPECT(VipDeregisterMem(e->nic, text, e->handle), VIP_INVALID_PARAMETER);
	EXPECT(VipQueryMem(e->nic, text, 0, &memory), VIP_INVALID_PARAMETER);

	/* Descriptors that cannot be: the post says so. */
	d = fill(e, 0, e->receive, 64);
	EXPECT(VipPostSend(e->vi, d, e->handle), VIP_INVALID_STATE);
	EXPECT(VipPostRecv(e->vi, NULL, e->handle), VIP_INVALID_PARAMETER);
	EXPECT(VipPostRecv(e->vi, (VIP_DESCRIPTOR *)((char *)d + 8), e->handle), VIP_INVALID_PARAMETER);
	EXPECT(VipPostRecv(e->vi, d, 0), VIP_INVALID_PARAMETER);
	EXPECT(VipPostRecv(e->vi, d, e->handle + 4096), VIP_INVALID_PARAMETER);
	EXPECT(VipPostRecv(e->vi, BAD, e->handle), VIP_INVALID_PARAMETER);
	d->CS.SegCount = 60000;
	EXPECT(VipPostRecv(e->vi, d, e->handle), VIP_INVALID_PARAMETER);
	EXPECT(VipDisconnect(e->vi), VIP_INVALID_STATE);
	EXPECT(VipSendDone(e->vi, &done), VIP_NOT_DONE);
	WANT(done == NULL);
	EXPECT(VipRecvWait(e->vi, 20, &done), VIP_TIMEOUT);

	/* Descriptors whose content is at fault complete with the reason. */
	struct {
		int control, segments, add;
		VIP_UINT32 status;
	} faults[] = {
		{ VIP_CONTROL_OP_RESERVED, 1, 0, VIP_STATUS_FORMAT_ERROR },
		{ VIP_CONTROL_OP_RDMAWRITE, 0, 0, VIP_STATUS_FORMAT_ERROR },
		{ 0x100, 1, 0, VIP_STATUS_FORMAT_ERROR },
		{ VIP_CONTROL_OP_SENDRECV, 1, 1, VIP_STATUS_LENGTH_ERROR },
		{ VIP_CONTROL_OP_SENDRECV, 1, -1, VIP_STATUS_LENGTH_ERROR },
	};
	set_level(&p.a, VIP_SERVICE_UNRELIABLE);
	set_level(&p.b, VIP_SERVICE_UNRELIABLE);
	connect_pair(&p);
	EXPECT(VipSetViAttributes(e->vi, &good), VIP_INVALID_STATE);
	EXPECT(VipDestroyVi(e->vi), VIP_INVALID_STATE);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		d = fill(e, 0, e->send, 64);
		d->CS.Control = faults[i].control;
		d->CS.SegCount = faults[i].segments;
		d->CS.Length += faults[i].add;
		MUST(VipPostSend(e->vi, d, e->handle));
		EXPECT(VipSendWait(e->vi, TIMEOUT_MS, &done), VIP_DESCRIPTOR_ERROR);
		WANT(done == d && (d->CS.Status & VIP_STATUS_ERROR_MASK) == faults[i].status);
		WANT(d->CS.Status & VIP_STATUS_DONE);
	}
	/* Data that is not registered, or only partly, or has another tag. */
	MUST(VipCreatePtag(e->nic, &ptag));
	memory.Ptag = ptag;
	static char foreign[64];
	MUST(VipRegisterMem(e->nic, foreign, sizeof foreign, &memory, &handle));
	for (int i = 0; i < 4; i++) {
		d = fill(e, 0, e->send, 64);
		if (i == 0)
			d->DS[0].Local.Data.Address = text;
		if (i == 1)
			d->DS[0].Local.Data.Address = e->receive + e->bytes - 63;
		if (i == 2)
			d->DS[0].Local.Data.Address = foreign, d->DS[0].Local.Handle = handle;
		if (i == 3)
			d->DS[0].Local.Handle = 0;
		MUST(VipPostSend(e->vi, d, e->handle));
		EXPECT(VipSendWait(e->vi, TIMEOUT_MS, &done), VIP_DESCRIPTOR_ERROR);
		WANT((d->CS.Status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_PROTECTION_ERROR);
		MUST(VipPostRecv(e->vi, d, e->handle));
		EXPECT(VipRecvWait(e->vi, TIMEOUT_MS, &done), VIP_DESCRIPTOR_ERROR);
	}
	WANT(state_of(e) == VIP_STATE_CONNECTED);
	/* Memory that a posted descriptor uses stays registered; a VI with a posted descriptor stays. */
	post_receive(e, 0, e->receive, 64);
	EXPECT(VipDeregisterMem(e->nic, e->descriptors, e->handle), VIP_ERROR_RESOURCE);
	MUST(VipDisconnect(e->vi));
	EXPECT(VipDestroyVi(e->vi), VIP_ERROR_RESOURCE);
	EXPECT(VipRecvDone(e->vi, &done), VIP_DESCRIPTOR_ERROR);
	WANT((done->CS.Status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_DESC_FLUSHED_ERROR);

	/* Names. */
	MUST(VipNSShutdown(e->nic));
	EXPECT(VipNSShutdown(e->nic), VIP_ERROR_NAMESERVICE);
	EXPECT(VipNSGetHostByName(e->nic, "0.0", &address.net, 0), VIP_ERROR_NAMESERVICE);
	MUST(VipNSInit(e->nic, NULL));
	EXPECT(VipNSGetHostByName(e->nic, NULL, &address.net, 0), VIP_INVALID_PARAMETER);
	MUST(VipNSGetHostByName(e->nic, "7.3", &address.net, 0));
	WANT(address.net.HostAddressLen == 6 && address.net.DiscriminatorLen == 0);
	EXPECT(VipNSGetHostByAddr(e->nic, &address.net, text, &length), VIP_ERROR_RESOURCE);
	WANT(length == 4);
	MUST(VipNSGetHostByAddr(e->nic, &address.net, text, &length));
	WANT(strcmp(text, "7.3") == 0);
	address.net.HostAddressLen = 9;
	EXPECT(VipNSGetHostByAddr(e->nic, &address.net, text, &length), VIP_INVALID_PARAMETER);
	MUST(VipCloseNic(p.a.nic));
	MUST(VipCloseNic(p.b.nic));
	EXPECT(VipRecvDone(e->vi, &done), VIP_INVALID_PARAMETER);
}

/* Messages of one, several and no segments, short and long, with and without immediate data. */
static void messages(void)
{
	static const size_t lengths[] = { 0, 1, 64, 4096, 100000 };
	struct pair p;
	VIP_DESCRIPTOR *d, *done;

	open_pair(&p, 100000);
	post_receive(&p.b, 9, p.b.receive, 8); /* before the connection */
	connect_pair(&p);
	WANT(state_of(&p.a) == VIP_STATE_CONNECTED && state_of(&p.b) == VIP_STATE_CONNECTED);
	memcpy(p.a.send, "early", 5);
	post_send(&p.a, 0, p.a.send, 5);
	MUST(VipRecvWait(p.b.vi, TIMEOUT_MS, &done));
	WANT(done == &p.b.descriptors[9] && done->CS.Length == 5 && memcmp(p.b.receive, "early", 5) == 0);
	MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));
	WANT(done == &p.a.descriptors[0] && done->CS.Status == VIP_STATUS_DONE && done->CS.Length == 5);

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		size_t length = lengths[i];
		for (size_t at = 0; at < length; at++)
			p.a.send[at] = at * 13 + i;
		memset(p.b.receive, 0xee, length);
		for (int several = 0; several < 2; several++) {
			d = fill(&p.b, several, p.b.receive, length);
			if (several) {
				/* Three parts, the middle one empty; the third segment lies behind the 64 bytes. */
				d = fill(&p.b, 2, p.b.receive, length / 3);
				d->CS.SegCount = 3;
				d->DS[1].Local.Length = 0;
				VIP_DATA_SEGMENT *third = (VIP_DATA_SEGMENT *)(d + 1);
				third->Data.Address = p.b.receive + length / 3;
				third->Handle = p.b.handle;
				third->Length = length - length / 3;
			}
			MUST(VipPostRecv(p.b.vi, d, p.b.handle));
			VIP_DESCRIPTOR *s = fill(&p.a, 0, p.a.send, length / 2);
			s->CS.SegCount = 2;
			s->CS.Length = length;
			s->DS[1].Local.Data.Address = p.a.send + length / 2;
			s->DS[1].Local.Handle = p.a.handle;
			s->DS[1].Local.Length = length - length / 2;
			if (several) {
				s->CS.Control = VIP_CONTROL_IMMEDIATE;
				s->CS.ImmediateData = 0xdeadbeef - i;
			}
			MUST(VipPostSend(p.a.vi, s, p.a.handle));
			MUST(VipRecvWait(p.b.vi, TIMEOUT_MS, &done));
			WANT(done == d && d->CS.Length == length && memcmp(p.a.send, p.b.receive, length) == 0);
			VIP_UINT32 status = VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE;
			if (several) {
				status |= VIP_STATUS_IMMEDIATE;
				WANT(d->CS.ImmediateData == 0xdeadbeef - i);
			}
			WANT(d->CS.Status == status);
			MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));
			WANT(done == s && s->CS.Status == VIP_STATUS_DONE);
		}
	}
	/* Whoever only looks at the status word sees it change. */
	post_receive(&p.b, 0, p.b.receive, 8);
	post_send(&p.a, 0, p.a.send, 8);
	while (!(p.b.descriptors[0].CS.Status & VIP_STATUS_DONE) || !(p.a.descriptors[0].CS.Status & VIP_STATUS_DONE))
		;
	MUST(VipRecvDone(p.b.vi, &done));
	MUST(VipSendDone(p.a.vi, &done));
	/* In order, many at once, the newer spelling of a descriptor's members. */
	for (int i = 0; i < 20; i++) {
		d = fill(&p.b, i, p.b.receive + 8 * i, 8);
		WANT(d->Data[0].Length == 8 && d->Control.SegCount == 1);
		MUST(VipPostRecv(p.b.vi, d, p.b.handle));
	}
	for (int i = 0; i < 20; i++) {
		p.a.send[8 * i] = i;
		post_send(&p.a, i, p.a.send + 8 * i, 8);
	}
	for (int i = 0; i < 20; i++) {
		MUST(VipRecvWait(p.b.vi, TIMEOUT_MS, &done));
		WANT(done == &p.b.descriptors[i] && p.b.receive[8 * i] == i);
		MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));
		WANT(done == &p.a.descriptors[i]);
	}
	/* What is sent where nobody is connected is refused; what is posted to receive comes back. */
	post_receive(&p.b, 0, p.b.receive, 8);
	MUST(VipDisconnect(p.b.vi));
	WANT(state_of(&p.b) == VIP_STATE_IDLE);
	EXPECT(VipPostSend(p.b.vi, fill(&p.b, 1, p.b.send, 8), p.b.handle), VIP_INVALID_STATE);
	EXPECT(VipRecvDone(p.b.vi, &done), VIP_DESCRIPTOR_ERROR);
	while (state_of(&p.a) == VIP_STATE_CONNECTED)
		sleep_ms(1);
	WANT(state_of(&p.a) == VIP_STATE_ERROR);
	post_send(&p.a, 0, p.a.send, 8);
	EXPECT(VipSendDone(p.a.vi, &done), VIP_DESCRIPTOR_ERROR);
	WANT((done->CS.Status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_DESC_FLUSHED_ERROR);
	/* And again. */
	MUST(VipDisconnect(p.a.vi));
	post_receive(&p.b, 0, p.b.receive, 8);
	connect_pair(&p);
	post_send(&p.a, 0, p.a.send, 8);
	MUST(VipRecvWait(p.b.vi, TIMEOUT_MS, &done));
	MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));
	close_endpoint(&p.a);
	MUST(VipDisconnect(p.b.vi));
	MUST(VipCloseNic(p.b.nic));
}

/* RDMA write, with immediate data too, and read; what may not be reached is not. */
static void rdma(void)
{
	struct pair p;
	VIP_DESCRIPTOR *d, *done;

	open_pair(&p, 50000);
	connect_pair(&p);
	for (size_t at = 0; at < 50000; at++)
		p.a.send[at] = at * 5 + 3;
	d = fill_rdma(&p.a, 0, VIP_CONTROL_OP_RDMAWRITE, &p.b, p.b.receive, 50000);
	MUST(VipPostSend(p.a.vi, d, p.a.handle));
	MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));
	WANT(done == d && d->CS.Status == (VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE) && d->CS.Length == 50000);
	WANT(memcmp(p.a.send, p.b.receive, 50000) == 0);
	EXPECT(VipRecvDone(p.b.vi, &done), VIP_NOT_DONE);

	/* With immediate data it consumes a receive. */
	post_receive(&p.b, 1, p.b.send, 0);
	p.a.send[0] = 77;
	d = fill_rdma(&p.a, 0, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, &p.b, p.b.receive + 100, 1000);
	d->CS.ImmediateData = 4711;
	MUST(VipPostSend(p.a.vi, d, p.a.handle));
	MUST(VipRecvWait(p.b.vi, TIMEOUT_MS, &done));
	WANT(done == &p.b.descriptors[1] && done->CS.ImmediateData == 4711 && done->CS.Length == 1000);
	WANT(done->CS.Status == (VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE));
	WANT(p.b.receive[100] == 77);
	MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));

	/* A read, and a send that waits for it (fence). */
	memset(p.b.receive, 9, 50000);
	post_receive(&p.b, 1, p.b.send, 8);
	d = fill_rdma(&p.a, 2, VIP_CONTROL_OP_RDMAREAD, &p.b, p.b.receive, 40000);
	MUST(VipPostSend(p.a.vi, d, p.a.handle));
	VIP_DESCRIPTOR *fenced = fill(&p.a, 3, p.a.send, 8);
	fenced->CS.Control |= VIP_CONTROL_QFENCE;
	MUST(VipPostSend(p.a.vi, fenced, p.a.handle));
	MUST(VipRecvWait(p.b.vi, TIMEOUT_MS, &done));
	WANT(p.b.send[0] == 9 && p.b.send[7] == 9);
	MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));
	WANT(done == d && d->CS.Status == (VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ));
	WANT(p.a.send[0] == 9 && p.a.send[39999] == 9);
	MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));

	/* Beyond the region, unknown handles, no rights, another tag: nothing moves, and a reliable connection ends. */
	VIP_PROTECTION_HANDLE ptag;
	VIP_MEM_HANDLE hidden, tagged;
	static unsigned char secret[4096], other[4096];
	MUST(VipCreatePtag(p.b.nic, &ptag));
	VIP_MEM_ATTRIBUTES memory = { p.b.ptag, VIP_FALSE, VIP_FALSE };
	MUST(VipRegisterMem(p.b.nic, secret, sizeof secret, &memory, &hidden));
	memory.Ptag = ptag;
	memory.EnableRdmaWrite = memory.EnableRdmaRead = VIP_TRUE;
	MUST(VipRegisterMem(p.b.nic, other, sizeof other, &memory, &tagged));
	MUST(VipErrorCallback(p.a.nic, &error_count, on_error));
	for (int i = 0; i < 10; i++) {
		int op = i < 5 ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD;
		d = fill_rdma(&p.a, 0, op, &p.b, p.b.receive, 64);
		switch (i % 5) {
		case 0:
			d->DS[0].Remote.Data.Address = p.b.receive + 50000;
			break;
		case 1:
			d->DS[0].Remote.Handle += 4096;
			break;
		case 2:
			d->DS[0].Remote.Data.Address = secret, d->DS[0].Remote.Handle = hidden;
			break;
		case 3:
			d->DS[0].Remote.Data.Address = other, d->DS[0].Remote.Handle = tagged;
			break;
		case 4:
			d->DS[0].Remote.Handle = 0;
			break;
		}
		/* Bytes behind the buffer belong to the region as long as it is rounded up. */
		if (i % 5 == 0)
			d->DS[0].Remote.Data.Address = p.b.receive + 50048;
		error_count = 0;
		memset(p.a.send, 0x55, 64);
		MUST(VipPostSend(p.a.vi, d, p.a.handle));
		EXPECT(VipSendWait(p.a.vi, TIMEOUT_MS, &done), VIP_DESCRIPTOR_ERROR);
		WANT((d->CS.Status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_RDMA_PROT_ERROR);
		want_error(p.a.vi, i < 5 ? VIP_ERROR_RDMAW_PROT : VIP_ERROR_RDMAR_PROT);
		WANT(secret[0] == 0 && other[0] == 0 && p.a.send[0] == 0x55);
		WANT(state_of(&p.a) == VIP_STATE_ERROR);
		while (state_of(&p.b) == VIP_STATE_CONNECTED)
			sleep_ms(1);
		MUST(VipDisconnect(p.a.vi));
		MUST(VipDisconnect(p.b.vi));
		connect_pair(&p);
	}
	/* Rights that change are learned. */
	memory.Ptag = p.b.ptag;
	MUST(VipSetMemAttributes(p.b.nic, secret, hidden, &memory));
	d = fill_rdma(&p.a, 0, VIP_CONTROL_OP_RDMAWRITE, &p.b, secret, 64);
	d->DS[0].Remote.Handle = hidden;
	MUST(VipPostSend(p.a.vi, d, p.a.handle));
	MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));
	WANT(secret[0] == 0x55 && secret[63] == 0x55 && secret[64] == 0);
	MUST(VipCloseNic(p.a.nic));
	MUST(VipCloseNic(p.b.nic));
}

/* ---- Handlers --------------------------------------------------------------------------------------------------------------- */

static VIP_DESCRIPTOR *told_descriptors[8];
static int told_count, told_cq;

static void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d)
{
	(void)nic;
	(void)vi;
	pthread_mutex_lock(&told);
	WANT(context == (void *)&told_count);
	told_descriptors[told_count++] = d;
	pthread_mutex_unlock(&told);
}

static void on_queue(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN receives)
{
	VIP_DESCRIPTOR *d;
	(void)context;
	(void)nic;
	/* A handler may call the library. */
	MUST(receives ? VipRecvDone(vi, &d) : VipSendDone(vi, &d));
	pthread_mutex_lock(&told);
	told_cq++;
	pthread_mutex_unlock(&told);
}

static void want_count(int *counter, int count)
{
	for (int waited = 0; waited < 20000; waited += 5) {
		pthread_mutex_lock(&told);
		int known = *counter;
		pthread_mutex_unlock(&told);
		if (known == count)
			return;
		sleep_ms(5);
	}
	fprintf(stderr, "told %d times, not %d\n", *counter, count);
	exit(1);
}

/* One completion queue for several work queues. */
static void queues(void)
{
	struct pair p;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi[3], found;
	VIP_BOOLEAN receives;
	VIP_DESCRIPTOR *done;

	open_pair(&p, 4096);
	MUST(VipCreateCQ(p.a.nic, 100, &cq));
	VIP_VI_ATTRIBUTES attributes = { VIP_SERVICE_RELIABLE_RECEPTION, 4096, NULL, p.a.ptag, VIP_FALSE, VIP_FALSE };
	set_level(&p.b, VIP_SERVICE_RELIABLE_RECEPTION);
	VIP_VI_HANDLE first = p.b.vi;
	VIP_VI_HANDLE theirs[3];
	for (int i = 0; i < 3; i++) {
		MUST(VipCreateVi(p.a.nic, &attributes, i == 0 ? NULL : cq, cq, &vi[i]));
		attributes.Ptag = p.b.ptag;
		MUST(VipCreateVi(p.b.nic, &attributes, NULL, NULL, &theirs[i]));
		attributes.Ptag = p.a.ptag;
		p.a.vi = vi[i];
		p.b.vi = theirs[i];
		post_receive(&p.a, i, p.a.receive + 64 * i, 64);
		connect_pair(&p);
	}
	EXPECT(VipCQDone(cq, &found, &receives), VIP_NOT_DONE);
	EXPECT(VipCQWait(cq, 20, &found, &receives), VIP_TIMEOUT);
	int seen[3] = { 0 };
	for (int i = 2; i >= 0; i--) {
		p.b.vi = theirs[i];
		p.b.send[i] = 40 + i;
		post_send(&p.b, i, p.b.send + i, 1);
		MUST(VipSendWait(p.b.vi, TIMEOUT_MS, &done));
	}
	for (int i = 0; i < 3; i++) {
		MUST(VipCQWait(cq, TIMEOUT_MS, &found, &receives));
		WANT(receives);
		for (int v = 0; v < 3; v++) {
			if (found == vi[v]) {
				MUST(VipRecvDone(found, &done));
				WANT(done == &p.a.descriptors[v] && p.a.receive[64 * v] == 40 + v);
				seen[v]++;
			}
		}
	}
	WANT(seen[0] == 1 && seen[1] == 1 && seen[2] == 1);
	/* The send queue of the second VI completes there too, that of the first does not. */
	for (int i = 0; i < 2; i++) {
		p.b.vi = theirs[i];
		post_receive(&p.b, 10 + i, p.b.receive, 64);
		p.a.vi = vi[i];
		post_send(&p.a, 10 + i, p.a.send, 8);
	}
	MUST(VipCQWait(cq, TIMEOUT_MS, &found, &receives));
	WANT(found == vi[1] && !receives);
	MUST(VipSendDone(found, &done));
	EXPECT(VipCQDone(cq, &found, &receives), VIP_NOT_DONE);
	MUST(VipSendWait(vi[0], TIMEOUT_MS, &done));
	EXPECT(VipSendNotify(vi[1], NULL, on_descriptor), VIP_ERROR_RESOURCE);
	p.b.vi = first;
	MUST(VipCloseNic(p.a.nic));
	MUST(VipCloseNic(p.b.nic));
}

/* Handlers are called once for each registration, before and after the event, while the program does nothing. */
static void handlers(void)
{
	struct pair p;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;

	open_pair(&p, 4096);
	connect_pair(&p);
	MUST(VipRecvNotify(p.b.vi, &told_count, on_descriptor));
	post_receive(&p.b, 0, p.b.receive, 64);
	post_receive(&p.b, 1, p.b.receive, 64);
	post_send(&p.a, 0, p.a.send, 8);
	want_count(&told_count, 1);
	WANT(told_descriptors[0] == &p.b.descriptors[0]);
	post_send(&p.a, 1, p.a.send, 8);
	sleep_ms(50);
	WANT(told_count == 1);
	MUST(VipRecvNotify(p.b.vi, &told_count, on_descriptor));
	want_count(&told_count, 2);
	WANT(told_descriptors[1] == &p.b.descriptors[1]);
	MUST(VipSendNotify(p.a.vi, &told_count, on_descriptor));
	MUST(VipSendNotify(p.a.vi, &told_count, on_descriptor));
	want_count(&told_count, 4);
	WANT(told_descriptors[2] == &p.a.descriptors[0] && told_descriptors[3] == &p.a.descriptors[1]);

	VIP_VI_ATTRIBUTES attributes = { VIP_SERVICE_RELIABLE_DELIVERY, 4096, NULL, p.b.ptag, VIP_FALSE, VIP_FALSE };
	MUST(VipCreateCQ(p.b.nic, 10, &cq));
	MUST(VipCreateVi(p.b.nic, &attributes, cq, cq, &vi));
	MUST(VipDisconnect(p.a.vi));
	p.b.vi = vi;
	post_receive(&p.b, 3, p.b.receive, 64);
	connect_pair(&p);
	EXPECT(VipCQNotify(cq, NULL, NULL), VIP_INVALID_PARAMETER);
	MUST(VipCQNotify(cq, NULL, on_queue));
	post_send(&p.a, 4, p.a.send, 8);
	want_count(&told_cq, 1);
	MUST(VipCloseNic(p.a.nic));
	MUST(VipCloseNic(p.b.nic));
}

/* No receive: the connection of a reliable VI ends with the error of that name, an unreliable VI drops the message. Too short a receive:
 * length error. A peer that ends: connection lost. */
static void errors(void)
{
	struct pair p;
	VIP_DESCRIPTOR *done;

	open_pair(&p, 4096);
	MUST(VipErrorCallback(p.b.nic, &error_count, on_error));
	connect_pair(&p);
	post_send(&p.a, 0, p.a.send, 8);
	want_error(p.b.vi, VIP_ERROR_RECVQ_EMPTY);
	WANT(last_error.NicHandle == p.b.nic && last_error.ResourceCode == VIP_RESOURCE_VI);
	WANT(state_of(&p.b) == VIP_STATE_ERROR);
	post_receive(&p.b, 1, p.b.receive, 64);
	EXPECT(VipRecvDone(p.b.vi, &done), VIP_DESCRIPTOR_ERROR);
	while (state_of(&p.a) == VIP_STATE_CONNECTED)
		sleep_ms(1);
	MUST(VipDisconnect(p.a.vi));
	MUST(VipDisconnect(p.b.vi));
	while (VipSendDone(p.a.vi, &done) != VIP_NOT_DONE)
		;

	error_count = 0;
	post_receive(&p.b, 1, p.b.receive, 4);
	connect_pair(&p);
	post_send(&p.a, 0, p.a.send, 8);
	EXPECT(VipRecvWait(p.b.vi, TIMEOUT_MS, &done), VIP_DESCRIPTOR_ERROR);
	WANT((done->CS.Status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_LENGTH_ERROR);
	while (state_of(&p.a) == VIP_STATE_CONNECTED)
		sleep_ms(1);
	MUST(VipDisconnect(p.a.vi));
	MUST(VipDisconnect(p.b.vi));
	while (VipSendDone(p.a.vi, &done) != VIP_NOT_DONE)
		;

	set_level(&p.a, VIP_SERVICE_UNRELIABLE);
	set_level(&p.b, VIP_SERVICE_UNRELIABLE);
	connect_pair(&p);
	p.a.send[0] = 1;
	post_send(&p.a, 0, p.a.send, 8);
	MUST(VipSendWait(p.a.vi, TIMEOUT_MS, &done));
	for (int i = 0; i < 50; i++) {
		WANT(state_of(&p.b) == VIP_STATE_CONNECTED);
		sleep_ms(1);
	}
	p.a.send[8] = 2;
	post_receive(&p.b, 2, p.b.receive, 64);
	post_send(&p.a, 0, p.a.send + 8, 8);
	MUST(VipRecvWait(p.b.vi, TIMEOUT_MS, &done));
	WANT(p.b.receive[0] == 2); /* the first one was dropped */

	error_count = 0;
	MUST(VipCloseNic(p.a.nic));
	want_error(p.b.vi, VIP_ERROR_CONN_LOST);
	WANT(state_of(&p.b) == VIP_STATE_ERROR);
	MUST(VipErrorCallback(p.b.nic, NULL, NULL));
	MUST(VipCloseNic(p.b.nic));
}

static void *reject_thread(void *endpoint)
{
	struct endpoint *e = endpoint;
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE connection;

	make_address(e->nic, "0.0", "no", &local);
	MUST(VipConnectWait(e->nic, &local.net, TIMEOUT_MS, &remote.net, &theirs, &connection));
	WANT(remote.net.DiscriminatorLen == 2 && memcmp(remote.net.HostAddress + 6, "me", 2) == 0);
	WANT(theirs.ReliabilityLevel == VIP_SERVICE_UNRELIABLE && theirs.EnableRdmaWrite);
	/* Levels differ: this VI cannot take it, and the request is still there. */
	EXPECT(VipConnectAccept(connection, e->vi), VIP_INVALID_RELIABILITY_LEVEL);
	MUST(VipConnectReject(connection));
	EXPECT(VipConnectReject(connection), VIP_INVALID_PARAMETER);
	EXPECT(VipConnectAccept(connection, e->vi), VIP_INVALID_PARAMETER);
	return NULL;
}

/* Rejection, time-outs, and two peers that ask each other. */
static void connections(void)
{
	struct pair p;
	union address a, b, nobody;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE connection;
	pthread_t server;
	char name[64];

	open_pair(&p, 4096);
	own_name(&p.a, name, sizeof name);
	make_address(p.a.nic, name, "nobody listens here", &nobody);
	EXPECT(VipConnectWait(p.a.nic, &nobody.net, 30, &b.net, &theirs, &connection), VIP_TIMEOUT);
	make_address(p.b.nic, name, "me", &b);
	EXPECT(VipConnectRequest(p.b.vi, &b.net, &nobody.net, 100, &theirs), VIP_TIMEOUT);
	WANT(state_of(&p.b) == VIP_STATE_IDLE);
	b.net.HostAddressLen = 0;
	EXPECT(VipConnectRequest(p.b.vi, &b.net, &b.net, 100, &theirs), VIP_INVALID_PARAMETER);
	b.net.HostAddressLen = 6;

	set_level(&p.b, VIP_SERVICE_UNRELIABLE);
	WANT(!pthread_create(&server, NULL, reject_thread, &p.a));
	make_address(p.b.nic, name, "no", &a);
	EXPECT(VipConnectRequest(p.b.vi, &b.net, &a.net, TIMEOUT_MS, &theirs), VIP_REJECT);
	pthread_join(server, NULL);
	WANT(state_of(&p.b) == VIP_STATE_IDLE && state_of(&p.a) == VIP_STATE_IDLE);

	/* Peer to peer, whoever comes first; and with the names of the other's end point exchanged, so that both roles are played. */
	set_level(&p.b, VIP_SERVICE_RELIABLE_DELIVERY);
	make_address(p.a.nic, name, "left", &a);
	own_name(&p.b, name, sizeof name);
	make_address(p.b.nic, name, "right", &b);
	for (int round = 0; round < 4; round++) {
		struct endpoint *first = round % 2 ? &p.a : &p.b, *second = round % 2 ? &p.b : &p.a;
		union address *own = round % 2 ? &a : &b, *far = round % 2 ? &b : &a;
		MUST(VipConnectPeerRequest(first->vi, &own->net, &far->net, TIMEOUT_MS));
		EXPECT(VipConnectPeerDone(first->vi, &theirs), VIP_NOT_DONE);
		EXPECT(VipConnectPeerRequest(first->vi, &own->net, &far->net, TIMEOUT_MS), VIP_INVALID_STATE);
		WANT(state_of(first) == VIP_STATE_CONNECT_PENDING);
		if (round == 3) {
			/* Given up. */
			MUST(VipDisconnect(first->vi));
			WANT(state_of(first) == VIP_STATE_IDLE);
			/* Nobody of that name asks. */
			own->net.DiscriminatorLen = 3;
			MUST(VipConnectPeerRequest(second->vi, &far->net, &own->net, 100));
			EXPECT(VipConnectPeerWait(second->vi, &theirs), VIP_TIMEOUT);
			WANT(state_of(second) == VIP_STATE_IDLE);
			break;
		}
		MUST(VipConnectPeerRequest(second->vi, &far->net, &own->net, TIMEOUT_MS));
		MUST(VipConnectPeerWait(second->vi, &theirs));
		WANT(theirs.ReliabilityLevel == VIP_SERVICE_RELIABLE_DELIVERY);
		int returned;
		while ((returned = VipConnectPeerDone(first->vi, &theirs)) == VIP_NOT_DONE)
			sleep_ms(1);
		WANT(returned == VIP_SUCCESS);
		VIP_DESCRIPTOR *done;
		post_receive(second, 0, second->receive, 8);
		post_send(first, 0, first->send, 8);
		MUST(VipRecvWait(second->vi, TIMEOUT_MS, &done));
		MUST(VipSendWait(first->vi, TIMEOUT_MS, &done));
		MUST(VipDisconnect(first->vi));
		while (state_of(second) == VIP_STATE_CONNECTED)
			sleep_ms(1);
		MUST(VipDisconnect(second->vi));
	}
	EXPECT(VipConnectPeerRequest(p.a.vi, &b.net, &b.net, 100), VIP_SUCCESS);
	EXPECT(VipConnectPeerWait(p.a.vi, &theirs), VIP_TIMEOUT);
	own_name(&p.a, name, sizeof name);
	make_address(p.a.nic, name, "same", &a);
	EXPECT(VipConnectPeerRequest(p.a.vi, &a.net, &a.net, 100), VIP_INVALID_PARAMETER);
	MUST(VipCloseNic(p.a.nic));
	MUST(VipCloseNic(p.b.nic));
}

/* ---- Threads ---------------------------------------------------------------------------------------------------------------- */

static struct pair shared;
#define THREADS 4
static VIP_VI_HANDLE near_vi[THREADS], far_vi[THREADS];
static int posted_again[THREADS];

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *echo_thread(void *number)
{
	int i = (int)(intptr_t)number;
	VIP_DESCRIPTOR *done;
	for (int round = 0; round < 100; round++) {
		MUST(VipRecvWait(far_vi[i], TIMEOUT_MS, &done));
		WANT(done == &shared.b.descriptors[i]);
		WANT(shared.b.receive[64 * i] == (unsigned char)(round + i));
		done->CS.Status = 0;
		MUST(VipPostRecv(far_vi[i], done, shared.b.handle));
		__atomic_store_n(&posted_again[i], round + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void *send_thread(void *number)
{
	int i = (int)(intptr_t)number;
	VIP_DESCRIPTOR *done;
	for (int round = 0; round < 100; round++) {
		VIP_DESCRIPTOR *d = fill(&shared.a, i, shared.a.send + 64 * i, 8);
		shared.a.send[64 * i] = round + i;
		/* A message that overtakes the next receive would end the connection. */
		while (__atomic_load_n(&posted_again[i], __ATOMIC_ACQUIRE) < round)
			sleep_ms(1);
		MUST(VipPostSend(near_vi[i], d, shared.a.handle));
		MUST(VipSendWait(near_vi[i], TIMEOUT_MS, &done));
	}
	return NULL;
}

static void *waiting_thread(void *vi)
{
	VIP_DESCRIPTOR *done;
	double before = cpu_seconds();
	EXPECT(VipRecvWait(vi, 400, &done), VIP_TIMEOUT);
	/* It slept: a thread that spins would have used most of 400 ms. */
	WANT(cpu_seconds() - before < 0.2);
	return NULL;
}

static void *interrupted_thread(void *vi)
{
	VIP_DESCRIPTOR *done;
	EXPECT(VipRecvWait(vi, VIP_INFINITE, &done), VIP_INVALID_PARAMETER);
	return NULL;
}

/* Several threads wait at one NIC, each at its VI; waiting sleeps; closing ends all waits. */
static void threads(void)
{
	pthread_t senders[THREADS], receivers[THREADS], waiter, last;
	VIP_VI_ATTRIBUTES attributes = { VIP_SERVICE_RELIABLE_DELIVERY, 4096, NULL, NULL, VIP_FALSE, VIP_FALSE };

	open_pair(&shared, 4096);
	for (int i = 0; i < THREADS; i++) {
		attributes.Ptag = shared.a.ptag;
		MUST(VipCreateVi(shared.a.nic, &attributes, NULL, NULL, &near_vi[i]));
		attributes.Ptag = shared.b.ptag;
		MUST(VipCreateVi(shared.b.nic, &attributes, NULL, NULL, &far_vi[i]));
		shared.a.vi = near_vi[i];
		shared.b.vi = far_vi[i];
		post_receive(&shared.b, i, shared.b.receive + 64 * i, 64);
		connect_pair(&shared);
	}
	for (int i = 0; i < THREADS; i++) {
		WANT(!pthread_create(&receivers[i], NULL, echo_thread, (void *)(intptr_t)i));
		WANT(!pthread_create(&senders[i], NULL, send_thread, (void *)(intptr_t)i));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(senders[i], NULL);
		pthread_join(receivers[i], NULL);
	}
	WANT(!pthread_create(&waiter, NULL, waiting_thread, near_vi[0]));
	pthread_join(waiter, NULL);
	WANT(!pthread_create(&last, NULL, interrupted_thread, near_vi[1]));
	sleep_ms(50);
	MUST(VipCloseNic(shared.a.nic));
	pthread_join(last, NULL);
	MUST(VipCloseNic(shared.b.nic));
}

/* The table of registered memory is in the program, to be read only; a child of the program is told that nothing is its own. */
static void table(void)
{
	struct pair p;
	char line[512];
	unsigned char *start = NULL;
	int mappings = 0, status;
	FILE *maps;

	open_pair(&p, 4096);
	maps = fopen("/proc/self/maps", "r");
	WANT(maps);
	while (fgets(line, sizeof line, maps)) {
		unsigned long from;
		char rights[8];
		if (strstr(line, "bellwire-rmmt") && sscanf(line, "%lx-%*x %7s", &from, rights) == 2) {
			WANT(strcmp(rights, "r--s") == 0);
			start = (unsigned char *)from;
			mappings++;
		}
	}
	fclose(maps);
	WANT(mappings == 2); /* one of each NIC */
	pid_t child = fork();
	if (child == 0) {
		*(volatile unsigned char *)start = 1;
		_exit(0);
	}
	WANT(waitpid(child, &status, 0) == child);
	WANT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	child = fork();
	if (child == 0) {
		VIP_DESCRIPTOR *done;
		EXPECT(VipRecvDone(p.a.vi, &done), VIP_INVALID_PARAMETER);
		EXPECT(VipCloseNic(p.a.nic), VIP_INVALID_PARAMETER);
		_exit(0);
	}
	WANT(waitpid(child, &status, 0) == child);
	WANT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	MUST(VipCloseNic(p.a.nic));
	MUST(VipCloseNic(p.b.nic));
}

/* A child, made while its parent has a NIC, opens one of its own; when it is killed, the parent is told, and what it posted comes back. */
static void death(void)
{
	struct endpoint e, child;
	VIP_DESCRIPTOR *done;
	char name[64];
	int status;

	open_endpoint(&e, device, 4096);
	MUST(VipErrorCallback(e.nic, &error_count, on_error));
	post_receive(&e, 0, e.receive, 64);
	post_receive(&e, 1, e.receive, 64);
	own_name(&e, name, sizeof name);
	pid_t pid = fork();
	if (pid == 0) {
		open_endpoint(&child, device, 4096);
		call(&child, name, "calls");
		post_send(&child, 0, child.send, 8);
		MUST(VipSendWait(child.vi, TIMEOUT_MS, &done));
		raise(SIGKILL);
	}
	serve(&e, "calls");
	MUST(VipRecvWait(e.vi, TIMEOUT_MS, &done)); /* what it sent before is here */
	want_error(e.vi, VIP_ERROR_CONN_LOST);
	WANT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	EXPECT(VipRecvWait(e.vi, TIMEOUT_MS, &done), VIP_DESCRIPTOR_ERROR);
	WANT(done == &e.descriptors[1] && (done->CS.Status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_DESC_FLUSHED_ERROR);
	WANT(state_of(&e) == VIP_STATE_ERROR);
	close_endpoint(&e);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "objects", objects },   { "misuse", misuse }, { "messages", messages },       { "rdma", rdma },
		      { "queues", queues },     { "handlers", handlers }, { "errors", errors },       { "connections", connections },
		      { "threads", threads },   { "table", table },
		      { "death", death } };

	device = argc == 3 ? argv[2] : "shm:calls";
	for (size_t i = 0; argc >= 2 && i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: %s CASE [DEVICE]\n", argv[0]);
	return 2;
}
