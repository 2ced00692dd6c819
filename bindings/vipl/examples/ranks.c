/* Four processes that use mp.h, with results checked (M-32).
 * Usage: ranks DEVICE HOST, each with %d for the rank, for instance ranks 'shm:job?node=%d' %d.0.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "mp.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 4
#define LONG_BYTES 300000

#define CHECK(condition)                                                                          \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

static unsigned char big[LONG_BYTES], other[LONG_BYTES];

static void work(int rank)
{
	int value, source, tag;

	/* A ring: the token carries the sum of all ranks. */
	for (int round = 0; round < 50; round++) {
		int left = (rank + RANKS - 1) % RANKS, right = (rank + 1) % RANKS;
		if (rank == 0) {
			value = round;
			mp_send(right, round, &value, sizeof value);
			CHECK(mp_receive(left, round, &value, sizeof value, NULL, NULL) == sizeof value);
			CHECK(value == round + RANKS * (RANKS - 1) / 2);
		} else {
			mp_receive(left, round, &value, sizeof value, NULL, NULL);
			value += rank;
			mp_send(right, round, &value, sizeof value);
		}
	}
	/* Tags select messages in any order of arrival; messages with one tag stay in order. There are
	 * more messages than credits. */
	if (rank > 0) {
		for (int i = 0; i < 100; i++) {
			value = rank * 1000 + i;
			mp_send(0, i % 2, &value, sizeof value);
		}
	} else {
		for (int want = 1; want >= 0; want--) {
			for (int from = RANKS - 1; from > 0; from--) {
				for (int i = want; i < 100; i += 2) {
					mp_receive(from, want, &value, sizeof value, &source, &tag);
					CHECK(source == from && tag == want && value == from * 1000 + i);
				}
			}
		}
	}
	/* Any source: each rank arrives once. */
	if (rank > 0) {
		mp_send(0, 100 + rank, &rank, sizeof rank);
	} else {
		int seen = 0;
		for (int i = 1; i < RANKS; i++) {
			mp_receive(MP_ANY, MP_ANY, &value, sizeof value, &source, &tag);
			CHECK(value == source && tag == 100 + source);
			seen |= 1 << source;
		}
		CHECK(seen == 14);
	}
	/* Long messages between neighbours, in both directions. */
	for (int i = 0; i < LONG_BYTES; i++)
		big[i] = i * 7 + rank;
	if (rank % 2 == 0) {
		mp_send(rank + 1, 5, big, LONG_BYTES);
		CHECK(mp_receive(rank + 1, 6, other, LONG_BYTES, NULL, NULL) == LONG_BYTES);
	} else {
		CHECK(mp_receive(rank - 1, 5, other, LONG_BYTES, NULL, NULL) == LONG_BYTES);
		mp_send(rank - 1, 6, big, LONG_BYTES);
	}
	for (int i = 0; i < LONG_BYTES; i++)
		CHECK(other[i] == (unsigned char)(i * 7 + (rank ^ 1)));
	/* Collectives, from every root. */
	for (int root = 0; root < RANKS; root++) {
		char text[64] = "";
		if (rank == root)
			snprintf(text, sizeof text, "from rank %d", root);
		mp_broadcast(root, text, sizeof text);
		CHECK(atoi(text + 10) == root);
		if (rank == root)
			memset(big, 200 + root, LONG_BYTES);
		mp_broadcast(root, big, LONG_BYTES);
		CHECK(big[0] == 200 + root && big[LONG_BYTES - 1] == 200 + root);
		mp_barrier();
	}
	for (int round = 0; round < 20; round++) {
		double values[3] = { rank, 1, rank * rank + round };
		mp_sum(values, 3);
		CHECK(values[0] == 6 && values[1] == 4 && values[2] == 14 + 4 * round);
	}
}

int main(int argc, char **argv)
{
	pid_t children[RANKS];
	int failed = 0, status;

	if (argc != 3) {
		fprintf(stderr, "usage: %s DEVICE HOST, with %%d for the rank\n", argv[0]);
		return 2;
	}
	for (int rank = 0; rank < RANKS; rank++) {
		children[rank] = fork();
		if (children[rank] == 0) {
			mp_open(rank, RANKS, argv[1], argv[2]);
			work(rank);
			mp_close();
			exit(0);
		}
	}
	for (int rank = 0; rank < RANKS; rank++) {
		waitpid(children[rank], &status, 0);
		failed |= status;
	}
	if (!failed)
		printf("%d ranks: ring, tags, long messages, barrier, broadcast and sums are right\n", RANKS);
	return failed != 0;
}
