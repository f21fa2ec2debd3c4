// osc_notify_latency: how soon a process can use data that another one puts, by size: a notified put, a put with a
// flush and an empty message behind it, and a message with the data. Rank 0 and rank 1 take turns; the time is that of
// one turn. Without libosc the notified put is that of osc/notify_fallback.h.
#include <osc/notify_fallback.h>

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

bool notify_latency(const osu::Run& run) {
    osu::Report report = run.report({"Size", "size", 0}, {{"Notified (us)", "notified_us", 3},
                                                          {"Put+flush+send (us)", "put_flush_send_us", 3},
                                                          {"Message (us)", "message_us", 3}});
    const int peer = 1 - run.rank;
    const osu::Window window(run.options.creation, run.options.largest, run.comm);
    const MPI_Win win = window.handle();
    const MPI_Aint there = window.start_of(peer);
    std::vector<std::byte> data(run.options.largest), taken(run.options.largest);
    for (std::size_t bytes = run.options.smallest; bytes <= run.options.largest; bytes *= 2) {
        const int count = static_cast<int>(bytes);
        OSC_Win_set_num_notify(win, MPI_INFO_NULL, 1);
        MPI_Win_lock_all(0, win);
        const Way ways[] = {
            {[&](long) { OSC_Put_notify(data.data(), count, MPI_BYTE, peer, there, count, MPI_BYTE, 0, win); },
             [&](long number) { OSC_Win_wait_notify(win, 0, number, nullptr); }, window.mine()},
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
    const osu::Program program{"osc_notify_latency", "latency of notified put", "wm", {}};
    return osu::run(program, argc, argv, notify_latency);
}
