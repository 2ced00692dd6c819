/* What the examples share: an end point with buffers, and two ways to connect it.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>

/* Ends the program if a call does not return VIP_SUCCESS. */
#define MUST(call)                                                                                                        \
	do {                                                                                                              \
		VIP_RETURN returned_ = (call);                                                                            \
		if (returned_ != VIP_SUCCESS) {                                                                           \
			fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, (int)returned_);            \
			exit(1);                                                                                          \
		}                                                                                                         \
	} while (0)

#define DESCRIPTORS 64
#define TIMEOUT_MS 20000

struct endpoint {
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES limits;
	VIP_PROTECTION_HANDLE ptag;
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE handle;
	/* One registered block: descriptors, then the bytes to send, then those received. */
	VIP_DESCRIPTOR *descriptors;
	unsigned char *send, *receive;
	size_t bytes;
};

/* A network address with room for everything. */
union address {
	VIP_NET_ADDRESS net;
	unsigned char room[128];
};

/* host: "NODE.FUNCTION", or a name that the device knows. */
static inline void make_address(VIP_NIC_HANDLE nic, const char *host, const char *discriminator, union address *address)
{
	size_t length = strlen(discriminator);
	memset(address, 0, sizeof *address);
	MUST(VipNSGetHostByName(nic, (char *)host, &address->net, 0));
	address->net.DiscriminatorLen = length;
	memcpy(&address->room[offsetof(VIP_NET_ADDRESS, HostAddress) + address->net.HostAddressLen], discriminator, length);
}

/* Our own address as text. */
static inline void own_name(struct endpoint *e, char *name, VIP_ULONG length)
{
	union address own;
	memset(&own, 0, sizeof own);
	own.net.HostAddressLen = e->limits.NicAddressLen;
	memcpy(&own.room[offsetof(VIP_NET_ADDRESS, HostAddress)], e->limits.LocalNicAddress, e->limits.NicAddressLen);
	MUST(VipNSGetHostByAddr(e->nic, &own.net, name, &length));
}

static inline void open_endpoint(struct endpoint *e, const char *device, size_t bytes)
{
	VIP_MEM_ATTRIBUTES memory = { NULL, VIP_TRUE, VIP_TRUE };
	VIP_VI_ATTRIBUTES vi = { VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL, VIP_TRUE, VIP_TRUE };
	size_t room = (bytes + 63) / 64 * 64, total = DESCRIPTORS * sizeof(VIP_DESCRIPTOR) + 2 * room;
	void *block = NULL;

	MUST(VipOpenNic(device, &e->nic));
	MUST(VipNSInit(e->nic, NULL));
	MUST(VipQueryNic(e->nic, &e->limits));
	MUST(VipCreatePtag(e->nic, &e->ptag));
	if (posix_memalign(&block, VIP_DESCRIPTOR_ALIGNMENT, total))
		exit(1);
	memset(block, 0, total);
	memory.Ptag = vi.Ptag = e->ptag;
	vi.MaxTransferSize = e->limits.MaxTransferSize;
	MUST(VipRegisterMem(e->nic, block, total, &memory, &e->handle));
	MUST(VipCreateVi(e->nic, &vi, NULL, NULL, &e->vi));
	e->descriptors = block;
	e->send = (unsigned char *)block + DESCRIPTORS * sizeof(VIP_DESCRIPTOR);
	e->receive = e->send + room;
	e->bytes = bytes;
}

static inline void close_endpoint(struct endpoint *e)
{
	VIP_DESCRIPTOR *done;
	VIP_RETURN returned;

	MUST(VipDisconnect(e->vi));
	/* Receives that were never filled come back flushed. */
	while ((returned = VipRecvDone(e->vi, &done)) == VIP_SUCCESS || returned == VIP_DESCRIPTOR_ERROR)
		;
	MUST(VipDestroyVi(e->vi));
	MUST(VipDeregisterMem(e->nic, e->descriptors, e->handle));
	free(e->descriptors);
	MUST(VipDestroyPtag(e->nic, e->ptag));
	MUST(VipNSShutdown(e->nic));
	MUST(VipCloseNic(e->nic));
}

/* Fills descriptor `number` with one data segment. */
static inline VIP_DESCRIPTOR *fill(struct endpoint *e, int number, void *bytes, size_t length)
{
	VIP_DESCRIPTOR *d = &e->descriptors[number];
	memset(d, 0, sizeof *d);
	d->CS.SegCount = 1;
	d->CS.Control = VIP_CONTROL_OP_SENDRECV;
	d->CS.Length = length;
	d->DS[0].Local.Data.Address = bytes;
	d->DS[0].Local.Handle = e->handle;
	d->DS[0].Local.Length = length;
	return d;
}

static inline void serve(struct endpoint *e, const char *discriminator)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE connection;
	char name[64];

	own_name(e, name, sizeof name);
	make_address(e->nic, name, discriminator, &local);
	MUST(VipConnectWait(e->nic, &local.net, TIMEOUT_MS, &remote.net, &theirs, &connection));
	MUST(VipConnectAccept(connection, e->vi));
}

static inline void call(struct endpoint *e, const char *host, const char *discriminator)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	char name[64];

	own_name(e, name, sizeof name);
	make_address(e->nic, name, "", &local);
	make_address(e->nic, host, discriminator, &remote);
	MUST(VipConnectRequest(e->vi, &local.net, &remote.net, TIMEOUT_MS, &theirs));
}

/* Runs one side in a process, or both in the threads of one. */
struct sides {
	void (*server)(const char *device, void (*ready)(const char *host));
	void (*client)(const char *device, const char *host);
};
int run_sides(int argc, char **argv, struct sides sides);

#endif
