/* A client and a server as they were written for the cards of 1998 to 2005: C89, one file, only
 * vipl.h. They use another library's device name, host names, a completion queue at the server, and
 * credits counted by hand. The server puts each result into the client's memory by RDMA write with
 * immediate data.
 * Usage: period server | period client HOST */
#define VIPL095
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>

#define DEVICE "/dev/clanvi0"
#define PORT "squares"
#define CREDITS 8
#define REQUESTS 200
#define MESSAGE 256

#define CHECK(call, wanted)                                                                      \
	if ((rc = (call)) != (wanted)) {                                                         \
		fprintf(stderr, "%s: %d in line %d\n", #call, (int)rc, __LINE__);                \
		exit(1);                                                                         \
	}

typedef struct {
	VIP_DESCRIPTOR descriptor;
	char bytes[MESSAGE];
} slot_t;

/* A client's request: the squares of `count` numbers from `first` on, to be written to its
 * memory. */
typedef struct {
	VIP_UINT32 first, count;
	VIP_PVOID64 result;
	VIP_MEM_HANDLE handle;
} request_t;

static VIP_RETURN rc;
static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attributes;
static VIP_PROTECTION_HANDLE tag;
static VIP_MEM_HANDLE handle;
static VIP_VI_HANDLE vi;
static VIP_CQ_HANDLE cq;
static slot_t *slots; /* CREDITS to receive, one to send */

static void failed(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	/* The server ends when its client goes away. */
	if (error->ErrorCode == VIP_ERROR_CONN_LOST)
		return;
	fprintf(stderr, "%s: error %d\n", (char *)context, (int)error->ErrorCode);
	exit(1);
}

static VIP_NET_ADDRESS *address_of(char *host)
{
	VIP_NET_ADDRESS *address;

	address = (VIP_NET_ADDRESS *)malloc(sizeof(VIP_NET_ADDRESS) + 64);
	memset(address, 0, sizeof(VIP_NET_ADDRESS) + 64);
	if (host) {
		CHECK(VipNSGetHostByName(nic, host, address, 0), VIP_SUCCESS);
	} else {
		address->HostAddressLen = nic_attributes.NicAddressLen;
		memcpy(address->HostAddress, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen);
	}
	address->DiscriminatorLen = strlen(PORT);
	memcpy(address->HostAddress + address->HostAddressLen, PORT, strlen(PORT));
	return address;
}

static void open_nic(char *who)
{
	VIP_MEM_ATTRIBUTES memory;
	VIP_VI_ATTRIBUTES attributes;
	char *block;

	CHECK(VipOpenNic(DEVICE, &nic), VIP_SUCCESS);
	CHECK(VipErrorCallback(nic, who, failed), VIP_SUCCESS);
	CHECK(VipQueryNic(nic, &nic_attributes), VIP_SUCCESS);
	CHECK(VipNSInit(nic, NULL), VIP_SUCCESS);
	CHECK(VipCreatePtag(nic, &tag), VIP_SUCCESS);
	memset(&memory, 0, sizeof(memory));
	memory.Ptag = tag;
	memory.EnableRdmaWrite = VIP_TRUE;
	block = (char *)malloc((CREDITS + 1) * sizeof(slot_t) + VIP_DESCRIPTOR_ALIGNMENT);
	block += VIP_DESCRIPTOR_ALIGNMENT - (unsigned long)block % VIP_DESCRIPTOR_ALIGNMENT;
	slots = (slot_t *)block;
	CHECK(VipRegisterMem(nic, slots, (CREDITS + 1) * sizeof(slot_t), &memory, &handle), VIP_SUCCESS);
	CHECK(VipCreateCQ(nic, 2 * CREDITS, &cq), VIP_SUCCESS);
	memset(&attributes, 0, sizeof(attributes));
	attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	attributes.MaxTransferSize = MESSAGE;
	attributes.Ptag = tag;
	attributes.EnableRdmaWrite = VIP_TRUE;
	CHECK(VipCreateVi(nic, &attributes, NULL, cq, &vi), VIP_SUCCESS);
}

static void post_receive(slot_t *slot)
{
	memset(&slot->descriptor, 0, sizeof(VIP_DESCRIPTOR));
	slot->descriptor.CS.Control = VIP_CONTROL_OP_SENDRECV;
	slot->descriptor.CS.SegCount = 1;
	slot->descriptor.CS.Length = MESSAGE;
	slot->descriptor.DS[0].Local.Data.Address = slot->bytes;
	slot->descriptor.DS[0].Local.Handle = handle;
	slot->descriptor.DS[0].Local.Length = MESSAGE;
	CHECK(VipPostRecv(vi, &slot->descriptor, handle), VIP_SUCCESS);
}

/* The slot of the next message, found through the completion queue. */
static slot_t *next_message(void)
{
	VIP_VI_HANDLE which;
	VIP_BOOLEAN receives;
	VIP_DESCRIPTOR *done;

	CHECK(VipCQWait(cq, VIP_INFINITE, &which, &receives), VIP_SUCCESS);
	if (which != vi || !receives)
		exit(1);
	if (VipRecvDone(which, &done) != VIP_SUCCESS)
		return NULL;
	return (slot_t *)done;
}

static void send_and_wait(slot_t *slot)
{
	VIP_DESCRIPTOR *done;

	CHECK(VipPostSend(vi, &slot->descriptor, handle), VIP_SUCCESS);
	while ((rc = VipSendDone(vi, &done)) == VIP_NOT_DONE)
		;
	if (rc != VIP_SUCCESS || done != &slot->descriptor || !(done->CS.Status & VIP_STATUS_DONE))
		exit(1);
}

static void server(void)
{
	VIP_NET_ADDRESS *local, *remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE connection;
	slot_t *slot, *out;
	request_t request;
	VIP_UINT32 i, *squares;

	open_nic("server");
	local = address_of(NULL);
	remote = address_of(NULL);
	for (i = 0; i < CREDITS; i++)
		post_receive(&slots[i]);
	out = &slots[CREDITS];
	printf("ready\n");
	fflush(stdout);
	CHECK(VipConnectWait(nic, local, VIP_INFINITE, remote, &theirs, &connection), VIP_SUCCESS);
	CHECK(VipConnectAccept(connection, vi), VIP_SUCCESS);
	while ((slot = next_message()) != NULL) {
		memcpy(&request, slot->bytes, sizeof(request));
		post_receive(slot);
		squares = (VIP_UINT32 *)out->bytes;
		for (i = 0; i < request.count; i++)
			squares[i] = (request.first + i) * (request.first + i);
		memset(&out->descriptor, 0, sizeof(VIP_DESCRIPTOR));
		out->descriptor.CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
		out->descriptor.CS.SegCount = 2;
		out->descriptor.CS.Length = 4 * request.count;
		out->descriptor.CS.ImmediateData = request.first;
		out->descriptor.DS[0].Remote.Data = request.result;
		out->descriptor.DS[0].Remote.Handle = request.handle;
		out->descriptor.DS[1].Local.Data.Address = out->bytes;
		out->descriptor.DS[1].Local.Handle = handle;
		out->descriptor.DS[1].Local.Length = 4 * request.count;
		send_and_wait(out);
	}
}

static void client(char *host)
{
	static VIP_UINT32 squares[REQUESTS][MESSAGE / 4];
	VIP_NET_ADDRESS *local, *remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_MEM_ATTRIBUTES memory;
	VIP_MEM_HANDLE result;
	request_t *request;
	slot_t *slot;
	int asked, answered, i;

	open_nic("client");
	memset(&memory, 0, sizeof(memory));
	memory.Ptag = tag;
	memory.EnableRdmaWrite = VIP_TRUE;
	CHECK(VipRegisterMem(nic, squares, sizeof(squares), &memory, &result), VIP_SUCCESS);
	local = address_of(NULL);
	remote = address_of(host);
	for (i = 0; i < CREDITS; i++)
		post_receive(&slots[i]);
	while ((rc = VipConnectRequest(vi, local, remote, 1000, &theirs)) == VIP_TIMEOUT || rc == VIP_NO_MATCH)
		;
	CHECK(rc, VIP_SUCCESS);
	if (!theirs.EnableRdmaWrite)
		exit(1);
	for (asked = answered = 0; answered < REQUESTS;) {
		while (asked < REQUESTS && asked - answered < CREDITS - 1) {
			slot = &slots[CREDITS];
			request = (request_t *)slot->bytes;
			request->first = asked;
			request->count = 1 + asked % (MESSAGE / 4);
			request->result.Address = squares[asked];
			request->handle = result;
			memset(&slot->descriptor, 0, sizeof(VIP_DESCRIPTOR));
			slot->descriptor.CS.Control = VIP_CONTROL_OP_SENDRECV;
			slot->descriptor.CS.SegCount = 1;
			slot->descriptor.CS.Length = sizeof(request_t);
			slot->descriptor.DS[0].Local.Data.Address = slot->bytes;
			slot->descriptor.DS[0].Local.Handle = handle;
			slot->descriptor.DS[0].Local.Length = sizeof(request_t);
			send_and_wait(slot);
			asked++;
		}
		if ((slot = next_message()) == NULL)
			exit(1);
		if (slot->descriptor.CS.ImmediateData != (VIP_UINT32)answered)
			exit(1);
		for (i = 0; i < 1 + answered % (MESSAGE / 4); i++)
			if (squares[answered][i] != (VIP_UINT32)((answered + i) * (answered + i)))
				exit(1);
		post_receive(slot);
		answered++;
	}
	CHECK(VipDisconnect(vi), VIP_SUCCESS);
	printf("%d answers\n", answered);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "server") == 0)
		server();
	else if (argc == 3 && strcmp(argv[1], "client") == 0)
		client(argv[2]);
	else
		return 2;
	CHECK(VipCloseNic(nic), VIP_SUCCESS);
	return 0;
}
