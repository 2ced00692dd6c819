/* An ordinary program of sockets: `echo serve` serves one connection and says its port, `echo PORT`
   is its client. `echo serve-and-fork` has a child that tries the connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, strerror(errno)); \
            exit(1); \
        } \
    } while (0)

enum { PART = 50000, PARTS = 40 };

static void send_all(int to, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = send(to, bytes, length, 0);
        CHECK(done > 0);
        bytes += done;
        length -= (size_t)done;
    }
}

/* Takes exactly as many bytes, or none at the end. */
static size_t receive_all(int from, char *bytes, size_t length)
{
    size_t got = 0;
    while (got < length) {
        ssize_t done = recv(from, bytes + got, length - got, 0);
        CHECK(done >= 0);
        if (done == 0)
            break;
        got += (size_t)done;
    }
    return got;
}

/* A child cannot use its parent's stream, and the parent can go on. */
static void check_child(int stream)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char byte = 0;
        int refused = read(stream, &byte, 1) < 0 && errno == EBADF;
        refused = refused && send(stream, &byte, 1, 0) < 0 && errno == EBADF;
        /* The number means something else from now on. */
        int ends[2];
        refused = refused && !pipe(ends) && dup2(ends[0], stream) == stream;
        refused = refused && write(ends[1], "x", 1) == 1 && read(stream, &byte, 1) == 1;
        _exit(refused && byte == 'x' ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(int count, char **arguments)
{
    static char sent[PART], got[PART];
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof at;
    int stream = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(stream >= 0);
    CHECK(count == 2);
    if (strncmp(arguments[1], "serve", 5)) {
        at.sin_port = htons((unsigned short)atoi(arguments[1]));
        CHECK(!connect(stream, (struct sockaddr *)&at, sizeof at));
        for (int part = 0; part < PARTS; part++) {
            for (size_t byte = 0; byte < PART; byte++)
                sent[byte] = (char)(byte * 31 + byte / 256 + (size_t)part);
            send_all(stream, sent, PART);
            CHECK(receive_all(stream, got, PART) == PART && !memcmp(sent, got, PART));
        }
        CHECK(!shutdown(stream, SHUT_WR) && receive_all(stream, got, 1) == 0);
        return 0;
    }
    CHECK(!bind(stream, (struct sockaddr *)&at, sizeof at) && !listen(stream, 1));
    CHECK(!getsockname(stream, (struct sockaddr *)&at, &length));
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    int peer = accept(stream, NULL, NULL);
    CHECK(peer >= 0);
    for (int part = 0; receive_all(peer, got, PART) == PART; part++) {
        if (part == PARTS / 2 && !strcmp(arguments[1], "serve-and-fork"))
            check_child(peer);
        send_all(peer, got, PART);
    }
    CHECK(!close(peer) && !close(stream));
    return 0;
}
