/* Sends, receives, and RDMA. */
#include "calls.h"

/* Messages of zero, one and several segments, short and long, with and without immediate data. */
void messages(void)
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
				/* Three parts, the middle one empty; the third segment lies past the 64 bytes. */
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
	/* A program that only polls the status word sees it change. */
	post_receive(&p.b, 0, p.b.receive, 8);
	post_send(&p.a, 0, p.a.send, 8);
	while (!(p.b.descriptors[0].CS.Status & VIP_STATUS_DONE) || !(p.a.descriptors[0].CS.Status & VIP_STATUS_DONE))
		;
	MUST(VipRecvDone(p.b.vi, &done));
	MUST(VipSendDone(p.a.vi, &done));
	/* In order, many at once, with the newer spelling of a descriptor's members. */
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
	/* A send without a connection is refused; a posted receive comes back. */
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
	/* Connect again. */
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

/* RDMA write (also with immediate data) and read; forbidden accesses move nothing. */
void rdma(void)
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

	/* Beyond the region, unknown handles, no rights, another tag: nothing moves, and a reliable
	 * connection ends. */
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
		/* A region is rounded up, so bytes past the buffer may belong to it. */
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
	/* Peers notice changed rights. */
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
