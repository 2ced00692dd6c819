/* Window: one host sends 2000 packets in a row without waiting for the other; the receiver counts
 * (MyVIA, section 4).
 * Usage: window server|both [DEVICE], window client DEVICE HOST. BYTES in the environment sets the
 * length.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "example.h"
#include <time.h>

#define PACKETS 2000
#define UNDER_WAY 32 /* sends in flight */

static size_t length(void)
{
	const char *bytes = getenv("BYTES");
	return bytes ? strtoul(bytes, NULL, 10) : 4096;
}

static void server(const char *device, void (*ready)(const char *host))
{
	struct endpoint e;
	char name[64];
	size_t bytes = length();
	/* VIA needs a posted receive for each message before it arrives. So all are posted, from a block
	 * of their own. */
	VIP_DESCRIPTOR *receives = NULL, *done;
	VIP_MEM_ATTRIBUTES memory = { NULL, VIP_FALSE, VIP_FALSE };
	VIP_MEM_HANDLE handle;

	open_endpoint(&e, device, bytes);
	if (posix_memalign((void **)&receives, 64, PACKETS * sizeof *receives))
		exit(1);
	memset(receives, 0, PACKETS * sizeof *receives);
	memory.Ptag = e.ptag;
	MUST(VipRegisterMem(e.nic, receives, PACKETS * sizeof *receives, &memory, &handle));
	for (int packet = 0; packet < PACKETS; packet++) {
		receives[packet] = *fill(&e, 0, e.receive, bytes);
		MUST(VipPostRecv(e.vi, &receives[packet], handle));
	}
	own_name(&e, name, sizeof name);
	ready(name);
	serve(&e, "window");
	for (int packet = 0; packet < PACKETS; packet++) {
		MUST(VipRecvWait(e.vi, TIMEOUT_MS, &done));
		if (done != &receives[packet] || done->CS.Length != bytes ||
		    done->CS.ImmediateData != (VIP_UINT32)packet ||
		    done->CS.Status != (VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE)) {
			fprintf(stderr, "packet %d is not as it was sent\n", packet);
			exit(1);
		}
	}
	/* The final message tells the client that all packets have arrived. */
	MUST(VipPostSend(e.vi, fill(&e, 0, e.send, 4), e.handle));
	MUST(VipSendWait(e.vi, TIMEOUT_MS, &done));
	printf("%d packets of %zu bytes arrived in order\n", PACKETS, bytes);
	MUST(VipDeregisterMem(e.nic, receives, handle));
	free(receives);
	close_endpoint(&e);
}

static void client(const char *device, const char *host)
{
	struct endpoint e;
	struct timespec start, end;
	VIP_DESCRIPTOR *done;
	double ns;

	open_endpoint(&e, device, length());
	MUST(VipPostRecv(e.vi, fill(&e, UNDER_WAY, e.receive, 4), e.handle));
	call(&e, host, "window");
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int packet = 0; packet < PACKETS; packet++) {
		VIP_DESCRIPTOR *d;
		if (packet >= UNDER_WAY)
			MUST(VipSendWait(e.vi, TIMEOUT_MS, &done));
		d = fill(&e, packet % UNDER_WAY, e.send, e.bytes);
		d->CS.Control |= VIP_CONTROL_IMMEDIATE;
		d->CS.ImmediateData = packet;
		MUST(VipPostSend(e.vi, d, e.handle));
	}
	for (int packet = 0; packet < UNDER_WAY; packet++)
		MUST(VipSendWait(e.vi, TIMEOUT_MS, &done));
	MUST(VipRecvWait(e.vi, TIMEOUT_MS, &done));
	clock_gettime(CLOCK_MONOTONIC, &end);
	ns = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
	printf("%d packets of %zu bytes: %.1f MB/s\n", PACKETS, e.bytes, PACKETS * (double)e.bytes / ns * 1e3);
	close_endpoint(&e);
}

int main(int argc, char **argv)
{
	return run_sides(argc, argv, (struct sides){ server, client });
}
