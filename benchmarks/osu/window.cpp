// osc_window: how long it takes to make a window and to free it, and by how much each window that lives makes a process
// grow (VmRSS, mean of the ranks). All windows of a size live at once. Their memory is not touched, so that what grows
// is what the library keeps; created and dynamic windows share one piece of memory.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>

#include "../timing.h"
#include "pattern.h"
#include "program.h"
#include "target_window.h"

namespace {

struct Live {
    std::byte* memory;
    MPI_Win win;
};

class Windows {
  public:
    Windows(const osu::Run& run, std::size_t bytes)
        : run_(run),
          bytes_(bytes),
          shared_(run.options.creation == osu::Creation::allocate ? 0 : bytes),
          addresses_(osu::exchanged_addresses(run.options.creation, shared_.at(), run.comm)) {}

    void make(long count) {
        for (; count > 0; --count) {
            Live one{shared_.at(), MPI_WIN_NULL};
            one.win = osu::make_window(run_.options.creation, one.memory, bytes_, run_.comm);
            live_.push_back(one);
        }
    }

    void free(long count) {
        for (; count > 0; --count) {
            osu::free_window(run_.options.creation, live_.back().memory, live_.back().win);
            live_.pop_back();
        }
    }

    // Each window carries a word from every rank to its right neighbour; no two words are the same, because memory may
    // be that of an earlier window.
    bool all_work(std::uint64_t& round) const {
        const int right = (run_.rank + 1) % run_.ranks;
        const int left = (run_.rank + run_.ranks - 1) % run_.ranks;
        const std::size_t length = std::min(sizeof(std::uint64_t), bytes_);
        const std::size_t last = bytes_ - length;
        const MPI_Aint at =
            (addresses_.empty() ? 0 : addresses_[static_cast<std::size_t>(right)]) + static_cast<MPI_Aint>(last);
        const int count = static_cast<int>(length);
        bool right_data = true;
        for (const Live& one : live_) {
            ++round;
            std::byte mark[sizeof(std::uint64_t)];
            osu::fill(mark, sizeof mark, osu::seed_of(round, run_.rank, osu::Purpose::operand));
            MPI_Win_fence(MPI_MODE_NOPRECEDE, one.win);
            MPI_Put(mark, count, MPI_BYTE, right, at, count, MPI_BYTE, one.win);
            MPI_Win_fence(MPI_MODE_NOSUCCEED, one.win);
            osu::fill(mark, sizeof mark, osu::seed_of(round, left, osu::Purpose::operand));
            right_data = right_data && std::memcmp(one.memory + last, mark, length) == 0;
        }
        return run_.all(right_data);
    }

  private:
    const osu::Run& run_;
    std::size_t bytes_;
    osu::Memory shared_;
    std::vector<MPI_Aint> addresses_;
    std::vector<Live> live_;
};

double resident_kib() {
    long pages = 0;
    long resident = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
        std::fclose(file);
    }
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

template <class Call>
osu::Summary timed(const osu::Run& run, long per_batch, Call&& call) {
    std::vector<double> batches;
    for (int i = 0; i < osu::kBatches; ++i) {
        MPI_Barrier(run.comm);
        const double begin = bench::now_ns();
        call();
        batches.push_back(run.longest((bench::now_ns() - begin) / static_cast<double>(per_batch) * 1e-3));
    }
    return osu::summarise(std::move(batches));
}

bool window(const osu::Run& run) {
    osu::Report report =
        run.report({"Size", "size", 0},
                   {{"Create (us)", "create_us", 2}, {"Free (us)", "free_us", 2}, {"VmRSS (KiB)", "vmrss_kib", 2}});
    std::uint64_t round = 0;
    // What the library sets up once for the first so many windows belongs to none of them.
    const long all = osu::kBatches * osu::per_batch(run.options.small.iterations);
    Windows first(run, run.options.smallest);
    first.make(all);
    first.free(all);
    for (std::size_t bytes = run.options.smallest; bytes <= run.options.largest; bytes *= 2) {
        const osu::Repeats repeats = run.options.repeats(bytes);
        const long per_batch = osu::per_batch(repeats.iterations);
        Windows windows(run, bytes);
        windows.make(repeats.warm_ups);
        windows.free(repeats.warm_ups);
        // Memory that the heap keeps from the windows before would hide what these take.
        malloc_trim(0);
        const double before = resident_kib();
        const osu::Summary made = timed(run, per_batch, [&] { windows.make(per_batch); });
        const double grown = (resident_kib() - before) / static_cast<double>(osu::kBatches * per_batch);
        const bool valid = !run.options.validate || windows.all_work(round);
        const osu::Summary freed = timed(run, per_batch, [&] { windows.free(per_batch); });
        report.row(bytes, {made, freed, osu::single(run.sum(grown) / run.ranks)}, valid);
    }
    return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
    osu::Options defaults;
    defaults.smallest = 4096;
    defaults.largest = std::size_t{1} << 20;
    defaults.small = {90, 1};
    defaults.large = {90, 1};
    return osu::run({"osc_window", "making and freeing windows", "wm", defaults, osu::Ranks::several}, argc, argv,
                    window);
}
