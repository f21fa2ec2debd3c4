// Small passive-target operations, each followed by its flush (or bracketed by its own lock), on all window flavours:
// one window and one place, and 64 windows in rotation.
#include <cstring>

#include "measures.h"
#include "windows.h"

namespace bench {
namespace {

// Each operation has: kBytes (what it touches at the target), kOwnEpoch (it locks by itself, so no lock_all around
// it), issue(), and three looks at data: prepare() and target_right() at the target, origin_right() at the origin.
struct Base {
    static constexpr std::size_t kBytes = 8;
    static constexpr bool kOwnEpoch = false;

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

    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        value = stamp(k, lap);
        MPI_Put(&value, 8, MPI_BYTE, kTarget, at, 8, MPI_BYTE, win);
        MPI_Win_flush(kTarget, win);
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
    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t) {
        MPI_Get(&results[k], 8, MPI_BYTE, kTarget, at, 8, MPI_BYTE, win);
        MPI_Win_flush(kTarget, win);
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

    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t) {
        const std::uint64_t one = 1;
        MPI_Fetch_and_op(&one, &results[k], MPI_UINT64_T, kTarget, at, MPI_SUM, win);
        MPI_Win_flush(kTarget, win);
    }
};

struct CompareAndSwap : Counting {
    using Counting::Counting;

    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        const std::uint64_t next = lap + 1;
        MPI_Compare_and_swap(&next, &lap, &results[k], MPI_UINT64_T, kTarget, at, win);
        MPI_Win_flush(kTarget, win);
    }
};

struct Accumulate : Counting {
    using Counting::Counting;

    void issue(MPI_Win win, MPI_Aint at, std::size_t, std::uint64_t) {
        const std::uint64_t one = 1;
        MPI_Accumulate(&one, 1, MPI_UINT64_T, kTarget, at, 1, MPI_UINT64_T, MPI_SUM, win);
        MPI_Win_flush(kTarget, win);
    }
    bool origin_right(std::size_t, std::uint64_t) const { return true; }
};

struct LockPutUnlock : Base {
    using Base::Base;
    static constexpr std::size_t kBytes = 32;
    static constexpr bool kOwnEpoch = true;
    std::uint64_t value[4] = {};

    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        value[0] = value[1] = value[2] = value[3] = stamp(k, lap);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, win);
        MPI_Put(value, 32, MPI_BYTE, kTarget, at, 32, MPI_BYTE, win);
        MPI_Win_unlock(kTarget, win);
    }
    bool target_right(const std::byte* at, std::size_t k, std::uint64_t runs) const {
        for (int i = 0; i < 4; ++i) {
            if (word(at + 8 * i) != (runs == 0 ? 0 : stamp(k, runs - 1))) return false;
        }
        return true;
    }
};

// 64 doubles at stride 2 at the target; the origin has the same layout or a contiguous one. First and last element
// carry the stamp, the others their index; what lies between must stay untouched.
template <int kOriginStride>
struct Vector : Base {
    static constexpr int kElements = 64;
    static constexpr std::size_t kBytes = (2 * kElements - 1) * sizeof(double);

    MPI_Datatype at_target = MPI_DATATYPE_NULL;
    double origin[2 * kElements] = {};

    explicit Vector(const Plan& plan) : Base(plan) {
        MPI_Type_vector(kElements, 1, 2, MPI_DOUBLE, &at_target);
        MPI_Type_commit(&at_target);
        for (int i = 0; i < kElements; ++i)
            origin[i * kOriginStride] = i;
    }
    ~Vector() { MPI_Type_free(&at_target); }
    Vector(const Vector&) = delete;
    Vector& operator=(const Vector&) = delete;

    void issue(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        const auto mark = static_cast<double>(stamp(k, lap));
        origin[0] = origin[(kElements - 1) * kOriginStride] = mark;
        if constexpr (kOriginStride == 2) {
            MPI_Put(origin, 1, at_target, kTarget, at, 1, at_target, win);
        } else {
            MPI_Put(origin, kElements, MPI_DOUBLE, kTarget, at, 1, at_target, win);
        }
        MPI_Win_flush(kTarget, win);
    }
    bool target_right(const std::byte* at, std::size_t k, std::uint64_t runs) const {
        if (runs == 0) return true;
        for (int i = 0; i < 2 * kElements - 1; ++i) {
            double value = 0;
            std::memcpy(&value, at + static_cast<std::size_t>(i) * sizeof value, sizeof value);
            double expected = i % 2 == 0 ? i / 2 : 0;
            if (i == 0 || i == 2 * kElements - 2) expected = static_cast<double>(stamp(k, runs - 1));
            if (value != expected) return false;
        }
        return true;
    }
};

template <class Op>
void run_small(const Context& c, const std::string& name, Flavour flavour, bool rotate) {
    const Plan plan = rotate ? rotating_plan(65536, Op::kBytes, 16, kSeed) : hot_plan(4096);
    WindowSet set(flavour, plan.windows, plan.window_bytes, c.comm);
    std::vector<MPI_Win> windows;
    std::vector<MPI_Aint> origins;
    for (int i = 0; i < set.count(); ++i) {
        windows.push_back(set.window(i));
        origins.push_back(set.origin_of(i, kTarget));
    }
    Op op(plan);
    auto place = [&](const Step& s) { return set.memory(static_cast<int>(s.window)) + s.offset; };
    if (c.target()) {
        set.own_begin();
        for (std::size_t k = 0; k < plan.steps.size(); ++k)
            op.prepare(place(plan.steps[k]), k);
        set.own_end();
    }
    MPI_Barrier(c.comm);
    Timing timing;
    Cursor cursor;
    if (c.origin()) {
        if (!Op::kOwnEpoch) set.lock_all();
        timing = timed(c.budget, plan.steps.size(), [&](std::uint64_t n) {
            for (; n > 0; --n) {
                const Step s = plan.steps[cursor.step];
                op.issue(windows[s.window], origins[s.window] + s.offset, cursor.step, cursor.lap);
                cursor.advance(plan.steps.size());
            }
        });
        if (!Op::kOwnEpoch) set.unlock_all();
    }
    // The target waits here, inside MPI, while the origin measures.
    MPI_Barrier(c.comm);
    const std::uint64_t total = c.agree(cursor.total);
    bool right = true;
    if (c.target()) set.own_begin();
    for (std::size_t k = 0; k < plan.steps.size(); ++k) {
        const std::uint64_t runs = plan.runs_of(k, total);
        if (c.origin()) right = right && op.origin_right(k, runs);
        if (c.target()) right = right && op.target_right(place(plan.steps[k]), k, runs);
    }
    if (c.target()) set.own_end();
    c.report(name, timing, right);
}

template <class Op>
void add(Measures& list, const std::string& operation, Flavour flavour) {
    const std::string name = operation + "." + name_of(flavour);
    for (const bool rotate : {false, true}) {
        list.push_back({rotate ? name + ".rot" : name, [flavour, rotate](const Context& c, const std::string& n) {
                            run_small<Op>(c, n, flavour, rotate);
                        }});
    }
}

}  // namespace

void add_small_measures(Measures& list) {
    for (const Flavour flavour : kFlavours) {
        add<Put>(list, "put8", flavour);
        add<Get>(list, "get8", flavour);
        add<FetchAndOp>(list, "fop", flavour);
        add<CompareAndSwap>(list, "cas", flavour);
        add<Accumulate>(list, "acc8", flavour);
        add<LockPutUnlock>(list, "lock_put32", flavour);
        add<Vector<2>>(list, "vector64", flavour);
        add<Vector<1>>(list, "vector64_packed", flavour);
    }
}

}  // namespace bench
