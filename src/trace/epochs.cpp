// A call that returned an error changes no epoch.
#include "trace/epochs.h"

#include <algorithm>

namespace osc::trace {
namespace {

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
    // A fence's epoch ends without another fence where an epoch of another kind begins.
    const auto begin = [&](Type type, bool exclusive = false) {
        close(Type::Fence, call, call.begin);
        open(type, call, call.begin, exclusive);
    };
    switch (static_cast<Call>(call.kind)) {
        case Call::Win_fence: {
            const bool closed = close(Type::Fence, call, call.end);
            if ((call.detail & kNoSucceed) == 0) open(Type::Fence, call, closed ? call.end : call.begin);
            return;
        }
        case Call::Win_start:
            return begin(Type::Access);
        case Call::Win_post:
            return begin(Type::Exposure);
        case Call::Win_lock:
            return begin(Type::Lock, (call.detail & kExclusive) != 0);
        case Call::Win_lock_all:
            return begin(Type::LockAll);
        case Call::Win_complete:
            close(Type::Access, call, call.end);
            return;
        case Call::Win_wait:
            close(Type::Exposure, call, call.end);
            return;
        case Call::Win_test:
            if ((call.detail & kExposureOver) != 0) close(Type::Exposure, call, call.end);
            return;
        case Call::Win_unlock:
            close(Type::Lock, call, call.end);
            return;
        case Call::Win_unlock_all:
            close(Type::LockAll, call, call.end);
            return;
        case Call::Win_free:
            close(Type::Fence, call, call.begin);
            return;
        default:
            return;
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
    switch (epoch.type) {
        case Epoch::Type::Fence:
            return "fence epoch";
        case Epoch::Type::Access:
            return "access epoch";
        case Epoch::Type::Exposure:
            return "exposure epoch";
        case Epoch::Type::LockAll:
            return "lock_all epoch";
        case Epoch::Type::Lock:
            break;
    }
    return std::string(epoch.exclusive ? "exclusive" : "shared") + " lock epoch at " + std::to_string(epoch.target);
}

}  // namespace osc::trace
