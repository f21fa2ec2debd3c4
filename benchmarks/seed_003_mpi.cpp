// The MPI side of the experiments of seed 003 (Hassani and others), run by the script of the same name.
//   seed_003_mpi [--short] [--list] [MEASURE...]
// Its measures: sync.KIND, epochs of all processes, empty and, as sync_put.KIND, with a word put in each (Figure 2);
// bandwidth.OPERATION.BYTES, many operations in an epoch of a lock (Figure 3); latency.SYNC.OPERATION.BYTES and
// latency.SYNC.empty, epochs with one operation and with none, the script takes the difference (Figure 4);
// puts.BYTES.COUNT, so many puts in an epoch of a lock (Figure 5). But for the first, two processes take part.
#include <cstring>
#include <string>
#include <vector>

#include "net.h"
#include "osu/pattern.h"
#include "paced.h"
#include "seed_epochs.h"

namespace bench {
namespace {

constexpr std::size_t kPutSizes[] = {8, 512, 4096, 32768};
constexpr std::size_t kCounts[] = {1, 4, 16, 64, 256};
constexpr std::size_t kInFlight = 64;
constexpr int kTag = 3;

// Whether what rank 0 sends by `once` is there afterwards, at its peer and, where it comes back, with itself.
template <class Once>
bool arrives(const Context& c, std::byte* memory, std::size_t bytes, Once&& once) {
    std::vector<std::byte> expected(bytes);
    osu::fill(expected.data(), bytes, osu::seed_of(1, kOrigin, osu::Purpose::operand));
    if (c.origin()) std::memcpy(memory, expected.data(), bytes);
    once();
    return std::memcmp(memory, expected.data(), bytes) == 0;
}

// Half of a message and its answer of the same size.
void run_send(const Context& c, const std::string& name, std::size_t bytes) {
    const osu::Memory mine(bytes);
    const auto length = static_cast<int>(bytes);
    const int peer = c.origin() ? kTarget : kOrigin;
    const auto once = [&] {
        if (c.origin()) MPI_Send(mine.at(), length, MPI_BYTE, peer, kTag, c.comm);
        MPI_Recv(mine.at(), length, MPI_BYTE, peer, kTag, c.comm, MPI_STATUS_IGNORE);
        if (!c.origin()) MPI_Send(mine.at(), length, MPI_BYTE, peer, kTag, c.comm);
    };
    const Timing timing = per_one(paced(c, once, kSeedLoopNs), 2);
    c.report(name, timing, arrives(c, mine.at(), bytes, once));
}

// As many messages as operations are in flight, and a reply confirms their arrival.
void run_send_stream(const Context& c, const std::string& name, std::size_t bytes) {
    const osu::Memory mine(bytes * kInFlight);
    std::vector<MPI_Request> requests(kInFlight);
    const auto length = static_cast<int>(bytes);
    const int peer = c.origin() ? kTarget : kOrigin;
    const auto once = [&] {
        for (std::size_t i = 0; i < kInFlight; ++i) {
            std::byte* const at = mine.at() + i * bytes;
            if (c.origin())
                MPI_Isend(at, length, MPI_BYTE, peer, kTag, c.comm, &requests[i]);
            else
                MPI_Irecv(at, length, MPI_BYTE, peer, kTag, c.comm, &requests[i]);
        }
        MPI_Waitall(static_cast<int>(kInFlight), requests.data(), MPI_STATUSES_IGNORE);
        if (c.origin())
            MPI_Recv(nullptr, 0, MPI_BYTE, peer, kTag, c.comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(nullptr, 0, MPI_BYTE, peer, kTag, c.comm);
    };
    const Timing timing = per_one(paced(c, once, kSeedLoopNs), kInFlight);
    c.report(name, timing, arrives(c, mine.at(), bytes * kInFlight, once));
}

void add_epochs(Measures& list, const osu::Synchronisation& kind) {
    const std::string name(kind.name);
    list.push_back({"sync." + name, [&kind, name](const Context& c, const std::string& empty) {
                        run_epochs(c, kind, empty, "sync_put." + name);
                    }});
}

void add_latencies(Measures& list) {
    for (const osu::Sync sync : {osu::Sync::lock, osu::Sync::pscw, osu::Sync::fence, osu::Sync::flush}) {
        const std::string start = std::string("latency.") + osu::name_of(sync) + ".";
        add_transfer(list, start + "empty", {sync, nullptr});
        for (const osu::Kind kind : {osu::Kind::put, osu::Kind::get})
            add_sizes(list, start + osu::name_of(kind), {sync, &osu::operation_of(kind)});
    }
}

void add_streams(Measures& list) {
    for (const osu::Kind kind : {osu::Kind::put, osu::Kind::get}) {
        add_sizes(list, std::string("bandwidth.") + osu::name_of(kind),
                  {osu::Sync::lock, &osu::operation_of(kind), 0, kInFlight, kInFlight});
    }
    for (const std::size_t bytes : kPutSizes) {
        for (const std::size_t count : kCounts)
            add_transfer(list, "puts." + std::to_string(bytes) + "." + std::to_string(count),
                         {osu::Sync::lock, &osu::kPut, bytes, count});
    }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    using bench::Context;
    using Name = const std::string&;
    bench::Measures list;
    bench::add_epochs(list, bench::kEmptyFlush);
    for (const char* const name : {"lock_shared", "lock_exclusive", "pscw", "fence"})
        bench::add_epochs(list, osu::synchronisation(name));
    bench::add_latencies(list);
    for (const std::size_t bytes : bench::kSeedSizes) {
        const std::string size = std::to_string(bytes);
        list.push_back({"latency.two_sided.send." + size,
                        [bytes](const Context& c, Name name) { bench::run_send(c, name, bytes); }});
        list.push_back({"bandwidth.send." + size,
                        [bytes](const Context& c, Name name) { bench::run_send_stream(c, name, bytes); }});
    }
    bench::add_streams(list);
    return bench::run_program({"seed_003_mpi", bench::seed_budget, nullptr}, list, argc, argv);
}
