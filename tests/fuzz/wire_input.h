// What the fuzzers do with one input: messages to a target with two windows, by both channels, between them the steps
// of a local process that takes the lock, a region that comes and goes, and deaths. The input is a row of pieces, each
// four bytes (flags, origin, length) and a message; the agent gets the same records.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "net/target/agent_service.h"
#include "net_target.h"

namespace osc::test {

enum InputFlag : std::uint8_t {
    kRepaired = 1,     // the header gets what a sender of the job would write, so that the body is looked at
    kOtherWindow = 2,  // the dynamic one, if repaired
    kResume = 4,
    kLocalLock = 8,   // the local process takes the lock, or gives it back
    kDeath = 16,      // the origin dies
    kNoRequest = 32,  // a query, if repaired; or with kNotice a notice
    kNotice = 64,
    kRegion = 128,  // a region of the dynamic window is detached, or attached again
};

class WireInput {
  public:
    static constexpr std::size_t kHead = 4;

    WireInput() {
        for (const std::size_t region : {1, 2, 4})
            if (regions_.attach(memory_.data() + region * kBytes, kBytes) != Fault::None) wrong_ = "cannot attach";
        target_.add_dynamic(regions_, &leases_, &caches_);
        windows_ = {agent_.add(target_.exposed), agent_.add(target_.exposed_dynamic)};
    }

    /// Null, or what went wrong.
    const char* run(const std::uint8_t* input, std::size_t bytes) {
        for (std::size_t at = 0; bytes - at >= kHead;) {
            const std::uint8_t* head = input + at;
            const std::size_t length = std::min<std::size_t>(head[2] | head[3] << 8, bytes - at - kHead);
            if (length <= fabric::kLargestMessage) piece(head[0], head[1] % Target::kRanks, head + kHead, length);
            at += kHead + length;
        }
        finish();
        return wrong_;
    }

    std::uint64_t passed() const { return passed_; }
    /// Notices that were not executed, or not whole.
    std::uint64_t drops() const { return target_.answers.drops; }
    const std::array<std::uint64_t, net::kStatuses>& statuses() const { return statuses_; }
    std::uint64_t agent_replies(net::Status status) const { return agent_.replies(status); }
    static std::int64_t dynamic_address(const WireInput& of) {
        return reinterpret_cast<std::int64_t>(of.memory_.data());
    }

  private:
    static constexpr std::size_t kBytes = 64;
    static constexpr std::uint32_t kLocal = 1;

    void piece(std::uint8_t flags, std::uint32_t origin, const std::uint8_t* data, std::size_t length) {
        // In a block of its own size, so that the address sanitizer sees what is read behind it.
        std::vector<std::byte> message(length);
        if (length != 0) std::memcpy(message.data(), data, length);
        net::Frame frame;
        if ((flags & kRepaired) != 0 && length >= sizeof frame) {
            length -= length % net::kAlign;
            message.resize(length);
            message.shrink_to_fit();
            frame.kind = (flags & kNoRequest) == 0 ? net::FrameKind::Request
                         : (flags & kNotice) == 0  ? net::FrameKind::Query
                                                   : net::FrameKind::Notice;
            frame.origin = origin;
            frame.secret = kSecret;
            frame.sender = token_of(origin);
            frame.window = (flags & kOtherWindow) == 0 ? kWindow : kDynamicWindow;
            frame.number = ++number_;
            frame.bytes = static_cast<std::uint32_t>(length - sizeof frame);
            std::memcpy(message.data(), &frame, sizeof frame);
        }
        if (net::check(message.data(), message.size(), kSecret, frame) && frame.kind <= net::FrameKind::Notice) {
            ++passed_;
            if (frame.kind != net::FrameKind::Notice) ++open_[{frame.sender, frame.number}];
        }
        const Steps before = steps();
        target_.receive(message.data(), message.size());
        if ((frame.kind == net::FrameKind::Query || frame.kind == net::FrameKind::Notice) && steps() != before)
            wrong_ = "a query or notice has ended an epoch or released a lock";
        to_agent(windows_[(flags & kOtherWindow) == 0 ? 0 : 1], message);
        if ((flags & kLocalLock) != 0) toggle_local();
        if ((flags & kRegion) != 0) toggle_region();
        if ((flags & kDeath) != 0) target_.service.died(token_of(origin));
        if ((flags & kResume) != 0) target_.service.resume();
        look();
    }

    // What only a request may change, at both windows: the lock's word, completes, closes, and the memory.
    struct Steps {
        std::array<std::uint64_t, 6> counts;
        std::vector<std::uint64_t> words;
        bool operator==(const Steps&) const = default;
    };
    Steps steps() {
        const shm::ControlBlock& one = target_.ranks.controls().block(0);
        const shm::ControlBlock& other = target_.dynamic_ranks.controls().block(0);
        return {{one.lock.word.load(), one.completes.load(), target_.arrivals->closes(), other.lock.word.load(),
                 other.completes.load(), target_.dynamic_arrivals->closes()},
                {target_.words(), target_.words() + Target::kLongs}};
    }

    // The records in a message slot with little room for a reply.
    void to_agent(std::uint64_t window, const std::vector<std::byte>& message) {
        if (message.size() <= sizeof(net::Frame)) return;
        const std::size_t bytes = message.size() - sizeof(net::Frame);
        std::vector<std::byte> slot(bytes + 256);
        std::memcpy(slot.data(), message.data() + sizeof(net::Frame), bytes);
        agent_.execute(window, slot.data(), bytes, slot.size());
    }

    void toggle_local() {
        if (!local_) {
            local_ = sync::try_lock_exclusive(target_.ranks.lock_cell(0), kLocal);
            return;
        }
        local_ = false;
        sync::LockContext context = target_.ranks.context(kLocal);
        sync::unlock_exclusive(context, 0);
    }

    void toggle_region() {
        std::byte* const region = memory_.data() + 2 * kBytes;
        attached_ = !attached_;
        if (attached_) {
            if (regions_.attach(region, kBytes) != Fault::None) wrong_ = "cannot attach again";
            return;
        }
        net::Leases::Given gone;
        if (leases_.detach(region, gone) != Fault::None) wrong_ = "cannot detach";
        for (std::size_t i = 0; i < gone.holders.size(); ++i)
            if (gone.holders[i] >= Target::kRanks || (i > 0 && gone.holders[i] <= gone.holders[i - 1]))
                wrong_ = "the holders are no set of ranks";
    }

    // Whoever holds or waits for the lock dies in the end: then every request has its answer.
    void finish() {
        if (local_) toggle_local();
        target_.arrivals->open(~std::uint64_t{0});
        if (target_.dynamic_arrivals != nullptr) target_.dynamic_arrivals->open(~std::uint64_t{0});
        bool waits = true;
        for (std::uint32_t i = 0; i < 4 && waits; ++i) {  // and leases are let go
            for (std::uint32_t rank = 0; rank < Target::kRanks; ++rank)
                target_.service.died(token_of(rank));
            waits = target_.service.resume();
        }
        look();
        if (waits) wrong_ = "a request waits though nobody holds the lock, or a lease, and fences are made";
        for (const auto& [request, times] : open_)
            if (times != 0) wrong_ = "a request has had no answer";
    }

    void look() {
        for (const Answered& answered : target_.answers.all) {
            ++statuses_.at(static_cast<std::size_t>(answered.status));
            if (answered.data.size() > net::kBody - sizeof(net::ReplyHead)) wrong_ = "a reply is too long";
            if (open_[{answered.token, answered.number}]-- == 0)
                wrong_ = "a request has had two answers, or none asked";
        }
        target_.answers.all.clear();
        if (!target_.guards_untouched()) wrong_ = "memory outside the window has changed";
        for (const std::size_t gap : {0, 3, 5})
            for (std::size_t i = 0; i < kBytes; ++i)
                if (memory_[gap * kBytes + i] != kGap) wrong_ = "memory that is not attached has changed";
    }

    static constexpr std::byte kGap{0x5a};
    static std::array<std::byte, 6 * kBytes> filled() {
        std::array<std::byte, 6 * kBytes> bytes;
        bytes.fill(kGap);
        return bytes;
    }

    Target target_;
    alignas(64) std::array<std::byte, 6 * kBytes> memory_ = filled();
    shm::RegionTable regions_{target_.dynamic_ranks.controls().block(0)};
    net::Leases leases_{regions_, nullptr};
    SlowCaches caches_;
    net::AgentService agent_;
    std::array<std::uint64_t, 2> windows_{};
    bool attached_ = true;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> open_;
    std::array<std::uint64_t, net::kStatuses> statuses_{};
    std::uint64_t passed_ = 0;
    std::uint32_t number_ = 0;
    bool local_ = false;
    const char* wrong_ = nullptr;
};

}  // namespace osc::test
