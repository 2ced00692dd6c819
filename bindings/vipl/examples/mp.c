/* See mp.h. SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "mp.h"
#include "example.h"

#define SLOTS 16   /* receives posted for each rank */
#define RESERVED 2 /* of these, for messages that give credits back */
#define EAGER 2048 /* longer messages go by RDMA */

enum kind { SHORT, ASK, PLACE, WRITTEN, CREDIT };

struct head {
	/* credits: returned; number: the sender's number of a long message */
	int kind, tag, credits, number;
	unsigned long length, address;
	VIP_MEM_HANDLE handle;
};

struct slot {
	VIP_DESCRIPTOR d;
	struct head head;
	unsigned char bytes[EAGER];
} __attribute__((aligned(64)));

struct rank {
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE handle;
	struct slot *receives, *sends;
	int next_send, under_way; /* sends posted and not yet fetched */
	int gone;
	int credits, owed; /* free receives at the peer; receives reposted here, not yet announced */
};

/* A message that no mp_receive has taken yet, or the answer to a long one. */
struct waiting {
	struct waiting *next;
	int from;
	struct head head;
	unsigned char bytes[EAGER];
};

static int me, ranks, numbers;
static VIP_NIC_HANDLE nic;
static VIP_PROTECTION_HANDLE ptag;
static VIP_CQ_HANDLE arrivals;
static struct rank peers[MP_RANKS];
static struct waiting *first, **last = &first;

static void post(struct rank *r, struct slot *slot)
{
	memset(&slot->d, 0, sizeof slot->d);
	slot->d.CS.SegCount = 1;
	slot->d.CS.Length = sizeof slot->head + EAGER;
	slot->d.DS[0].Local.Data.Address = &slot->head;
	slot->d.DS[0].Local.Handle = r->handle;
	slot->d.DS[0].Local.Length = sizeof slot->head + EAGER;
	MUST(VipPostRecv(r->vi, &slot->d, r->handle));
}

static void fetch_send(struct rank *r)
{
	VIP_DESCRIPTOR *done;
	MUST(VipSendWait(r->vi, TIMEOUT_MS, &done));
	r->under_way--;
}

static void transmit(int to, struct head head, const void *bytes, size_t length)
{
	struct rank *r = &peers[to];
	struct slot *slot = &r->sends[r->next_send];

	while (r->under_way == SLOTS)
		fetch_send(r);
	r->next_send = (r->next_send + 1) % SLOTS;
	r->under_way++;
	head.credits = r->owed;
	r->owed = 0;
	memset(&slot->d, 0, sizeof slot->d);
	slot->head = head;
	if (length)
		memcpy(slot->bytes, bytes, length);
	slot->d.CS.SegCount = 1;
	slot->d.CS.Length = sizeof head + length;
	slot->d.DS[0].Local.Data.Address = &slot->head;
	slot->d.DS[0].Local.Handle = r->handle;
	slot->d.DS[0].Local.Length = sizeof head + length;
	MUST(VipPostSend(r->vi, &slot->d, r->handle));
}

/* Waits for the next message and takes it in. */
static void take_in(void)
{
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN receives;
	VIP_DESCRIPTOR *d;
	int from = 0;

	MUST(VipCQWait(arrivals, TIMEOUT_MS, &vi, &receives));
	while (peers[from].vi != vi)
		from++;
	if (VipRecvDone(vi, &d) != VIP_SUCCESS) {
		/* The peer has closed: a rank closes once it is past the last barrier. Messages still missing
		 * come from other ranks. */
		peers[from].gone = 1;
		return;
	}
	struct rank *r = &peers[from];
	struct slot *slot = (struct slot *)d;
	r->credits += slot->head.credits;
	if (slot->head.kind != CREDIT) {
		struct waiting *w = malloc(sizeof *w);
		w->next = NULL;
		w->from = from;
		w->head = slot->head;
		memcpy(w->bytes, slot->bytes, slot->head.kind == SHORT ? slot->head.length : 0);
		*last = w;
		last = &w->next;
		r->owed++;
	}
	post(r, slot);
	if (r->owed >= SLOTS / 2 && !r->gone)
		transmit(from, (struct head){ .kind = CREDIT }, NULL, 0);
}

/* Finds the oldest waiting message with one of these kinds, this source and tag; waits until there
 * is one. */
static struct waiting *find(int from, int tag, int number, int kinds)
{
	for (;;) {
		for (struct waiting **at = &first; *at; at = &(*at)->next) {
			struct waiting *w = *at;
			if ((kinds >> w->head.kind & 1) && (from == MP_ANY || w->from == from) &&
			    (tag == MP_ANY || w->head.tag == tag) && (number == MP_ANY || w->head.number == number)) {
				*at = w->next;
				if (last == &w->next)
					last = at;
				return w;
			}
		}
		take_in();
	}
}

static void transmit_paid(int to, struct head head, const void *bytes, size_t length)
{
	while (peers[to].credits == 0)
		take_in();
	peers[to].credits--;
	transmit(to, head, bytes, length);
}

void mp_send(int to, int tag, const void *bytes, size_t length)
{
	VIP_MEM_ATTRIBUTES memory = { ptag, VIP_FALSE, VIP_FALSE };
	VIP_MEM_HANDLE handle;
	struct head head = { .kind = SHORT, .tag = tag, .number = numbers, .length = length };

	if (length <= EAGER) {
		transmit_paid(to, head, bytes, length);
		return;
	}
	head.kind = ASK;
	head.number = ++numbers;
	transmit_paid(to, head, NULL, 0);
	struct waiting *place = find(to, MP_ANY, head.number, 1 << PLACE);
	MUST(VipRegisterMem(nic, (void *)bytes, length, &memory, &handle));
	struct rank *r = &peers[to];
	while (r->under_way)
		fetch_send(r);
	struct slot *slot = &r->sends[r->next_send];
	memset(&slot->d, 0, sizeof slot->d);
	slot->d.CS.SegCount = 2;
	slot->d.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
	slot->d.CS.Length = length;
	slot->d.DS[0].Remote.Data.AddressBits = place->head.address;
	slot->d.DS[0].Remote.Handle = place->head.handle;
	slot->d.DS[1].Local.Data.Address = (void *)bytes;
	slot->d.DS[1].Local.Handle = handle;
	slot->d.DS[1].Local.Length = length;
	MUST(VipPostSend(r->vi, &slot->d, r->handle));
	r->under_way++;
	fetch_send(r);
	MUST(VipDeregisterMem(nic, (void *)bytes, handle));
	free(place);
	head.kind = WRITTEN;
	transmit_paid(to, head, NULL, 0);
}

size_t mp_receive(int from, int tag, void *bytes, size_t room, int *source, int *its_tag)
{
	struct waiting *w = find(from, tag, MP_ANY, 1 << SHORT | 1 << ASK);
	size_t length = w->head.length;

	if (length > room) {
		fprintf(stderr, "%zu bytes came, and there is room for %zu\n", length, room);
		exit(1);
	}
	if (source)
		*source = w->from;
	if (its_tag)
		*its_tag = w->head.tag;
	if (w->head.kind == SHORT) {
		memcpy(bytes, w->bytes, length);
	} else {
		VIP_MEM_ATTRIBUTES memory = { ptag, VIP_TRUE, VIP_FALSE };
		struct head place = { .kind = PLACE, .number = w->head.number, .address = (unsigned long)bytes };
		MUST(VipRegisterMem(nic, bytes, length, &memory, &place.handle));
		transmit_paid(w->from, place, NULL, 0);
		free(find(w->from, MP_ANY, w->head.number, 1 << WRITTEN));
		MUST(VipDeregisterMem(nic, bytes, place.handle));
	}
	free(w);
	return length;
}

/* Collectives are messages along a binomial tree, with tags that no program uses. */
enum { TAG_UP = -1000, TAG_DOWN };

static void gather_up(double *values, int count)
{
	double theirs[count > 0 ? count : 1];
	for (int step = 1; step < ranks; step *= 2) {
		if (me & step) {
			mp_send(me - step, TAG_UP, values, count * sizeof *values);
			return;
		}
		if (me + step < ranks) {
			mp_receive(me + step, TAG_UP, theirs, count * sizeof *values, NULL, NULL);
			for (int i = 0; i < count; i++)
				values[i] += theirs[i];
		}
	}
}

void mp_broadcast(int root, void *bytes, size_t length)
{
	int place = (me - root + ranks) % ranks, step = 1;

	while (step < ranks && !(place & step))
		step *= 2;
	if (place)
		mp_receive((place - step + root) % ranks, TAG_DOWN, bytes, length, NULL, NULL);
	for (step /= 2; step > 0; step /= 2)
		if (place + step < ranks)
			mp_send((place + step + root) % ranks, TAG_DOWN, bytes, length);
}

void mp_sum(double *values, int count)
{
	gather_up(values, count);
	mp_broadcast(0, values, count * sizeof *values);
}

void mp_barrier(void)
{
	gather_up(NULL, 0);
	mp_broadcast(0, NULL, 0);
}

/* The end point of `rank` for `other`. */
static void name_end(int rank, int other, const char *host, union address *address)
{
	char name[128], discriminator[32];
	snprintf(name, sizeof name, host, rank);
	snprintf(discriminator, sizeof discriminator, "mp %d for %d", rank, other);
	make_address(nic, name, discriminator, address);
}

void mp_open(int rank, int count, const char *device, const char *host)
{
	VIP_MEM_ATTRIBUTES memory = { NULL, VIP_FALSE, VIP_FALSE };
	VIP_VI_ATTRIBUTES attributes = { VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL, VIP_TRUE, VIP_FALSE }, theirs;
	VIP_NIC_ATTRIBUTES limits;
	union address own, far;
	char name[128];

	me = rank;
	ranks = count;
	snprintf(name, sizeof name, device, rank);
	MUST(VipOpenNic(name, &nic));
	MUST(VipNSInit(nic, NULL));
	MUST(VipQueryNic(nic, &limits));
	MUST(VipCreatePtag(nic, &ptag));
	MUST(VipCreateCQ(nic, SLOTS * MP_RANKS, &arrivals));
	memory.Ptag = attributes.Ptag = ptag;
	attributes.MaxTransferSize = limits.MaxTransferSize;
	for (int other = 0; other < count; other++) {
		struct rank *r = &peers[other];
		size_t bytes = 2 * SLOTS * sizeof(struct slot);
		if (other == me)
			continue;
		if (posix_memalign((void **)&r->receives, 64, bytes))
			exit(1);
		memset(r->receives, 0, bytes);
		r->sends = r->receives + SLOTS;
		r->credits = SLOTS - RESERVED;
		MUST(VipRegisterMem(nic, r->receives, bytes, &memory, &r->handle));
		MUST(VipCreateVi(nic, &attributes, NULL, arrivals, &r->vi));
		for (int slot = 0; slot < SLOTS; slot++)
			post(r, &r->receives[slot]);
	}
	/* All requests first, then all waits: a program of many ranks does the same. */
	for (int other = 0; other < count; other++) {
		if (other == me)
			continue;
		/* A number also names a rank that has not started; a host name is looked up until it resolves. */
		name_end(me, other, host, &own);
		name_end(other, me, host, &far);
		MUST(VipConnectPeerRequest(peers[other].vi, &own.net, &far.net, TIMEOUT_MS));
	}
	for (int other = 0; other < count; other++)
		if (other != me)
			MUST(VipConnectPeerWait(peers[other].vi, &theirs));
}

void mp_close(void)
{
	mp_barrier();
	/* Wait for the last sends: each completes, or fails because its receiver has closed with the
	 * message in hand. */
	for (int other = 0; other < ranks; other++) {
		VIP_DESCRIPTOR *done;
		for (; other != me && peers[other].under_way; peers[other].under_way--)
			VipSendWait(peers[other].vi, TIMEOUT_MS, &done);
	}
	MUST(VipCloseNic(nic));
	for (int other = 0; other < ranks; other++)
		free(peers[other].receives);
}
