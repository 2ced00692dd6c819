/* Every rank sends messages of many lengths round a ring, in both orders of send and receive, and
 * checks each byte. Then all send at once to rank 0, which receives from any source. Prints one
 * line per rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static char byte_of(int from, int length, int at) { return (char)(from * 37 + length + at * 11); }

static void check(const char *bytes, int from, int length, const char *where)
{
	for (int at = 0; at < length; at++)
		if (bytes[at] != byte_of(from, length, at)) {
			printf("rank %d: byte %d of %d from %d is wrong (%s)\n", rank, at, length, from, where);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

static void fill(char *bytes, int length)
{
	for (int at = 0; at < length; at++)
		bytes[at] = byte_of(rank, length, at);
}

int main(int count, char **arguments)
{
	MPI_Init(&count, &arguments);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	char *out = malloc(1 << 21), *in = malloc(1 << 21);

	for (int length = 0; length <= 1 << 20; length = length * 2 + length % 3 + 1) {
		MPI_Request requests[2];
		MPI_Status status;
		fill(out, length);
		MPI_Irecv(in, length, MPI_CHAR, before, 5, MPI_COMM_WORLD, &requests[0]);
		MPI_Isend(out, length, MPI_CHAR, next, 5, MPI_COMM_WORLD, &requests[1]);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		check(in, before, length, "receive first");

		memset(in, 0, length);
		MPI_Isend(out, length, MPI_CHAR, next, 6, MPI_COMM_WORLD, &requests[0]);
		MPI_Probe(before, 6, MPI_COMM_WORLD, &status);
		MPI_Recv(in, length, MPI_CHAR, before, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
		check(in, before, length, "send first");
		int there;
		MPI_Get_count(&status, MPI_CHAR, &there);
		if (there != length)
			MPI_Abort(MPI_COMM_WORLD, 2);
	}

	/* Many unexpected short messages: more than may wait at the receiver. */
	enum { MESSAGES = 3000, SHORT = 300 };
	if (rank == 0) {
		MPI_Barrier(MPI_COMM_WORLD);
		for (int at = 0; at < MESSAGES * (ranks - 1); at++) {
			MPI_Status status;
			MPI_Recv(in, SHORT, MPI_CHAR, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status);
			check(in, status.MPI_SOURCE, SHORT, "from anybody");
		}
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		fill(out, SHORT);
		for (int at = 0; at < MESSAGES; at++)
			MPI_Send(out, SHORT, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
	}

	/* A word through a window. */
	long mine = -1, got = -1;
	MPI_Win window;
	MPI_Win_create(&mine, sizeof mine, sizeof mine, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	long word = 100 + rank;
	MPI_Put(&word, 1, MPI_LONG, next, 0, 1, MPI_LONG, window);
	MPI_Win_fence(0, window);
	MPI_Get(&got, 1, MPI_LONG, next, 0, 1, MPI_LONG, window);
	MPI_Win_fence(0, window);
	/* All change the word of rank 0 atomically: a sum, an order, and a race for the first place. */
	long zero = 0, one = 1, seven = 7 + rank, place = -1, first = -1, total = 0;
	MPI_Win words;
	long three[3] = { 0 };
	MPI_Win_create(three, sizeof three, sizeof *three, MPI_INFO_NULL, MPI_COMM_WORLD, &words);
	MPI_Win_lock_all(0, words);
	MPI_Accumulate(&seven, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, words);
	MPI_Fetch_and_op(&one, &place, MPI_LONG, 0, 1, MPI_SUM, words);
	MPI_Compare_and_swap(&seven, &zero, &first, MPI_LONG, 0, 2, words);
	MPI_Win_flush_all(words);
	MPI_Win_unlock_all(words);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, words);
	MPI_Get(&total, 1, MPI_LONG, 0, 0, 1, MPI_LONG, words);
	MPI_Win_unlock(0, words);
	long places = 0, wins = 0, won = first == 0;
	MPI_Allreduce(&place, &places, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&won, &wins, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (total != 7 * ranks + ranks * (ranks - 1) / 2 || places != ranks * (ranks - 1) / 2 || wins != 1) {
		printf("rank %d: sum %ld, places %ld, %ld came first\n", rank, total, places, wins);
		MPI_Abort(MPI_COMM_WORLD, 4);
	}
	MPI_Win_free(&words);
	MPI_Win_free(&window);
	if (mine != 100 + before || got != 100 + rank) {
		printf("rank %d: %ld was put here, %ld was fetched\n", rank, mine, got);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}

	long sum = 0, all = rank;
	MPI_Allreduce(&all, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d: good, sum %ld\n", rank, ranks, sum);
	MPI_Finalize();
	return 0;
}
