// The small passive-target operations as types, and what their bytes must be afterwards; each is issued with its flush,
// or with a lock of its own around it: small.cpp runs them in loops, net_computing.cpp against a target that computes.
#pragma once

#include <mpi.h>

#include <cstring>
#include <vector>

#include "measures.h"

namespace bench {

// Each operation has: kBytes (what it touches at the target), call(), and three looks at data: prepare() and
// target_right() at the target, origin_right() at the origin.
struct Base {
    static constexpr std::size_t kBytes = 8;

    explicit Base(const Plan& plan) : results(plan.steps.size(), 0) {}

    void prepare(std::byte*, std::size_t) const {}
    bool origin_right(std::size_t, std::uint64_t) const { return true; }
    static std::uint64_t word(const std::byte* at) {
        std::uint64_t value = 0;
        std::memcpy(&value, at, sizeof value);
        return value;
    }

    std::vector<std::uint64_t> results;
};

struct Put : Base {
    using Base::Base;
    std::uint64_t value = 0;

    void call(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        value = stamp(k, lap);
        MPI_Put(&value, 8, MPI_BYTE, kTarget, at, 8, MPI_BYTE, win);
    }
    bool target_right(const std::byte* at, std::size_t k, std::uint64_t runs) const {
        return word(at) == (runs == 0 ? 0 : stamp(k, runs - 1));
    }
};

struct Get : Base {
    using Base::Base;

    void prepare(std::byte* at, std::size_t k) const {
        const std::uint64_t value = stamp(k, 0);
        std::memcpy(at, &value, sizeof value);
    }
    void call(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t) {
        MPI_Get(&results[k], 8, MPI_BYTE, kTarget, at, 8, MPI_BYTE, win);
    }
    bool target_right(const std::byte* at, std::size_t k, std::uint64_t) const { return word(at) == stamp(k, 0); }
    bool origin_right(std::size_t k, std::uint64_t runs) const { return results[k] == (runs == 0 ? 0 : stamp(k, 0)); }
};

// Common to the atomics: every one adds 1, so cells count and results are the count before.
struct Counting : Base {
    using Base::Base;

    bool target_right(const std::byte* at, std::size_t, std::uint64_t runs) const { return word(at) == runs; }
    bool origin_right(std::size_t k, std::uint64_t runs) const { return results[k] == (runs == 0 ? 0 : runs - 1); }
};

struct FetchAndOp : Counting {
    using Counting::Counting;

    void call(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t) {
        const std::uint64_t one = 1;
        MPI_Fetch_and_op(&one, &results[k], MPI_UINT64_T, kTarget, at, MPI_SUM, win);
    }
};

struct CompareAndSwap : Counting {
    using Counting::Counting;

    void call(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        const std::uint64_t next = lap + 1;
        MPI_Compare_and_swap(&next, &lap, &results[k], MPI_UINT64_T, kTarget, at, win);
    }
};

struct Accumulate : Counting {
    using Counting::Counting;

    void call(MPI_Win win, MPI_Aint at, std::size_t, std::uint64_t) {
        const std::uint64_t one = 1;
        MPI_Accumulate(&one, 1, MPI_UINT64_T, kTarget, at, 1, MPI_UINT64_T, MPI_SUM, win);
    }
    bool origin_right(std::size_t, std::uint64_t) const { return true; }
};

struct GetAccumulate : Counting {
    using Counting::Counting;

    void call(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t) {
        const std::uint64_t one = 1;
        MPI_Get_accumulate(&one, 1, MPI_UINT64_T, &results[k], 1, MPI_UINT64_T, kTarget, at, 1, MPI_UINT64_T, MPI_SUM,
                           win);
    }
};

// The two operations with a request, and the MPI_Wait that completes it.
struct PutAndWait : Put {
    using Put::Put;
    static constexpr bool kOwnEpoch = false;

    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        MPI_Request request = MPI_REQUEST_NULL;
        value = stamp(k, lap);
        MPI_Rput(&value, 8, MPI_BYTE, kTarget, at, 8, MPI_BYTE, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
};

struct GetAndWait : Get {
    using Get::Get;
    static constexpr bool kOwnEpoch = false;

    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rget(&results[k], 8, MPI_BYTE, kTarget, at, 8, MPI_BYTE, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
};

struct Put32 : Base {
    using Base::Base;
    static constexpr std::size_t kBytes = 32;
    std::uint64_t value[4] = {};

    void call(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        value[0] = value[1] = value[2] = value[3] = stamp(k, lap);
        MPI_Put(value, 32, MPI_BYTE, kTarget, at, 32, MPI_BYTE, win);
    }
    bool target_right(const std::byte* at, std::size_t k, std::uint64_t runs) const {
        for (int i = 0; i < 4; ++i) {
            if (word(at + 8 * i) != (runs == 0 ? 0 : stamp(k, runs - 1))) return false;
        }
        return true;
    }
};

// Puts a word, and gets the one behind it, which no process changes.
struct PutAndGet : Base {
    static constexpr std::size_t kBytes = 16;

    explicit PutAndGet(const Plan& plan) : Base(plan), put(plan), get(plan) {}

    void prepare(std::byte* at, std::size_t k) const { get.prepare(at + 8, k); }
    void call(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        put.call(win, at, k, lap);
        get.call(win, at + 8, k, lap);
    }
    bool target_right(const std::byte* at, std::size_t k, std::uint64_t runs) const {
        return put.target_right(at, k, runs) && get.target_right(at + 8, k, runs);
    }
    bool origin_right(std::size_t k, std::uint64_t runs) const { return get.origin_right(k, runs); }

    Put put;
    Get get;
};

// In an epoch around all of them, each completed by a flush.
template <class Op>
struct Flushed : Op {
    using Op::Op;
    static constexpr bool kOwnEpoch = false;

    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        Op::call(win, at, k, lap);
        MPI_Win_flush(kTarget, win);
    }
};

template <class Op>
struct Locked : Op {
    using Op::Op;
    static constexpr bool kOwnEpoch = true;

    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, win);
        Op::call(win, at, k, lap);
        MPI_Win_unlock(kTarget, win);
    }
};

}  // namespace bench
