// A call that returned an error changes no epoch.
#include "trace/epochs.h"

#include <algorithm>

namespace osc::trace {
namespace {

// The calls that open and close epochs other than a fence's.
struct Rule {
    Call call;
    Epoch::Type type;
    bool opens;
};
constexpr Rule kRules[] = {
    {Call::Win_start, Epoch::Type::Access, true},        {Call::Win_complete, Epoch::Type::Access, false},
    {Call::Win_post, Epoch::Type::Exposure, true},       {Call::Win_wait, Epoch::Type::Exposure, false},
    {Call::Win_test, Epoch::Type::Exposure, false},      {Call::Win_lock, Epoch::Type::Lock, true},
    {Call::Win_unlock, Epoch::Type::Lock, false},        {Call::Win_lock_all, Epoch::Type::LockAll, true},
    {Call::Win_unlock_all, Epoch::Type::LockAll, false},
};

std::uint64_t place_of(Epoch::Type type, std::uint32_t target) {
    return static_cast<std::uint64_t>(type) << 32 | (type == Epoch::Type::Lock ? target : 0);
}

}  // namespace

void Epochs::open(Epoch::Type type, const Event& call, std::uint64_t at, bool exclusive) {
    const std::uint32_t target = type == Epoch::Type::Lock ? call.number : kNoTarget;
    open_[{call.window, place_of(type, call.number)}] = {type, call.window, target, exclusive, true, at, at};
}

// False if the call that opened the epoch was dropped.
bool Epochs::close(Epoch::Type type, const Event& call, std::uint64_t at) {
    const auto found = open_.find({call.window, place_of(type, call.number)});
    if (found == open_.end()) return false;
    found->second.end = std::max(at, found->second.begin);
    closed_.push_back(found->second);
    open_.erase(found);
    return true;
}

void Epochs::add(const Event& call) {
    using Type = Epoch::Type;
    if ((call.detail & kFailed) != 0 || call.kind >= static_cast<std::uint8_t>(Call::Count)) return;
    if (call.is(Call::Win_fence)) {
        const bool closed = close(Type::Fence, call, call.end);
        if ((call.detail & kNoSucceed) == 0) open(Type::Fence, call, closed ? call.end : call.begin);
    }
    if (call.is(Call::Win_free)) close(Type::Fence, call, call.begin);
    for (const auto& [which, type, opens] : kRules) {
        if (!call.is(which) || (which == Call::Win_test && (call.detail & kExposureOver) == 0)) continue;
        if (!opens) {
            close(type, call, call.end);
            continue;
        }
        // A fence's epoch ends without another fence where an epoch of another kind begins.
        close(Type::Fence, call, call.begin);
        open(type, call, call.begin, type == Type::Lock && (call.detail & kExclusive) != 0);
    }
}

std::vector<Epoch> Epochs::finish(std::uint64_t end) {
    for (auto& [key, epoch] : open_) {
        epoch.closed = false;
        epoch.end = std::max(end, epoch.begin);
        closed_.push_back(epoch);
    }
    open_.clear();
    return std::move(closed_);
}

std::string name_of(const Epoch& epoch) {
    constexpr const char* kNames[] = {"fence epoch", "access epoch", "exposure epoch", "", "lock_all epoch"};
    if (epoch.type != Epoch::Type::Lock) return kNames[static_cast<std::size_t>(epoch.type)];
    return std::string(epoch.exclusive ? "exclusive" : "shared") + " lock epoch at " + std::to_string(epoch.target);
}

}  // namespace osc::trace
