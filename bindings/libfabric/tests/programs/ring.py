"""Every rank passes bytes round a ring, also in several threads at once, tells all of it, and reads and changes words of others through windows.
Prints one line per rank."""
from array import array
from concurrent.futures import ThreadPoolExecutor

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
after, before = (rank + 1) % ranks, (rank - 1) % ranks


def passed(tag):
    for length in (0, 1, 100, 5000, 100_000, 1 << 20):
        out, into = bytearray([(rank + length + tag) % 256]) * length, bytearray(length)
        world.Sendrecv(out, after, tag, into, before, tag)
        assert into == bytearray([(before + length + tag) % 256]) * length


passed(1)
assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
with ThreadPoolExecutor() as threads:
    list(threads.map(passed, range(2, 6)))
assert world.allgather({"rank": rank}) == [{"rank": other} for other in range(ranks)]
mine, theirs = array("q", [100 + rank]), array("q", [0])
window = MPI.Win.Create(mine, 8, comm=world)
window.Fence()
window.Get(theirs, after)
window.Fence()
window.Free()
assert theirs[0] == 100 + after
# All ranks change the words of rank 0 atomically: a sum, and the first rank. Long ones come whole.
length = 100_000
words = array("q", [0] * length)
window = MPI.Win.Create(words, 8, comm=world)
one, place, first = array("q", [1]), array("q", [-1]), array("q", [-1])
window.Lock_all()
window.Fetch_and_op(one, place, 0, 0, MPI.SUM)
window.Compare_and_swap(one, array("q", [0]), first, 0, 1)
window.Accumulate(array("d", [0.5]), 0, (2, 1, MPI.DOUBLE), MPI.SUM)
window.Put(array("q", range(rank, rank + length - 3)), after, (3, length - 3, MPI.INT64_T))
window.Flush_all()
window.Unlock_all()
world.Barrier()
assert sorted(world.allgather(place[0])) == list(range(ranks))
assert sorted(world.allgather(first[0])) == [0] + [1] * (ranks - 1)
got = array("d", [0])
window.Lock(0)
window.Get(got, 0, (2, 1, MPI.DOUBLE))
window.Unlock(0)
assert got[0] == ranks / 2
assert words[3:] == array("q", range(before, before + length - 3))
window.Free()
print(f"rank {rank} of {ranks}: good, {MPI.Get_library_version().split(chr(10))[0]}")
