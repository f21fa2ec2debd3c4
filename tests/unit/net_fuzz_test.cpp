// Anything at all by both channels, for seconds: messages that are nearly right. No crash, nothing written outside the
// windows, and for every request one reply. The seed is printed; OSC_TEST_SEED=n begins with that one. tests/fuzz has
// the same under libFuzzer.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "../fuzz/wire_input.h"
#include "net/shape.h"

namespace osc::test {
namespace {

class Sender {
  public:
    Sender(std::uint64_t seed, std::int64_t dynamic) : random_(seed), dynamic_(dynamic) {}

    std::vector<std::uint8_t> input() {
        std::vector<std::uint8_t> input;
        for (std::uint64_t pieces = 1 + below(40); pieces > 0; --pieces) {
            std::uint8_t flags = chance(9, 10) ? kRepaired : 0;
            for (const std::uint8_t flag : {kResume, kLocalLock, kNoRequest, kNotice})
                if (chance(1, 4)) flags |= flag;
            if (chance(1, 40)) flags |= kDeath;
            if (chance(1, 10)) flags |= kRegion;
            const bool other = chance(1, 3);
            if (other) flags |= kOtherWindow;
            const auto origin = static_cast<std::uint32_t>(below(Target::kRanks));
            const auto kind = (flags & kNoRequest) == 0 ? net::FrameKind::Request
                              : (flags & kNotice) == 0  ? net::FrameKind::Query
                                                        : net::FrameKind::Notice;
            std::vector<std::byte> message = this->message(origin, other, kind);
            input.insert(input.end(),
                         {flags, static_cast<std::uint8_t>(origin), static_cast<std::uint8_t>(message.size()),
                          static_cast<std::uint8_t>(message.size() >> 8)});
            for (const std::byte byte : message)
                input.push_back(static_cast<std::uint8_t>(byte));
        }
        return input;
    }

  private:
    std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
    bool chance(std::uint64_t of, std::uint64_t among) { return below(among) < of; }

    std::int64_t displacement(bool other) {
        constexpr std::int64_t kExtremes[] = {INT64_MIN, INT64_MIN + 7, -1, -8, INT64_MAX, INT64_MAX - 7, 0x100000000};
        if (chance(1, 12)) return kExtremes[below(std::size(kExtremes))];
        if (chance(1, 30)) return static_cast<std::int64_t>(random_());
        if (other) return dynamic_ + static_cast<std::int64_t>(below(6 * 64));
        const auto near = static_cast<std::int64_t>(below(Target::kLongs * 8 + 32)) - 16;
        return chance(1, 2) ? near / 8 * 8 : near;
    }

    /// Mostly one that a frame of this kind may carry: another one ends its message.
    Opcode opcode(net::FrameKind kind) {
        if (chance(1, 100)) return static_cast<Opcode>(below(256));
        const bool fits = chance(49, 50);
        for (;;)
            if (const auto one = static_cast<Opcode>(1 + below(std::size(net::kFrames) - 1));
                !fits || net::travels_in(one, kind))
                return one;
    }

    Record record(bool other, net::FrameKind kind) {
        Record record;
        record.opcode = opcode(kind);
        record.basic = static_cast<Basic>(below(static_cast<std::uint64_t>(Basic::Count) + 1));
        record.op = static_cast<Op>(below(static_cast<std::uint64_t>(Op::Count) + 1));
        const std::size_t width = op::element_size(record.basic);
        record.bytes = static_cast<std::uint32_t>(chance(3, 4) ? width * (1 + below(6)) : below(200));
        if (record.opcode == Opcode::CompareAndSwap && chance(3, 4)) record.bytes = static_cast<std::uint32_t>(width);
        if (record.opcode == Opcode::Lookup && chance(3, 4)) record.bytes = static_cast<std::uint32_t>(below(70));
        record.disp = displacement(other);
        if (net::is_operation(record.opcode) && chance(1, 3)) record.flags = static_cast<std::uint8_t>(below(3));
        if (record.opcode == Opcode::Lock || record.opcode == Opcode::Unlock) record.disp = static_cast<int>(below(5));
        if (record.opcode == Opcode::FenceOpen) record.disp = static_cast<int>(below(3));
        if (record.opcode == Opcode::FenceCount) record.disp = static_cast<int>(below(Target::kRanks + 1));
        return record;
    }

    // Pieces that may be those of the record.
    void describe(const Record& record, std::byte* carried) {
        const std::size_t width = std::max<std::size_t>(op::element_size(record.basic), 1);
        const std::uint32_t forms[] = {net::kBlocks, net::kRuns, net::kSteps, static_cast<std::uint32_t>(width)};
        const net::ShapeHead head{static_cast<std::uint32_t>(1 + below(4)), forms[below(std::size(forms))]};
        std::memcpy(carried, &head, sizeof head);
        const auto part = static_cast<std::uint32_t>(record.bytes / head.count);
        for (std::uint32_t i = 0; i < head.count && chance(9, 10); ++i) {
            const auto disp = static_cast<std::int32_t>(below(3) * width * i);
            std::byte* const at = carried + sizeof head;
            if (head.bytes == net::kRuns) {
                const net::ShapeRun run{disp, static_cast<std::int64_t>(below(3) * width), part, 1};
                if (i < 2) std::memcpy(at + i * sizeof run, &run, sizeof run);
            } else if (head.bytes == net::kBlocks) {
                const net::ShapeBlock block{disp, part};
                std::memcpy(at + i * sizeof block, &block, sizeof block);
            } else if (head.bytes == net::kSteps) {
                const net::ShapeStep step{static_cast<std::uint16_t>(disp), static_cast<std::uint16_t>(part)};
                std::memcpy(at + i * sizeof step, &step, sizeof step);
            } else {
                std::memcpy(at + i * sizeof disp, &disp, sizeof disp);
            }
        }
    }

    std::vector<std::byte> message(std::uint32_t origin, bool other, net::FrameKind repaired) {
        std::vector<std::vector<std::byte>> records(below(9));
        for (auto& bytes : records) {
            const Record made = record(other, repaired);
            std::vector<std::byte> data(net::carried(made));
            for (std::byte& byte : data)
                byte = static_cast<std::byte>(random_());
            if (net::shape_bytes(made) != 0) describe(made, data.data());
            bytes = Body().add(made, data.data()).bytes;
            // Sizes that the record does not have.
            constexpr std::uint32_t kHostile[] = {0xffffffff, 0xfffffff8, 0x80000000, 0x7fffffff, 16384, 0};
            const std::uint32_t size = kHostile[below(std::size(kHostile))];
            if (chance(1, 25)) std::memcpy(bytes.data() + offsetof(Record, bytes), &size, sizeof size);
        }
        if (chance(1, 6) && !records.empty()) records.push_back(records[below(records.size())]);
        std::shuffle(records.begin(), records.end(), random_);
        Body body;
        for (const auto& bytes : records)
            body.bytes.insert(body.bytes.end(), bytes.begin(), bytes.end());
        const auto kind = static_cast<net::FrameKind>(1 + below(11));
        const std::uint64_t window = other ? kDynamicWindow : kWindow;
        std::vector<std::byte> whole = framed(kind, origin, static_cast<std::uint32_t>(below(50)), body, window);
        if (chance(1, 4))
            for (std::uint64_t flips = 1 + below(4); flips > 0; --flips)
                whole[below(whole.size())] ^= static_cast<std::byte>(1u << below(8));
        if (chance(1, 10)) whole.resize(below(whole.size() + 1));
        if (chance(1, 10)) whole.resize(whole.size() + below(40), static_cast<std::byte>(random_()));
        return whole;
    }

    std::mt19937_64 random_;
    std::int64_t dynamic_;
};

TEST(NetFuzz, NearlyRightMessagesAreHarmless) {
    const char* given = std::getenv("OSC_TEST_SEED");
    const std::uint64_t first = given != nullptr ? std::stoull(given) : std::random_device{}();
    std::cout << "OSC_TEST_SEED=" << first << std::endl;  // flushed: it may crash
    std::array<std::uint64_t, net::kStatuses> statuses{};
    std::array<std::uint64_t, net::kStatuses> agent_replies{};
    std::uint64_t passed = 0;
    std::uint64_t drops = 0;
    // Else it has tried nothing.
    const auto tried_all = [&] {
        const auto seen = [](const auto& counts, std::initializer_list<Status> all) {
            return std::all_of(all.begin(), all.end(),
                               [&](Status s) { return counts[static_cast<std::size_t>(s)] > 0; });
        };
        return drops > 0 &&
               seen(statuses, {Status::Done, Status::Malformed, Status::UnknownWindow, Status::OutOfRange,
                               Status::NotAdmitted, Status::HolderDied}) &&
               seen(agent_replies, {Status::Done, Status::Malformed, Status::OutOfRange, Status::NotAdmitted});
    };
    using std::chrono::seconds;
    const auto now = &std::chrono::steady_clock::now;
    const auto end = now() + seconds(std::getenv("OSC_TEST_FULL") != nullptr ? 5 : 2);
    std::uint64_t seed = first;
    for (; now() < end || (!tried_all() && now() < end + seconds(60)); ++seed) {
        WireInput wire;
        const std::vector<std::uint8_t> input = Sender(seed, WireInput::dynamic_address(wire)).input();
        const char* wrong = wire.run(input.data(), input.size());
        ASSERT_EQ(wrong, nullptr) << wrong << "; OSC_TEST_SEED=" << seed;
        passed += wire.passed();
        drops += wire.drops();
        for (std::size_t i = 0; i < statuses.size(); ++i)
            statuses[i] += wire.statuses()[i];
        for (std::size_t i = 0; i < agent_replies.size(); ++i)
            agent_replies[i] += wire.agent_replies(static_cast<net::Status>(i));
    }
    std::cout << seed - first << " inputs, " << passed << " messages executed; replies by status:";
    for (const std::uint64_t count : statuses)
        std::cout << ' ' << count;
    std::cout << "; of the agent:";
    for (const std::uint64_t count : agent_replies)
        std::cout << ' ' << count;
    std::cout << std::endl;
    EXPECT_TRUE(tried_all());
}

}  // namespace
}  // namespace osc::test
