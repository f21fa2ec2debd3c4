// A random program of one process over its streams, and a sequential model of the expected values.
//
// Each process has a slice of every other window to itself, where the model is exact: an operation takes effect in the
// model when it is issued, and the program waits before it issues one that conflicts with another in flight. All
// processes add to the counters of a window, and read and write its common bytes under an exclusive lock.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "net_processes.h"
#include "op/kernels.h"

namespace osc::test {

/// The state that all programs share. Only the holder of a window's exclusive lock uses the model of its common bytes.
struct Common {
    static constexpr std::size_t kSlice = 40960, kCounters = 8, kBytes = 512;

    explicit Common(std::uint32_t processes) : size(processes), bytes(processes) {
        for (auto& one : bytes)
            one.assign(kBytes, std::byte{0});
    }
    std::size_t window() const { return size * kSlice + kCounters * sizeof(std::uint64_t) + kBytes; }
    std::int64_t slice(std::uint32_t origin) const { return static_cast<std::int64_t>(origin * kSlice); }
    std::int64_t counters() const { return static_cast<std::int64_t>(size * kSlice); }
    std::int64_t common() const { return counters() + static_cast<std::int64_t>(kCounters * sizeof(std::uint64_t)); }

    const std::uint32_t size;
    std::vector<std::vector<std::byte>> bytes;  // by target
};

class Program {
  public:
    /// `before_wait(target)`: called before this program may wait for a target.
    Program(Process& process, Common& common, std::uint64_t seed, std::function<void(std::uint32_t)> before_wait)
        : process_(process),
          common_(common),
          before_wait_(std::move(before_wait)),
          random_(seed * 1000003 + process.rank),
          pool_(kPool),
          there_(common.size) {
        for (There& there : there_) {
            there.slice.assign(Common::kSlice, std::byte{0});
            there.granules.assign(Common::kSlice / kGranule + 1, 0);
        }
    }

    /// The first thing that was not as the model says; "": nothing.
    const std::string& wrong() const { return wrong_; }

    enum class Locks { None, Shared, Exclusive };
    Locks locks(std::uint32_t target) const { return there_[target].locks; }
    std::uint64_t fetched(std::uint32_t target, std::size_t counter) const { return there_[target].added[counter]; }
    const std::vector<std::vector<std::uint64_t>>& seen(std::uint32_t target) const { return there_[target].seen; }

    /// One random operation on a target, other than locking.
    void operate(std::uint32_t target);
    void lock(std::uint32_t target, Locks kind);
    void confirm(std::uint32_t target) { process_.far->await_lock(target); }
    void send_off(std::uint32_t target) {
        net::Stream& stream = process_.to(target);
        const std::lock_guard lock(stream.mutex);
        stream.send_off();
    }
    void unlock(std::uint32_t target);
    void complete_ops(std::uint32_t target);
    void settle_all() {
        for (std::uint32_t target = 0; target < common_.size; ++target)
            if (target != process_.rank) complete_ops(target);
    }
    /// The expected contents of this process's slice in a target's window, after complete_ops().
    const std::vector<std::byte>& slice(std::uint32_t target) const { return there_[target].slice; }

  private:
    static constexpr std::size_t kGranule = 64, kPool = std::size_t{1} << 19;
    enum Use : std::uint8_t { kPut = 1, kGot = 2, kUpdated = 4 };
    struct Expected {
        const std::byte* at;
        std::vector<std::byte> bytes;
    };
    struct Asked {
        net::SharedCompletion completion;
        std::vector<Expected> results;
    };
    struct There {
        std::vector<std::byte> slice;
        std::vector<std::uint8_t> granules;                             // Use by operations in flight
        bool common_used = false;                                       // an operation on the common bytes is in flight
        std::vector<Expected> results;                                  // known when all operations are complete
        std::vector<std::pair<const std::byte*, std::size_t>> fetches;  // of counters, with the counter
        std::vector<Asked> asked;
        std::uint64_t added[Common::kCounters] = {};
        std::vector<std::vector<std::uint64_t>> seen = std::vector<std::vector<std::uint64_t>>(Common::kCounters);
        Locks locks = Locks::None;
    };

    void complain(const char* what, std::uint32_t target) {
        if (wrong_.empty())
            wrong_ = std::string(what) + " at rank " + std::to_string(target) + " for " + std::to_string(process_.rank);
    }
    void check(Fault fault, const char* what) {
        if (fault != Fault::None && wrong_.empty()) wrong_ = std::string(what) + ": " + base::fault_text();
    }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
    std::size_t length();
    std::byte* claim(std::size_t bytes);
    void claim_place(std::uint32_t target, std::size_t at, std::size_t bytes, Use use);
    void verify(std::uint32_t target, const std::vector<Expected>& results, const char* what) {
        for (const Expected& one : results)
            if (std::memcmp(one.at, one.bytes.data(), one.bytes.size()) != 0) complain(what, target);
    }
    void on_slice(std::uint32_t target);
    void on_counter(std::uint32_t target);
    void on_common(std::uint32_t target);
    void look_at_tickets(std::uint32_t target);
    // `small`: the same as a simple operation.
    template <class F>
    void issue(std::uint32_t target, F&& op, const op::Simple& small, std::vector<Expected> results);
    template <class F>
    void issue_plain(std::uint32_t target, F&& op, const op::Simple& small, std::vector<Expected> results);

    Process& process_;
    Common& common_;
    const std::function<void(std::uint32_t)> before_wait_;
    std::mt19937_64 random_;
    std::vector<std::byte> pool_;
    std::size_t used_ = 0;
    std::vector<There> there_;
    std::string wrong_;
};

inline std::size_t Program::length() {
    switch (below(16)) {
        case 0:
            return 1 + below(Common::kSlice / 2);
        case 1:
        case 2:
            return 1 + below(8192);
        case 3:
        case 4:
        case 5:
            return 1 + below(600);
        default:
            return 1 + below(64);
    }
}

// Memory of this process for an operation; waits for all operations when the pool is used up.
inline std::byte* Program::claim(std::size_t bytes) {
    bytes = (bytes + 7) / 8 * 8;
    if (used_ + bytes > kPool) {
        settle_all();
        used_ = 0;
    }
    std::byte* const at = pool_.data() + used_;
    used_ += bytes;
    return at;
}

inline void Program::claim_place(std::uint32_t target, std::size_t at, std::size_t bytes, Use use) {
    There& there = there_[target];
    const unsigned conflicts = use == kPut ? kPut | kGot | kUpdated : use == kGot ? kPut | kUpdated : kPut | kGot;
    const std::size_t first = at / kGranule;
    const std::size_t last = (at + bytes - 1) / kGranule;
    bool conflict = false;
    for (std::size_t i = first; i <= last; ++i)
        conflict = conflict || (there.granules[i] & conflicts) != 0;
    if (conflict) complete_ops(target);
    for (std::size_t i = first; i <= last; ++i)
        there.granules[i] |= use;
}

template <class F>
void Program::issue_plain(std::uint32_t target, F&& op, const op::Simple& small, std::vector<Expected> results) {
    const bool try_small = small.bytes <= 1024 && below(4) != 0;
    // This program is the only thread of its process that uses the stream.
    if (!try_small || !process_.to(target).try_small(small, below(2) == 0))
        check(process_.operate(target, op), "operation");
    for (Expected& one : results)
        there_[target].results.push_back(std::move(one));
}

template <class F>
void Program::issue(std::uint32_t target, F&& op, const op::Simple& small, std::vector<Expected> results) {
    if (below(4) != 0) return issue_plain(target, op, small, std::move(results));
    there_[target].asked.push_back({process_.request(target, op), std::move(results)});
}

inline void Program::on_slice(std::uint32_t target) {
    There& there = there_[target];
    const auto origin = process_.rank;
    const unsigned kind = static_cast<unsigned>(below(10));
    if (kind < 8) {
        const std::size_t bytes = length();
        // Mostly near the beginning, so that conflicts and adjacent puts are frequent.
        const std::size_t room = Common::kSlice - bytes;
        const std::size_t at = below(std::min<std::size_t>(room, below(2) == 0 ? 2048 : room) + 1);
        std::byte* const mine = claim(bytes);
        const std::int64_t disp = common_.slice(origin) + static_cast<std::int64_t>(at);
        if (kind < 4) {
            claim_place(target, at, bytes, kPut);
            for (std::size_t i = 0; i < bytes; ++i)
                mine[i] = static_cast<std::byte>(random_());
            std::memcpy(there.slice.data() + at, mine, bytes);
            return issue(target, [&](Transport& t) { t.put(disp, mine, bytes); }, {op::OpKind::Put, bytes, disp, mine},
                         {});
        }
        claim_place(target, at, bytes, kGot);
        std::memset(mine, 0xee, bytes);
        const auto from = there.slice.begin() + static_cast<std::ptrdiff_t>(at);
        std::vector<std::byte> expected(from, from + static_cast<std::ptrdiff_t>(bytes));
        return issue(target, [&](Transport& t) { t.get(disp, mine, bytes); },
                     {op::OpKind::Get, bytes, disp, nullptr, mine}, {{mine, std::move(expected)}});
    }
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    const bool swap = kind == 9 && below(2) == 0;
    const std::size_t count = swap ? 1 : 1 + below(below(8) == 0 ? 3000 : 8);
    const std::size_t at = below(std::min<std::size_t>(Common::kSlice / kWord - count, 64) + 1) * kWord;
    const std::size_t bytes = count * kWord;
    const std::int64_t disp = common_.slice(origin) + static_cast<std::int64_t>(at);
    std::byte* const mine = claim(3 * bytes);
    claim_place(target, at, bytes, kUpdated);
    auto* const value = reinterpret_cast<std::uint64_t*>(mine);
    auto* const now = reinterpret_cast<std::uint64_t*>(there.slice.data() + at);
    std::byte* const result = mine + bytes;
    std::memset(result, 0xee, 2 * bytes);
    std::vector<std::byte> expected(there.slice.begin() + static_cast<std::ptrdiff_t>(at),
                                    there.slice.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    for (std::size_t i = 0; i < count; ++i)
        value[i] = random_();
    if (swap) {
        auto* const compare = reinterpret_cast<std::uint64_t*>(mine + 2 * bytes);
        *compare = below(2) == 0 ? *now : random_();
        if (*compare == *now) *now = *value;
        const Update how{Basic::U64, Op::None, nullptr, op::kernel(Op::Replace, Basic::U64), kWord, compare};
        return issue(target, [&](Transport& t) { t.update(how, disp, value, result, 1); },
                     {op::OpKind::CompareAndSwap, kWord, disp, value, result, &how}, {{result, std::move(expected)}});
    }
    const Op op = below(2) == 0 ? Op::Sum : Op::Replace;
    for (std::size_t i = 0; i < count; ++i)
        now[i] = op == Op::Sum ? now[i] + value[i] : value[i];
    const Update how = update_of(op, Basic::U64);
    const bool fetch = below(2) == 0;
    std::vector<Expected> results;
    if (fetch) results.push_back({result, std::move(expected)});
    std::byte* const back = fetch ? result : nullptr;
    issue(
        target, [&](Transport& t) { t.update(how, disp, value, back, count); },
        {fetch ? op::OpKind::GetAccumulate : op::OpKind::Accumulate, bytes, disp, value, back, &how},
        std::move(results));
}

inline void Program::on_counter(std::uint32_t target) {
    There& there = there_[target];
    const std::size_t counter = below(Common::kCounters);
    auto* const words = reinterpret_cast<std::uint64_t*>(claim(2 * sizeof(std::uint64_t)));
    words[0] = 1;
    words[1] = ~std::uint64_t{0};
    ++there.added[counter];
    const Update how = update_of(Op::Sum, Basic::U64);
    const std::int64_t disp = common_.counters() + static_cast<std::int64_t>(counter * sizeof(std::uint64_t));
    issue_plain(target, [&](Transport& t) { t.update(how, disp, words, words + 1, 1); },
                {op::OpKind::GetAccumulate, 8, disp, words, words + 1, &how}, {});
    there.fetches.emplace_back(reinterpret_cast<std::byte*>(words + 1), counter);
}

inline void Program::on_common(std::uint32_t target) {
    There& there = there_[target];
    if (there.common_used) complete_ops(target);
    there.common_used = true;
    const std::size_t bytes = 1 + below(Common::kBytes);
    const std::size_t at = below(Common::kBytes - bytes + 1);
    std::byte* const mine = claim(bytes);
    const std::int64_t disp = common_.common() + static_cast<std::int64_t>(at);
    const auto model = common_.bytes[target].begin() + static_cast<std::ptrdiff_t>(at);
    // The request for the lock may be in flight; this program may use the model only after the grant.
    if (below(2) == 0) {
        for (std::size_t i = 0; i < bytes; ++i)
            mine[i] = static_cast<std::byte>(random_());
        issue_plain(target, [&](Transport& t) { t.put(disp, mine, bytes); }, {op::OpKind::Put, bytes, disp, mine}, {});
        confirm(target);
        std::copy(mine, mine + bytes, model);
    } else {
        issue_plain(target, [&](Transport& t) { t.get(disp, mine, bytes); },
                    {op::OpKind::Get, bytes, disp, nullptr, mine}, {});
        confirm(target);
        there.results.push_back({mine, std::vector<std::byte>(model, model + static_cast<std::ptrdiff_t>(bytes))});
    }
}

inline void Program::look_at_tickets(std::uint32_t target) {
    There& there = there_[target];
    if (there.asked.empty()) return;
    const std::size_t which = below(there.asked.size());
    Asked asked = there.asked[which];
    net::Stream& stream = process_.to(target);
    if (below(2) == 0 && !stream.look(*asked.completion)) return;
    stream.await(*asked.completion);
    if (asked.completion->status() != net::Status::Done) complain("a request failed", target);
    verify(target, asked.results, "wrong result of a request");
    there.asked.erase(there.asked.begin() + static_cast<std::ptrdiff_t>(which));
}

inline void Program::operate(std::uint32_t target) {
    before_wait_(target);
    const std::size_t kind = below(100);
    if (kind < 78) return on_slice(target);
    if (kind < 86) return on_counter(target);
    if (kind < 90) return there_[target].locks == Locks::Exclusive ? on_common(target) : on_slice(target);
    if (kind < 96) return look_at_tickets(target);
    if (kind < 98) return complete_ops(target);
    check(process_.far->complete_local(target), "complete_local");
    verify(target, there_[target].results, "wrong result after complete_local");
}

inline void Program::complete_ops(std::uint32_t target) {
    before_wait_(target);
    There& there = there_[target];
    check(process_.far->complete_ops(target), "settle");
    verify(target, there.results, "wrong result");
    for (const Asked& asked : there.asked) {
        if (!asked.completion->ended() || asked.completion->status() != net::Status::Done)
            complain("an unended request", target);
        verify(target, asked.results, "wrong result of a settled request");
    }
    for (const auto& [at, counter] : there.fetches) {
        std::uint64_t value = 0;
        std::memcpy(&value, at, sizeof value);
        there.seen[counter].push_back(value);
    }
    there.results.clear();
    there.asked.clear();
    there.fetches.clear();
    there.common_used = false;
    std::ranges::fill(there.granules, std::uint8_t{0});
}

inline void Program::lock(std::uint32_t target, Locks kind) {
    complete_ops(target);
    there_[target].locks = kind;
    const auto asked = kind == Locks::Exclusive ? sync::LockKind::Exclusive : sync::LockKind::Shared;
    check(process_.far->lock(target, asked, false), "lock");
}

inline void Program::unlock(std::uint32_t target) {
    before_wait_(target);
    process_.far->unlock(target);
    complete_ops(target);
    there_[target].locks = Locks::None;
}

}  // namespace osc::test
