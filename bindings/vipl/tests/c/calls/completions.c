/* Completion queues, and handlers of completions. */
#include "calls.h"

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
void queues(void)
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
	/* The send queue of the second VI completes there too; the first VI's does not. */
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

/* Handlers are called once for each registration, before and after the event, while the program
 * does nothing. */
void handlers(void)
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
