// Messages to the agent that no transport sends: each is refused for the right reason, and no memory is touched.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "agent/served.h"

namespace osc::agent {
namespace {

struct AllAlive final : sync::Liveness {
    bool alive(std::uint32_t) override { return true; }
};

class Malformed : public ::testing::Test {
  protected:
    Status send(const Header& header) { return windows_.execute(header, payload_, sizeof payload_); }
    Header put(std::int64_t disp, std::uint32_t bytes) {
        Header header;
        header.kind = Kind::Put;
        header.parts = 1;
        header.bytes = bytes;
        header.window = window_;
        header.first = {disp, bytes};
        return header;
    }
    Header update(Op op, Basic basic, std::uint32_t bytes) {
        Header header = put(0, bytes);
        header.kind = Kind::Update;
        header.op = op;
        header.basic = basic;
        return header;
    }
    void SetUp() override { std::memset(payload_, 0xff, sizeof payload_); }
    void TearDown() override {
        for (std::byte byte : memory_)
            ASSERT_EQ(byte, std::byte{0});
    }

    AllAlive alive_;
    shm::ControlBlock block_;
    std::vector<std::byte> memory_ = std::vector<std::byte>(256);
    ServedWindows windows_;
    std::uint64_t window_ = windows_.add({memory_.data(), memory_.size(), nullptr, &block_, 0, &alive_});
    alignas(64) std::byte payload_[1024];
};

TEST_F(Malformed, FormIsChecked) {
    Header header = put(0, 8);
    header.version = kVersion + 1;
    EXPECT_EQ(send(header), Status::Malformed);
    for (int kind : {0, 6, 255}) {
        header = put(0, 8);
        header.kind = static_cast<Kind>(kind);
        EXPECT_EQ(send(header), Status::Malformed);
    }
    header = put(0, 8);
    header.parts = 0;
    EXPECT_EQ(send(header), Status::Malformed);
    header.parts = kMostParts + 1;
    EXPECT_EQ(send(header), Status::Malformed);
    header.parts = ~0u;
    EXPECT_EQ(send(header), Status::Malformed);
    EXPECT_EQ(send(put(0, 0)), Status::Malformed);
    EXPECT_EQ(send(put(0, ~0u)), Status::Malformed);
    EXPECT_EQ(send(put(0, 1024)), Status::Malformed);
    EXPECT_EQ(windows_.answered(Status::Malformed), 10u);
    EXPECT_EQ(windows_.answered(Status::Done), 0u);
}

TEST_F(Malformed, LengthsMustAgree) {
    Header header = put(0, 8);
    for (std::uint64_t bytes : {std::uint64_t{7}, std::uint64_t{9}, std::uint64_t{0}, ~std::uint64_t{0}}) {
        header.first.bytes = bytes;
        EXPECT_EQ(send(header), Status::Malformed);
    }
    header = put(0, 16);
    header.parts = 2;
    header.first.bytes = 8;
    Part second{8, 7};
    std::memcpy(payload_ + part_at(sizeof payload_, 1), &second, sizeof second);
    EXPECT_EQ(send(header), Status::Malformed);
    second.bytes = ~std::uint64_t{0};  // 8 + 2^64 - 1 wraps to 7
    std::memcpy(payload_ + part_at(sizeof payload_, 1), &second, sizeof second);
    EXPECT_EQ(send(header), Status::Malformed);
    EXPECT_EQ(send(update(Op::Sum, Basic::I64, 12)), Status::Malformed);
    header = update(Op::Replace, Basic::I64, 16);
    header.kind = Kind::CompareAndSwap;
    EXPECT_EQ(send(header), Status::Malformed);
    // The answer must have room as well.
    header = update(Op::Sum, Basic::I64, 512);
    header.kind = Kind::UpdateReturn;
    EXPECT_EQ(send(header), Status::Malformed);
}

TEST_F(Malformed, BoundsAreTheWindows) {
    EXPECT_EQ(send(put(-1, 8)), Status::OutOfRange);
    EXPECT_EQ(send(put(249, 8)), Status::OutOfRange);
    EXPECT_EQ(send(put(256, 1)), Status::OutOfRange);
    EXPECT_EQ(send(put(INT64_MAX, 8)), Status::OutOfRange);
    EXPECT_EQ(send(put(INT64_MIN, 8)), Status::OutOfRange);
    // The second part is wrong: the first is not written either.
    Header header = put(0, 16);
    header.parts = 2;
    header.first.bytes = 8;
    const Part second{252, 8};
    std::memcpy(payload_ + part_at(sizeof payload_, 1), &second, sizeof second);
    EXPECT_EQ(send(header), Status::OutOfRange);
    header = put(0, 8);
    header.window ^= 1;
    EXPECT_EQ(send(header), Status::UnknownWindow);
    header.window = 0;
    EXPECT_EQ(send(header), Status::UnknownWindow);
}

TEST_F(Malformed, TypesAndOperationsMustFit) {
    EXPECT_EQ(send(update(Op::Sum, Basic::None, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::Sum, Basic::Count, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::Sum, static_cast<Basic>(255), 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::None, Basic::I64, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::Count, Basic::I64, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(static_cast<Op>(200), Basic::I64, 8)), Status::NotAdmitted);
    EXPECT_EQ(send(update(Op::Band, Basic::F64, 8)), Status::NotAdmitted);
    Header header = update(Op::Replace, Basic::F64, 8);
    header.kind = Kind::CompareAndSwap;
    EXPECT_EQ(send(header), Status::NotAdmitted);
}

// Anything at all in header and payload: no crash, nothing written outside the window (sanitizers watch).
TEST(Messages, RandomOnesAreHarmless) {
    AllAlive alive;
    auto block = std::make_unique<shm::ControlBlock>();
    std::vector<std::byte> memory(256);
    ServedWindows windows;
    const std::uint64_t window = windows.add({memory.data(), memory.size(), nullptr, block.get(), 0, &alive});
    alignas(64) static std::byte payload[1024];
    std::uint64_t state = 88172645463325252u;
    const auto random = [&] {
        state ^= state << 13;
        state ^= state >> 7;
        return state ^= state << 17;
    };
    for (int i = 0; i < 100000; ++i) {
        for (std::size_t b = 768; b < sizeof payload; b += 8) {
            const std::uint64_t value = random() % 2 ? random() % 64 : random();
            std::memcpy(payload + b, &value, 8);
        }
        Header header;
        header.kind = static_cast<Kind>(random() % 7);
        header.basic = static_cast<Basic>(random() % 40);
        header.op = static_cast<Op>(random() % 18);
        header.parts = static_cast<std::uint32_t>(random() % 4);
        header.bytes = static_cast<std::uint32_t>(random() % 4 * 8 + random() % 3);
        header.window = window;
        header.first = {static_cast<std::int64_t>(random() % 300) - 20, random() % 3 ? header.bytes : random() % 40};
        windows.execute(header, payload, sizeof payload);
    }
    EXPECT_GT(windows.answered(Status::Done), 1000u);
    EXPECT_GT(windows.answered(Status::Malformed), 1000u);
    EXPECT_GT(windows.answered(Status::OutOfRange), 100u);
}

}  // namespace
}  // namespace osc::agent
