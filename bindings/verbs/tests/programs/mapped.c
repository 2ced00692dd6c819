/* Registered memory in whole pages is mapped by peers while it is registered. The program sees its
   own bytes at their addresses, before, meanwhile, afterwards and in children. */
#include "pair.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 4, LENGTH = PAGES * 4096 };

static struct side sides[2];
static struct side *const a = &sides[0], *const b = &sides[1];

/* Whether the mapping of an address can be mapped by peers too. */
static int is_exchanged(const void *address)
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        char rights[5];
        CHECK(sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3);
        if (start <= (unsigned long)address && (unsigned long)address < end)
            found = rights[3] == 's' && strstr(line, "/memfd:bellwire");
    }
    fclose(maps);
    return found;
}

static unsigned char byte(size_t at, int seed)
{
    return (unsigned char)(at * 7 + at / 4096 + (size_t)seed);
}

static char *filled(int seed)
{
    char *memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    /* The last page is not touched yet. */
    for (size_t at = 0; at < LENGTH - 4096; at++)
        memory[at] = (char)byte(at, seed);
    return memory;
}

static void check_bytes(const char *memory, int seed)
{
    for (size_t at = 0; at < LENGTH; at++)
        CHECK((unsigned char)memory[at] == (at < LENGTH - 4096 ? byte(at, seed) : 0));
}

static void transfer(enum ibv_wr_opcode opcode, const struct ibv_mr *to, size_t offset)
{
    struct ibv_sge sge = part(a, 0, 8);
    struct ibv_send_wr wr = request(opcode, 7, &sge);
    wr.wr.rdma.rkey = to->rkey;
    wr.wr.rdma.remote_addr = (uintptr_t)to->addr + offset;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.rkey = to->rkey;
        wr.wr.atomic.remote_addr = (uintptr_t)to->addr + offset;
        wr.wr.atomic.compare_add = 5;
    }
    post(a, &wr);
    expect(a, 7, IBV_WC_SUCCESS);
}

/* Writes, reads and atomics reach the program's own bytes, also after it was registered twice. */
static void used(unsigned access, int exchanged)
{
    char *memory = filled(1);
    struct ibv_mr *mr = ibv_reg_mr(b->pd, memory, LENGTH, (int)access);
    CHECK(mr && is_exchanged(memory) == exchanged);
    check_bytes(memory, 1);
    struct ibv_mr *second = ibv_reg_mr(b->pd, memory, LENGTH, (int)access);
    CHECK(second);
    if (access & IBV_ACCESS_REMOTE_WRITE) {
        memcpy(a->memory, "from a!", 8);
        transfer(IBV_WR_RDMA_WRITE, mr, 4096 - 4);
        CHECK(!memcmp(memory + 4096 - 4, "from a!", 8));
        transfer(IBV_WR_RDMA_WRITE, second, LENGTH - 8);
        CHECK(!memcmp(memory + LENGTH - 8, "from a!", 8));
        memset(memory + LENGTH - 8, 0, 8);
        uint64_t word = 37;
        memcpy(memory + 8, &word, 8);
        transfer(IBV_WR_ATOMIC_FETCH_AND_ADD, mr, 8);
        CHECK(!memcmp(a->memory, &word, 8));
        memcpy(&word, memory + 8, 8);
        CHECK(word == 42);
        for (size_t at = 0; at < 8200; at++)
            memory[at] = (char)byte(at, 1);
    }
    transfer(IBV_WR_RDMA_READ, mr, 16);
    CHECK(!memcmp(a->memory, memory + 16, 8));
    CHECK(!ibv_dereg_mr(mr));
    CHECK(is_exchanged(memory) == exchanged);
    transfer(IBV_WR_RDMA_READ, second, 4096);
    CHECK(!memcmp(a->memory, memory + 4096, 8));
    CHECK(!ibv_dereg_mr(second));
    CHECK(!is_exchanged(memory));
    check_bytes(memory, 1);
    CHECK(!munmap(memory, LENGTH));
}

/* A child has the bytes, and what it writes stays its own. */
static void forked(void)
{
    char *memory = filled(2), done = 0;
    int stored[2];
    struct ibv_mr *mr = ibv_reg_mr(b->pd, memory, LENGTH, (int)USUAL.mr_access);
    CHECK(mr && is_exchanged(memory) && !pipe(stored));
    pid_t child = fork();
    if (child == 0) {
        /* By then the parent has stored other bytes, and the region has ended. */
        CHECK(read(stored[0], &done, 1) == 1);
        check_bytes(memory, 2);
        memset(memory, 99, LENGTH);
        _exit(is_exchanged(memory));
    }
    memset(memory, 77, LENGTH);
    CHECK(!ibv_dereg_mr(mr));
    CHECK(write(stored[1], &done, 1) == 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
    for (size_t at = 0; at < LENGTH; at++)
        CHECK(memory[at] == 77);
    CHECK(!munmap(memory, LENGTH) && !close(stored[0]) && !close(stored[1]));
}

/* A program may unmap registered memory before it ends the region: what is mapped there by then is
   left alone. */
static void unmapped(void)
{
    char *memory = filled(3);
    struct ibv_mr *mr = ibv_reg_mr(b->pd, memory, LENGTH, (int)USUAL.mr_access);
    CHECK(mr && is_exchanged(memory));
    char *new = mmap(memory, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(new == memory);
    memset(new, 5, 4096);
    CHECK(!munmap(memory + 4096, 4096));
    CHECK(!ibv_dereg_mr(mr));
    for (size_t at = 0; at < 4096; at++)
        CHECK(memory[at] == 5 && (unsigned char)memory[8192 + at] == byte(8192 + at, 3));
    CHECK(!munmap(memory, LENGTH));
}

static volatile int ends;

static void *idle(void *none)
{
    while (!ends)
        usleep(1000);
    return none;
}

/* A store of another thread while pages are exchanged would be lost, so they stay. A thread that
   begins later does not lose one when the pages are given back. */
static void threads(void)
{
    pthread_t thread;
    char *before = filled(4), *after = filled(5);
    struct ibv_mr *early = ibv_reg_mr(b->pd, before, LENGTH, (int)USUAL.mr_access);
    CHECK(early && is_exchanged(before));
    CHECK(!pthread_create(&thread, NULL, idle, NULL));
    struct ibv_mr *late = ibv_reg_mr(b->pd, after, LENGTH, (int)USUAL.mr_access);
    CHECK(late && !is_exchanged(after));
    CHECK(!ibv_dereg_mr(early) && !is_exchanged(before));
    CHECK(!ibv_dereg_mr(late));
    check_bytes(before, 4);
    memset(before, 1, LENGTH);
    ends = 1;
    CHECK(!pthread_join(thread, NULL));
    check_bytes(after, 5);
}

int main(void)
{
    make_pair(sides, USUAL);
    used(USUAL.mr_access, 1);
    used(IBV_ACCESS_REMOTE_READ, 1);
    forked();
    unmapped();
    threads();
    close_pair(sides);
    return 0;
}
