// A sweep over the accesses to this process's memory, with an index by their bytes.
// Build: osc_verify_core
#include "plugins/verify/race_finder.h"

#include <algorithm>
#include <tuple>

namespace osc::check {
namespace {

constexpr std::size_t kMostPosts = 65536;  // kept for one origin

bool none(std::uint64_t) {
    return false;
}

// A total order of conflicts that does not depend on times.
auto rank_of(const Conflict& conflict) {
    return std::tuple(conflict.origins[0], conflict.origins[1], conflict.where.lo, conflict.where.hi);
}

bool overlap_in_time(const Access& a, const Access& b) {
    return a.issued <= b.ended && b.issued <= a.ended;
}

}  // namespace

void RaceFinder::post(std::span<const std::uint32_t> origins, std::int64_t since) {
    ++exposures_;
    for (const std::uint32_t origin : origins) {
        Posts& known = posts_[origin];
        if (known.posts.size() == kMostPosts) {
            known.posts.erase(known.posts.begin(), known.posts.begin() + kMostPosts / 2);
            known.before += kMostPosts / 2;
        }
        known.posts.push_back({exposures_, since});
    }
}

void RaceFinder::add(std::uint32_t origin, std::uint64_t clock, Entries&& entries) {
    for (Entry& entry : entries)
        candidates_.push_back({std::move(entry), origin, clock});
}

void RaceFinder::add_local(std::uint64_t clock, Entries&& entries) {
    for (Entry& entry : entries)
        local_.push_back({std::move(entry), me_, clock});
}

// Gives an access of a post-start epoch the number of its exposure epoch at this process. It cannot have begun before
// the post, although a deferred MPI_Win_start lets it be issued earlier. False if the exposure epoch is not known.
bool RaceFinder::resolve(Candidate& candidate) const {
    Access& access = candidate.access;
    if (access.world != World::Pscw) return true;
    const auto known = posts_.find(candidate.origin);
    if (known == posts_.end() || access.exposure <= known->second.before) return false;
    const std::uint64_t index = access.exposure - known->second.before - 1;
    if (index >= known->second.posts.size()) return false;
    const Post& post = known->second.posts[index];
    access.exposure = post.exposure;
    access.issued = std::max(access.issued, post.since);
    return true;
}

std::vector<Conflict> RaceFinder::find() {
    left_ = most_;
    found_.clear();
    // By fence, and by exposure epoch: accesses with another number are ordered. 0: by time.
    std::map<std::uint64_t, std::map<std::pair<World, std::uint64_t>, std::vector<const Candidate*>>> groups;
    for (Candidate& candidate : candidates_) {
        if (!resolve(candidate)) {
            incomplete_ = true;
            continue;
        }
        const Access& access = candidate.access;
        groups[access.fence][{access.world, access.world == World::Pscw ? access.exposure : 0}].push_back(&candidate);
    }
    for (const auto& [fence, worlds] : groups) {
        std::vector<const Candidate*> all;
        bool times = false;
        World first = worlds.begin()->first.first;
        for (const auto& [world, members] : worlds) {
            if (world.first != World::Lock) {
                search(members, false);
                search_local(fence, world.first, world.second, members);
            }
            times = times || world.first == World::Lock || world.first != first;
            all.insert(all.end(), members.begin(), members.end());
        }
        if (times) search(std::move(all), true);
    }
    candidates_.clear();
    local_.clear();
    for (auto& [origin, known] : posts_)  // a later start may match the last post
        if (known.posts.size() > 1) {
            known.before += known.posts.size() - 1;
            known.posts.erase(known.posts.begin(), known.posts.end() - 1);
        }
    std::vector<Conflict> result;
    for (const auto& [sites, conflict] : found_)
        if (reported_.insert(sites).second) result.push_back(conflict);
    std::ranges::sort(result, {}, rank_of);
    return result;
}

// Compares accesses, either as simultaneous or by their times. By time, pairs of one world other than locks are left
// out: the groups of their worlds have decided.
void RaceFinder::search(std::vector<const Candidate*> some, bool by_time) {
    const auto issued = [](const Candidate* one) { return one->access.issued; };
    if (by_time) std::ranges::stable_sort(some, {}, issued);
    AccessIndex index(promises_);
    std::multimap<std::int64_t, const Candidate*> ends;
    for (const Candidate* const one : some) {
        if (by_time)
            while (!ends.empty() && ends.begin()->first < issued(one)) {
                index.erase(*ends.begin()->second);
                ends.erase(ends.begin());
            }
        index.visit(*one, false, none, [&](const Entry& entry) {
            const auto& other = static_cast<const Candidate&>(entry);
            if (!may_compare()) return false;
            const Access& a = one->access;
            const Access& b = other.access;
            if (one->origin == other.origin) return true;  // the origin has decided
            if (by_time) {
                if (a.world == b.world && a.world != World::Lock) return true;
                if (a.world == World::Lock && b.world == World::Lock && (a.exclusive || b.exclusive)) return true;
                if (one->clock != other.clock || !overlap_in_time(a, b)) return true;
            }
            compare(*one, other);
            return true;
        });
        index.insert(*one);
        if (by_time) ends.emplace(one->access.ended, one);
    }
}

// Compares the loads and stores of an exposure epoch with its operations. What this process itself has issued may come
// behind them.
void RaceFinder::search_local(std::uint64_t fence, World world, std::uint64_t exposure,
                              const std::vector<const Candidate*>& some) {
    AccessIndex index(promises_);
    bool filled = false;
    for (const Candidate& one : local_) {
        const Access& access = one.access;
        if (access.fence != fence || access.world != world || access.exposure != exposure) continue;
        if (!std::exchange(filled, true))
            for (const Candidate* const other : some)
                if (other->origin != me_ && other->clock == one.clock) index.insert(*other);
        index.visit(one, false, none, [&](const Entry& entry) {
            const auto& other = static_cast<const Candidate&>(entry);
            if (!may_compare()) return false;
            if (other.access.issued <= access.issued) compare(other, one);
            return true;
        });
    }
}

// One pair more; false beyond the bound.
bool RaceFinder::may_compare() {
    incomplete_ = incomplete_ || left_ == 0;
    return left_ != 0 && left_-- > 0;
}

// The load or store of a conflict is its second access.
void RaceFinder::compare(const Candidate& a, const Candidate& b) {
    const bool in_order = b.access.local || a.origin < b.origin;
    const Candidate& first = in_order ? a : b;
    const Candidate& second = in_order ? b : a;
    const Clash kind = clash(first.access, second.access, false, promises_);
    Bytes where;
    if (kind == Clash::None || !share(first, second, kind, where)) return;
    const Conflict conflict{{first.access, second.access}, {first.origin, second.origin}, me_, where, kind};
    const auto [place, fresh] = found_.emplace(std::minmax(first.access.site, second.access.site), conflict);
    if (!fresh && rank_of(conflict) < rank_of(place->second)) place->second = conflict;
}

}  // namespace osc::check
