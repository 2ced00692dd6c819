/* Shared by the peers written in C: two processes that the benchmark drives by lines.
 *
 * The leader prints `ready OP OP ...` or `unable WHY`. Then it answers each line `run OP BYTES
 * COUNT` with `ns TOTAL` or `error WHY`, and ends at the end of its input. src/worker/mod.rs
 * describes the same lines, and src/op.rs the work of each operation. A peer defines peer_run() and
 * includes its own headers. */
#ifndef BELLWIRE_BENCH_PEER_H
#define BELLWIRE_BENCH_PEER_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum op { LATENCY, PUT_LATENCY, RATE, STREAM, PUT_STREAM, PUT_RATE, OPS };

static const char *const op_words[OPS] = {"latency", "put_latency", "rate", "stream", "put_stream", "put_rate"};

enum {
    LEADER = 0,
    FOLLOWER = 1,
    STREAM_WINDOW = 4,           /* buffers and messages in flight, as for every contender */
    RATE_WINDOW = 64,            /* receives posted, and sends in flight, for small messages */
    LARGEST_STREAM_BYTES = 1 << 20,
    LARGEST_PUT_BYTES = 16 << 20,
    LARGEST_LATENCY_BYTES = 4 << 10,
};

/* Which side this process is, and the socket to the other one. */
static int peer_side;
static int peer_control;

/* Runs this side's part of an operation; the leader's result is the time in nanoseconds. */
static uint64_t peer_run(enum op op, size_t bytes, uint64_t count);

static uint64_t peer_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Prints why this peer cannot go on, and ends. `word` is "unable" before the first order. */
static const char *peer_word = "unable";

__attribute__((noreturn, format(printf, 1, 2))) static void peer_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s ", peer_word);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    fflush(stdout);
    _exit(1);
}

/* Writes a message's number to its beginning and to its end. */
__attribute__((unused)) static inline void peer_mark(char *message, size_t bytes, uint64_t number) {
    memcpy(message + bytes - sizeof number, &number, sizeof number);
    memcpy(message, &number, sizeof number);
}

/* Checks at the receiver that the expected message arrived. */
static void peer_check(uint64_t due, uint64_t came) {
    if (due != came)
        peer_fail("message %llu was due, but %llu arrived", (unsigned long long)due, (unsigned long long)came);
}

/* Checks a whole message, at its beginning and its end. */
__attribute__((unused)) static inline void peer_check_message(uint64_t due, const char *message, size_t bytes) {
    uint64_t first, last;
    memcpy(&first, message, sizeof first);
    memcpy(&last, message + bytes - sizeof last, sizeof last);
    peer_check(due, first);
    peer_check(due, last);
}

/* The follower's side of the network, if the benchmark has made one (src/network.rs). */
static void peer_enter_far_side(void) {
    const char *path = getenv("BELLWIRE_BENCH_FAR_NAMESPACE");
    if (path == NULL)
        return;
    int namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET) != 0)
        peer_fail("cannot enter the follower's network namespace");
    close(namespace);
}

static void peer_pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        peer_fail("cannot stay on CPU %d", cpu);
}

static void peer_write(const void *bytes, size_t len) {
    if (send(peer_control, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
        peer_fail("the other side is gone");
}

/* Reads all of `len` bytes; 0 if the other side has ended. */
static int peer_read(void *bytes, size_t len) {
    return recv(peer_control, bytes, len, MSG_WAITALL) == (ssize_t)len;
}

static void peer_read_or_fail(void *bytes, size_t len) {
    if (!peer_read(bytes, len))
        peer_fail("the other side is gone");
}

/* Exchanges bytes with the other side: sends `len`, receives at most `room`, and returns the number
 * received. */
static size_t peer_exchange(const void *own, size_t len, void *theirs, size_t room) {
    uint64_t own_len = len, their_len = 0;
    peer_write(&own_len, sizeof own_len);
    peer_write(own, len);
    peer_read_or_fail(&their_len, sizeof their_len);
    if (their_len > room)
        peer_fail("the other side sent %llu bytes", (unsigned long long)their_len);
    peer_read_or_fail(theirs, their_len);
    return their_len;
}

/* Forks the follower, and pins both sides. Call it before the library under test is opened. */
__attribute__((unused)) static void peer_fork(int leader_cpu, int follower_cpu) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        peer_fail("no control socket");
    pid_t leader = getpid();
    pid_t child = fork();
    if (child < 0)
        peer_fail("cannot fork");
    peer_side = child == 0 ? FOLLOWER : LEADER;
    peer_control = sockets[peer_side];
    close(sockets[1 - peer_side]);
    if (peer_side == FOLLOWER) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != leader)
            _exit(1);
        peer_enter_far_side();
    }
    peer_pin(peer_side == LEADER ? leader_cpu : follower_cpu);
}

/* Obeys orders until the input ends. `ops` are the words of the operations that the peer can
 * run. */
static void peer_serve(const char *ops) {
    struct { uint64_t op, bytes, count; } order;
    char line[256], word[32], done = 0;
    peer_exchange(&done, 1, &done, 1); /* both sides are open */
    peer_word = "error";
    if (peer_side == FOLLOWER) {
        while (peer_read(&order, sizeof order) && order.op != OPS) {
            peer_run((enum op)order.op, order.bytes, order.count);
            peer_write(&done, 1);
        }
        return;
    }
    printf("ready %s\n", ops);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        unsigned long long bytes, count;
        if (sscanf(line, "run %31s %llu %llu", word, &bytes, &count) != 3)
            peer_fail("expected `run OP BYTES COUNT`");
        for (order.op = 0; order.op < OPS && strcmp(word, op_words[order.op]) != 0;)
            order.op++;
        if (order.op == OPS || bytes < 8 || bytes > LARGEST_PUT_BYTES || count == 0)
            peer_fail("no such order: %s %llu %llu", word, bytes, count);
        order.bytes = bytes;
        order.count = count;
        peer_write(&order, sizeof order);
        uint64_t time_ns = peer_run((enum op)order.op, order.bytes, order.count);
        peer_read_or_fail(&done, 1);
        printf("ns %llu\n", (unsigned long long)time_ns);
        fflush(stdout);
    }
    order.op = OPS;
    peer_write(&order, sizeof order); /* the follower's end of input */
}

/* Memory of whole pages that are all present. */
__attribute__((unused)) static void *peer_buffer(size_t bytes) {
    void *buffer = NULL;
    if (posix_memalign(&buffer, 4096, bytes) != 0)
        peer_fail("no memory for %zu bytes", bytes);
    memset(buffer, 0x5a, bytes);
    return buffer;
}

#endif
