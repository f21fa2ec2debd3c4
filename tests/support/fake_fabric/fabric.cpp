// The way of an operation: post, arrival at the target, completion at the origin.
#include "fake_fabric/fabric.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace osc::fake {
namespace {

std::uint64_t sum_of(const std::byte* memory, std::size_t bytes) {
    std::uint64_t sum = 0xcbf29ce484222325;
    for (; bytes >= sizeof sum; memory += sizeof sum, bytes -= sizeof sum) {
        std::uint64_t word = 0;
        std::memcpy(&word, memory, sizeof word);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15 + (sum >> 29);
    }
    for (; bytes > 0; ++memory, --bytes)
        sum = (sum ^ static_cast<std::uint64_t>(*memory)) * 0x100000001b3;
    return sum;
}

}  // namespace

Fabric::Fabric(const Behaviour& behaviour) : behaviour_(behaviour), random_(behaviour.seed) {}

Fabric::~Fabric() = default;

Totals Fabric::totals() const {
    const std::lock_guard lock(mutex_);
    return totals_;
}

std::uint64_t Fabric::violations(std::string& first) const {
    const std::lock_guard lock(mutex_);
    first = first_violation_;
    return violations_;
}

void Fabric::violation(const char* what) {
    if (violations_++ == 0) first_violation_ = what;
}

bool Fabric::is_flawed(Flaw flaw) {
    if (behaviour_.flaw != flaw || !chance(behaviour_.flawed)) return false;
    ++totals_.flawed;
    return true;
}

// The caller holds the mutex, also for all following functions.
fabric::Posted Fabric::post(Parcel&& parcel) {
    if (parcel.to >= nodes_.size()) {
        violation("an operation to a peer that was never inserted");
        return fabric::Posted::Failed;
    }
    Node& origin = *nodes_[parcel.from];
    Node& target = *nodes_[parcel.to];
    const bool lost = target.dead || !target.open;
    const bool full = origin.under_way >= behaviour_.queue || random_() % 1000 < behaviour_.full;
    if (full || origin.dead || (lost && behaviour_.dead == DeadPeer::Full)) {
        ++totals_.full;
        return fabric::Posted::Again;
    }
    if (parcel.kind == ParcelKind::Message) parcel.sum = sum_of(parcel.memory, parcel.bytes);
    if (parcel.operation == nullptr) capture(parcel);
    parcel.due = later();
    const auto shared = std::make_shared<Parcel>(std::move(parcel));
    ++origin.under_way;
    if (lost && behaviour_.dead == DeadPeer::Silent) {
        target.loose.push_back(shared);
        return fabric::Posted::Yes;
    }
    if (lost || random_() % 1000000 < behaviour_.errors) {
        complete(shared, lost ? EHOSTUNREACH : EIO);
        return fabric::Posted::Yes;
    }
    switch (shared->kind) {
        case ParcelKind::Message: {
            ++totals_.messages;
            if (behaviour_.transmit_complete && shared->operation != nullptr) {
                if (is_flawed(Flaw::EndsSendsEarly)) shared->flawed = true;
                complete(shared, 0);
            }
            auto& channel = target.channels[shared->from];
            channel.push_back(shared);
            if (channel.size() > 1 && is_flawed(Flaw::SwapsMessages))
                std::swap(channel[channel.size() - 1], channel[channel.size() - 2]);
            break;
        }
        default:
            ++(shared->kind == ParcelKind::Write  ? totals_.writes
               : shared->kind == ParcelKind::Read ? totals_.reads
                                                  : totals_.atomics);
            if ((shared->kind == ParcelKind::Write && is_flawed(Flaw::EndsWritesEarly)) ||
                (shared->kind == ParcelKind::Read && is_flawed(Flaw::EndsReadsEarly))) {
                shared->flawed = true;
                shared->due += kFlawLasts;
                if (shared->kind == ParcelKind::Write) capture(*shared);
                complete(shared, 0);
            }
            target.loose.push_back(shared);
    }
    target.bell.notify_one();
    if (behaviour_.posts_move_data && chance(2)) move(shared->from);
    return fabric::Posted::Yes;
}

// Copies the operation's data out of the origin's buffer, which the fabric does not use from then on.
void Fabric::capture(Parcel& parcel) {
    if (parcel.memory == nullptr) return;
    parcel.data.assign(parcel.memory, parcel.memory + parcel.bytes);
    if (sum_of(parcel.data.data(), parcel.bytes) != parcel.sum && !parcel.flawed)
        violation("a message's buffer was changed before its operation had ended");
    parcel.memory = nullptr;
}

void Fabric::complete(const SharedParcel& parcel, int error) {
    if (std::exchange(parcel->completed, true)) return;
    Node& origin = *nodes_[parcel->from];
    if (error != 0) ++totals_.failed;
    origin.completions.push_back({parcel, error, later()});
    origin.bell.notify_one();
}

// Ends the operations in flight to an endpoint that is dead or closed. If `number` is closed, its own operations are
// dropped too.
void Fabric::fail_all(std::uint32_t number) {
    Node& node = *nodes_[number];
    std::vector<SharedParcel> left = std::move(node.loose);
    node.loose.clear();
    for (auto& channel : node.channels) {
        for (const SharedParcel& parcel : channel)
            left.push_back(parcel);
        channel.clear();
    }
    node.inbox.clear();
    for (const SharedParcel& parcel : left) {
        if (parcel->completed) continue;
        if (behaviour_.dead == DeadPeer::Errors)
            complete(parcel, EHOSTUNREACH);
        else
            node.loose.push_back(parcel);
    }
}

void Fabric::kill(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    nodes_[number]->dead = true;
    fail_all(number);
}

void Fabric::close(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    Node& node = *nodes_[number];
    if (!node.regions.empty()) violation("an endpoint was closed before all of its memory was revoked");
    node.open = false;
    node.regions.clear();
    node.completions.clear();
    fail_all(number);
    for (const auto& other : nodes_) {
        std::erase_if(other->loose, [&](const SharedParcel& parcel) { return parcel->from == number; });
        // Messages that have left their sender's memory arrive.
        std::erase_if(other->channels[number], [](const SharedParcel& parcel) { return parcel->memory != nullptr; });
    }
}

}  // namespace osc::fake
