// Times epochs and looks at their data (see seed_epochs.h).
#include "seed_epochs.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "net.h"
#include "osu/pattern.h"
#include "paced.h"

namespace bench {

const osu::Synchronisation kEmptyFlush{
    "flush",
    {"Flush (us)", "flush_us", 3},
    osu::Reaches::right,
    false,
    [](osu::Ring& ring) { MPI_Win_lock(MPI_LOCK_SHARED, ring.right(), 0, ring.win()); },
    [](osu::Ring& ring) {
        ring.put_mark_if_marking(ring.right());
        MPI_Win_flush(ring.right(), ring.win());
    },
    [](osu::Ring& ring) { MPI_Win_unlock(ring.right(), ring.win()); }};

void run_epochs(const Context& c, const osu::Synchronisation& kind, const std::string& empty,
                const std::string& with_put) {
    // Processes that share cores take long to meet for each.
    constexpr int kChecked = 2;
    osu::Ring ring(osu::Creation::allocate, c.comm);
    const auto timed = [&] {
        kind.begin(ring);
        const Timing timing = paced(
            c, [&] { kind.once(ring); }, kSeedLoopNs);
        kind.end(ring);
        MPI_Barrier(c.comm);
        return timing;
    };
    std::uint64_t round = 0;
    const Timing of_empty = timed();
    Timing of_put;
    if (!with_put.empty()) {
        ring.mark_from(++round);
        of_put = timed();
    }
    const bool synchronises = osu::synchronises(ring, kind, round, kChecked);
    const bool right = (kind.name != "lock_exclusive" || osu::excludes(ring)) && synchronises;
    c.report(empty, of_empty, right);
    if (!with_put.empty()) c.report(with_put, of_put, right);
}

SeedTransfer::SeedTransfer(const Context& c, osu::Sync sync, const osu::Operation* operation, std::size_t bytes,
                           std::size_t count)
    : c_(c),
      operation_(operation),
      bytes_(bytes),
      total_(operation == nullptr ? 0 : bytes * count),
      // Windows of no size are a case of their own.
      window_(osu::Creation::allocate, std::max<std::size_t>(total_, 8), c.comm),
      operand_(total_ + osu::kBesideOperand),
      result_(total_ + osu::kBesideOperand),
      epochs_(sync, window_.handle(), c.origin() ? kTarget : kOrigin, c.comm) {}

void SeedTransfer::once() {
    epochs_.round(c_.origin(), c_.target(), [this] {
        const MPI_Aint start = window_.start_of(kTarget);
        for (std::size_t at = 0; at < total_; at += bytes_) {
            operation_->issue({window_.handle(), kTarget, start + static_cast<MPI_Aint>(at), operand_.at() + at,
                               result_.at() + at, static_cast<int>(bytes_)});
        }
    });
}

Timing SeedTransfer::timed() {
    epochs_.begin(c_.origin());
    const Timing timing = paced(
        c_, [this] { once(); }, kSeedLoopNs);
    epochs_.end(c_.origin());
    return timing;
}

bool SeedTransfer::moves_data() {
    if (operation_ == nullptr) return true;
    // A compare-and-swap is to swap in one of them only. Both are collective.
    const bool odd = moves_data_of(1);
    return moves_data_of(2) && odd;
}

bool SeedTransfer::moves_data_of(std::uint64_t round) {
    std::vector<std::byte> before(total_);
    osu::fill(before.data(), total_, osu::seed_of(round, kTarget, osu::Purpose::memory));
    osu::fill(operand_.at(), total_, osu::seed_of(round, kOrigin, osu::Purpose::operand));
    operation_->complete(operand_.at(), before.data(), round);
    std::vector<std::byte> after = before;
    operation_->apply(after.data(), operand_.at(), total_, bytes_);
    MPI_Barrier(c_.comm);
    epochs_.own_begin();
    if (c_.target()) std::memcpy(window_.mine(), before.data(), total_);
    epochs_.own_end();
    epochs_.begin(c_.origin());
    MPI_Barrier(c_.comm);
    once();
    epochs_.end(c_.origin());
    MPI_Barrier(c_.comm);
    epochs_.own_begin();
    const bool right = !c_.target() || std::memcmp(window_.mine(), after.data(), total_) == 0;
    epochs_.own_end();
    if (!c_.origin() || !operation_->fetches()) return right;
    return std::memcmp(result_.at(), before.data(), total_) == 0;
}

void add_transfer(Measures& list, const std::string& name, const Transferred& what) {
    list.push_back({name, [what](const Context& c, const std::string& measure) {
                        SeedTransfer transfer(c, what.sync, what.operation, what.bytes, what.count);
                        const Timing timing = per_one(transfer.timed(), what.parts);
                        c.report(measure, timing, transfer.moves_data());
                    }});
}

void add_sizes(Measures& list, const std::string& name, Transferred what) {
    for (const std::size_t bytes : kSeedSizes) {
        what.bytes = bytes;
        add_transfer(list, name + "." + std::to_string(bytes), what);
    }
}

}  // namespace bench
