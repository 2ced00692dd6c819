/* Peer: MPI, here Open MPI over shared memory. Send and receive two-sided, a put into an MPI window
 * one-sided. mpirun starts both sides. They meet at an abstract socket, so that they can sleep
 * between samples (MPI itself spins). */
#include "peer.h"

#include <mpi.h>
#include <stddef.h>
#include <sys/un.h>

static MPI_Win window;
static volatile uint64_t *own_window;
static char *buffers;
static int other;

enum { TAG = 1, WARM_UP = 16 };

/* Makes the control socket. */
static void meet(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (peer_side == LEADER) {
        if (bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 1) != 0)
            peer_fail("cannot listen for the other rank");
        MPI_Barrier(MPI_COMM_WORLD);
        peer_control = accept(fd, NULL, NULL);
        close(fd);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        if (connect(fd, (struct sockaddr *)&address, len) != 0)
            peer_fail("cannot reach the other rank");
        peer_control = fd;
    }
}

static void ping_pong(uint64_t count) {
    for (uint64_t number = 0; number < count; number++) {
        uint64_t in = number;
        if (peer_side == LEADER)
            MPI_Send(&number, sizeof number, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
        MPI_Recv(&in, sizeof in, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        peer_check(number, in);
        if (peer_side == FOLLOWER)
            MPI_Send(&number, sizeof number, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
    }
}

/* Messages from the leader to the follower with `slots` in flight, ended by one message back. */
static void one_way(size_t bytes, uint64_t count, unsigned slots) {
    static MPI_Request requests[RATE_WINDOW];
    uint64_t posted = 0, last = count;
    if (peer_side == LEADER) {
        for (uint64_t number = 0; number < count; number++) {
            char *message = buffers + number % slots * bytes;
            MPI_Request *request = &requests[number % slots];
            if (number >= slots)
                MPI_Wait(request, MPI_STATUS_IGNORE);
            memcpy(message, &number, sizeof number);
            MPI_Isend(message, (int)bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, request);
        }
        MPI_Waitall((int)(count < slots ? count : slots), requests, MPI_STATUSES_IGNORE);
        MPI_Recv(&last, sizeof last, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        peer_check(count, last);
        return;
    }
    for (; posted < slots && posted < count; posted++)
        MPI_Irecv(buffers + posted % slots * bytes, (int)bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD,
                  &requests[posted % slots]);
    for (uint64_t number = 0; number < count; number++) {
        char *message = buffers + number % slots * bytes;
        MPI_Request *request = &requests[number % slots];
        uint64_t stamp;
        MPI_Wait(request, MPI_STATUS_IGNORE);
        memcpy(&stamp, message, sizeof stamp);
        peer_check(number, stamp);
        if (posted < count) {
            MPI_Irecv(message, (int)bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, request);
            posted++;
        }
    }
    MPI_Send(&last, sizeof last, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
}

static void put(const void *source, size_t bytes) {
    MPI_Put(source, (int)bytes, MPI_BYTE, other, 0, (int)bytes, MPI_BYTE, window);
    MPI_Win_flush(other, window);
}

static void await_value(uint64_t value) {
    for (unsigned turn = 1; *own_window != value; turn++) {
        if (turn % 256 == 0)
            MPI_Win_sync(window);
        __builtin_ia32_pause();
    }
}

static void put_ping_pong(uint64_t count) {
    static uint64_t value; /* never repeats, because the window is not cleared between runs */
    for (uint64_t number = 0; number < count; number++) {
        value++;
        if (peer_side == FOLLOWER)
            await_value(value);
        put(&value, sizeof value);
        if (peer_side == LEADER)
            await_value(value);
    }
}

static void put_stream(size_t bytes, uint64_t count) {
    for (uint64_t number = 0; number < count; number++)
        MPI_Put(buffers, (int)bytes, MPI_BYTE, other, 0, (int)bytes, MPI_BYTE, window);
    MPI_Win_flush(other, window);
}

static uint64_t peer_run(enum op op, size_t bytes, uint64_t count) {
    if (op == PUT_LATENCY)
        put_ping_pong(WARM_UP);
    else
        ping_pong(WARM_UP);
    uint64_t start = peer_now_ns();
    switch (op) {
    case LATENCY: ping_pong(count); break;
    case PUT_LATENCY: put_ping_pong(count); break;
    case RATE: one_way(bytes, count, RATE_WINDOW); break;
    case STREAM: one_way(bytes, count, STREAM_WINDOW); break;
    default:
        if (peer_side == LEADER)
            put_stream(bytes, count);
    }
    return peer_now_ns() - start;
}

int main(int argc, char **argv) {
    void *memory;
    if (argc != 4)
        peer_fail("expected two CPU numbers and a socket name");
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the parent is mpirun */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &peer_side);
    other = 1 - peer_side;
    peer_pin(atoi(argv[1 + peer_side]));
    meet(argv[3]);
    buffers = peer_buffer(LARGEST_PUT_BYTES);
    MPI_Win_allocate(LARGEST_PUT_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, LARGEST_PUT_BYTES);
    own_window = memory;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    peer_serve("latency put_latency rate stream put_stream put_rate");
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
