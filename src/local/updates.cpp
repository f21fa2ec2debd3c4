// Sorts portions by lock, and executes the portions of one lock together.
#include "local/updates.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <numeric>
#include <utility>

#include "local/image.h"

namespace osc::cma {
namespace {

// Portions from this length on are not collected: a chunk has room for few of them.
constexpr std::size_t kAlone = std::size_t{1} << (shm::kStripeShift - 1);

// The most portions under one lock: each costs the system a large part of a microsecond.
constexpr std::size_t kTogether = 512;

// Whether replacing an element sets all of its bytes except the padding between its parts. A long double has bytes that
// no value uses, which must keep their contents.
bool replaced_whole(Basic basic) {
    return basic != Basic::LongDouble && basic != Basic::CLongDouble && basic != Basic::LongDoubleInt;
}

// Adds the data of `count` elements at `address`, not their padding: other processes may write to it.
void add_data(PieceList& writes, const Update& how, std::uint64_t address, std::byte* copy, std::size_t count) {
    if (op::significant_size(how.basic) == how.width) return writes.add(address, copy, count * how.width);
    const op::DataRuns runs = op::data_runs(how.basic);
    for (std::size_t i = 0; i < count; ++i)
        for (int p = 0; p < runs.count; ++p) {
            const std::size_t skip = i * how.width + static_cast<std::size_t>(runs.run[p].offset);
            writes.add(address + skip, copy + skip, runs.run[p].size);
        }
}

}  // namespace

void Updates::add(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    Portion portion{static_cast<std::uint64_t>(disp),
                    &how,
                    static_cast<const std::byte*>(origin),
                    static_cast<std::byte*>(result),
                    nullptr,
                    0,
                    0};
    while (count > 0 && fault_ == Fault::None) {
        const bool alone = count * how.width >= kAlone;
        const std::size_t n = shm::count_in_chunk(portion.disp, how.width, count, alone ? kMostChunks : 1);
        portion.count = static_cast<std::uint32_t>(n);
        portion.stripe = shm::ControlBlock::stripe_number(portion.disp);
        if (alone) {
            execute();
            if (fault_ == Fault::None) run(&portion, std::array<std::uint16_t, 1>{0});
        } else {
            if (count_ == capacity_ && !grow()) execute();
            portions_[count_++] = portion;
        }
        portion.disp += n * how.width;
        if (portion.origin != nullptr) portion.origin += n * how.width;
        if (portion.result != nullptr) portion.result += n * how.width;
        count -= n;
    }
}

Fault Updates::finish() {
    execute();
    return fault_;
}

// Makes room for more than kFew portions; false if there is room already or no memory.
bool Updates::grow() {
    if (many_ != nullptr) return false;
    many_.reset(new (std::nothrow) Portion[kMost]);
    if (many_ == nullptr) return false;
    std::copy_n(few_, count_, many_.get());
    portions_ = many_.get();
    capacity_ = kMost;
    return true;
}

// Executes all collected portions, stripe by stripe. Portions keep their order within a stripe.
void Updates::execute() {
    if (count_ == 0 || fault_ != Fault::None) return;
    if (count_ == 1) {  // nothing to sort
        run(portions_, std::array<std::uint16_t, 1>{0});
        count_ = 0;
        return;
    }
    std::array<std::uint16_t, kMost> order;
    std::array<std::uint16_t, shm::kStripes + 1> starts{};
    for (std::size_t i = 0; i < count_; ++i)
        ++starts[portions_[i].stripe + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::array<std::uint16_t, shm::kStripes + 1> next = starts;
    for (std::size_t i = 0; i < count_; ++i)
        order[next[portions_[i].stripe]++] = static_cast<std::uint16_t>(i);
    for (std::size_t i = 0; i < shm::kStripes; ++i)
        execute_stripe(Order(order).subspan(starts[i], static_cast<std::size_t>(starts[i + 1] - starts[i])));
    count_ = 0;
}

void Updates::execute_stripe(Order order) {
    const auto lower = [this](std::uint16_t a, std::uint16_t b) {
        return portions_[a].disp != portions_[b].disp ? portions_[a].disp < portions_[b].disp : a < b;
    };
    if (!std::is_sorted(order.begin(), order.end(), lower)) std::sort(order.begin(), order.end(), lower);
    const auto overlap = [this](std::uint16_t a, std::uint16_t b) {
        return portions_[a].end() > portions_[b].disp &&
               (portions_[a].disp != portions_[b].disp || portions_[a].end() != portions_[b].end());
    };
    if (std::adjacent_find(order.begin(), order.end(), overlap) != order.end()) {
        // Some portions share a part of their elements: execute all one by one, in the order of the calls.
        std::sort(order.begin(), order.end());
        for (std::size_t i = 0; i < order.size() && fault_ == Fault::None; ++i)
            run(portions_, order.subspan(i, 1));
        return;
    }
    while (!order.empty() && fault_ == Fault::None)
        order = order.subspan(run(portions_, order));
}

// Executes as many portions as fit in the buffer, at least one, and returns how many. The portions belong to one
// stripe, are in ascending order, and overlap only if they are the same elements, which then have one copy; or it is
// one portion of several chunks. The buffer and kTogether bound the time under the locks. One portion always fits,
// although its last element may end behind the last chunk.
//
// Gaps are read, and never written: puts take no lock, so another process may put to a gap between the two calls.
//
// Once a portion has gone by the detour, all do, so that updates of one element keep their order.
std::size_t Updates::run(Portion* portions, std::span<const std::uint16_t> order) {
    if (detour_ != nullptr && detour_->is_open()) {
        pass(portions, order);
        return order.size();
    }
    const std::span<std::byte> room = Image::room();
    if (room.empty()) {
        fault_ = fault_of(ENOMEM, pid_);
        return order.size();
    }
    Image image(pid_, room.first(kRoom));
    order = order.first(std::min(order.size(), kTogether));
    std::size_t taken = 0;
    int error = 0;
    bool moved = false;  // some elements are written
    const Portion& front = portions[order.front()];
    const std::uint32_t locks = shm::stripes_between(front.disp, front.end() - front.how->width);
    const Fault dead = shm::with_stripes(stripes_, locks, [&] {
        bool reads = false;
        for (const std::uint16_t number : order) {
            Portion& portion = portions[number];
            portion.copy = image.place(base_ + portion.disp, portion.bytes());
            if (portion.copy == nullptr) break;
            ++taken;
            reads |= portion.result != nullptr || portion.how->op != Op::Replace || !replaced_whole(portion.how->basic);
        }
        order = order.first(taken);
        if (reads) error = image.read();
        if (error != 0) return;
        bool changed = false;
        for (const std::uint16_t number : order) {
            const Portion& portion = portions[number];
            changed |= change(*portion.how, portion.copy, portion.origin, portion.result, portion.count);
        }
        if (!changed) return;
        PieceList writes(Direction::Write, pid_);
        const std::byte* last = nullptr;
        for (const std::uint16_t number : order) {
            const Portion& portion = portions[number];
            if (portion.copy != std::exchange(last, portion.copy))
                add_data(writes, *portion.how, base_ + portion.disp, portion.copy, portion.count);
        }
        error = writes.finish();
        moved = writes.has_moved();
    });
    // The agent waits for the locks too, so they are free before it is asked.
    if (error != 0 && !moved && detour_ != nullptr && detour_->takes(error)) {
        pass(portions, order);
        return taken;
    }
    fault_ = dead != Fault::None ? dead : fault_of(error, pid_);
    return taken;
}

void Updates::pass(const Portion* portions, std::span<const std::uint16_t> order) {
    for (const std::uint16_t number : order) {
        const Portion& portion = portions[number];
        detour_->update(*portion.how, portion.disp, portion.origin, portion.result, portion.count);
    }
}

}  // namespace osc::cma
