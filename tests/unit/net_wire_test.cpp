// Messages between nodes, byte by byte: what is whole comes through as it was sent, everything else is refused.
#include "net/wire.h"
#include "net_target.h"

namespace osc::test {
namespace {

using net::Records;

bool passes(const std::vector<std::byte>& message) {
    net::Frame frame;
    return net::check(message.data(), message.size(), kSecret, frame);
}

template <class Change>
bool passes_with(Change&& change) {
    std::vector<std::byte> message = framed(FrameKind::Request, 1, 7, Body().put(0, 1));
    net::Frame frame;
    std::memcpy(&frame, message.data(), sizeof frame);
    change(frame);
    std::memcpy(message.data(), &frame, sizeof frame);
    return passes(message);
}

TEST(Wire, AFrameIsReadAsItWasSent) {
    const std::vector<std::byte> message = framed(FrameKind::Query, 3, 99, Body().get(16), 0x1234);
    net::Frame frame;
    ASSERT_TRUE(net::check(message.data(), message.size(), kSecret, frame));
    EXPECT_EQ(frame.kind, FrameKind::Query);
    EXPECT_EQ(frame.origin, 3u);
    EXPECT_EQ(frame.sender, token_of(3));
    EXPECT_EQ(frame.window, 0x1234u);
    EXPECT_EQ(frame.number, 99u);
    EXPECT_EQ(frame.bytes, sizeof(Record));
}

TEST(Wire, ForeignFramesAreRefused) {
    EXPECT_TRUE(passes_with([](net::Frame&) {}));
    EXPECT_FALSE(passes_with([](net::Frame& frame) { frame.magic ^= 1; }));
    EXPECT_FALSE(passes_with([](net::Frame& frame) { frame.version = net::kVersion + 1; }));
    EXPECT_FALSE(passes_with([](net::Frame& frame) { frame.version = 0; }));
    EXPECT_FALSE(passes_with([](net::Frame& frame) { frame.secret ^= 1; }));
    EXPECT_FALSE(passes_with([](net::Frame& frame) { frame.secret = 0; }));
    for (const std::uint32_t wrong : {1u, 8u, ~0u, 1u << 31})
        EXPECT_FALSE(passes_with([&](net::Frame& frame) { frame.bytes += wrong; })) << wrong;
    for (int kind = 0; kind < 256; ++kind)
        EXPECT_EQ(passes_with([&](net::Frame& frame) { frame.kind = static_cast<FrameKind>(kind); }),
                  kind >= 1 && kind <= 10)
            << kind;
}

TEST(Wire, RecordsThatDifferInTheirDisplacementsAreAlike) {
    const Body body = Body().sum(Opcode::Update, 8, 1).sum(Opcode::Update, 24, 2).sum(Opcode::Update, -8, 3).get(8);
    Records records(body.bytes.data(), body.bytes.size());
    Record record;
    const std::byte* data = nullptr;
    ASSERT_TRUE(records.next(record, data));
    EXPECT_EQ(records.guess(record, 0), 24);
    EXPECT_EQ(records.guess(record, 1), -8);
    EXPECT_EQ(records.guess(record, 9), 8);  // behind the body: this record's own
    ASSERT_TRUE(records.next_alike(record, data));
    EXPECT_EQ(record.disp, 24);
    EXPECT_EQ(*data, std::byte{2});
    ASSERT_TRUE(records.next_alike(record, data));
    EXPECT_EQ(record.disp, -8);
    EXPECT_FALSE(records.next_alike(record, data));
    ASSERT_TRUE(records.next(record, data));
    EXPECT_EQ(record.opcode, Opcode::Get);
    EXPECT_FALSE(records.next_alike(record, data));
    EXPECT_TRUE(records.done());
    const Body two = Body().sum(Opcode::Update, 8, 1).sum(Opcode::Update, 24, 2);
    Records pair(two.bytes.data(), two.bytes.size());
    ASSERT_TRUE(pair.next(record, data));
    ASSERT_TRUE(pair.next_alike(record, data));
    EXPECT_TRUE(pair.done());
    // A second record whose data is cut short.
    for (std::size_t bytes = 24; bytes < 48; ++bytes) {
        const std::vector<std::byte> cut(body.bytes.begin(), body.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
        Records few(cut.data(), cut.size());
        ASSERT_TRUE(few.next(record, data));
        EXPECT_FALSE(few.next_alike(record, data)) << bytes;
        few.guess(record, 0);
        few.guess(record, 1);
    }
}

TEST(Wire, AFrameThatIsCutShortIsRefused) {
    const std::vector<std::byte> whole = framed(FrameKind::Request, 1, 7, Body().put(0, 1));
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        // A copy of just these bytes: the address sanitizer sees what is read behind them.
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
        EXPECT_FALSE(passes(cut)) << bytes;
    }
    std::vector<std::byte> longer = whole;  // another frame may follow, which is looked at by itself
    longer.push_back({});
    EXPECT_TRUE(passes(longer));
    EXPECT_TRUE(passes(framed(FrameKind::Ping, 0, 0, Body())));
}

TEST(Wire, AllKindsOfRecordsAreReadAsTheyWereSent) {
    std::byte data[64];
    for (std::size_t i = 0; i < sizeof data; ++i)
        data[i] = static_cast<std::byte>(i + 1);
    std::vector<Record> sent;
    for (int what = 1; what < static_cast<int>(std::size(net::kFrames)); ++what)
        for (const std::uint32_t size : {0u, 1u, 7u, 8u, 9u, 32u})
            for (const Op op : {Op::Sum, Op::NoOp})
                sent.push_back({static_cast<Opcode>(what), Basic::I8, op, 0, size, -5 * what});
    Body body;
    for (const Record& record : sent)
        body.add(record, data);
    EXPECT_EQ(body.bytes.size() % net::kAlign, 0u);
    Records records(body.bytes.data(), body.bytes.size());
    for (const Record& expected : sent) {
        ASSERT_FALSE(records.done());
        Record record;
        const std::byte* carried = nullptr;
        ASSERT_TRUE(records.next(record, carried));
        EXPECT_EQ(std::memcmp(&record, &expected, sizeof record), 0);
        EXPECT_EQ(std::memcmp(carried, data, net::carried(expected)), 0);
        // A second reader that begins at this one's position reads the same records.
        EXPECT_EQ(Records(body.bytes.data(), body.bytes.size(), records.at()).done(), records.done());
    }
    EXPECT_TRUE(records.done());
}

TEST(Wire, CarriedAndReturnedBytesMatchTheRecords) {
    const auto of = [](Opcode opcode, Op op = Op::None) { return Record{opcode, Basic::I64, op, 0, 24, 0}; };
    EXPECT_EQ(net::carried(of(Opcode::Put)), 24u);
    EXPECT_EQ(net::returned(of(Opcode::Put)), 0u);
    EXPECT_EQ(net::carried(of(Opcode::Get)), 0u);
    EXPECT_EQ(net::returned(of(Opcode::Get)), 24u);
    EXPECT_EQ(net::carried(of(Opcode::Update, Op::Sum)), 24u);
    EXPECT_EQ(net::carried(of(Opcode::Update, Op::NoOp)), 0u);
    EXPECT_EQ(net::returned(of(Opcode::Update, Op::Sum)), 0u);
    EXPECT_EQ(net::carried(of(Opcode::UpdateReturn, Op::Sum)), 24u);
    EXPECT_EQ(net::carried(of(Opcode::UpdateReturn, Op::NoOp)), 0u);
    EXPECT_EQ(net::returned(of(Opcode::UpdateReturn, Op::NoOp)), 24u);
    EXPECT_EQ(net::carried(of(Opcode::CompareAndSwap)), 48u);
    EXPECT_EQ(net::returned(of(Opcode::CompareAndSwap)), 24u);
    EXPECT_EQ(net::returned(of(Opcode::Describe)), sizeof(net::Description));
    EXPECT_EQ(net::returned(of(Opcode::Lookup)), 24 * sizeof(net::Lease));
    EXPECT_EQ(net::returned(of(Opcode::Expose)), sizeof(net::Lease));
    for (const Opcode opcode : {Opcode::Lock, Opcode::Unlock, Opcode::Post, Opcode::Complete, Opcode::Barrier,
                                Opcode::Describe, Opcode::Lookup, Opcode::Expose, Opcode::Withdraw})
        EXPECT_EQ(net::carried(of(opcode)), 0u);
    for (const Opcode opcode :
         {Opcode::Lock, Opcode::Unlock, Opcode::Post, Opcode::Complete, Opcode::Barrier, Opcode::Withdraw})
        EXPECT_EQ(net::returned(of(opcode)), 0u);
    // Sizes that would wrap in 32 bits do not.
    const Record huge{Opcode::CompareAndSwap, Basic::I64, Op::None, 0, ~0u, 0};
    EXPECT_EQ(net::carried(huge), 2 * std::size_t{~0u});
    EXPECT_EQ(net::padded(net::carried(huge)), std::size_t{1} << 33);
    EXPECT_EQ(net::returned({Opcode::Lookup, Basic::None, Op::None, 0, ~0u, 0}), sizeof(net::Lease) * std::size_t{~0u});
}

TEST(Wire, RecordsThatAreNotWholeAreRefused) {
    const Body body = Body().get(0).put(8, 42);
    for (std::size_t bytes = 0; bytes <= body.bytes.size(); ++bytes) {
        const std::vector<std::byte> cut(body.bytes.begin(), body.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
        Records records(cut.data(), cut.size());
        std::size_t read = 0;
        Record record;
        const std::byte* data = nullptr;
        while (!records.done() && records.next(record, data))
            ++read;
        EXPECT_EQ(read, bytes == body.bytes.size() ? 2u : bytes >= sizeof(Record) ? 1u : 0u) << bytes;
        EXPECT_EQ(records.done(), bytes == 0 || bytes == sizeof(Record) || bytes == body.bytes.size()) << bytes;
        const std::size_t at = records.at();
        if (!records.done()) {
            EXPECT_FALSE(records.next(record, data));
            EXPECT_EQ(records.at(), at);
        }
    }
}

TEST(Wire, KindsOutOfRangeAndHostileSizesAreRefused) {
    const auto reads = [](const Record& record) {
        std::byte body[sizeof record + 16]{};
        std::memcpy(body, &record, sizeof record);
        Record read;
        const std::byte* data = nullptr;
        return Records(body, sizeof body).next(read, data);
    };
    for (int what = 0; what < 256; ++what)
        EXPECT_EQ(reads({static_cast<Opcode>(what), Basic::I8, Op::Sum, 0, 8, 0}),
                  what >= 1 && what <= 21 && what != 18)
            << what;
    for (const std::uint32_t size : {17u, 0x7fffffffu, 0x80000000u, 0xfffffff9u, 0xffffffffu})
        for (const Opcode opcode : {Opcode::Put, Opcode::Update, Opcode::UpdateReturn, Opcode::CompareAndSwap})
            EXPECT_FALSE(reads({opcode, Basic::I8, Op::Sum, 0, size, 0})) << size;
    // They carry nothing: whether the window has so much is not the reader's question.
    EXPECT_TRUE(reads({Opcode::Get, Basic::I8, Op::Sum, 0, 0xffffffffu, 0}));
    EXPECT_TRUE(reads({Opcode::Update, Basic::I8, Op::NoOp, 0, 0xffffffffu, 0}));
}

}  // namespace
}  // namespace osc::test
