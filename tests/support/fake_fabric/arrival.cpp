// The work of a poll: it moves due data into the target's memory and reports events to the origin and the target.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fake_fabric/fabric.h"
#include "op/kernels.h"

namespace osc::fake {
// The target memory of an operation; null if the target does not expose it.
std::byte* Fabric::find(Node& node, const Parcel& parcel) {
    const auto found = node.regions.find(parcel.key);
    if (found == node.regions.end()) return nullptr;
    const Region& region = found->second;
    const std::uint64_t offset = parcel.address - region.first;
    return offset <= region.bytes && parcel.bytes <= region.bytes - offset ? region.base + offset : nullptr;
}

// Executes the due part of an operation at the target; false if another part is still to arrive.
bool Fabric::arrive(Node& node, Parcel& parcel, int& error) {
    std::byte* const memory = find(node, parcel);
    if (memory == nullptr) {
        error = EACCES;
        return true;
    }
    node.moved = true;
    node.bell.notify_one();
    if (parcel.kind == ParcelKind::Read) {
        parcel.data.assign(memory, memory + parcel.bytes);
        return true;
    }
    if (parcel.kind == ParcelKind::Atomic) return update(memory, parcel);
    return store(memory, parcel);
}

// The row's previous values are in `data` until the operation ends.
bool Fabric::update(std::byte* memory, Parcel& parcel) {
    const fabric::AtomicRow& row = *parcel.row;
    if (parcel.parts == 0) {
        parcel.parts = is_flawed(Flaw::SplitsAtomics) ? 2 : 1;
        parcel.data.assign(memory, memory + row.bytes);
        parcel.due = now_ + kFlawLasts;
        if (parcel.parts == 2) return false;
    }
    std::vector<std::byte> after = parcel.data;
    const std::size_t width = row.bytes / row.count;
    if (row.form != fabric::RowForm::Swap) {
        if (row.op != Op::NoOp) op::kernel(row.op, row.type)(after.data(), row.operands(), row.count);
    } else {
        for (std::size_t at = 0; at < row.bytes; at += width)
            if (std::memcmp(after.data() + at, row.expected() + at, width) == 0)
                std::memcpy(after.data() + at, row.operands() + at, width);
    }
    std::memcpy(memory, after.data(), row.bytes);
    return true;
}

bool Fabric::store(std::byte* memory, Parcel& parcel) {
    if (parcel.parts == 0) {
        const bool split = parcel.bytes > 1 && chance(behaviour_.splits);
        parcel.parts = split ? 2 : 1;
        parcel.cut = split ? 1 + random_() % (parcel.bytes - 1) : 0;
        parcel.back_first = split && chance(2);
        parcel.due = later();
        totals_.split += split ? 1 : 0;
    }
    const std::byte* const data = parcel.memory != nullptr ? parcel.memory : parcel.data.data();
    const bool back = parcel.parts == 1 || (parcel.arrived == 0) == parcel.back_first;
    const std::size_t begin = back ? parcel.cut : 0;
    const std::size_t bytes = back ? parcel.bytes - parcel.cut : parcel.cut;
    std::memcpy(memory + begin, data + begin, bytes);
    return ++parcel.arrived == parcel.parts;
}

// Moves the due operations of a channel, in the order of their posts.
void Fabric::move_channel(Node& node, std::deque<SharedParcel>& channel) {
    while (!channel.empty() && channel.front()->due <= now_) {
        const SharedParcel parcel = channel.front();
        capture(*parcel);
        if (is_flawed(Flaw::DamagesMessages))
            parcel->data[random_() % parcel->data.size()] ^= std::byte{1} << (random_() % 8);
        if (!is_flawed(Flaw::LosesMessages)) node.inbox.push_back(parcel);
        if (is_flawed(Flaw::RepeatsMessages)) node.inbox.push_back(parcel);
        channel.pop_front();
        complete(parcel, 0);
    }
}

void Fabric::move(std::uint32_t number) {
    Node& node = *nodes_[number];
    if (node.dead || !node.open) return;
    const std::size_t senders = node.channels.size();
    const std::size_t first = random_() % senders;
    for (std::size_t i = 0; i < senders; ++i)
        move_channel(node, node.channels[(first + i) % senders]);
    // Due operations outside the channels arrive in random order.
    std::vector<SharedParcel> due;
    std::erase_if(node.loose, [&](const SharedParcel& parcel) {
        if (parcel->due > now_) return false;
        due.push_back(parcel);
        return true;
    });
    std::shuffle(due.begin(), due.end(), random_);
    for (const SharedParcel& parcel : due) {
        int error = 0;
        if (!arrive(node, *parcel, error))
            node.loose.push_back(parcel);
        else
            complete(parcel, error);
    }
}

// Moves all data that one poll moves.
void Fabric::progress(std::uint32_t number) {
    ++now_;
    if (!behaviour_.automatic_progress) return move(number);
    for (std::uint32_t each = 0; each < nodes_.size(); ++each)
        move(each);
}

// Stores a result at the origin, before the end of the operation is reported.
void Fabric::land(Parcel& parcel) {
    if (parcel.kind == ParcelKind::Read && !parcel.flawed)
        std::memcpy(parcel.memory, parcel.data.data(), parcel.bytes);
    else if (parcel.row != nullptr && parcel.row->form != fabric::RowForm::Update)
        std::memcpy(parcel.row->before(), parcel.data.data(), parcel.row->bytes);
}

bool Fabric::pending(const Node& node) const {
    return !node.loose.empty() || !node.inbox.empty() || !node.completions.empty() ||
           std::ranges::any_of(node.channels, [](const auto& channel) { return !channel.empty(); });
}

// Collects the events that one poll reports.
void Fabric::collect(std::uint32_t number, std::vector<Event>& events) {
    Node& node = *nodes_[number];
    const std::size_t most = 1 + random_() % std::max(behaviour_.burst, 1u);
    while (events.size() < most) {
        const bool message = !node.inbox.empty() && (node.completions.empty() || chance(2));
        if (message) {
            events.push_back({std::move(node.inbox.front()), nullptr, 0});
            node.inbox.pop_front();
            continue;
        }
        if (node.completions.empty()) return;
        const std::size_t at = random_() % node.completions.size();
        std::swap(node.completions[at], node.completions.back());
        const Completion last = node.completions.back();
        if (last.due > now_) {
            if (node.inbox.empty()) return;
            continue;
        }
        node.completions.pop_back();
        --node.under_way;
        Parcel& parcel = *last.parcel;
        if (last.error == 0) land(parcel);
        if (parcel.operation == nullptr) continue;
        // The buffer is the caller's from now on, so a violation must have been found by here.
        if (parcel.kind == ParcelKind::Message && !parcel.flawed) capture(parcel);
        events.push_back({nullptr, std::exchange(parcel.operation, nullptr), last.error});
    }
}

}  // namespace osc::fake
