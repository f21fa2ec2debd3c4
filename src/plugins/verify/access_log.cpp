// The origin's part of conflict detection.
// Build: osc_verify_core
#include "plugins/verify/access_log.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace osc::check {
namespace {

constexpr std::size_t kMostCompared = 4096;  // pending accesses for one operation
// From so many accesses on, operations of MPI_Win_lock epochs are joined, too, which loses the times of all but one.
constexpr std::size_t kJoinLocked = 4096;

Access access_of(const Operation& operation, std::int64_t now, Access access) {
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

Access AccessLog::epoch_at(std::uint32_t rank) {
    const Target& target = at(rank);
    Access access;
    access.fence = fences_;
    access.world = lock_all_ || target.locked ? World::Lock : target.started ? World::Pscw : World::Fence;
    access.exclusive = target.exclusive;
    if (access.world == World::Pscw) access.exposure = target.starts;
    return access;
}

void AccessLog::add(const Operation& operation, std::int64_t now, std::vector<Conflict>& found) {
    if (operation.bytes.empty()) return;
    if (!operation.exact) {
        ++left_out_;
        return;
    }
    Target& target = at(operation.target);
    Entry entry{access_of(operation, now, epoch_at(operation.target)), {}};
    Access& access = entry.access;
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
    Entry& kept = target.entries.emplace_back(std::move(entry));
    if (kept.access.ended != kNotYet) return;
    (has_result(kept.access) ? target.pending_results : target.pending_updates).push_back(&kept);
    // Whether a notified one is complete, this process may learn from the target: none is compared with it.
    if (kept.access.notification >= 0) return;
    target.pending.insert(kept);
    target.last[kept.access.site] = &kept;
}

// All operations of this origin that are pending at the same target are unordered. Returns whether the bytes are among
// those of a pending access of the same call site: nothing is lost without the later one, because the earlier one
// conflicts with all that it does.
bool AccessLog::compare(const Target& target, const Entry& entry, std::uint32_t rank, std::vector<Conflict>& found) {
    const std::uint64_t limit = compared_ + kMostCompared;
    const auto is_known = [&](std::uint64_t site) { return found_.count(std::minmax(site, entry.access.site)) > 0; };
    std::vector<const Entry*> others;
    target.pending.visit(entry, true, is_known, [&](const Entry& earlier) {
        others.push_back(&earlier);
        return ++compared_ < limit;
    });
    std::ranges::sort(others, {}, [](const Entry* one) { return std::pair(one->lo(), one->access.issued); });
    for (const Entry* const earlier : others) {
        const Clash kind = clash(earlier->access, entry.access, true, promises_);
        Bytes where;
        if (is_known(earlier->access.site) || !share(*earlier, entry, kind, where)) continue;
        found_.insert(std::minmax(earlier->access.site, entry.access.site));
        found.push_back({{earlier->access, entry.access}, {me_, me_}, rank, where, kind});
    }
    bool covered = false;
    if (entry.access.ended == kNotYet)
        target.pending.visit_alike(entry, [&](const Entry& earlier) {
            covered = alike(earlier.access, entry.access) && covers(earlier, entry);
            return !covered && ++compared_ < limit;
        });
    return covered;
}

// Appends the bytes of an access to those of the last pending one of the same call site, in epochs in which operations
// count as simultaneous, whenever they were issued.
bool AccessLog::join(Target& target, const Entry& entry) {
    const auto found = target.last.find(entry.access.site);
    if (entry.access.ended != kNotYet || found == target.last.end()) return false;
    Entry& earlier = *found->second;
    if (!alike(earlier.access, entry.access) || earlier.pieces.size() != 1 || entry.pieces.size() != 1) return false;
    if (entry.access.world == World::Lock && kept_ < std::min(kJoinLocked, most_)) return false;
    Piece longer = earlier.pieces.front();
    if (!extend(longer, entry.pieces.front(), element_of(entry.access))) return false;
    target.pending.replace(earlier, longer);
    earlier.access.issued = std::max(earlier.access.issued, entry.access.issued);
    return true;
}

// Ends what is pending; not the operations without a result unless `updates`.
void AccessLog::end(std::uint32_t rank, std::int64_t since, bool updates) {
    for (auto& [number, target] : targets_) {
        if (rank != kEveryTarget && rank != number) continue;
        for (std::vector<Entry*>* const pending : {&target.pending_results, &target.pending_updates}) {
            if (pending == &target.pending_updates && !updates) continue;
            for (Entry* const entry : std::exchange(*pending, {})) {
                entry->access.ended = since;
                if (entry->access.notification >= 0) continue;
                target.pending.erase(*entry);
                target.last.erase(entry->access.site);
            }
        }
    }
}

void AccessLog::complete(std::uint32_t target, std::int64_t since) {
    end(target, since, true);
}

void AccessLog::complete_results(std::uint32_t target, std::int64_t since) {
    end(target, since, false);
}

void AccessLog::lock(std::uint32_t target, bool exclusive) {
    at(target).locked = true;
    at(target).exclusive = exclusive;
}

void AccessLog::unlock(std::uint32_t target) {
    at(target).locked = at(target).exclusive = false;
}

void AccessLog::start(std::span<const std::uint32_t> targets) {
    for (const std::uint32_t rank : targets) {
        at(rank).started = true;
        ++at(rank).starts;
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

std::map<std::uint32_t, Entries> AccessLog::take() {
    std::map<std::uint32_t, Entries> taken;
    for (auto& [rank, target] : targets_) {
        OSC_ASSERT(target.pending_updates.empty() && target.pending_results.empty());
        if (!target.entries.empty()) taken.emplace(rank, std::exchange(target.entries, {}));
    }
    kept_ = 0;
    return taken;
}

}  // namespace osc::check
