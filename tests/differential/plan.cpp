// Chooses operations and finds places for them.
#include "plan.h"

#include <algorithm>
#include <numeric>

#include "steps.h"

namespace diff {
namespace {

// The uses of the bytes of one target.
struct Uses {
    enum : unsigned char { Free, Read, Written };
    std::vector<unsigned char> now;       // in this phase
    std::vector<unsigned char> earlier;   // in an earlier phase: 1
    std::vector<unsigned char> reserved;  // prepared by the owner for accumulates of a phase: 1
    explicit Uses(std::size_t bytes) : now(bytes, Free), earlier(bytes, 0), reserved(bytes, 0) {}
};

class Planner {
  public:
    Planner(Round& round, const Place& place, Model& model, bool host_safe, Random& random)
        : round_(round), place_(place), model_(model), host_safe_(host_safe), random_(random) {
        for (int rank = 0; rank < place.ranks(); ++rank)
            uses_.emplace_back(place.size(rank));
        MPI_Comm_rank(MPI_COMM_WORLD, &me_);
        loose_ = !host_safe && random.once_in(3);
    }

    void phase() {
        round_.phases.emplace_back();
        const int cells = random_.between(4, 10 + 2 * place_.ranks());
        for (int i = 0; i < cells; ++i) {
            switch (random_.below(14)) {
                case 0:
                case 1:
                case 2:
                    put();
                    break;
                case 3:
                case 4:
                case 5:
                    get();
                    break;
                case 6:
                case 7:
                case 8:
                case 9:
                    ordered();
                    break;
                case 10:
                case 11:
                    shared(false);
                    break;
                case 12:
                    shared(true);
                    break;
                default:
                    race();
            }
        }
        round_.phases.back().after = memory(me_);
        for (Uses& uses : uses_) {
            for (std::size_t i = 0; i < uses.now.size(); ++i)
                uses.earlier[i] |= uses.now[i] != Uses::Free;
            std::fill(uses.now.begin(), uses.now.end(), Uses::Free);
        }
    }

  private:
    Uses& uses(int rank) { return uses_[static_cast<std::size_t>(rank)]; }
    Bytes& memory(int rank) { return model_[static_cast<std::size_t>(rank)]; }
    int any_rank() { return static_cast<int>(random_.below(static_cast<std::size_t>(place_.ranks()))); }
    Shape any_shape() { return static_cast<Shape>(random_.below(kShapesToMake)); }

    // One of the four forms of a call, `first` being the plain one.
    Call form_of(Call first) {
        const std::size_t form = random_.below(passive(round_.sync) ? 4 : 2);
        return static_cast<Call>(static_cast<std::size_t>(first) + 4 * form);
    }

    const Basic& any_basic() {
        for (;;) {
            const Basic& basic = random_.pick(basics());
            if (basic.group == Group::Pair || !random_.once_in(8)) return basic;
        }
    }

    std::size_t any_elements(std::size_t bytes_at_target, std::size_t width) {
        static const std::vector<std::size_t> numbers = {1, 1, 2, 3, 4, 6, 8, 12, 24, 48, 120, 360, 720};
        for (;;) {
            const std::size_t n = random_.pick(numbers);
            if (n == 1 || n * width * 2 <= bytes_at_target) return n;
        }
    }

    std::size_t alignment(int target, const Basic& basic) const {
        const std::size_t unit = place_.unit(target);
        return loose_ ? unit : std::lcm(unit, basic.align);
    }

    template <class F>
    void each_byte(const Basic& basic, const std::vector<std::ptrdiff_t>& at, std::ptrdiff_t start, F&& f) const {
        for (const std::ptrdiff_t element : at)
            for (int p = 0; p < basic.piece_count; ++p) {
                // The host may write the gap of a pair, so nothing else may live there.
                const std::size_t offset = host_safe_ ? 0 : basic.pieces[p].offset;
                const std::size_t bytes = host_safe_ ? basic.width : basic.pieces[p].bytes;
                for (std::size_t i = 0; i < bytes; ++i)
                    f(static_cast<std::size_t>(start + element) + offset + i);
            }
    }

    // A start for elements `at` (in [low, high)) whose bytes pass `free`; -1 if none is found.
    template <class Free>
    std::ptrdiff_t search(int target, const Basic& basic, const std::vector<std::ptrdiff_t>& at, std::ptrdiff_t low,
                          std::ptrdiff_t high, Free&& free) {
        const auto size = static_cast<std::ptrdiff_t>(place_.size(target));
        const auto step = static_cast<std::ptrdiff_t>(alignment(target, basic));
        for (int attempt = 0; attempt < 12 && high - low <= size; ++attempt) {
            const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, -low);
            const std::ptrdiff_t last = size - high;
            if (last < first) return -1;
            const auto spot =
                first + static_cast<std::ptrdiff_t>(random_.below(static_cast<std::size_t>(last - first + 1)));
            const std::ptrdiff_t start = spot / step * step;
            if (start < first || !place_.holds(target, start + low, start + high)) continue;
            bool good = true;
            each_byte(basic, at, start, [&](std::size_t byte) { good = good && free(byte); });
            if (good) return start;
        }
        return -1;
    }

    Operation make(Call call, int origin, int target, const Basic& basic, Layout there) {
        Operation op;
        op.call = call;
        op.origin = origin;
        op.target = target;
        op.basic = &basic;
        op.there = std::move(there);
        const bool single = call == Call::FetchAndOp || call == Call::CompareAndSwap;
        const std::size_t n = op.elements();
        op.here = make_layout(basic, single ? Shape::Plain : any_shape(), n, random_);
        if (op.fetches()) op.back = make_layout(basic, single ? Shape::Plain : any_shape(), n, random_);
        if (!op.fills_here()) {
            op.data.assign(n * basic.width, 0xee);
            for (std::size_t i = 0; i < n; ++i)
                basic.make(random_, op.data.data() + i * basic.width);
        }
        return op;
    }

    static bool runs(const Operation& op) {
        return steps().take([&] { return op.describe(); });
    }

    void issue(Operation op) {
        if (!runs(op)) return round_.phases.back().dropped.push_back(std::move(op));
        apply(op, memory(op.target), host_safe_);
        round_.phases.back().operations.push_back(std::move(op));
    }

    void put() {
        const int target = any_rank();
        const Basic& basic = any_basic();
        const Call call = form_of(Call::Put);
        Layout there = make_layout(basic, any_shape(), any_elements(place_.size(target), basic.width), random_);
        Uses& used = uses(target);
        const std::ptrdiff_t start = search(target, basic, there.at, there.low, there.high, [&](std::size_t byte) {
            return used.now[byte] == Uses::Free && used.reserved[byte] == 0;
        });
        if (start < 0) return there.release();
        each_byte(basic, there.at, start, [&](std::size_t byte) { used.now[byte] = Uses::Written; });
        const bool read_back = passive(round_.sync) && random_.once_in(3);
        Operation op = make(call, any_rank(), target, basic, there);
        op.start = start;
        op.flush_after = read_back;
        const int origin = op.origin;
        if (!read_back) return issue(std::move(op));
        op.there.derived = false;
        issue(std::move(op));
        Operation get = make(form_of(Call::Get), origin, target, basic, there);
        get.start = start;
        if (!random_.once_in(3)) return issue(std::move(get));
        // And another put over what has been read.
        get.there.derived = false;
        get.flush_after = true;
        issue(std::move(get));
        Operation again = make(form_of(Call::Put), origin, target, basic, there);
        again.start = start;
        issue(std::move(again));
    }

    void get() {
        const int target = any_rank();
        const Basic& basic = any_basic();
        Layout there = make_layout(basic, any_shape(), any_elements(place_.size(target), basic.width), random_);
        Uses& used = uses(target);
        const std::ptrdiff_t start = search(target, basic, there.at, there.low, there.high,
                                            [&](std::size_t byte) { return used.now[byte] != Uses::Written; });
        if (start < 0) return there.release();
        each_byte(basic, there.at, start, [&](std::size_t byte) { used.now[byte] = Uses::Read; });
        Operation op = make(form_of(Call::Get), any_rank(), target, basic, there);
        op.start = start;
        issue(std::move(op));
    }

    // Reserves `at` for accumulates and has the owner store numbers there before the round.
    bool prepare(int target, const Basic& basic, const std::vector<std::ptrdiff_t>& at, std::ptrdiff_t low,
                 std::ptrdiff_t high, std::ptrdiff_t& start) {
        Uses& used = uses(target);
        start = search(target, basic, at, low, high, [&](std::size_t byte) {
            return used.now[byte] == Uses::Free && used.earlier[byte] == 0 && used.reserved[byte] == 0;
        });
        if (start < 0) return false;
        each_byte(basic, at, start, [&](std::size_t byte) {
            used.now[byte] = Uses::Written;
            used.reserved[byte] = 1;
        });
        std::vector<unsigned char> number(basic.width);
        for (const std::ptrdiff_t element : at) {
            basic.make(random_, number.data());
            for (int p = 0; p < basic.piece_count; ++p) {
                const auto [offset, bytes] = basic.pieces[p];
                const std::size_t byte = static_cast<std::size_t>(start + element) + offset;
                round_.refresh.push_back({target, byte, {number.data() + offset, number.data() + offset + bytes}});
                for (Phase& phase : round_.phases)
                    if (target == me_ && !phase.after.value.empty())
                        std::copy_n(number.begin() + static_cast<std::ptrdiff_t>(offset), bytes,
                                    phase.after.value.begin() + static_cast<std::ptrdiff_t>(byte));
                for (std::size_t i = 0; i < bytes; ++i) {
                    memory(target).value[byte + i] = number[offset + i];
                    memory(target).known[byte + i] = 1;
                }
            }
        }
        return true;
    }

    Red any_red(const Basic& basic) {
        for (;;) {
            const Red red = static_cast<Red>(random_.below(static_cast<std::size_t>(Red::Count)));
            // MPICH 4.0.2 compares unsigned integers and bytes as signed ones.
            const bool is_order = red == Red::Max || red == Red::Min;
            const std::string name = basic.name;
            if (host_safe_ && is_order && (name.starts_with("MPI_U") || name == "MPI_BYTE")) continue;
            if (admits(red, basic)) return red;
        }
    }

    // Accumulates of one origin on one place: the default ordering makes their results exact.
    void ordered() {
        const int target = any_rank();
        const int origin = any_rank();
        const Basic& basic = any_basic();
        Layout there = make_layout(basic, any_shape(), any_elements(place_.size(target), basic.width), random_);
        std::ptrdiff_t start = 0;
        if (!prepare(target, basic, there.at, there.low, there.high, start)) return there.release();
        const int calls = random_.between(2, 6);
        for (int i = 0; i < calls; ++i) {
            const std::size_t kind = i + 1 < calls ? random_.below(6) : 0;
            Operation op;
            if (kind >= 4) {
                const bool swap = kind == 5 && basic.comparable;
                const std::size_t which = random_.below(there.at.size());
                op = make(swap ? Call::CompareAndSwap : Call::FetchAndOp, origin, target, basic,
                          make_layout(basic, Shape::Plain, 1, random_));
                op.start = start + there.at[which];
                if (op.start % static_cast<std::ptrdiff_t>(place_.unit(target)) != 0) {
                    op.here.release();
                    continue;
                }
                if (swap) {
                    const unsigned char* now = memory(target).value.data() + op.start;
                    op.compare.assign(now, now + basic.width);
                    if (random_.once_in(3)) op.compare[random_.below(basic.width)] ^= 1;
                }
            } else {
                op = make(form_of(kind < 2 ? Call::Accumulate : Call::GetAccumulate), origin, target, basic, there);
                op.there.derived = there.derived && i + 1 == calls;
                op.start = start;
            }
            do
                op.red = any_red(basic);
            while (op.red == Red::NoOp && !op.fetches());  // 12.3.4: not for the accumulates that fetch nothing
            // The products of two large factors may not be exact.
            if (op.red == Red::Prod && i > 3) op.red = Red::Sum;
            issue(std::move(op));
        }
    }

    // Accumulates of many origins that commute; `counting`: all add 1 and fetch.
    void shared(bool counting) {
        const int target = any_rank();
        const Basic* basic = &any_basic();
        while (counting && !basic->countable)
            basic = &any_basic();
        Red red = Red::Sum;
        while (!counting && !commutes(red = any_red(*basic), *basic)) {
            if (basic->group == Group::Text) basic = &any_basic();
        }
        const std::size_t cell = any_elements(place_.size(target), basic->width);
        const Layout all = make_layout(*basic, Shape::Plain, cell, random_);
        std::ptrdiff_t start = 0;
        if (!prepare(target, *basic, all.at, all.low, all.high, start)) return;
        const int calls = place_.ranks() + random_.between(0, 2);
        for (int i = 0; i < calls; ++i) {
            const bool single = random_.once_in(4);
            const std::size_t n = single ? 1 : std::max<std::size_t>(1, cell / random_.pick<std::size_t>({1, 1, 2, 3}));
            Layout there = make_layout(*basic, single || random_.once_in(2) ? Shape::Plain : any_shape(), n, random_);
            const auto slack = (all.high - all.low) - (there.high - there.low);
            const std::ptrdiff_t width = static_cast<std::ptrdiff_t>(basic->width);
            const std::ptrdiff_t first = slack < 0 ? -1
                                                   : start - there.low +
                                                         width * static_cast<std::ptrdiff_t>(random_.below(
                                                                     static_cast<std::size_t>(slack / width + 1)));
            if (first < 0 || first % static_cast<std::ptrdiff_t>(place_.unit(target)) != 0) {
                there.release();
                continue;
            }
            Call call = form_of(counting || random_.once_in(2) ? Call::GetAccumulate : Call::Accumulate);
            if (single && !there.derived && random_.once_in(2)) call = Call::FetchAndOp;
            Operation op = make(call, i < place_.ranks() ? i : any_rank(), target, *basic, there);
            op.start = first;
            op.red = red;
            if (counting) {
                for (std::size_t k = 0; k < op.elements(); ++k)
                    basic->make_number(1, op.data.data() + k * basic->width);
            }
            op.check = counting ? Check::Counter : Check::Nothing;
            op.cell = start;
            issue(std::move(op));
        }
    }

    // All ranks compare with the current value: one swap succeeds, and the others return the winner's value.
    void race() {
        const int target = any_rank();
        const Basic* basic = &any_basic();
        while (!basic->comparable || basic->width < 4)
            basic = &any_basic();
        const Layout one = make_layout(*basic, Shape::Plain, 1, random_);
        std::ptrdiff_t start = 0;
        if (!prepare(target, *basic, one.at, one.low, one.high, start)) return;
        const Bytes& bytes = memory(target);
        const std::vector<unsigned char> before(bytes.value.begin() + start, bytes.value.begin() + start + one.high);
        std::vector<Operation>& operations = round_.phases.back().operations;
        const std::size_t others = operations.size();
        for (int rank = 0; rank < place_.ranks(); ++rank) {
            Operation op = make(Call::CompareAndSwap, rank, target, *basic, one);
            op.start = start;
            op.compare = before;
            op.data = before;
            op.data[0] = static_cast<unsigned char>(before[0] ^ (rank + 1));
            op.check = Check::Race;
            op.cell = start;
            op.result = Bytes(basic->width);
            if (runs(op)) operations.push_back(std::move(op));
        }
        if (operations.size() == others) return;
        for (std::ptrdiff_t byte = start; byte < start + one.high; ++byte)
            memory(target).known[static_cast<std::size_t>(byte)] = 0;
    }

    Round& round_;
    const Place& place_;
    Model& model_;
    bool host_safe_;
    Random& random_;
    bool loose_ = false;  // elements at any byte that the displacement unit allows
    int me_ = 0;
    std::vector<Uses> uses_;
};

}  // namespace

bool Round::empty() const {
    return std::all_of(phases.begin(), phases.end(), [](const Phase& phase) { return phase.operations.empty(); });
}

void Round::release() {
    for (Phase& phase : phases)
        for (std::vector<Operation>* operations : {&phase.operations, &phase.dropped})
            for (Operation& op : *operations) {
                op.here.release();
                op.back.release();
                op.there.release();
            }
}

Round plan_round(Sync sync, const Place& place, Model& model, bool host_safe, Random& random) {
    Round round;
    round.sync = sync;
    Planner planner(round, place, model, host_safe, random);
    const int phases = locks_all(sync) || sync == Sync::Fence || sync == Sync::FenceAsserts ? random.between(1, 3) : 1;
    for (int i = 0; i < phases; ++i)
        planner.phase();
    return round;
}

}  // namespace diff
