// Sorts portions by lock, and executes the portions of one lock together.
#include "local/updates.h"

#include <algorithm>
#include <array>
#include <new>
#include <numeric>

namespace osc::cma {
namespace {

// Portions from this length on are not collected: their data outweighs the two system calls.
constexpr std::size_t kAlone = std::size_t{1} << (shm::kStripeShift - 1);

// Shorter gaps between portions are read along with them, which is faster than another piece of the system call. A gap
// is much shorter than a page, so it lies in pages with portions, which are mapped.
constexpr std::uint64_t kGap = 256;

// The most portions under one lock: each costs the system a large part of a microsecond.
constexpr std::size_t kTogether = 512;

// Whether replacing an element sets all of its bytes except the padding between its parts. A long double has bytes that
// no value uses, which must keep their contents.
bool replaced_whole(Basic basic) {
    return basic != Basic::LongDouble && basic != Basic::CLongDouble && basic != Basic::LongDoubleInt;
}

}  // namespace

void Updates::add(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    how_ = how;
    Portion portion{static_cast<std::uint64_t>(disp), static_cast<const std::byte*>(origin),
                    static_cast<std::byte*>(result), 0, 0};
    while (count > 0 && fault_ == Fault::None) {
        const std::size_t n = shm::count_in_chunk(portion.disp, how.width, count);
        portion.count = static_cast<std::uint32_t>(n);
        portion.stripe = shm::ControlBlock::stripe_number(portion.disp);
        if (n * how.width >= kAlone) {
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
    const auto lower = [this](std::uint16_t a, std::uint16_t b) { return portions_[a].disp < portions_[b].disp; };
    if (!std::is_sorted(order.begin(), order.end(), lower)) std::sort(order.begin(), order.end(), lower);
    const auto overlap = [this](std::uint16_t a, std::uint16_t b) { return end(portions_[a]) > portions_[b].disp; };
    if (std::adjacent_find(order.begin(), order.end(), overlap) != order.end()) {
        // The operation touches an element twice: execute the portions one by one, in the order of the datatype.
        std::sort(order.begin(), order.end());
        for (std::size_t i = 0; i < order.size() && fault_ == Fault::None; ++i)
            run(portions_, order.subspan(i, 1));
        return;
    }
    while (!order.empty() && fault_ == Fault::None)
        order = order.subspan(run(portions_, order));
}

// Calls f(portion, at) for each portion: its elements go to byte `at` of the buffer. The buffer has the short gaps of
// the target's memory. Stops when f returns false.
template <class F>
void Updates::place(const Portion* portions, std::span<const std::uint16_t> order, F&& f) const {
    std::size_t at = 0;
    std::uint64_t last = portions[order.front()].disp;
    for (const std::uint16_t number : order) {
        const Portion& portion = portions[number];
        const std::uint64_t gap = portion.disp - last;
        if (gap <= kGap) at += gap;
        if (!f(portion, at)) return;
        at += portion.count * how_.width;
        last = end(portion);
    }
}

// Executes as many portions as fit in the buffer, at least one, and returns how many. The portions belong to one
// stripe, do not overlap, and are in ascending order. The buffer and kTogether bound the time under the lock. One
// portion always fits, although its last element may end behind the stripe's chunk.
std::size_t Updates::run(const Portion* portions, std::span<const std::uint16_t> order) {
    alignas(64) std::byte buffer[kRoom];
    order = order.first(std::min(order.size(), kTogether));
    std::size_t taken = 0;
    place(portions, order, [&](const Portion& portion, std::size_t at) {
        return at + portion.count * how_.width <= kRoom && ++taken != 0;
    });
    order = order.first(taken);
    int error = 0;
    const Fault dead = shm::with_stripe(stripes_, stripes_.target.stripes[portions[order.front()].stripe].holder, [&] {
        const bool returns = portions[order.front()].result != nullptr;
        if (returns || how_.op != Op::Replace || !replaced_whole(how_.basic)) error = read(portions, order, buffer);
        if (error != 0) return;
        bool changed = false;
        place(portions, order, [&](const Portion& portion, std::size_t at) {
            changed = change(how_, buffer + at, portion.origin, portion.result, portion.count);
            return true;
        });
        if (changed) error = write(portions, order, buffer);
    });
    fault_ = dead != Fault::None ? dead : fault_of(error, pid_);
    return taken;
}

int Updates::read(const Portion* portions, std::span<const std::uint16_t> order, std::byte* buffer) const {
    Batch batch(Direction::Read, pid_);
    std::uint64_t begin = portions[order.front()].disp;
    std::uint64_t last = begin;
    std::size_t from = 0;
    place(portions, order, [&](const Portion& portion, std::size_t at) {
        if (portion.disp - last > kGap) {
            batch.add(base_ + begin, buffer + from, last - begin);
            begin = portion.disp;
            from = at;
        }
        last = end(portion);
        return true;
    });
    batch.add(base_ + begin, buffer + from, last - begin);
    return batch.finish();
}

// Writes the data of the elements only. Other processes may write to the gaps between them and to their padding.
int Updates::write(const Portion* portions, std::span<const std::uint16_t> order, std::byte* buffer) const {
    const bool padded = op::significant_size(how_.basic) != how_.width;
    Batch batch(Direction::Write, pid_);
    const op::DataRuns runs = padded ? op::data_runs(how_.basic) : op::DataRuns{};
    place(portions, order, [&](const Portion& portion, std::size_t at) {
        if (!padded) {
            batch.add(base_ + portion.disp, buffer + at, portion.count * how_.width);
            return true;
        }
        for (std::size_t i = 0; i < portion.count; ++i)
            for (int p = 0; p < runs.count; ++p) {
                const std::size_t skip = i * how_.width + static_cast<std::size_t>(runs.run[p].offset);
                batch.add(base_ + portion.disp + skip, buffer + at + skip, runs.run[p].size);
            }
        return true;
    });
    return batch.finish();
}

}  // namespace osc::cma
