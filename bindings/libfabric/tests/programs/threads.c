/* Several threads of each rank use MPI at once, in one communicator. Each thread passes messages of
 * many lengths round its own ring, told apart by the tag. Then all of them send to rank 0, whose
 * threads receive from any source. Each byte is checked. Prints one line per rank. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, LONGEST = 200000, MANY = 500, SHORT = 64 };

static int rank, ranks;

static char byte_of(int from, int thread, int length, int at) { return (char)(from * 37 + thread * 53 + length + at * 11); }

static void check(const char *bytes, int from, int thread, int length)
{
	for (int at = 0; at < length; at++)
		if (bytes[at] != byte_of(from, thread, length, at)) {
			printf("rank %d, thread %d: byte %d of %d from %d is wrong\n", rank, thread, at, length, from);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

static void fill(char *bytes, int thread, int length)
{
	for (int at = 0; at < length; at++)
		bytes[at] = byte_of(rank, thread, length, at);
}

static void *work(void *argument)
{
	int thread = (int)(long)argument, next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	char *out = malloc(LONGEST), *in = malloc(LONGEST);
	for (int length = 1; length < LONGEST; length = length * 3 / 2 + 1) {
		/* Odd threads wait in blocking calls, even ones poll. */
		MPI_Request requests[2];
		fill(out, thread, length);
		MPI_Irecv(in, length, MPI_CHAR, before, thread, MPI_COMM_WORLD, &requests[0]);
		MPI_Isend(out, length, MPI_CHAR, next, thread, MPI_COMM_WORLD, &requests[1]);
		if (thread % 2)
			MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		else
			for (int done = 0; !done;)
				MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
		check(in, before, thread, length);
	}
	fill(out, thread, SHORT);
	if (rank)
		for (int at = 0; at < MANY; at++)
			MPI_Send(out, SHORT, MPI_CHAR, 0, THREADS + thread, MPI_COMM_WORLD);
	else
		for (int at = 0; at < MANY * (ranks - 1); at++) {
			MPI_Status status;
			MPI_Recv(in, SHORT, MPI_CHAR, MPI_ANY_SOURCE, THREADS + thread, MPI_COMM_WORLD, &status);
			check(in, status.MPI_SOURCE, thread, SHORT);
		}
	free(out);
	free(in);
	return NULL;
}

int main(int count, char **arguments)
{
	int provided;
	MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (provided != MPI_THREAD_MULTIPLE) {
		printf("rank %d: threads may not all use MPI at once\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	pthread_t threads[THREADS];
	for (long at = 0; at < THREADS; at++)
		pthread_create(&threads[at], NULL, work, (void *)at);
	for (int at = 0; at < THREADS; at++)
		pthread_join(threads[at], NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	printf("rank %d of %d: good, %d threads\n", rank, ranks, THREADS);
	MPI_Finalize();
	return 0;
}
