// The timed batches between pairs of ranks, and the validation of their data (see transfers.h).
#include "transfers.h"

#include <algorithm>

#include "../timing.h"
#include "pattern.h"

namespace osu {
namespace {

// Behind the data at the target; an operation that writes too much is found there.
constexpr std::size_t kGuard = 64;
constexpr std::size_t kMostInFlight = std::size_t{64} << 20;

std::size_t most_bytes(const Options& options, long window) {
    std::size_t most = 0;
    for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
        const std::size_t fitting = std::max<std::size_t>(1, kMostInFlight / bytes);
        most = std::max(most, bytes * std::min(static_cast<std::size_t>(window), fitting));
    }
    return most;
}

// Where in a page the buffers of this rank start. A library maps the peer's memory by pages. Collective.
std::size_t offset_of(const Run& run, const Window& window, int peer) {
    if (run.options.apart < 0) return 0;
    const auto mine = reinterpret_cast<std::uintptr_t>(window.mine()) % Memory::kPage;
    std::uintptr_t other = 0;
    MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, peer, 0, &other, sizeof other, MPI_BYTE, peer, 0, run.comm,
                 MPI_STATUS_IGNORE);
    return (other + static_cast<std::size_t>(run.options.apart)) % Memory::kPage;
}

}  // namespace

Transfers::Transfers(const Run& run, const Operation& operation, Direction direction, long window)
    : run_(run),
      operation_(operation),
      direction_(direction),
      window_(window),
      half_(run.ranks / 2),
      lower_(run.rank < half_),
      peer_(lower_ ? run.rank + half_ : run.rank - half_),
      sends_(lower_ || direction != Direction::one_way),
      receives_(!lower_ || direction != Direction::one_way),
      room_(most_bytes(run.options, window)),
      target_(run.options.creation, room_ + kGuard, run.comm),
      offset_(offset_of(run, target_, peer_)),
      operand_(operation.sends() && sends_ ? room_ + kBesideOperand : 0, offset_),
      result_(operation.fetches() && sends_ ? room_ : 0, offset_),
      expected_memory_(run.options.validate && receives_ ? room_ + kGuard : 0),
      peers_operand_(run.options.validate && receives_ ? room_ + kBesideOperand : 0),
      expected_result_(run.options.validate && sends_ ? room_ : 0),
      epochs_(run.options.sync, target_.handle(), peer_, run.comm) {}

long Transfers::in_flight(std::size_t bytes) const {
    return std::min(window_, static_cast<long>(std::max<std::size_t>(1, kMostInFlight / bytes)));
}

void Transfers::issue() const {
    const MPI_Aint start = target_.start_of(peer_);
    for (std::size_t at = 0; at < total_; at += bytes_) {
        std::byte* const operand = operation_.sends() ? operand_.at() + at : nullptr;
        std::byte* const result = operation_.fetches() ? result_.at() + at : nullptr;
        operation_.issue(
            {target_.handle(), peer_, start + static_cast<MPI_Aint>(at), operand, result, static_cast<int>(bytes_)});
    }
    if (computing_.origin > 0) bench::spin_for_ns(computing_.origin);
}

// Nanoseconds per iteration as this rank sees it; 0 if it has no part that counts.
double Transfers::iterate(long iterations) {
    const double begin = bench::now_ns();
    const double enough = computing_.target > 0 ? begin + computing_.target / 2 : 0;
    long done = 0;
    do {
        if (direction_ == Direction::alternating) {
            epochs_.round(lower_, !lower_, [this] { issue(); });
            epochs_.round(!lower_, lower_, [this] { issue(); });
        } else {
            epochs_.round(sends_, receives_, [this] { issue(); });
        }
        ++done;
    } while (done < iterations && (enough == 0 || bench::now_ns() < enough));
    const double took = bench::now_ns() - begin;
    if (!sends_) return 0;
    return took / static_cast<double>(direction_ == Direction::alternating ? 2 * done : done);
}

// Starts together what epochs_.end() ends; returns what iterate() does. A target that computes has no other part.
double Transfers::start(long iterations) {
    // Before the barrier, because a library may need the target for giving a lock.
    epochs_.begin(sends_);
    MPI_Barrier(run_.comm);
    if (sends_ || computing_.target == 0) return iterate(iterations);
    bench::spin_for_ns(computing_.target);
    return 0;
}

double Transfers::batch(long iterations) {
    const double ns = start(iterations);
    epochs_.end(sends_);
    return ns;
}

// The data that this rank starts from, and what is to become of it, known before anything moves so that it can be
// compared at once. What an operation overwrites is new as well, so that nothing old can pass.
void Transfers::prepare() {
    ++round_;
    if (receives_) {
        fill(expected_memory_.at(), total_ + kGuard, seed_of(round_, run_.rank, Purpose::memory));
        epochs_.own_begin();
        std::memcpy(target_.mine(), expected_memory_.at(), total_ + kGuard);
        epochs_.own_end();
        fill(peers_operand_.at(), total_ + kBesideOperand, seed_of(round_, peer_, Purpose::operand));
        operation_.complete(peers_operand_.at(), expected_memory_.at(), round_);
        operation_.apply(expected_memory_.at(), peers_operand_.at(), total_, bytes_);
    }
    if (!sends_) return;
    fill(expected_result_.at(), total_, seed_of(round_, peer_, Purpose::memory));
    if (operation_.fetches()) fill(result_.at(), total_, seed_of(round_, run_.rank, Purpose::result));
    if (operation_.sends()) {
        fill(operand_.at(), total_ + kBesideOperand, seed_of(round_, run_.rank, Purpose::operand));
        operation_.complete(operand_.at(), expected_result_.at(), round_);
    }
}

void Transfers::check_result() {
    if (!sends_) return;
    if (operation_.fetches()) right_ = right_ && std::memcmp(result_.at(), expected_result_.at(), total_) == 0;
    // Every synchronisation gives the origin its buffers back; the target must not see what becomes of them.
    if (operation_.sends()) fill(operand_.at(), total_, seed_of(round_, run_.rank, Purpose::result));
}

void Transfers::check_memory() {
    if (!receives_) return;
    epochs_.own_begin();
    right_ = right_ && std::memcmp(target_.mine(), expected_memory_.at(), total_ + kGuard) == 0;
    epochs_.own_end();
}

double Transfers::checked_iteration() {
    prepare();
    const double ns = start(1);
    // Where the target takes part, the end of its own epoch is all that it may have to wait for.
    if (is_active(run_.options.sync)) check_memory();
    check_result();
    // A flush must have moved the data before the lock is given back; after a local one only unlocking does.
    const bool complete = run_.options.sync != Sync::flush_local;
    if (!complete) epochs_.end(sends_);
    MPI_Barrier(run_.comm);
    check_memory();
    MPI_Barrier(run_.comm);
    if (complete) epochs_.end(sends_);
    return ns;
}

Measured Transfers::measure(std::size_t bytes, Repeats repeats, Computing computing) {
    bytes_ = bytes;
    total_ = bytes * static_cast<std::size_t>(in_flight(bytes));
    computing_ = {};
    if (repeats.warm_ups > 0) batch(repeats.warm_ups);
    // Targets may still be written to; from here on each batch ends in a collective call.
    MPI_Barrier(run_.comm);
    computing_ = computing;
    right_ = true;
    std::vector<double> batches;
    for (int i = 0; i < kBatches; ++i) {
        const long iterations = per_batch(repeats.iterations);
        double ns = 0;
        if (run_.options.validate) {
            for (long k = 0; k < iterations; ++k)
                ns += checked_iteration() / static_cast<double>(iterations);
        } else {
            ns = batch(iterations);
        }
        batches.push_back(run_.longest(ns));
    }
    return {summarise(std::move(batches)), run_.all(right_)};
}

}  // namespace osu
