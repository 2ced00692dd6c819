/* Each function refuses invalid arguments. */
#include "calls.h"

/* Null, invented and stale handles, and invalid arguments. */
void misuse(void)
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

	/* Missing places for results. */
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

	/* Attributes that no VI can have. */
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

	/* Memory that is not mapped, not writable, or not of this NIC. */
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

	/* Invalid descriptors: the post fails. */
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

	/* Descriptors with faulty content complete with the reason. */
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
		/* A receive can use the registered part. */
		if (i == 1)
			continue;
		MUST(VipPostRecv(e->vi, d, e->handle));
		EXPECT(VipRecvWait(e->vi, TIMEOUT_MS, &done), VIP_DESCRIPTOR_ERROR);
	}
	WANT(state_of(e) == VIP_STATE_CONNECTED);
	/* Memory that a posted descriptor uses stays registered; a VI with a posted descriptor is not
	 * destroyed. */
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
