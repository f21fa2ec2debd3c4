// The ranks of a sub-communicator in a ring, with one window on which they synchronise. While marking, each epoch also
// puts a mark of its rank and round into that rank's slot of the target.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "pattern.h"
#include "target_window.h"

namespace osu {

class Ring {
  public:
    // Collective over `comm`.
    Ring(Creation creation, MPI_Comm comm) : comm_(comm), window_(creation, bytes_for(comm), comm) {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &ranks_);
        MPI_Group everyone = MPI_GROUP_NULL;
        MPI_Comm_group(comm, &everyone);
        const int before = left();
        const int after = right();
        MPI_Group_incl(everyone, 1, &before, &left_group_);
        MPI_Group_incl(everyone, 1, &after, &right_group_);
        MPI_Group_free(&everyone);
    }
    ~Ring() {
        MPI_Group_free(&left_group_);
        MPI_Group_free(&right_group_);
    }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    MPI_Comm comm() const { return comm_; }
    MPI_Win win() const { return window_.handle(); }
    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    int left() const { return (rank_ + ranks_ - 1) % ranks_; }
    int right() const { return (rank_ + 1) % ranks_; }
    MPI_Group left_group() const { return left_group_; }
    MPI_Group right_group() const { return right_group_; }

    // From now on marks are put, those of this round.
    void mark_from(std::uint64_t round) {
        marking_ = true;
        round_ = round;
        mark_ = mark_of(rank_);
    }
    // From now on exclusive epochs count.
    void count() { counting_ = true; }

    // Go into an epoch that reaches `target`.
    void put_mark_if_marking(int target) {
        if (marking_) put_mark(target);
    }
    void put_mark(int target) { put_word(target, rank_, &mark_); }

    // Increments a counter at `target` without atomicity, which is right only if no other process does meanwhile.
    void count_if_counting(int target) {
        if (!counting_) return;
        MPI_Get(&counted_, kWord, MPI_BYTE, target, place(target, ranks_), kWord, MPI_BYTE, win());
        MPI_Win_flush(target, win());
        ++counted_;
        put_word(target, ranks_, &counted_);
    }

    bool has_mark_of(int rank) const { return own_word(rank) == mark_of(rank); }
    std::uint64_t total() const { return own_word(ranks_); }

  private:
    static constexpr int kWord = sizeof(std::uint64_t);

    static std::size_t bytes_for(MPI_Comm comm) {
        int ranks = 0;
        MPI_Comm_size(comm, &ranks);
        return static_cast<std::size_t>(ranks + 1) * kWord;
    }
    std::uint64_t mark_of(int rank) const { return seed_of(round_, rank, Purpose::operand); }
    MPI_Aint place(int target, int slot) const { return window_.start_of(target) + slot * kWord; }
    void put_word(int target, int slot, const std::uint64_t* word) {
        MPI_Put(word, kWord, MPI_BYTE, target, place(target, slot), kWord, MPI_BYTE, win());
    }
    std::uint64_t own_word(int slot) const {
        std::uint64_t word = 0;
        std::memcpy(&word, window_.mine() + slot * kWord, kWord);
        return word;
    }

    MPI_Comm comm_;
    Window window_;
    int rank_ = 0;
    int ranks_ = 0;
    MPI_Group left_group_ = MPI_GROUP_NULL;
    MPI_Group right_group_ = MPI_GROUP_NULL;
    bool marking_ = false;
    bool counting_ = false;
    std::uint64_t round_ = 0;
    std::uint64_t mark_ = 0;
    std::uint64_t counted_ = 0;
};

}  // namespace osu
