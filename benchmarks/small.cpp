// Small passive-target operations, each followed by its flush or MPI_Wait (or bracketed by its own lock), on all window
// flavours: one window and one place, and 64 windows in rotation.
#include <cstring>

#include "measures.h"
#include "small_ops.h"
#include "windows.h"

namespace bench {
namespace {

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

    void call(MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
        const auto mark = static_cast<double>(stamp(k, lap));
        origin[0] = origin[(kElements - 1) * kOriginStride] = mark;
        if constexpr (kOriginStride == 2) {
            MPI_Put(origin, 1, at_target, kTarget, at, 1, at_target, win);
        } else {
            MPI_Put(origin, kElements, MPI_DOUBLE, kTarget, at, 1, at_target, win);
        }
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
        add<Flushed<Put>>(list, "put8", flavour);
        add<Flushed<Get>>(list, "get8", flavour);
        add<Flushed<FetchAndOp>>(list, "fop", flavour);
        add<Flushed<CompareAndSwap>>(list, "cas", flavour);
        add<Flushed<Accumulate>>(list, "acc8", flavour);
        add<Flushed<GetAccumulate>>(list, "get_acc8", flavour);
        add<PutAndWait>(list, "rput_wait", flavour);
        add<GetAndWait>(list, "rget_wait", flavour);
        add<Locked<Put32>>(list, "lock_put32", flavour);
        add<Locked<Get>>(list, "lock_get8", flavour);
        add<Locked<FetchAndOp>>(list, "lock_fop", flavour);
        add<Locked<Accumulate>>(list, "lock_acc8", flavour);
        add<Locked<PutAndGet>>(list, "lock_put_get", flavour);
        add<Flushed<Vector<2>>>(list, "vector64", flavour);
        add<Flushed<Vector<1>>>(list, "vector64_packed", flavour);
    }
}

}  // namespace bench
