/* Ping-pong: 1000 round trips of one message, one-way mean time (MyVIA, section 4).
 * Usage: pingpong server|both [DEVICE], pingpong client DEVICE HOST. BYTES in the environment sets
 * the length.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "example.h"
#include <time.h>

#define ROUNDS 1000

static size_t length(void)
{
	const char *bytes = getenv("BYTES");
	return bytes ? strtoul(bytes, NULL, 10) : 64;
}

static unsigned char mark(int round, size_t at)
{
	return (unsigned char)(round * 31 + at * 7);
}

static void send_one(struct endpoint *e, int round)
{
	VIP_DESCRIPTOR *done;

	for (size_t at = 0; at < e->bytes; at++)
		e->send[at] = mark(round, at);
	MUST(VipPostSend(e->vi, fill(e, 0, e->send, e->bytes), e->handle));
	MUST(VipSendWait(e->vi, TIMEOUT_MS, &done));
}

static void receive_one(struct endpoint *e, int round)
{
	VIP_DESCRIPTOR *done;

	MUST(VipRecvWait(e->vi, TIMEOUT_MS, &done));
	if (done != &e->descriptors[1 + round % 2] || done->CS.Length != e->bytes) {
		fprintf(stderr, "round %d: %u bytes\n", round, done->CS.Length);
		exit(1);
	}
	for (size_t at = 0; at < e->bytes; at++) {
		if (e->receive[at] != mark(round, at)) {
			fprintf(stderr, "round %d: byte %zu is wrong\n", round, at);
			exit(1);
		}
	}
	/* Post the next receive before the peer can send again. */
	MUST(VipPostRecv(e->vi, fill(e, 1 + (round + 1) % 2, e->receive, e->bytes), e->handle));
}

static void server(const char *device, void (*ready)(const char *host))
{
	struct endpoint e;
	char name[64];

	open_endpoint(&e, device, length());
	MUST(VipPostRecv(e.vi, fill(&e, 1, e.receive, e.bytes), e.handle));
	own_name(&e, name, sizeof name);
	ready(name);
	serve(&e, "pingpong");
	for (int round = 0; round < ROUNDS; round++) {
		receive_one(&e, round);
		send_one(&e, round);
	}
	close_endpoint(&e);
}

static void client(const char *device, const char *host)
{
	struct endpoint e;
	struct timespec start, end;
	double ns;

	open_endpoint(&e, device, length());
	MUST(VipPostRecv(e.vi, fill(&e, 1, e.receive, e.bytes), e.handle));
	call(&e, host, "pingpong");
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int round = 0; round < ROUNDS; round++) {
		send_one(&e, round);
		receive_one(&e, round);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	ns = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
	printf("%d round trips of %zu bytes: %.2f us one way\n", ROUNDS, e.bytes, ns / ROUNDS / 2e3);
	close_endpoint(&e);
}

int main(int argc, char **argv)
{
	return run_sides(argc, argv, (struct sides){ server, client });
}
