/* A peer is killed while each side does each kind of thing, or nothing. The survivor polls, watches
 * the channel's descriptor, or sleeps in a call. All that it has posted fails within 2 s, as
 * control.h counts them, and nothing is left.
 * Usage: killed [JOB [SEED [short]]]; killed canary */
#include "control.h"
#include "pair.h"
#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum what { NOTHING, SENDS, WRITES, READS, ADDS };
enum way { POLLS, WATCHES, BLOCKS, WAYS };

/* Receives that are posted; their numbers; where parts of the memory lie. */
enum { RECEIVES = 16, USED = 64, TAKEN = 4096 };
static const uint64_t RECEIVE = 1ull << 63;

struct work {
    struct side side;
    enum what what;
    /* The peer's memory. */
    uint64_t address;
    uint32_t rkey;
    uint64_t posted, done, receives, received;
    /* Whether a request, and whether a receive, has failed. */
    int failed[2];
};

static void post_receive(struct work *work)
{
    receive(&work->side, RECEIVE | work->receives, TAKEN, 8);
    work->receives++;
}

static void post_next(struct work *work, enum what what)
{
    struct ibv_sge sge = part(&work->side, 0, 8);
    struct ibv_send_wr wr = request(IBV_WR_SEND, work->posted, &sge);
    wr.wr.rdma.remote_addr = work->address + USED;
    wr.wr.rdma.rkey = work->rkey;
    switch (what) {
    case NOTHING: return;
    case SENDS: break;
    case WRITES: wr.opcode = IBV_WR_RDMA_WRITE; break;
    case READS: wr.opcode = IBV_WR_RDMA_READ; break;
    case ADDS:
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = work->address + USED;
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.rkey = work->rkey;
        break;
    }
    post(&work->side, &wr);
    work->posted++;
}

/* Counts a completion, and posts the next one of its kind. Requests fail by one RETRY_EXC_ERR at
 * most, and all else is flushed. Returns whether all is well. */
static int goes_on(struct work *work, const struct ibv_wc *wc)
{
    int is_receive = wc->wr_id >= RECEIVE;
    uint64_t *count = is_receive ? &work->received : &work->done;
    CHECK((wc->wr_id & ~RECEIVE) == *count);
    *count += 1;
    if (wc->status == IBV_WC_SUCCESS) {
        CHECK(!work->failed[is_receive]);
        if (work->failed[!is_receive])
            return 0;
        if (is_receive)
            post_receive(work);
        else
            post_next(work, work->what);
        return 1;
    }
    if (wc->status != IBV_WC_WR_FLUSH_ERR)
        CHECK(wc->status == IBV_WC_RETRY_EXC_ERR && !is_receive && !work->failed[0]);
    work->failed[is_receive] = 1;
    return 0;
}

/* One side is ready: it knows the peer's memory, and one message went each way. */
static void begin_work(struct work *work, int pipes[2][2], int is_child)
{
    struct how how = USUAL;
    struct {
        uint64_t address;
        uint32_t rkey;
    } mine, theirs;
    /* The survivor opens its device first. It would wait for an address that it had before, and
     * that the new peer has taken. */
    CHECK(!is_child || is_readable(pipes[0][0], 60000));
    make_half(&work->side, &how, pipes, is_child);
    memset(&mine, 0, sizeof mine);
    mine.address = (uintptr_t)work->side.memory;
    mine.rkey = work->side.mr->rkey;
    CHECK(write(pipes[is_child][1], &mine, sizeof mine) == sizeof mine);
    CHECK(read(pipes[!is_child][0], &theirs, sizeof theirs) == sizeof theirs);
    work->address = theirs.address;
    work->rkey = theirs.rkey;
    for (int i = 0; i < RECEIVES; i++)
        post_receive(work);
    post_next(work, SENDS);
    enum what later = work->what;
    work->what = NOTHING;
    while (!work->done || !work->received) {
        struct ibv_wc wc = next(&work->side);
        CHECK(goes_on(work, &wc));
    }
    /* Each waits until the other's message has ended: one that is killed now would not acknowledge
     * it. */
    char ended = 0;
    CHECK(write(pipes[is_child][1], &ended, 1) == 1);
    CHECK(read(pipes[!is_child][0], &ended, 1) == 1);
    work->what = later;
    post_next(work, later);
}

/* The peer works until it has seen so many completions, or so many milliseconds if it sees none,
 * and ends. */
static void end_by(struct work *work, int sees, int rounds, int signal)
{
    uint64_t until = work->done + work->received + (uint64_t)rounds;
    while (sees && work->done + work->received < until) {
        struct ibv_wc wc = next(&work->side);
        CHECK(goes_on(work, &wc));
    }
    if (!sees)
        usleep((useconds_t)rounds * 1000);
    raise(signal);
    for (;;)
        pause();
}

/* When the peer ended. */
static atomic_uint begin;
static atomic_int is_gone;

static void *sees_end(void *child)
{
    siginfo_t info;
    CHECK(!waitid(P_PID, (id_t)*(pid_t *)child, &info, WEXITED | WSTOPPED | WNOWAIT));
    atomic_store(&begin, atomic_load(&slept));
    atomic_store(&is_gone, 1);
    return NULL;
}

static int is_late(void)
{
    return atomic_load(&is_gone) && atomic_load(&slept) - atomic_load(&begin) > SLEEPS;
}

/* The survivor's next completion. `0`: the limit is over before. */
static int taken(struct work *work, enum way way, struct ibv_wc *wc)
{
    struct side *side = &work->side;
    for (;;) {
        int count = ibv_poll_cq(side->cq, 1, wc);
        CHECK(count >= 0);
        if (count)
            return 1;
        if (is_late())
            return 0;
        if (way == POLLS)
            continue;
        CHECK(!ibv_req_notify_cq(side->cq, 0));
        /* One that came before the request raises no event. */
        count = ibv_poll_cq(side->cq, 1, wc);
        CHECK(count >= 0);
        if (count)
            return 1;
        while (way == WATCHES && !is_readable(side->channel->fd, SLEEP_MS))
            if (is_late())
                return 0;
        struct ibv_cq *cq;
        void *context;
        CHECK(!ibv_get_cq_event(side->channel, &cq, &context) && cq == side->cq);
        ibv_ack_cq_events(cq, 1);
    }
}

static unsigned longest;

/* One run. Returns whether the survivor learnt of it in time. */
static int survive(enum what own, enum what theirs, enum way way, int rounds, int signal)
{
    int pipes[2][2];
    CHECK(!pipe(pipes[0]) && !pipe(pipes[1]));
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    struct work work = { .what = child ? own : theirs };
    /* It hangs otherwise, if a sleep does not end. */
    alarm(90);
    if (!child)
        CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
    begin_work(&work, pipes, !child);
    if (!child)
        end_by(&work, theirs != NOTHING || own == SENDS, rounds, signal);
    atomic_store(&is_gone, 0);
    pthread_t watcher;
    CHECK(!pthread_create(&watcher, NULL, sees_end, &child));
    int in_time = 1;
    struct ibv_wc wc;
    for (int fails = 0; !fails || work.done < work.posted || work.received < work.receives;) {
        if (!taken(&work, way, &wc)) {
            /* The verdict stands; it only has to end now. */
            in_time = 0;
            CHECK(!kill(child, SIGKILL));
            continue;
        }
        fails |= !goes_on(&work, &wc);
    }
    CHECK(!pthread_join(watcher, NULL));
    in_time &= !is_late();
    unsigned took = atomic_load(&slept) - atomic_load(&begin);
    if (took > longest)
        longest = took;
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(work.failed[1] && state_of(&work.side) == IBV_QPS_ERR);
    nothing(&work.side);
    close_side(&work.side);
    for (int i = 0; i < 4; i++)
        close(pipes[i / 2][i % 2]);
    alarm(0);
    return in_time;
}

/* What a peer that is killed could leave with this process and on the host. */
struct residue {
    int descriptors, mappings, names;
};

static int lines_with(const char *file, const char *word)
{
    char line[512];
    int count = 0;
    FILE *opened = fopen(file, "r");
    CHECK(opened);
    while (fgets(line, sizeof line, opened))
        count += strstr(line, word) != NULL;
    fclose(opened);
    return count;
}

static struct residue residue(const char *job)
{
    struct residue found = { 0, lines_with("/proc/self/maps", "memfd:"), 0 };
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    while (readdir(folder))
        found.descriptors++;
    closedir(folder);
    char name[128];
    snprintf(name, sizeof name, "/%s/", job);
    found.names = lines_with("/proc/net/unix", name);
    return found;
}

static const struct {
    enum what own, theirs;
} CASES[] = {
    { NOTHING, NOTHING }, { SENDS, SENDS },   { SENDS, NOTHING }, { NOTHING, SENDS },
    { WRITES, NOTHING },  { NOTHING, WRITES }, { READS, NOTHING }, { NOTHING, READS },
    { ADDS, NOTHING },    { NOTHING, ADDS },   { WRITES, READS },  { READS, SENDS },
};

int main(int count, char **arguments)
{
    const char *job = count > 1 ? arguments[1] : "";
    unsigned seed = count > 2 ? (unsigned)atoi(arguments[2]) : (unsigned)getpid();
    int ways = count > 3 && !strcmp(arguments[3], "short") ? 1 : WAYS;
    start_control();
    if (!strcmp(job, "canary")) {
        /* A peer that is stopped has not ended, and whoever waits for it learns nothing. */
        CHECK(!survive(NOTHING, SENDS, POLLS, 5, SIGSTOP));
        return 0;
    }
    printf("seed %u\n", seed);
    srandom(seed);
    /* What a first run leaves is kept on purpose. */
    CHECK(survive(SENDS, SENDS, POLLS, 5, SIGKILL));
    struct residue before = residue(job);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int way = 0; way < ways; way++) {
            int rounds = 1 + (int)(random() % 50);
            int in_time = survive(CASES[i].own, CASES[i].theirs, way, rounds, SIGKILL);
            struct residue after = residue(job);
            if (!in_time || memcmp(&before, &after, sizeof before))
                fprintf(stderr,
                        "case %zu, way %d, %d rounds: in time %d; descriptors %d, %d, mappings "
                        "%d, %d, names %d, %d\n",
                        i, way, rounds, in_time, before.descriptors, after.descriptors,
                        before.mappings, after.mappings, before.names, after.names);
            CHECK(in_time && !memcmp(&before, &after, sizeof before));
        }
    printf("the longest took %u sleeps of %d ms\n", longest, SLEEP_MS);
    return 0;
}
