// osc_notify_latency: how soon a process can use data that another one puts, by size: a notified put, a put with a
// flush and an empty message behind it, and a message with the data; on one node also a copy and a flag in plain shared
// memory. Rank 0 and rank 1 take turns; the time is that of one turn. Without libosc the notified put is that of
// osc/notify_fallback.h.
#include <osc/notify_fallback.h>
#include <sched.h>

#include <atomic>
#include <functional>

#include "../timing.h"
#include "pattern.h"
#include "program.h"
#include "target_window.h"

namespace {

// One turn's two ends, by its number.
struct Way {
    std::function<void(long)> send;
    std::function<void(long)> receive;
    const std::byte* arrived;  // where the data is then
};

class Turns {
  public:
    Turns(const osu::Run& run, std::size_t bytes, std::byte* data) : run_(run), bytes_(bytes), data_(data) {}

    osu::Summary time(const Way& way, osu::Repeats repeats) {
        const long per_batch = osu::per_batch(repeats.iterations);
        for (long i = 0; i < repeats.warm_ups; ++i)
            turn(way);
        std::vector<double> batches;
        for (int batch = 0; batch < osu::kBatches; ++batch) {
            MPI_Barrier(run_.comm);
            const double begin = bench::now_ns();
            for (long i = 0; i < per_batch; ++i)
                turn(way);
            batches.push_back(run_.longest(bench::now_ns() - begin) / static_cast<double>(2 * per_batch) * 1e-3);
        }
        return osu::summarise(std::move(batches));
    }
    bool valid() const { return run_.all(valid_); }

  private:
    void turn(const Way& way) {
        ++number_;
        if (run_.rank == 0) send(way);
        receive(way);
        if (run_.rank != 0) send(way);
    }
    void send(const Way& way) {
        if (run_.options.validate) osu::fill(data_, bytes_, seed(run_.rank));
        way.send(number_);
    }
    void receive(const Way& way) {
        way.receive(number_);
        if (!run_.options.validate) return;
        std::vector<std::byte> wanted(bytes_);
        osu::fill(wanted.data(), bytes_, seed(1 - run_.rank));
        if (std::memcmp(way.arrived, wanted.data(), bytes_) != 0) valid_ = false;
    }
    std::uint64_t seed(int rank) const {
        return osu::seed_of(static_cast<std::uint64_t>(number_), rank, osu::Purpose::operand);
    }

    const osu::Run& run_;
    const std::size_t bytes_;
    std::byte* const data_;
    long number_ = 0;
    bool valid_ = true;
};

// Memory that both ranks load and store, on one node: of each rank the number of its last turn and its data.
class Flags {
  public:
    Flags(const osu::Run& run, std::size_t bytes) {
        MPI_Comm node = MPI_COMM_NULL;
        MPI_Comm_split_type(run.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        int size = 0;
        MPI_Comm_size(node, &size);
        MPI_Comm_free(&node);
        if (size != run.ranks) return;
        char* own = nullptr;
        MPI_Win_allocate_shared(static_cast<MPI_Aint>(kAlignment + bytes), 1, MPI_INFO_NULL, run.comm, &own, &win_);
        for (int rank = 0; rank < 2; ++rank) {
            MPI_Aint size_there = 0;
            int unit = 0;
            MPI_Win_shared_query(win_, rank, &size_there, &unit, &sides_[rank]);
        }
    }
    Flags(const Flags&) = delete;
    Flags& operator=(const Flags&) = delete;
    ~Flags() {
        if (win_ != MPI_WIN_NULL) MPI_Win_free(&win_);
    }

    bool are_there() const { return win_ != MPI_WIN_NULL; }
    void clear(int rank) { number(rank).store(0, std::memory_order_relaxed); }
    const std::byte* data(int rank) const { return sides_[rank] + kAlignment; }
    void give(int rank, const std::byte* data, std::size_t bytes, long turn) {
        std::memcpy(sides_[rank] + kAlignment, data, bytes);
        number(rank).store(turn, std::memory_order_release);
    }
    void await(int rank, long turn) {
        constexpr int kSpins = 10000;
        for (int spins = 0; number(rank).load(std::memory_order_acquire) < turn; ++spins)
            if (spins > kSpins) ::sched_yield();
    }

  private:
    static constexpr std::size_t kAlignment = 64;
    std::atomic_ref<long> number(int rank) const {
        return std::atomic_ref<long>(*reinterpret_cast<long*>(sides_[rank]));
    }

    MPI_Win win_ = MPI_WIN_NULL;
    std::byte* sides_[2] = {};
};

bool notify_latency(const osu::Run& run) {
    Flags flags(run, run.options.largest);
    std::vector<osu::Column> columns = {{"Notified (us)", "notified_us", 3},
                                        {"Put+flush+send (us)", "put_flush_send_us", 3},
                                        {"Message (us)", "message_us", 3}};
    if (flags.are_there()) columns.push_back({"Flag (us)", "flag_us", 3});
    osu::Report report = run.report({"Size", "size", 0}, columns);
    const long counters = run.options.counters;
    const int peer = 1 - run.rank;
    const osu::Window window(run.options.creation, run.options.largest, run.comm);
    const MPI_Win win = window.handle();
    const MPI_Aint there = window.start_of(peer);
    std::vector<std::byte> data(run.options.largest), taken(run.options.largest);
    for (std::size_t bytes = run.options.smallest; bytes <= run.options.largest; bytes *= 2) {
        const int count = static_cast<int>(bytes);
        OSC_Win_set_num_notify(win, MPI_INFO_NULL, static_cast<int>(counters));
        MPI_Win_lock_all(0, win);
        if (flags.are_there()) flags.clear(run.rank);
        const auto counter = [&](long number) { return static_cast<int>((number - 1) % counters); };
        std::vector<Way> ways = {
            {[&](long number) {
                 OSC_Put_notify(data.data(), count, MPI_BYTE, peer, there, count, MPI_BYTE, counter(number), win);
             },
             [&](long number) { OSC_Win_wait_notify(win, counter(number), (number - 1) / counters + 1, nullptr); },
             window.mine()},
            {[&](long) {
                 MPI_Put(data.data(), count, MPI_BYTE, peer, there, count, MPI_BYTE, win);
                 MPI_Win_flush(peer, win);
                 MPI_Send(nullptr, 0, MPI_BYTE, peer, 0, run.comm);
             },
             [&](long) {
                 MPI_Recv(nullptr, 0, MPI_BYTE, peer, 0, run.comm, MPI_STATUS_IGNORE);
                 MPI_Win_sync(win);
             },
             window.mine()},
            {[&](long) { MPI_Send(data.data(), count, MPI_BYTE, peer, 0, run.comm); },
             [&](long) { MPI_Recv(taken.data(), count, MPI_BYTE, peer, 0, run.comm, MPI_STATUS_IGNORE); },
             taken.data()},
        };
        if (flags.are_there())
            ways.push_back({[&](long number) { flags.give(run.rank, data.data(), bytes, number); },
                            [&](long number) { flags.await(peer, number); }, flags.data(peer)});
        std::vector<osu::Summary> figures;
        Turns turns(run, bytes, data.data());
        for (const Way& way : ways)
            figures.push_back(turns.time(way, run.options.repeats(bytes)));
        const bool valid = !run.options.validate || turns.valid();
        MPI_Win_unlock_all(win);
        report.row(bytes, figures, valid);
    }
    return run.all(report.finish());
}

}  // namespace

int main(int argc, char** argv) {
    const osu::Program program{"osc_notify_latency", "latency of notified put", "wmn", {}};
    return osu::run(program, argc, argv, notify_latency);
}
