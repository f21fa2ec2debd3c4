#!/bin/sh
# Runs miniVite (graph communities by the Louvain method), built with its MPI-3 RMA exchange (MPI_Put or MPI_Accumulate in one
# lock_all epoch, flush_all and a barrier), by the host alone and with libosc. It compares each modularity and number of
# iterations with those of miniVite's own message-passing build on the same graph.
#
# usage: sh examples/apps/minivite.sh [OPTION]... TREE
#   TREE            a clone of https://github.com/ECP-ExaGraph/miniVite
#
# The number of processes is a power of two.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=3
. "$folder/common.sh"
source_tree dspl.hpp https://github.com/ECP-ExaGraph/miniVite
export OMP_NUM_THREADS=1 # sums of one order
compiler=$(mpi_compiler mpicxx)
compile() {
    program=$build/$1
    shift
    [ -x "$program" ] || "$compiler" -std=c++11 -O1 -fopenmp -w "$@" "$tree/main.cpp" -o "$program"
}
compile messages
compile put -DUSE_MPI_RMA
compile accumulate -DUSE_MPI_RMA -DUSE_MPI_ACCUMULATE

# The words "modularity, iterations" of an output.
answer() {
    sed -n 's/^Modularity, #Iterations: //p' "$work/$1"
}

printf '%-12s %-10s %22s %14s %14s\n' "vertices" "exchange" "messages' answer" "host right" "libosc right"
for vertices in 1000 1024 2000 2048; do
    vertices=$((vertices * ranks / 2))
    if ! launch host expected "$build/messages" -n "$vertices"; then
        report "the message-passing build fails on $vertices vertices"
        exit 1
    fi
    for exchange in put accumulate; do
        host=0 libosc=0 round=0
        rm -f "$work"/times.*
        while [ "$round" -lt "$rounds" ]; do
            round=$((round + 1))
            if launch host got "$build/$exchange" -n "$vertices" && [ "$(answer got)" = "$(answer expected)" ]; then
                host=$((host + 1))
            fi
            if launch libosc got "$build/$exchange" -n "$vertices" && [ "$(answer got)" = "$(answer expected)" ]; then
                libosc=$((libosc + 1))
            else
                report "$exchange with libosc on $vertices vertices: expected $(answer expected), got $(answer got)"
            fi
        done
        printf '%-12s %-10s %22s %14s %14s\n' "$vertices" "$exchange" "$(answer expected)" \
            "$(tally host "$host")" "$(tally libosc "$libosc")"
    done
done
echo "$ranks processes; an answer is modularity, iterations"
exit "$failed"
