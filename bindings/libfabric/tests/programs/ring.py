"""Every rank passes bytes round a ring, tells all of it, and reads a neighbour's word through a window (unless the argument is "messages").
Prints one line per rank."""
import sys
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
after, before = (rank + 1) % ranks, (rank - 1) % ranks
for length in (0, 1, 100, 5000, 100_000, 1 << 20):
    out, into = bytearray([(rank + length) % 256]) * length, bytearray(length)
    world.Sendrecv(out, after, 1, into, before, 1)
    assert into == bytearray([(before + length) % 256]) * length
assert world.allgather({"rank": rank}) == [{"rank": other} for other in range(ranks)]
if "messages" not in sys.argv:
    mine, theirs = array("q", [100 + rank]), array("q", [0])
    window = MPI.Win.Create(mine, 8, comm=world)
    window.Fence()
    window.Get(theirs, after)
    window.Fence()
    window.Free()
    assert theirs[0] == 100 + after
print(f"rank {rank} of {ranks}: good, {MPI.Get_library_version().split(chr(10))[0]}")
