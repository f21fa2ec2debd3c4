// Messages that no transport sends to an agent: each is refused for the right reason and touches no memory. And the
// executor gives both channels the same results.
#include "net/target/agent_service.h"

#include <sys/resource.h>

#include <random>

#include "agent_target.h"
#include "net_target.h"

namespace osc::test {
namespace {

Record update(Op op, Basic basic, std::uint32_t bytes, Opcode opcode = Opcode::Update) {
    return {opcode, basic, op, 0, bytes, 0};
}

class AgentService : public ::testing::Test {
  protected:
    static constexpr std::size_t kCapacity = 1024;

    // Executes a copy of the body in a buffer of just its capacity, so that the address sanitizer sees what lies
    // outside.
    Status send(const Body& body, std::uint64_t window, std::size_t capacity = kCapacity) {
        slot_.assign(capacity, std::byte{0xff});
        const std::size_t bytes = std::min(body.bytes.size(), capacity);
        if (bytes > 0) std::memcpy(slot_.data(), body.bytes.data(), bytes);
        return service_.execute(window, slot_.data(), body.bytes.size(), capacity);
    }
    Status send(const Body& body) { return send(body, window_); }
    Status send(const Record& record) {
        const std::byte data[512]{};
        return send(Body().add(record, data));
    }
    Status put(std::int64_t disp, std::uint32_t bytes) {
        return send({Opcode::Put, Basic::None, Op::None, 0, bytes, disp});
    }
    bool untouched() const {
        return std::ranges::all_of(target_.memory, [](std::byte byte) { return byte == std::byte{0}; });
    }

    ExposedMemory target_{256};
    net::AgentService service_;
    std::uint64_t window_ = service_.add(target_.exposed);
    std::vector<std::byte> slot_;
};

TEST_F(AgentService, FormIsChecked) {
    EXPECT_EQ(send(Body()), Status::Malformed);
    EXPECT_EQ(put(0, 0), Status::Malformed);
    for (int opcode = 0; opcode < 256; ++opcode) {
        if (opcode >= 1 && opcode <= 5) continue;
        EXPECT_EQ(send({static_cast<Opcode>(opcode), Basic::U64, Op::Sum, 0, 8, 0}), Status::Malformed) << opcode;
    }
    const Body whole = Body().put(0, 1).put(8, 2);
    for (std::size_t bytes = 0; bytes < whole.bytes.size(); ++bytes) {
        if (bytes == whole.bytes.size() / 2) continue;
        Body cut;
        cut.bytes.assign(whole.bytes.begin(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
        EXPECT_EQ(send(cut), Status::Malformed) << bytes;
    }
    EXPECT_EQ(send(whole, window_, whole.bytes.size() - 8), Status::Malformed);
    for (const std::uint32_t bytes : {~0u, 0xfffffff8u, 0x80000000u, 17u}) {
        Body hostile = Body().put(0, 1);
        std::memcpy(hostile.bytes.data() + offsetof(Record, bytes), &bytes, sizeof bytes);
        EXPECT_EQ(send(hostile), Status::Malformed) << bytes;
    }
    EXPECT_TRUE(untouched());
    EXPECT_EQ(service_.replies(Status::Done), 0u);
    EXPECT_GT(service_.replies(Status::Malformed), 250u);
}

// A thread that waits inside the host executes messages too, and no exception may leave it.
TEST_F(AgentService, WithoutMemoryNothingIsExecuted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer ends the process where memory is short";
#endif
    Body many;
    for (int i = 0; i < 200'000; ++i)
        many.put(i % 32 * 8, 1);
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &old), 0);
    const rlimit none{1 << 20, old.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &none), 0);
    const Status status = service_.execute(window_, many.bytes.data(), many.bytes.size(), many.bytes.size());
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &old), 0);
    EXPECT_EQ(status, Status::Exhausted);
    EXPECT_TRUE(untouched());
    EXPECT_EQ(service_.execute(window_, many.bytes.data(), many.bytes.size(), many.bytes.size()), Status::Done);
}

TEST_F(AgentService, RepliesMustFit) {
    Body gets;
    for (int i = 0; i < 4; ++i)
        gets.get(0, 200);
    EXPECT_EQ(send(gets, window_, 4 * (sizeof(Record) + 200)), Status::Done);
    EXPECT_EQ(send(gets, window_, 4 * (sizeof(Record) + 200) - 8), Status::Malformed);
    EXPECT_EQ(send({Opcode::Get, Basic::None, Op::None, 0, ~0u, 0}), Status::Malformed);
    EXPECT_EQ(send(update(Op::NoOp, Basic::I64, 0xfffffff8, Opcode::UpdateReturn)), Status::Malformed);
    EXPECT_EQ(send(update(Op::Sum, Basic::I64, 512, Opcode::UpdateReturn)), Status::Malformed);
    EXPECT_TRUE(untouched());
}

TEST_F(AgentService, BoundsAreTheWindows) {
    EXPECT_EQ(put(-1, 8), Status::OutOfRange);
    EXPECT_EQ(put(249, 8), Status::OutOfRange);
    EXPECT_EQ(put(256, 1), Status::OutOfRange);
    EXPECT_EQ(put(INT64_MAX, 8), Status::OutOfRange);
    EXPECT_EQ(put(INT64_MIN, 8), Status::OutOfRange);
    EXPECT_EQ(send(Body().put(0, 7), window_ ^ 1), Status::UnknownWindow);
    EXPECT_EQ(send(Body().put(0, 7), 0), Status::UnknownWindow);
    EXPECT_TRUE(untouched());
    EXPECT_EQ(put(255, 1), Status::Done);
}

TEST_F(AgentService, TypesAndOperationsMustFit) {
    EXPECT_EQ(send(update(Op::Sum, Basic::I64, 12)), Status::Malformed);
    EXPECT_EQ(send(update(Op::None, Basic::I64, 16, Opcode::CompareAndSwap)), Status::Malformed);
    EXPECT_EQ(send(update(Op::Sum, Basic::None, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::Sum, Basic::Count, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::Sum, static_cast<Basic>(255), 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::None, Basic::I64, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::Count, Basic::I64, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(static_cast<Op>(200), Basic::I64, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::Band, Basic::F64, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::None, Basic::F64, 8, Opcode::CompareAndSwap)), Status::NotAdmitted);
    EXPECT_TRUE(untouched());
}

// A record that is wrong for any reason leaves those before it undone.
TEST_F(AgentService, AMessageIsExecutedWholeOrNotAtAll) {
    const std::uint64_t value[2] = {1, 2};
    const std::pair<Record, Status> wrong[] = {
        {{Opcode::Put, Basic::None, Op::None, 0, 8, 252}, Status::OutOfRange},
        {{Opcode::Put, Basic::None, Op::None, 0, 0, 0}, Status::Malformed},
        {update(Op::Sum, Basic::None, 8), Status::NotAdmitted},
        {update(Op::Sum, Basic::I64, 4), Status::Malformed},
        {{Opcode::Post, Basic::None, Op::None, 0, 0, 0}, Status::Malformed},
        {{Opcode::Get, Basic::None, Op::None, 0, 2000, 0}, Status::Malformed},
    };
    for (const auto& [record, status] : wrong) {
        EXPECT_EQ(send(Body().put(0, 5).sum(Opcode::Update, 8, 1).add(record, value)), status);
        EXPECT_TRUE(untouched());
    }
}

TEST_F(AgentService, DynamicWindowsAreTheirRegions) {
    std::vector<std::uint64_t> memory(16);
    shm::RegionTable regions(target_.block());
    ASSERT_EQ(regions.attach(memory.data() + 2, 36), Fault::None);  // four words and a half
    ASSERT_EQ(regions.attach(reinterpret_cast<std::byte*>(memory.data() + 2) + 36, 28), Fault::None);
    const std::uint64_t window = service_.add(target_.dynamic(regions));
    const auto at = [&](std::size_t i) { return reinterpret_cast<std::int64_t>(&memory[i]); };
    EXPECT_EQ(send(Body().put(at(1), 1), window), Status::OutOfRange);
    EXPECT_EQ(send(Body().put(at(2), 1), window), Status::Done);
    EXPECT_EQ(send(Body().put(at(6), 2), window), Status::Done);  // bytes may lie in two regions, an element may not
    EXPECT_EQ(send(Body().sum(Opcode::Update, at(6), 2), window), Status::OutOfRange);
    EXPECT_EQ(send(Body().sum(Opcode::Update, at(5), 3), window), Status::Done);
    EXPECT_EQ(send(Body().put(at(9), 4).put(at(10), 1), window), Status::OutOfRange);
    EXPECT_EQ(memory, (std::vector<std::uint64_t>{0, 0, 1, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

// The same random records by a message slot and by a request of another node: the same memory, reply and status.
TEST(Executor, BothChannelsDoTheSame) {
    std::mt19937_64 random(7);
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    Target between_nodes;
    ExposedMemory on_node(Target::kLongs * 8);
    net::AgentService service;
    const std::uint64_t window = service.add(on_node.exposed);
    std::vector<std::byte> slot(net::kMessageBody);
    for (int round = 0; round < 3000; ++round) {
        Body body;
        std::size_t back = 0;
        for (std::uint64_t records = 1 + below(6); records > 0; --records) {
            Record record;
            record.opcode = static_cast<Opcode>(1 + below(5));
            record.basic = static_cast<Basic>(1 + below(static_cast<std::uint64_t>(Basic::Count) - 1));
            record.op = static_cast<Op>(1 + below(static_cast<std::uint64_t>(Op::Count) - 1));
            const std::size_t width = op::element_size(record.basic);
            record.bytes =
                static_cast<std::uint32_t>(width * (record.opcode == Opcode::CompareAndSwap ? 1 : 1 + below(20)));
            record.disp = static_cast<std::int64_t>(below(Target::kLongs * 8 - record.bytes));
            std::vector<std::byte> data(net::carried(record));
            for (std::byte& byte : data)
                byte = static_cast<std::byte>(below(2));
            body.add(record, data.data());
            back += net::padded(net::returned(record));
        }
        std::ranges::fill(slot, std::byte{0});  // so is the padding of replies between nodes
        if (!body.bytes.empty()) std::memcpy(slot.data(), body.bytes.data(), body.bytes.size());
        const Status status = service.execute(window, slot.data(), body.bytes.size(), slot.size());
        if (status != Status::Done) continue;  // a request of another node executes what it can
        const Answered answered = between_nodes.ask(1, body);
        ASSERT_EQ(answered.status, Status::Done);
        ASSERT_EQ(answered.data.size(), back);
        ASSERT_TRUE(back == 0 || std::memcmp(answered.data.data(), slot.data() + body.bytes.size(), back) == 0);
        ASSERT_EQ(std::memcmp(between_nodes.bytes(), on_node.memory.data(), on_node.memory.size()), 0);
    }
    EXPECT_GT(service.replies(Status::Done), 300u);
}

}  // namespace
}  // namespace osc::test
