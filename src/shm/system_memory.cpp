// Reads /proc and the control groups' files. All numbers are bytes.
#include "shm/system_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/control_groups.h"
#include "base/system_file.h"

namespace osc::shm {
namespace {

using base::number_of;

constexpr std::uint64_t kNone = ~std::uint64_t{0};  // no such number: no limit

std::uint64_t machine(const std::string& root, const char* key) {
    const std::uint64_t kib = number_of(root + "/proc/meminfo", key, kNone);
    return kib == kNone ? kNone : kib * 1024;
}

}  // namespace

std::uint64_t SystemMemory::Group::limit(const std::string& root) const {
    const std::uint64_t value =
        number_of(root + folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"), "", kNone);
    return value >= std::uint64_t{1} << 62 ? kNone : value;  // version 1 says "none" by a large number
}

// File pages that were not used lately do not count: the kernel can drop them at any time.
std::uint64_t SystemMemory::Group::used(const std::string& root) const {
    const std::uint64_t all =
        number_of(root + folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"), "", kNone);
    const std::uint64_t idle =
        number_of(root + folder + "/memory.stat", unified ? "inactive_file " : "total_inactive_file ", kNone);
    if (all == kNone) return 0;
    return idle == kNone || idle > all ? all : all - idle;
}

SystemMemory::SystemMemory(std::string root) : root_(std::move(root)) {
    overcommit_ = number_of(root_ + "/proc/sys/vm/overcommit_memory", "", kHeuristic);
    for (base::ControlGroup& found : base::control_groups("memory", root_)) {
        Group group{std::move(found.folder), found.unified};
        if (group.limit(root_) != kNone) groups_.push_back(std::move(group));
    }
    most_ = most();
}

std::uint64_t SystemMemory::most() const {
    const std::uint64_t swap = machine(root_, "SwapTotal:");
    const std::uint64_t more = swap == kNone ? 0 : swap;
    const std::uint64_t memory = machine(root_, "MemTotal:");
    std::uint64_t result = memory;
    for (const Group& group : groups_)
        result = std::min(result, group.limit(root_));
    return result == kNone ? kNone : result + more;
}

std::uint64_t SystemMemory::available() const {
    std::uint64_t result = machine(root_, "MemAvailable:");
    for (const Group& group : groups_) {
        const std::uint64_t limit = group.limit(root_);
        if (limit != kNone) result = std::min(result, limit - std::min(limit, group.used(root_)));
    }
    return result;
}

bool SystemMemory::spares_addresses() const {
    rlimit limit{};
    return overcommit_ != kNever && ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

bool SystemMemory::refuses(std::uint64_t bytes) {
    if (overcommit_ == kNever) return bytes > available();
    if (overcommit_ != kHeuristic || bytes <= most_) return false;
    most_ = most();  // memory may have been added, and limits lifted
    return bytes > most_;
}

bool SystemMemory::has_for_each(std::uint64_t processes, std::uint64_t bytes) const {
    const std::uint64_t all = machine(root_, "MemTotal:");
    const std::uint64_t now = available();
    const std::uint64_t reserve = all == kNone ? 0 : all / 16;
    std::uint64_t wanted = 0;
    return now == kNone ||
           (!__builtin_mul_overflow(processes, bytes, &wanted) && now >= reserve && wanted <= now - reserve);
}

bool SystemMemory::measure_shortage() const {
    const std::uint64_t all = machine(root_, "MemTotal:");
    const std::uint64_t available = machine(root_, "MemAvailable:");
    if (all != kNone && available != kNone && available < all / 16) return true;
    return std::any_of(groups_.begin(), groups_.end(), [this](const Group& group) {
        const std::uint64_t limit = group.limit(root_);
        return limit != kNone && group.used(root_) > limit - limit / 16;
    });
}

bool SystemMemory::is_short() {
    const auto now = std::chrono::steady_clock::now();
    if (measured_ == std::chrono::steady_clock::time_point{} || now - measured_ > std::chrono::milliseconds(100)) {
        measured_ = now;
        short_ = measure_shortage();
    }
    return short_;
}

}  // namespace osc::shm
