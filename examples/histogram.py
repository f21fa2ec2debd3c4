#!/usr/bin/env python3
"""A histogram over all ranks, with mpi4py and NumPy: every rank draws numbers and adds its counts to bins that are spread over
all ranks' windows, by one accumulate per owner in one lock_all epoch; --messages: by an all-to-all. Rank 0 checks the sum.

  mpiexec -n 4 python3 histogram.py [--messages] [--numbers N] [--bins N]

mpi4py must be built for the MPI library that mpiexec and libosc are built for; packages of distributions often are for Open MPI:
MPICC=mpicc pip install --no-binary mpi4py mpi4py. Exit status: 0, 1 for a wrong sum, 2 for wrong arguments, 77 where mpi4py or
NumPy is missing.
"""
import argparse
import sys

try:
    import numpy
    from mpi4py import MPI
except ImportError as error:
    print("SKIPPED: histogram.py needs mpi4py and NumPy: %s" % error, file=sys.stderr)
    sys.exit(77)


def count(numbers, bins, rank):
    """Rank `rank`'s counts of every bin; any rank can draw any rank's numbers."""
    drawn = numpy.random.default_rng(rank).normal(bins / 2, bins / 10, numbers)
    return numpy.bincount(numpy.clip(drawn, 0, bins - 1).astype(numpy.int64), minlength=bins).astype(numpy.int64)


def by_accumulate(comm, counts):
    """This rank's part of the sum."""
    each = len(counts) // comm.size
    window = MPI.Win.Allocate(each * counts.itemsize, counts.itemsize, comm=comm)
    own = numpy.frombuffer(window.tomemory(), dtype=counts.dtype)
    window.Lock(comm.rank, MPI.LOCK_EXCLUSIVE)
    own[:] = 0
    window.Unlock(comm.rank)
    comm.Barrier()
    # The parts of `counts` live until the flush that unlock_all implies.
    window.Lock_all()
    for i in range(comm.size):
        owner = (comm.rank + i) % comm.size
        window.Accumulate(counts[owner * each:(owner + 1) * each], owner, op=MPI.SUM)
    window.Unlock_all()
    comm.Barrier()
    window.Lock(comm.rank, MPI.LOCK_SHARED)
    found = own.copy()
    window.Unlock(comm.rank)
    del own
    window.Free()
    return found


def by_messages(comm, counts):
    arrived = numpy.empty_like(counts)
    comm.Alltoall(counts, arrived)
    return arrived.reshape(comm.size, -1).sum(axis=0)


def arguments(comm):
    parser = argparse.ArgumentParser(description="a histogram over all ranks")
    parser.add_argument("--messages", action="store_true", help="the message-passing twin")
    parser.add_argument("--numbers", type=int, default=100000, help="that each rank draws (default %(default)s)")
    parser.add_argument("--bins", type=int, default=1000, help="per rank (default %(default)s)")
    args, unknown = parser.parse_known_args()
    wrong = "%s: no such option" % unknown[0] if unknown else None
    if args.numbers < 1 or args.bins < 1:
        wrong = "--numbers and --bins must be 1 or more"
    if wrong:
        if comm.rank == 0:
            print("histogram.py: " + wrong, file=sys.stderr)
        sys.exit(2)
    return args


def main():
    comm = MPI.COMM_WORLD
    args = arguments(comm)
    bins = args.bins * comm.size
    counts = count(args.numbers, bins, comm.rank)
    comm.Barrier()
    begin = MPI.Wtime()
    found = (by_messages if args.messages else by_accumulate)(comm, counts)
    took = MPI.Wtime() - begin
    whole = numpy.empty(bins, dtype=numpy.int64) if comm.rank == 0 else None
    comm.Gather(found, whole, root=0)
    right = True
    if comm.rank == 0:
        right = numpy.array_equal(whole, sum(count(args.numbers, bins, rank) for rank in range(comm.size)))
        print("histogram.py ranks=%d mode=%s numbers=%d seconds=%.4f verified=%s" %
              (comm.size, "messages" if args.messages else "accumulate", args.numbers * comm.size, took,
               "yes" if right else "NO"))
    return 0 if comm.bcast(right, root=0) else 1


if __name__ == "__main__":
    sys.exit(main())
