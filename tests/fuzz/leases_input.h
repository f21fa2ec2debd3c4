// What the fuzzer does with one input: the owner of a dynamic window attaches and detaches regions, origins look them
// up, access them and drop withdrawn leases, in any order of these steps. The owner's and the origins' code is the
// library's, and a plain model says what each step must answer.
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "bytes.h"
#include "net/origin/region_cache.h"
#include "shm/regions.h"
#include "thread_ranks.h"

namespace osc::test {

/// Exposes anything, and knows what is exposed.
class Exposing final : public fabric::Endpoint {
  public:
    /// `most`: the number of keys that it can give.
    explicit Exposing(std::size_t most) : live_(most + 1) {}
    bool expose(void* base, std::size_t, fabric::Exposed& exposed) override {
        if (refuses) return false;
        exposed = {this, ++keys_, reinterpret_cast<std::uint64_t>(base) + kShift};
        live_[keys_].store(true);
        return true;
    }
    void revoke(fabric::Exposed& exposed) override {
        EXPECT_TRUE(live_[exposed.key].exchange(false));
        exposed = {};
    }
    bool is_live(std::uint64_t key) const { return live_[key].load(); }
    std::uint64_t keys() const { return keys_; }
    std::size_t live() const {
        return static_cast<std::size_t>(std::ranges::count_if(live_, [](const auto& one) { return one.load(); }));
    }

    static constexpr std::uint64_t kShift = 0x1000000;
    bool refuses = false;

    // The rest of an endpoint is not for these tests.
    const fabric::Address& address() const override { return address_; }
    const char* provider() const override { return "none"; }
    std::uint32_t ipv4() const override { return 0; }
    bool insert(const fabric::Address&, fabric::PeerId&) override { return false; }
    fabric::Posted send(fabric::PeerId, const void*, std::size_t, fabric::Operation&) override {
        return fabric::Posted::Failed;
    }
    fabric::Posted send_copied(fabric::PeerId, const void*, std::size_t) override { return fabric::Posted::Failed; }
    std::size_t largest_copied() const override { return 0; }
    fabric::Posted write(fabric::PeerId, const void*, std::size_t, std::uint64_t, std::uint64_t,
                         fabric::Operation&) override {
        return fabric::Posted::Failed;
    }
    fabric::Posted read(fabric::PeerId, void*, std::size_t, std::uint64_t, std::uint64_t, fabric::Operation&) override {
        return fabric::Posted::Failed;
    }
    std::size_t longest_row(fabric::RowForm, Basic, Op) const override { return 0; }
    fabric::Posted update(fabric::PeerId, fabric::AtomicRow&, std::uint64_t, std::uint64_t,
                          fabric::Operation&) override {
        return fabric::Posted::Failed;
    }
    bool has_hardware_atomics() const override { return false; }
    std::size_t largest_transfer() const override { return 0; }
    std::size_t direct_from() const override { return 0; }
    const char* flaw() const override { return ""; }
    const char* atomics_flaw() const override { return ""; }
    int poll(fabric::Receiver&) override { return 0; }
    int sleep(int, fabric::Receiver&) override { return 0; }
    void wake() override {}

  private:
    std::uint64_t keys_ = 0;
    std::vector<std::atomic<bool>> live_;
    fabric::Address address_;
};

class LeasesInput {
  public:
    /// Null, or what went wrong.
    const char* run(const std::uint8_t* data, std::size_t size) {
        Bytes bytes(data, std::min(size, kMostBytes));
        while (!bytes.done() && wrong_ == nullptr)
            step(bytes);
        finish();
        return wrong_;
    }
    std::uint64_t withdrawn() const { return withdrawn_; }
    std::uint64_t accesses() const { return accesses_; }

  private:
    static constexpr std::size_t kMostBytes = 4096;  // a step has two at the least
    static constexpr std::size_t kUnit = 16;
    static constexpr int kUnits = 12;
    static constexpr int kOrigins = 3;

    // One attachment of memory, as the model knows it.
    struct Attached {
        std::uint64_t size = 0;
        std::uint32_t number = 0;  // 0: no origin has looked it up
        std::uint32_t exposed = net::kNotYet;
        std::set<std::uint32_t> holders;
    };
    using Regions = std::map<std::uint64_t, Attached>;  // by address

    struct Withdrawal {
        net::Leases::Given gone;
        std::set<std::uint32_t> awaited;
    };

    struct Origin {
        net::RegionCache cache;
        std::vector<net::Lease> reply;  // of a look-up; empty: none is in flight
        std::vector<net::RegionCache::Kept*> uses;
    };

    void check(bool good, const char* what) {
        if (!good && wrong_ == nullptr) wrong_ = what;
    }

    std::uint64_t address(Bytes& bytes) {
        return reinterpret_cast<std::uint64_t>(memory_.data()) +
               static_cast<std::uint64_t>(bytes(0, kUnits - 1)) * kUnit;
    }

    void step(Bytes& bytes) {
        const int what = bytes(0, 9);
        const auto rank = static_cast<std::uint32_t>(bytes(0, kOrigins - 1));
        Origin& origin = origins_[rank];
        switch (what) {
            case 0:
            case 1:
                return attach(address(bytes), static_cast<std::uint64_t>(bytes(0, 3)) * kUnit);
            case 2:
                return detach(address(bytes));
            case 3:
                return look_up(rank, address(bytes) + static_cast<std::uint64_t>(bytes(0, kUnit - 1)), bytes(1, 4));
            case 4:
                endpoint_.refuses = bytes.chance(1, 4);
                return expose(rank, address(bytes));
            case 5:
                return receive(origin);
            case 6:
                return use(origin, address(bytes), static_cast<std::uint64_t>(bytes(1, 2 * kUnit)));
            case 7:
                return release(origin, bytes(0, 7));
            case 8:
                return ask_holders(bytes(0, 7));
            default:
                return read_table();
        }
    }

    // The region of the model that holds an address.
    Regions::iterator holding(std::uint64_t address) {
        auto after = regions_.upper_bound(address);
        if (after == regions_.begin()) return regions_.end();
        const auto region = std::prev(after);
        return address - region->first < region->second.size ? region : regions_.end();
    }

    void attach(std::uint64_t at, std::uint64_t size) {
        bool overlaps = false;
        for (std::uint64_t byte = at; byte < at + size; byte += kUnit)
            overlaps = overlaps || holding(byte) != regions_.end();
        const Fault fault = table_.attach(reinterpret_cast<void*>(at), size);
        check(fault == (overlaps ? Fault::Attach : Fault::None), "attach accepts an overlap, or refuses free memory");
        if (overlaps) return;
        if (size != 0) regions_[at].size = size;
        if (size == 0) empty_.insert(at);
    }

    void detach(std::uint64_t at) {
        Withdrawal withdrawal;
        const auto region = regions_.find(at);
        const auto empty = empty_.find(at);
        const bool known = region != regions_.end() || empty != empty_.end();
        const Fault fault = leases_.detach(reinterpret_cast<void*>(at), withdrawal.gone);
        check(fault == (known ? Fault::None : Fault::Attach), "detach finds no region, or one that is not attached");
        if (region == regions_.end()) {
            if (empty != empty_.end()) empty_.erase(empty);
            return check(withdrawal.gone.holders.empty(), "an empty region has holders");
        }
        const std::set<std::uint32_t>& holders = region->second.holders;
        check(std::ranges::equal(withdrawal.gone.holders, holders), "the holders are not those that looked it up");
        check(withdrawal.gone.lease.number == region->second.number, "another lease is withdrawn");
        withdrawal.awaited = holders;
        regions_.erase(region);
        withdrawals_.push_back(std::move(withdrawal));
    }

    void note(std::uint32_t rank, Attached& region, const net::Lease& lease) {
        region.holders.insert(rank);
        if (region.number == 0) {
            check(lease.number > newest_, "a region gets the number of an earlier one");
            region.number = newest_ = lease.number;
        }
        check(lease.number == region.number, "the lease of a region has changed its number");
    }

    void look_up(std::uint32_t rank, std::uint64_t at, int count) {
        Origin& origin = origins_[rank];
        if (!origin.reply.empty()) return;
        origin.cache.asks();
        origin.reply.resize(static_cast<std::size_t>(count));
        leases_.look_up(rank, at, origin.reply);
        auto region = holding(at);
        for (const net::Lease& lease : origin.reply) {
            if (region == regions_.end()) {
                check(lease.size == 0, "a lease of no region");
                continue;
            }
            check(lease.address == region->first && lease.size == region->second.size, "the lease of another region");
            check(lease.exposed == region->second.exposed, "a look-up changes whether a region is exposed");
            note(rank, region->second, lease);
            ++region;
        }
    }

    void expose(std::uint32_t rank, std::uint64_t at) {
        Origin& origin = origins_[rank];
        if (!origin.reply.empty()) return;
        origin.cache.asks();
        origin.reply.resize(1);
        leases_.expose(rank, at, origin.reply.front());
        const net::Lease& lease = origin.reply.front();
        const auto region = holding(at);
        if (region == regions_.end()) return check(lease.size == 0, "a lease of no region is exposed");
        if (region->second.exposed == net::kNotYet)
            region->second.exposed = endpoint_.refuses ? net::kNever : net::kExposed;
        check(lease.address == region->first && lease.size == region->second.size, "another region is exposed");
        check(lease.exposed == region->second.exposed, "a region is exposed though the provider refuses it, or is not");
        check(lease.exposed != net::kExposed || endpoint_.is_live(lease.key), "an exposed region has no key");
        note(rank, region->second, lease);
    }

    void receive(Origin& origin) {
        if (origin.reply.empty()) return;
        origin.cache.answered(origin.reply);
        origin.reply.clear();
    }

    void use(Origin& origin, std::uint64_t at, std::uint64_t bytes) {
        net::Lease lease;
        if (origin.cache.find(at, lease))
            check(at - lease.address < lease.size, "the cache finds a lease that does not hold the address");
        net::RegionCache::Kept* const entry = origin.cache.use(at, bytes);
        if (entry == nullptr) return;
        check(bytes <= entry->lease.size - (at - entry->lease.address), "an access leaves its region");
        check(endpoint_.is_live(entry->lease.key), "an access begins by a key that is revoked");
        origin.uses.push_back(entry);
        ++accesses_;
    }

    void release(Origin& origin, int which) {
        if (origin.uses.empty()) return;
        const auto at = origin.uses.begin() + which % static_cast<int>(origin.uses.size());
        check(endpoint_.is_live((*at)->lease.key), "a key is revoked while an access uses it");
        origin.cache.release(**at);
        origin.uses.erase(at);
    }

    // Asks each awaited holder of one withdrawal once.
    void ask_holders(int which) {
        if (withdrawals_.empty()) return;
        const auto at = withdrawals_.begin() + which % static_cast<int>(withdrawals_.size());
        const net::Lease& lease = at->gone.lease;
        std::erase_if(at->awaited, [&](std::uint32_t rank) {
            const bool used = std::ranges::any_of(origins_[rank].uses, [&](const net::RegionCache::Kept* entry) {
                return entry->lease.number == lease.number;
            });
            const bool dropped = origins_[rank].cache.drop(lease.address, lease.number);
            check(dropped != used, "a holder drops a lease in use, or keeps an unused one");
            return dropped;
        });
        if (!at->awaited.empty()) return;
        leases_.revoke(at->gone);
        withdrawals_.erase(at);
        ++withdrawn_;
    }

    void read_table() {
        const auto read = [](std::uint64_t offset, std::uint64_t count) {
            std::vector<shm::Region> copy(count);
            if (count != 0) std::memcpy(copy.data(), shm::Arena::mine().at(offset), count * sizeof(shm::Region));
            return std::optional(std::move(copy));
        };
        const auto copy = view_.current(ranks_.controls().block(0), read, [] { return true; });
        check(copy != nullptr, "the table cannot be read");
        if (copy == nullptr) return;
        check(std::ranges::equal(copy->list(), regions_,
                                 [](const shm::Region& region, const auto& known) {
                                     return region.base == known.first && region.size == known.second.size;
                                 }),
              "a reader sees other regions than are attached");
    }

    // Once all accesses have ended each withdrawal does.
    void finish() {
        for (Origin& origin : origins_) {
            receive(origin);
            while (!origin.uses.empty())
                release(origin, 0);
        }
        while (wrong_ == nullptr && !withdrawals_.empty()) {
            const std::size_t before = withdrawals_.size();
            ask_holders(0);
            check(withdrawals_.size() < before, "a withdrawal does not end");
        }
        if (wrong_ == nullptr) read_table();
        std::size_t exposed = 0;
        for (const auto& [at, region] : regions_)
            if (region.exposed == net::kExposed) ++exposed;
        check(endpoint_.live() == exposed, "a key of a detached region is left");
    }

    std::array<std::byte, kUnits * kUnit + 3 * kUnit> memory_{};
    Exposing endpoint_{kMostBytes / 2};
    Ranks ranks_{1};
    shm::RegionTable table_{ranks_.controls().block(0)};
    net::Leases leases_{table_, &endpoint_};
    shm::RegionView view_;
    std::array<Origin, kOrigins> origins_;
    std::deque<Withdrawal> withdrawals_;
    Regions regions_;
    std::multiset<std::uint64_t> empty_;
    std::uint32_t newest_ = 0;
    std::uint64_t withdrawn_ = 0;
    std::uint64_t accesses_ = 0;
    const char* wrong_ = nullptr;
};

}  // namespace osc::test
