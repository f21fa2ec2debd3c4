// What the host's own calls cost beside a live window of each flavour ("beside"): a message of 8 bytes to the target
// and back; MPI_Barrier; MPI_Allreduce of a double. libosc's hook in the host's polls is part of their waits.
#include "measures.h"
#include "windows.h"

namespace bench {
namespace {

void ping(const Context& c, std::uint64_t turn, bool& right) {
    std::uint64_t mark = turn;
    const int peer = c.origin() ? kTarget : kOrigin;
    if (c.origin()) MPI_Send(&mark, 8, MPI_BYTE, peer, 0, c.comm);
    if (c.origin() || c.target()) MPI_Recv(&mark, 8, MPI_BYTE, peer, 0, c.comm, MPI_STATUS_IGNORE);
    if (c.target()) MPI_Send(&mark, 8, MPI_BYTE, peer, 0, c.comm);
    right = right && mark == turn;
}

void barrier(const Context& c, std::uint64_t, bool&) {
    MPI_Barrier(c.comm);
}

void allreduce(const Context& c, std::uint64_t turn, bool& right) {
    const auto mine = static_cast<double>(turn);
    double sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, c.comm);
    right = right && sum == mine * c.ranks;
}

struct Call {
    const char* name;
    void (*make)(const Context& c, std::uint64_t turn, bool& right);
};
const Call kCalls[] = {{"beside.ping8", ping}, {"beside.barrier", barrier}, {"beside.allreduce", allreduce}};

}  // namespace

void add_beside_measures(Measures& list) {
    for (const Call& call : kCalls)
        for (const Flavour flavour : {Flavour::allocate, Flavour::malloc}) {
            list.push_back({call.name + std::string(".") + name_of(flavour),
                            [call, flavour](const Context& c, const std::string& name) {
                                const WindowSet set(flavour, 1, 4096, c.comm);
                                bool right = true;
                                std::uint64_t turn = 0;
                                const Timing timing = c.timed_together(1, [&](std::uint64_t n) {
                                    for (; n > 0; --n)
                                        call.make(c, turn++, right);
                                });
                                c.report(name, timing, right);
                            }});
        }
}

}  // namespace bench
