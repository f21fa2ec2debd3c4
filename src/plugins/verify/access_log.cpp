// The origin's part of conflict detection.
#include "plugins/verify/access_log.h"

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
    access.notification = operation.notification;
    access.began = operation.began;
    return access;
}

bool has_result(const Access& access) {
    return access.kind != op::OpKind::Put && access.kind != op::OpKind::Accumulate;
}

bool alike(const Access& a, const Access& b) {
    return a.site == b.site && a.kind == b.kind && a.op == b.op && a.basic == b.basic && a.world == b.world;
}

// Whether the elements of `inner` are among those of `outer`; may be false although they are.
bool covers(const Entry& outer, const Entry& inner) {
    if (outer.pieces == inner.pieces) return true;
    if (outer.pieces.size() != 1 || inner.pieces.size() != 1) return false;
    const Piece& all = outer.pieces.front();
    const Piece& some = inner.pieces.front();
    const std::int64_t unit = element_of(inner.access);
    return (some.lo - all.lo) % unit == 0 && some.stride % unit == 0 && contains(all, some);
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
    const bool covered = compare(target, entry, operation.target, found);
    if (covered || join(target, entry)) return;
    if (kept_ + entry.pieces.size() > most_) {
        ++left_out_;
        return;
    }
    kept_ += entry.pieces.size();
    const std::size_t index = target.entries.size();
    if (access.ended == kNotYet) {
        target.pending.push_back(index);
        await(target, entry, index);
    }
    target.entries.push_back(std::move(entry));
}

// All operations of this origin that are pending at the same target are unordered. Returns whether the bytes are among
// those of a pending access of the same call site: nothing is lost without the later one, because the earlier one
// conflicts with all that it does.
bool AccessLog::compare(const Target& target, const Entry& entry, std::uint32_t rank, std::vector<Conflict>& found) {
    bool covered = false;
    std::size_t left = kMostCompared;
    const std::int64_t hi = entry.hi();
    for (auto at = target.by_lo.upper_bound(entry.lo() - target.longest - 1);
         at != target.by_lo.end() && at->first < hi && left > 0; ++at, --left) {
        const Entry& earlier = target.entries[at->second];
        covered = covered || (alike(earlier.access, entry.access) && covers(earlier, entry));
        const Clash kind = clash(earlier.access, entry.access, true, promises_);
        const auto sites = std::minmax(earlier.access.site, entry.access.site);
        Bytes where;
        if (kind == Clash::None || found_.count(sites) > 0 || !share(earlier, entry, kind, where)) continue;
        found_.insert(sites);
        found.push_back({{earlier.access, entry.access}, {me_, me_}, rank, where, kind});
    }
    return covered && entry.access.ended == kNotYet;
}

// Appends the bytes of an access to those of the last pending one of the same call site, in epochs in which operations
// count as simultaneous, whenever they were issued.
bool AccessLog::join(Target& target, const Entry& entry) {
    const auto found = target.last.find(entry.access.site);
    if (entry.access.ended != kNotYet || found == target.last.end()) return false;
    Entry& earlier = target.entries[found->second];
    if (!alike(earlier.access, entry.access) || earlier.pieces.size() != 1 || entry.pieces.size() != 1) return false;
    if (entry.access.world == World::Lock && kept_ < std::min(kJoinLocked, most_)) return false;
    if (!extend(earlier.pieces.front(), entry.pieces.front(), element_of(entry.access))) return false;
    earlier.access.issued = std::max(earlier.access.issued, entry.access.issued);
    target.longest = std::max(target.longest, earlier.hi() - earlier.lo());
    return true;
}

// Makes a pending access one that later ones of this origin are compared with. Whether a notified one is complete, this
// process may learn from the target: none is.
void AccessLog::await(Target& target, const Entry& entry, std::size_t index) {
    if (entry.access.notification >= 0) return;
    target.by_lo.emplace(entry.lo(), index);
    target.last[entry.access.site] = index;
    target.longest = std::max(target.longest, entry.hi() - entry.lo());
}

template <class Ends>
void AccessLog::end(std::uint32_t rank, std::int64_t since, Ends&& ends) {
    for (auto& [number, named] : targets_) {
        Target& target = named;  // clang 14 captures no structured binding in a lambda
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
        for (const std::size_t index : target.pending)
            await(target, target.entries[index], index);
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
