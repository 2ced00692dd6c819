// Usage: collectives SECONDS BYTES... Prints for each length and collective operation of MPI how
// many microseconds one takes, measured for that many seconds: operation, bytes, microseconds.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const char *names[] = {"allreduce", "alltoall", "bcast"};

// Microseconds of one operation, as the slowest rank sees it.
static double measure(int operation, char *from, char *to, int bytes, int count) {
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime(), slowest;
    for (int i = 0; i < count; i++) {
        if (operation == 0) {
            int floats = bytes < 4 ? 1 : bytes / 4;
            MPI_Allreduce(from, to, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        } else if (operation == 1) {
            MPI_Alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
        } else {
            MPI_Bcast(from, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
        }
    }
    // The root of a broadcast is ahead of the others.
    if (operation == 2)
        MPI_Barrier(MPI_COMM_WORLD);
    double own = (MPI_Wtime() - started) / count * 1e6;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 2; i < argc; i++) {
        int bytes = atoi(argv[i]);
        char *from = calloc(bytes + 4, ranks), *to = calloc(bytes + 4, ranks);
        for (int operation = 0; operation < 3; operation++) {
            double count = atof(argv[1]) * 1e6 / measure(operation, from, to, bytes, 3);
            count = count < 5 ? 5 : count > 20000 ? 20000 : count;
            double each = measure(operation, from, to, bytes, (int)count);
            if (rank == 0)
                printf("%s %d %.2f\n", names[operation], bytes, each);
        }
        free(from);
        free(to);
    }
    MPI_Finalize();
    return 0;
}
