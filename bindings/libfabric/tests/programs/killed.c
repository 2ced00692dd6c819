/* Rank 1 kills itself in the middle of an exchange. The others must not wait for it for ever. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	int rank, ranks;
	MPI_Init(&count, &arguments);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	enum { LENGTH = 1 << 20 };
	char *out = calloc(1, LENGTH), *in = calloc(1, LENGTH);
	for (int turn = 0;; turn++) {
		if (rank == 1 && turn == 50)
			kill(getpid(), SIGKILL);
		MPI_Sendrecv(out, LENGTH, MPI_CHAR, (rank + 1) % ranks, 1, in, LENGTH, MPI_CHAR,
			     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}
