// A target between nodes without a network: an exposed window over guarded memory, replies that are kept for the test,
// and frames as origins send them. Rank 0 is the target; the processes of other nodes are ranks like the others, whose
// blocks nobody uses.
#pragma once

#include <cstring>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "net/target/inspection.h"
#include "net/target/target_service.h"
#include "shm/regions.h"
#include "sync/lock.h"
#include "thread_ranks.h"

namespace osc::test {

using net::FrameKind;
using net::LockAsk;
using net::Opcode;
using net::Record;
using net::Status;

inline constexpr std::uint64_t kSecret = 0x5ec7e75ec7e75ec7;
inline constexpr std::uint64_t kWindow = 0x77;
inline constexpr std::uint64_t kDynamicWindow = 0x78;

constexpr std::uint64_t token_of(std::uint32_t rank) {
    return 0x70c0000 + rank;
}

struct Answered {
    std::uint64_t token;
    std::uint32_t number;
    Status status;
    std::vector<std::byte> data;

    template <class T>
    T at(std::size_t offset) const {
        T value{};
        EXPECT_LE(offset + sizeof value, data.size());
        if (offset + sizeof value <= data.size()) std::memcpy(&value, data.data() + offset, sizeof value);
        return value;
    }
};

class Recorder final : public net::Answers {
  public:
    void answer(std::uint64_t token, std::uint32_t number, Status status, const std::byte* data,
                std::size_t bytes) override {
        all.push_back({token, number, status,
                       bytes != 0 ? std::vector<std::byte>(data, data + bytes) : std::vector<std::byte>()});
    }
    void dropped() override { ++drops; }
    std::vector<Answered> all;
    std::uint64_t drops = 0;
};

/// A frame's body: records one after the other.
class Body {
  public:
    Body& add(const Record& record, const void* data = nullptr) {
        append(&record, sizeof record);
        const std::size_t carried = net::carried(record);
        if (carried != 0) append(data, carried);
        bytes.resize(net::padded(bytes.size()));
        return *this;
    }
    Body& put(std::int64_t disp, std::uint64_t value) {
        return add({Opcode::Put, Basic::None, Op::None, 0, sizeof value, disp}, &value);
    }
    Body& get(std::int64_t disp, std::uint32_t size = 8) {
        return add({Opcode::Get, Basic::None, Op::None, 0, size, disp});
    }
    Body& sum(Opcode opcode, std::int64_t disp, std::uint64_t value) {
        return add({opcode, Basic::U64, Op::Sum, 0, sizeof value, disp}, &value);
    }
    Body& lock(LockAsk ask) { return step(Opcode::Lock, static_cast<std::int64_t>(ask)); }
    Body& unlock(LockAsk ask) { return step(Opcode::Unlock, static_cast<std::int64_t>(ask)); }
    Body& step(Opcode opcode, std::int64_t disp = 0) { return add({opcode, Basic::None, Op::None, 0, 0, disp}); }

    /// Null: `size` bytes of zeros.
    void append(const void* from, std::size_t size) {
        const std::size_t before = bytes.size();
        bytes.resize(before + size);
        if (from != nullptr) std::memcpy(bytes.data() + before, from, size);
    }

    std::vector<std::byte> bytes;
};

/// The whole message.
inline std::vector<std::byte> framed(FrameKind kind, std::uint32_t origin, std::uint32_t number, const Body& body,
                                     std::uint64_t window = kWindow) {
    net::Frame frame;
    frame.kind = kind;
    frame.origin = origin;
    frame.secret = kSecret;
    frame.sender = token_of(origin);
    frame.window = window;
    frame.number = number;
    frame.bytes = static_cast<std::uint32_t>(body.bytes.size());
    Body message;
    message.append(&frame, sizeof frame);
    message.append(body.bytes.data(), body.bytes.size());
    return std::move(message.bytes);
}

/// What this process holds of others: lets go of a lease when it has been asked so often.
class SlowCaches final : public net::Caches {
  public:
    bool drop(std::uint32_t owner, std::uint64_t address, std::uint32_t number) override {
        std::uint32_t& asked = asked_[{owner, address, number}];
        if (asked++ < times(number)) return false;
        asked = 0;
        return true;
    }
    std::uint32_t times(std::uint32_t number) const { return number % 3; }

  private:
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, std::uint32_t> asked_;
};

/// Processes of which nothing is known but their rank, as `pid`.
class Views final : public net::Neighbours {
  public:
    shm::ProcessView process_view(std::uint32_t rank) override {
        shm::ProcessView view;
        view.pid = static_cast<std::int32_t>(rank);
        return view;
    }
};

class Target {
  public:
    static constexpr std::uint32_t kRanks = 6;
    static constexpr std::size_t kLongs = 512;  // of the window
    static constexpr std::size_t kGuard = 64;   // words before and behind it
    static constexpr std::uint64_t kUntouched = 0xa5a5a5a5a5a5a5a5;

    Target() {
        for (std::uint32_t rank = 0; rank < kRanks; ++rank)
            tokens_[rank] = token_of(rank);
        net::ExposedWindow window;
        window.id = kWindow;
        window.base = reinterpret_cast<std::byte*>(words());
        window.size = kLongs * sizeof(std::uint64_t);
        window.unit = sizeof(std::uint64_t);
        window.controls = &ranks.controls();
        window.rank = 0;
        window.processes = kRanks;
        window.liveness = &ranks.lives();
        window.neighbours = &neighbours;
        window.tokens.own = tokens_;
        window.board = &board;
        exposed = window;
        arrivals = service.add(window);
    }

    /// Serves a dynamic window of the same processes as well.
    void add_dynamic(shm::RegionTable& regions, net::Leases* leases = nullptr, net::Caches* caches = nullptr) {
        net::ExposedWindow window = exposed;
        window.id = kDynamicWindow;
        window.base = nullptr;
        window.size = 0;
        window.controls = &dynamic_ranks.controls();  // two windows never share one: it has the lock's queue
        window.regions = &regions;
        window.leases = leases;
        window.caches = caches;
        exposed_dynamic = window;
        dynamic_arrivals = service.add(window);
    }

    std::uint64_t* words() { return memory_.data() + kGuard; }
    std::byte* bytes() { return reinterpret_cast<std::byte*>(words()); }
    bool guards_untouched() const {
        for (std::size_t i = 0; i < kGuard; ++i)
            if (memory_[i] != kUntouched || memory_[kGuard + kLongs + i] != kUntouched) return false;
        return true;
    }

    /// A message as it comes from the network; false if check() refuses it, or it is for nobody here.
    bool receive(const std::byte* message, std::size_t size) {
        net::Frame frame;
        if (!net::check(message, size, kSecret, frame) || frame.kind > FrameKind::Notice) return false;
        service.request(frame, message + sizeof frame);
        return true;
    }
    void send(std::uint32_t origin, std::uint32_t number, const Body& body, std::uint64_t window = kWindow,
              FrameKind kind = FrameKind::Request) {
        const std::vector<std::byte> message = framed(kind, origin, number, body, window);
        EXPECT_TRUE(receive(message.data(), message.size()));
    }
    /// Sends a request that is answered at once.
    Answered ask(std::uint32_t origin, const Body& body, std::uint64_t window = kWindow,
                 FrameKind kind = FrameKind::Request) {
        const std::size_t before = answers.all.size();
        const std::uint32_t number = ++asked_;
        send(origin, number, body, window, kind);
        EXPECT_EQ(answers.all.size(), before + 1);
        if (answers.all.size() != before + 1) return {};
        EXPECT_EQ(answers.all.back().number, number);
        EXPECT_EQ(answers.all.back().token, token_of(origin));
        return answers.all.back();
    }
    /// The numbers that have been answered, in order, with their statuses; forgotten then.
    std::vector<std::pair<std::uint32_t, Status>> take_answers() {
        std::vector<std::pair<std::uint32_t, Status>> taken;
        for (const Answered& answered : answers.all)
            taken.emplace_back(answered.number, answered.status);
        answers.all.clear();
        return taken;
    }

    Ranks ranks{kRanks, 1};
    Ranks dynamic_ranks{kRanks, 1};  // the dynamic window's
    Views neighbours;
    Recorder answers;
    net::TargetService service{answers};
    /// The notification counters; null at first.
    std::atomic<sync::NotifyBoard*> board{nullptr};
    net::ExposedWindow exposed;
    net::ExposedWindow exposed_dynamic;
    std::shared_ptr<net::Arrivals> arrivals;
    std::shared_ptr<net::Arrivals> dynamic_arrivals;

  private:
    std::array<std::uint64_t, kRanks> tokens_{};
    std::vector<std::uint64_t> memory_ = filled();
    std::uint32_t asked_ = 1000000;

    static std::vector<std::uint64_t> filled() {
        std::vector<std::uint64_t> words(kLongs + 2 * kGuard, kUntouched);
        for (std::size_t i = 0; i < kLongs; ++i)
            words[kGuard + i] = 0;
        return words;
    }
};

}  // namespace osc::test
