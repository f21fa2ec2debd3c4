// The target's part of conflict detection: finds accesses of different origins to its memory that conflict and that
// nothing orders.
//
// Two accesses are unordered if neither is complete at the target before the other is issued:
// - Both in fence epochs: if no fence is between them. A fence alone completes them.
// - Both in post-start epochs: if they belong to one exposure epoch. MPI_Win_wait alone completes them.
// - Both under locks, of which one is exclusive: never.
// - Else: if the times from issue to completion overlap. Whatever orders two accesses (a message, an atomic that
//   another process polls), the first one is then complete before the second is issued. So no ordered pair is reported,
//   and an unordered one may be missed if it happened not to overlap. The times are those of one clock; accesses of
//   origins with different clocks count as ordered.
//
// A load or store of this process in its exposure epoch is unordered with an operation of that epoch if it comes later
// than the operation's issue, because the epoch's end alone completes the operation. An earlier one may be ordered.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "plugins/verify/access_index.h"

namespace osc::check {

class RaceFinder {
  public:
    /// `most`: pairs that are compared in one find(); what exceeds them is not.
    RaceFinder(std::uint32_t me, Promises promises, std::uint64_t most = 20'000'000)
        : me_(me), promises_(promises), most_(most) {}

    /// This process has posted, by a call that began at `since`.
    void post(std::span<const std::uint32_t> origins, std::int64_t since);

    /// Takes the accesses of an origin to this process. `clock`: equal for origins whose times can be compared.
    void add(std::uint32_t origin, std::uint64_t clock, Entries&& entries);

    /// The same of loads and stores of this process, in an exposure epoch: Access::world, ::fence, and ::exposure,
    /// which is exposures() at that time.
    void add_local(std::uint64_t clock, Entries&& entries);
    /// How often this process has posted.
    std::uint64_t exposures() const { return exposures_; }

    /// The conflicts between the accesses added since the last call, each pair of call sites once, in an order that
    /// does not depend on times. All processes have posted what those accesses needed.
    std::vector<Conflict> find();

    /// Whether find() has ever left out pairs; then resets that.
    bool take_incomplete() { return std::exchange(incomplete_, false); }

  private:
    struct Candidate : Entry {
        std::uint32_t origin = 0;
        std::uint64_t clock = 0;
    };
    struct Post {
        std::uint64_t exposure = 0;
        std::int64_t since = 0;
    };
    struct Posts {
        std::vector<Post> posts;
        std::uint64_t before = 0;  // posts to this origin that are not in `posts` any more
    };
    using Sites = std::pair<std::uint64_t, std::uint64_t>;

    bool resolve(Candidate& candidate) const;
    void search(std::vector<const Candidate*> some, bool by_time);
    void search_local(std::uint64_t fence, World world, std::uint64_t exposure,
                      const std::vector<const Candidate*>& some);
    bool may_compare();
    void compare(const Candidate& a, const Candidate& b);

    const std::uint32_t me_;
    const Promises promises_;
    const std::uint64_t most_;
    std::uint64_t left_ = 0;  // pairs that this find() may still compare
    std::uint64_t exposures_ = 0;
    std::map<std::uint32_t, Posts> posts_;
    std::vector<Candidate> candidates_;
    std::vector<Candidate> local_;
    std::map<Sites, Conflict> found_;  // by this find()
    std::set<Sites> reported_;
    bool incomplete_ = false;
};

}  // namespace osc::check
