// Usage: window SECONDS BYTES. Two ranks: the first sends 64 messages at once and waits for an
// answer to all of them, for that many seconds. Prints the bytes, and the microseconds of one.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 64 };

static void window(int rank, char *memory, int bytes) {
    MPI_Request requests[WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        char *at = memory + (size_t)i * bytes;
        if (rank == 0)
            MPI_Isend(at, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(at, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

// Microseconds of one of `count` windows.
static double measure(int rank, char *memory, int bytes, int count) {
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime(), each;
    for (int i = 0; i < count; i++)
        window(rank, memory, bytes);
    each = (MPI_Wtime() - started) / count * 1e6;
    MPI_Bcast(&each, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return each;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, bytes = argc > 2 ? atoi(argv[2]) : 8;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *memory = calloc(WINDOW, bytes);
    double count = atof(argv[1]) * 1e6 / measure(rank, memory, bytes, 100);
    double each = measure(rank, memory, bytes, count < 100 ? 100 : (int)count);
    if (rank == 0)
        printf("%d %.4f\n", bytes, each / WINDOW);
    free(memory);
    MPI_Finalize();
    return 0;
}
