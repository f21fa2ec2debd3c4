// Descriptions of pieces in records: what the origin writes is what the target reads, in any portions; anything else is
// refused or harmless.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "agent_target.h"
#include "base/pages.h"
#include "net/shape.h"
#include "net/target/executor.h"
#include "random_layouts.h"

namespace osc::test {
namespace {

using net::Opcode;
using net::Record;
using net::ShapeWriter;
using net::Status;

constexpr std::size_t kRoom = 255 * net::kShapeUnit;

/// The bytes of `count` elements as they come back from descriptions of at most `most_shape` and `most_data` bytes.
std::vector<std::ptrdiff_t> through_records(const Shape& shape, std::size_t count, std::size_t most_shape,
                                            std::size_t most_data, std::size_t unit) {
    std::vector<std::ptrdiff_t> bytes;
    std::vector<std::byte> carried(kRoom);
    for (Cursor target(shape, count); !target.done();) {
        const ShapeWriter writer(target, most_shape, most_data, unit);
        EXPECT_GT(writer.data(), 0u);
        EXPECT_LE(writer.data(), most_data);
        EXPECT_LE(writer.units() * net::kShapeUnit, most_shape);
        EXPECT_EQ(writer.copy_to(carried.data()), carried.data() + writer.units() * net::kShapeUnit);
        const Record record{
            Opcode::Put,   Basic::None, Op::None, writer.units(), static_cast<std::uint32_t>(writer.data()),
            writer.first()};
        Shape read;
        EXPECT_TRUE(net::read_shape(record, carried.data(), read));
        for (const std::ptrdiff_t byte : walked(Cursor(read, 1)))
            bytes.push_back(record.disp + byte);
        if (::testing::Test::HasFailure()) break;
    }
    return bytes;
}

TEST(Shape, RandomLayoutsComeBackInTheirOrder) {
    std::mt19937 random(3);
    for (int round = 0; round < 4000; ++round) {
        const Model model = random_model(random, 1 + round % 3);
        const std::size_t count = random() % 5;
        ASSERT_EQ(through_records(model.layout.data(), count, 64 * (1 + random() % 4), 16 + random() % 300, 8),
                  all_bytes(model, count))
            << "round " << round;
    }
}

TEST(Shape, DescriptionsAreAsShortAsTheirPieces) {
    const auto units = [](const Layout& layout) {
        Cursor target(layout.data(), 1);
        const unsigned size = ShapeWriter(target, ShapeWriter::kLongest, 30000, 8).units();
        EXPECT_TRUE(target.done());
        return size;
    };
    const Layout real = Layout::leaf(Basic::F64);
    LayoutBuilder builder;
    builder.add_strided(0, 1000, 1, 16, real);
    EXPECT_EQ(units(builder.finish(16000)), 1u);
    for (std::ptrdiff_t i = 0; i < 400; ++i)
        builder.add(i * i * 16, 1, real);
    EXPECT_EQ(units(builder.finish(0)), (8 + 400 * 4 + 63) / 64);  // a displacement each
    for (std::ptrdiff_t i = 0; i < 400; ++i)
        builder.add(i * i * 32, 1 + i % 3, real);
    EXPECT_EQ(units(builder.finish(0)), (8 + 400 * 4 + 63) / 64);  // a gap and a length
    for (std::ptrdiff_t i = 0; i < 400; ++i)
        builder.add(-i * i * 32, 1 + i % 3, real);
    EXPECT_EQ(units(builder.finish(0)), (8 + 400 * 8 + 63) / 64);  // a displacement and a length
}

TEST(Shape, PiecesTooFarApartForAListAreRuns) {
    const Layout real = Layout::leaf(Basic::F64);
    Model model;
    LayoutBuilder builder;
    for (std::ptrdiff_t i = 0; i < 8; ++i) {
        builder.add(i * i << 30, 1, real);
        append(model.bytes, i * i << 30, 1, leaf(Basic::F64));
    }
    model.layout = builder.finish(0);
    EXPECT_EQ(through_records(model.layout.data(), 1, 256, 100, 8), model.bytes);
}

TEST(Shape, ALongPieceIsCutBetweenElements) {
    const Model solid = strided(2, 100, 900, leaf(Basic::I32), 1800);
    EXPECT_EQ(through_records(solid.layout.data(), 1, 64, 50, 4), all_bytes(solid, 1));
}

// A target of 256 bytes, and one record with a shape for it.
class ShapedRecord : public ::testing::Test {
  protected:
    template <class Entry>
    Status execute(Record record, net::ShapeHead head, std::vector<Entry> entries, std::size_t room = 1) {
        std::vector<std::byte> carried(room * net::kShapeUnit + 4096, std::byte{1});
        std::memcpy(carried.data(), &head, sizeof head);
        std::memcpy(carried.data() + sizeof head, entries.data(), entries.size() * sizeof(Entry));
        record.flags = static_cast<std::uint8_t>(room);
        net::CheckedRecord operation{record, carried.data(), {}, {}};
        std::vector<std::byte> out(4096);
        const Status status = net::execute(target_.exposed, std::span(&operation, 1), out.data(), shapes_);
        const bool touched = std::ranges::any_of(target_.memory, [](std::byte byte) { return byte != std::byte{0}; });
        EXPECT_EQ(touched, status == Status::Done && net::changes(record));
        return status;
    }
    static Record put(std::uint32_t bytes, std::int64_t disp = 0) {
        return {Opcode::Put, Basic::None, Op::None, 0, bytes, disp};
    }

    ExposedMemory target_{256};
    net::ShapeCache shapes_;
};

TEST_F(ShapedRecord, FormIsChecked) {
    using Steps = std::vector<net::ShapeStep>;
    using Blocks = std::vector<net::ShapeBlock>;
    using Runs = std::vector<net::ShapeRun>;
    using Places = std::vector<std::int32_t>;
    EXPECT_EQ(execute(put(8), {0, 8}, Places{}), Status::Malformed);
    EXPECT_EQ(execute(put(16), {15, 8}, Places(14)), Status::Malformed);  // more than there is room for
    EXPECT_EQ(execute(put(16), {~0u, 8}, Places(14)), Status::Malformed);
    EXPECT_EQ(execute(put(16), {1, 8}, Places{0}), Status::Malformed);  // not its bytes
    EXPECT_EQ(execute(put(4), {1, 8}, Places{0}), Status::Malformed);
    EXPECT_EQ(execute(put(8), {2, net::kBlocks}, Blocks{{0, 8}, {16, 0}}), Status::Malformed);
    EXPECT_EQ(execute(put(8), {2, net::kSteps}, Steps{{0, 8}, {16, 0}}), Status::Malformed);
    EXPECT_EQ(execute(put(12), {15, net::kSteps}, Steps(14, {0, 1})), Status::Malformed);
    EXPECT_EQ(execute(put(8), {2, net::kRuns}, Runs{{0, 16, 8, 1}, {0, 0, 8, 0}}), Status::Malformed);
    EXPECT_EQ(execute(put(8), {1, net::kRuns}, Runs{{std::numeric_limits<std::int64_t>::min(), 0, 8, 1}}),
              Status::Malformed);
    EXPECT_EQ(execute(put(24), {1, net::kRuns}, Runs{{0, std::int64_t{1} << 62, 8, 3}}), Status::Malformed);
    EXPECT_EQ(execute({Opcode::CompareAndSwap, Basic::U64, Op::None, 0, 8, 0}, {1, 8}, Places{0}), Status::Malformed);
    EXPECT_EQ(execute({Opcode::Update, Basic::U64, Op::Sum, 0, 16, 0}, {2, net::kBlocks}, Blocks{{0, 12}, {16, 4}}),
              Status::Malformed);  // a part of an element
    EXPECT_EQ(execute(put(8), {2, net::kRuns}, Runs{{0, 0, ~0u, ~0u}, {0, 0, 1, 9}}), Status::Malformed);
    EXPECT_EQ(execute(put(16), {2, 8}, Places{0, 16}), Status::Done);
    EXPECT_EQ(execute(put(16), {2, net::kSteps}, Steps{{0, 12}, {16, 4}}), Status::Done);
}

TEST_F(ShapedRecord, NoPieceLeavesTheWindow) {
    using Runs = std::vector<net::ShapeRun>;
    using Places = std::vector<std::int32_t>;
    EXPECT_EQ(execute(put(16), {2, 8}, Places{0, 249}), Status::OutOfRange);
    EXPECT_EQ(execute(put(16, 8), {2, 8}, Places{0, -9}), Status::OutOfRange);
    EXPECT_EQ(execute(put(16), {2, net::kSteps}, std::vector<net::ShapeStep>{{0, 8}, {241, 8}}), Status::OutOfRange);
    EXPECT_EQ(execute(put(32), {1, net::kRuns}, Runs{{0, 81, 8, 4}}), Status::Done);
    target_.memory.assign(target_.memory.size(), std::byte{0});
    EXPECT_EQ(execute(put(32), {1, net::kRuns}, Runs{{0, 83, 8, 4}}), Status::OutOfRange);
    EXPECT_EQ(execute(put(16, std::numeric_limits<std::int64_t>::max() - 4), {2, 8}, Places{0, 8}), Status::OutOfRange);
    EXPECT_EQ(execute(put(16, std::numeric_limits<std::int64_t>::min()), {2, 8}, Places{0, -8}), Status::OutOfRange);
    EXPECT_EQ(execute({Opcode::Get, Basic::None, Op::None, 0, 16, 240}, {2, 8}, Places{0, 9}), Status::OutOfRange);
    EXPECT_EQ(execute({Opcode::Get, Basic::None, Op::None, 0, 16, 240}, {2, 8}, Places{8, 0}), Status::Done);
}

// A target keeps what it has read of long descriptions. Each of these differs from all others in one place.
TEST(Shape, AKeptDescriptionIsNoOther) {
    constexpr std::uint32_t kPieces = 100;
    net::ShapeCache shapes;
    std::vector<std::byte> carried(kRoom);
    for (unsigned round = 0; round < 300; ++round) {
        const unsigned which = round % 40 < 30 ? round % 30 : round % 100;
        std::vector<std::int32_t> places(kPieces);
        for (std::uint32_t i = 0; i < kPieces; ++i)
            places[i] = static_cast<std::int32_t>(16 * i + (i == which ? 4 : 0));
        const std::uint32_t bytes = round % 7 == 0 ? 4 : 8;
        const net::ShapeHead head{kPieces, bytes};
        std::memcpy(carried.data(), &head, sizeof head);
        std::memcpy(carried.data() + sizeof head, places.data(), places.size() * sizeof places[0]);
        const auto units = static_cast<std::uint8_t>((sizeof head + 4 * kPieces + 63) / net::kShapeUnit);
        const Record record{Opcode::Get, Basic::None, Op::None, units, bytes * kPieces, 0};
        Record wrong = record;
        wrong.bytes += 8;
        EXPECT_EQ(shapes.read(wrong, carried.data()), nullptr);
        const auto shape = shapes.read(record, carried.data());
        ASSERT_NE(shape, nullptr);
        EXPECT_EQ(shapes.read(record, carried.data()), shape);
        EXPECT_EQ(shapes.read(wrong, carried.data()), nullptr);
        std::size_t i = 0;
        for (Cursor piece(*shape, 1); !piece.done(); piece.advance(piece.bytes()), ++i) {
            EXPECT_EQ(piece.offset(), places[i]);
            EXPECT_EQ(piece.bytes(), bytes);
        }
        EXPECT_EQ(i, kPieces);
    }
}

// A window over pages of its own, some of which do not admit an access. A target that touched one would die.
class GuardedWindow : public testing::Test {
  protected:
    static constexpr std::size_t kPages = 100;

    void SetUp() override {
        if (!net::Guard::works()) GTEST_SKIP() << "this system does not populate pages on request (Linux 5.14)";
        target_.exposed.base = map(0, kPages);
        target_.exposed.size = kPages * page_;
        target_.exposed.guard = std::make_shared<net::Guard>();
    }
    ~GuardedWindow() override { ::munmap(memory_, kPages * page_); }

    std::byte* map(std::size_t number, std::size_t pages) {
        void* const at = memory_ != nullptr ? memory_ + number * page_ : nullptr;
        void* const all = ::mmap(at, pages * page_, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
        EXPECT_NE(all, MAP_FAILED);
        if (memory_ == nullptr) memory_ = static_cast<std::byte*>(all);
        return memory_;
    }
    void protect(std::size_t number, int rights) { ASSERT_EQ(::mprotect(memory_ + number * page_, page_, rights), 0); }
    std::int32_t at(std::size_t number) const { return static_cast<std::int32_t>(number * page_); }

    // On 8 bytes at each place.
    Status execute(Opcode opcode, std::vector<std::int32_t> places) {
        std::vector<std::byte> carried(net::kShapeUnit + 64, std::byte{1});
        const net::ShapeHead head{static_cast<std::uint32_t>(places.size()), 8};
        std::memcpy(carried.data(), &head, sizeof head);
        std::memcpy(carried.data() + sizeof head, places.data(), places.size() * 4);
        const Record record{opcode, Basic::None, Op::None, 1, head.count * 8, 0};
        net::CheckedRecord operation{record, carried.data(), {}, {}};
        std::vector<std::byte> out(64);
        net::ShapeCache shapes;
        return net::execute(target_.exposed, std::span(&operation, 1), out.data(), shapes);
    }

    const std::size_t page_ = base::page_bytes();
    std::byte* memory_ = nullptr;
    ExposedMemory target_{8};
};

TEST_F(GuardedWindow, PagesThatAreNotAccessibleAreTheOriginsError) {
    protect(2, PROT_NONE);
    protect(4, PROT_READ);
    EXPECT_EQ(execute(Opcode::Put, {at(1), at(2)}), Status::Inaccessible);
    EXPECT_EQ(memory_[page_], std::byte{0});
    EXPECT_EQ(execute(Opcode::Put, {at(2) - 4, at(3)}), Status::Inaccessible);  // a piece ends there
    EXPECT_EQ(execute(Opcode::Put, {at(1), at(3)}), Status::Done);              // a gap may have one
    EXPECT_EQ(memory_[3 * page_], std::byte{1});
    EXPECT_EQ(execute(Opcode::Put, {at(3), at(4)}), Status::Inaccessible);
    EXPECT_EQ(execute(Opcode::Get, {at(3), at(4)}), Status::Done);
}

// What is known of a page does not last.
TEST_F(GuardedWindow, AHoleIsFoundInPagesThatHaveAdmittedAnAccess) {
    const std::vector<std::int32_t> places{at(0), at(12), at(24), at(36), at(48), at(60), at(72), at(84)};
    const auto forget = [] { std::this_thread::sleep_for(2 * std::chrono::nanoseconds(net::Guard::kMemory)); };
    protect(24, PROT_READ);
    EXPECT_EQ(execute(Opcode::Get, places), Status::Done);
    EXPECT_EQ(execute(Opcode::Put, places), Status::Inaccessible);
    protect(24, PROT_READ | PROT_WRITE);
    EXPECT_EQ(execute(Opcode::Put, places), Status::Done);
    EXPECT_EQ(execute(Opcode::Put, places), Status::Done);
    ::munmap(memory_ + 30 * page_, page_);  // in a gap
    forget();
    EXPECT_EQ(execute(Opcode::Put, places), Status::Done);
    memory_[0] = std::byte{0};
    ::munmap(memory_ + 36 * page_, page_);
    forget();
    EXPECT_EQ(execute(Opcode::Put, places), Status::Inaccessible);
    EXPECT_EQ(execute(Opcode::Get, places), Status::Inaccessible);
    EXPECT_EQ(memory_[0], std::byte{0});
    map(30, 7);
    EXPECT_EQ(execute(Opcode::Put, places), Status::Done);
}

}  // namespace
}  // namespace osc::test
