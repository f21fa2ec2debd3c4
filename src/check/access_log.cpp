// The origin's part of conflict detection.
#include "check/access_log.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace osc::check {
namespace {

constexpr std::size_t kMostCompared = 4096;  // pending accesses for one operation
// From so many accesses on, operations of MPI_Win_lock epochs are joined, too, which loses the times of all but one.
constexpr std::size_t kJoinLocked = 4096;

Access access_of(const Operation& operation, std::int64_t now) {
    Access access;
    access.site = operation.site.value;
    access.issued = now;
    std::strncpy(access.call, operation.call, sizeof access.call - 1);
    access.kind = operation.kind;
    access.op = operation.op;
    access.basic = operation.basic;
    return access;
}

bool has_result(const Access& access) {
    return access.kind != op::OpKind::Put && access.kind != op::OpKind::Accumulate;
}

bool alike(const Access& a, const Access& b) {
    return a.site == b.site && a.kind == b.kind && a.op == b.op && a.basic == b.basic && a.world == b.world;
}

}  // namespace

void AccessLog::add(const Operation& operation, std::int64_t now, std::vector<Conflict>& found) {
    if (operation.bytes.empty()) return;
    if (!operation.exact) {
        ++left_out_;
        return;
    }
    Target& target = targets_[operation.target];
    Entry entry{access_of(operation, now), {}};
    Access& access = entry.access;
    access.fence = fences_;
    access.world = lock_all_ || target.locked ? World::Lock : target.started ? World::Pscw : World::Fence;
    access.exclusive = target.exclusive;
    if (access.world == World::Pscw) access.exposure = target.starts;
    // The program may await the result with a call that the checker does not see.
    if (operation.request && has_result(access)) access.ended = now;
    entry.pieces = pieces_of(operation.bytes, element_of(access));
    compare(target, entry, operation.target, found);
    if (join(target, entry)) return;
    if (kept_ + entry.pieces.size() > most_) {
        ++left_out_;
        return;
    }
    kept_ += entry.pieces.size();
    const std::size_t index = target.entries.size();
    if (access.ended == kNotYet) {
        target.pending.push_back(index);
        target.by_lo.emplace(entry.lo(), index);
        target.longest = std::max(target.longest, entry.hi() - entry.lo());
        target.last[access.site] = index;
    }
    target.entries.push_back(std::move(entry));
}

// All operations of this origin that are pending at the same target are unordered.
void AccessLog::compare(const Target& target, const Entry& entry, std::uint32_t rank, std::vector<Conflict>& found) {
    std::size_t left = kMostCompared;
    const std::int64_t hi = entry.hi();
    for (auto at = target.by_lo.upper_bound(entry.lo() - target.longest - 1);
         at != target.by_lo.end() && at->first < hi && left > 0; ++at, --left) {
        const Entry& earlier = target.entries[at->second];
        const Clash kind = clash(earlier.access, entry.access, true, promises_);
        Bytes where;
        if (kind == Clash::None || !share(earlier, entry, kind, where)) continue;
        if (!found_.insert(std::minmax(earlier.access.site, entry.access.site)).second) continue;
        found.push_back({{earlier.access, entry.access}, {me_, me_}, rank, where, kind});
    }
}

// Joins an access with the pending one of the same call site. If its bytes are among that one's, nothing is lost: the
// earlier access conflicts with all that the later one does. Others may be joined in epochs in which operations count
// as simultaneous, whenever they were issued.
bool AccessLog::join(Target& target, const Entry& entry) {
    const auto found = target.last.find(entry.access.site);
    if (entry.access.ended != kNotYet || found == target.last.end()) return false;
    Entry& earlier = target.entries[found->second];
    if (!alike(earlier.access, entry.access)) return false;
    if (earlier.pieces == entry.pieces) return true;
    if (earlier.pieces.size() != 1 || entry.pieces.size() != 1) return false;
    Piece& row = earlier.pieces.front();
    const Piece& next = entry.pieces.front();
    const std::int64_t unit = element_of(entry.access);
    // An accumulate of the same bytes may have its elements elsewhere.
    const bool aligned = (next.lo - row.lo) % unit == 0 && next.stride % unit == 0;
    if (aligned && contains(row, next)) return true;
    if (entry.access.world == World::Lock && kept_ < std::min(kJoinLocked, most_)) return false;
    if (!extend(row, next, unit)) return false;
    earlier.access.issued = std::max(earlier.access.issued, entry.access.issued);
    target.longest = std::max(target.longest, earlier.hi() - earlier.lo());
    return true;
}

template <class Ends>
void AccessLog::end(std::uint32_t rank, std::int64_t since, Ends&& ends) {
    for (auto& [number, target] : targets_) {
        if ((rank != kEveryTarget && rank != number) || target.pending.empty()) continue;
        const auto ended = std::remove_if(target.pending.begin(), target.pending.end(), [&](std::size_t index) {
            Access& access = target.entries[index].access;
            if (!ends(access)) return false;
            access.ended = since;
            return true;
        });
        if (ended == target.pending.end()) continue;
        target.pending.erase(ended, target.pending.end());
        target.by_lo.clear();
        target.last.clear();
        target.longest = 0;
        for (const std::size_t index : target.pending) {
            const Entry& entry = target.entries[index];
            target.by_lo.emplace(entry.lo(), index);
            target.last[entry.access.site] = index;
            target.longest = std::max(target.longest, entry.hi() - entry.lo());
        }
    }
}

void AccessLog::complete(std::uint32_t target, std::int64_t since) {
    end(target, since, [](const Access&) { return true; });
}

void AccessLog::complete_results(std::uint32_t target, std::int64_t since) {
    end(target, since, has_result);
}

void AccessLog::lock(std::uint32_t target, bool exclusive) {
    targets_[target].locked = true;
    targets_[target].exclusive = exclusive;
}

void AccessLog::unlock(std::uint32_t target) {
    targets_[target].locked = targets_[target].exclusive = false;
}

void AccessLog::start(std::span<const std::uint32_t> targets) {
    for (const std::uint32_t rank : targets) {
        targets_[rank].started = true;
        ++targets_[rank].starts;
    }
}

void AccessLog::end_start() {
    for (auto& [rank, target] : targets_)
        target.started = false;
}

void AccessLog::fence(std::int64_t now) {
    complete(kEveryTarget, now);
    ++fences_;
}

std::map<std::uint32_t, std::vector<Entry>> AccessLog::take() {
    std::map<std::uint32_t, std::vector<Entry>> taken;
    for (auto& [rank, target] : targets_) {
        OSC_ASSERT(target.pending.empty());
        if (!target.entries.empty()) taken.emplace(rank, std::exchange(target.entries, {}));
    }
    kept_ = 0;
    return taken;
}

}  // namespace osc::check
