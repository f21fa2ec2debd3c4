// The execution of requests of other nodes on a window: what they do to memory, and what is refused.
#include <algorithm>

#include "net_target.h"
#include "sync/pscw.h"

namespace osc::test {
namespace {

constexpr std::int64_t kWindowBytes = Target::kLongs * 8;

Record update(Opcode opcode, Basic basic, Op op, std::uint32_t bytes, std::int64_t disp = 0) {
    return {opcode, basic, op, 0, bytes, disp};
}

class TargetService : public ::testing::Test {
  protected:
    Status status(const Record& record) {
        const std::byte data[64]{};
        return target_.ask(1, Body().add(record, data)).status;
    }
    void TearDown() override { EXPECT_TRUE(target_.guards_untouched()); }

    Target target_;
};

TEST_F(TargetService, WritesReadsAndUpdates) {
    target_.words()[2] = 40;
    target_.words()[3] = 7;
    const std::uint64_t swap[2] = {100, 7};
    const Answered answered =
        target_.ask(3, Body()
                           .put(8, 11)
                           .get(8)
                           .sum(Opcode::Update, 16, 1)
                           .sum(Opcode::UpdateReturn, 16, 2)
                           .add(update(Opcode::UpdateReturn, Basic::U64, Op::NoOp, 8, 16))
                           .add(update(Opcode::CompareAndSwap, Basic::U64, Op::None, 8, 24), swap)
                           .add(update(Opcode::CompareAndSwap, Basic::U64, Op::None, 8, 24), swap));
    EXPECT_EQ(answered.status, Status::Done);
    ASSERT_EQ(answered.data.size(), 40u);
    EXPECT_EQ(answered.at<std::uint64_t>(0), 11u);
    EXPECT_EQ(answered.at<std::uint64_t>(8), 41u);
    EXPECT_EQ(answered.at<std::uint64_t>(16), 43u);
    EXPECT_EQ(answered.at<std::uint64_t>(24), 7u);
    EXPECT_EQ(answered.at<std::uint64_t>(32), 100u);
    EXPECT_EQ(target_.words()[1], 11u);
    EXPECT_EQ(target_.words()[2], 43u);
    EXPECT_EQ(target_.words()[3], 100u);
}

// A board of two counters in memory of its own.
class Board {
  public:
    explicit Board(Target& target) : target_(target), made_(new (memory_) sync::NotifyBoard(2, false)) {
        made_->reset_all(2);
        target_.board.store(made_);
    }
    ~Board() { target_.board.store(nullptr); }
    std::uint64_t value(std::uint32_t counter) { return made_->counter(counter).load(); }

  private:
    alignas(64) std::byte memory_[sizeof(sync::NotifyBoard) + 2 * sizeof(std::uint64_t)];
    Target& target_;
    sync::NotifyBoard* made_;
};

TEST_F(TargetService, NotifiesBehindTheData) {
    EXPECT_EQ(status({Opcode::Notify, Basic::None, Op::None, 0, 0, 0}), Status::Malformed);
    Board board(target_);
    EXPECT_EQ(target_.ask(1, Body().put(8, 5).step(Opcode::Notify, 1).put(16, 6).step(Opcode::Notify, 1)).status,
              Status::Done);
    EXPECT_EQ(target_.words()[1], 5u);
    EXPECT_EQ(board.value(0), 0u);
    EXPECT_EQ(board.value(1), 2u);
    for (const std::int64_t counter : {std::int64_t{2}, std::int64_t{-1}, std::int64_t{1} << 40})
        EXPECT_EQ(status({Opcode::Notify, Basic::None, Op::None, 0, 0, counter}), Status::Malformed);
    const Answered counters = target_.ask(2, Body().step(Opcode::Counters), kWindow, FrameKind::Query);
    EXPECT_EQ(counters.at<std::uint64_t>(0), 2u);
}

// What failed is not announced.
TEST_F(TargetService, NotifiesNoFailedOperation) {
    Board board(target_);
    EXPECT_EQ(target_.ask(1, Body().put(kWindowBytes, 5).step(Opcode::Notify, 0)).status, Status::OutOfRange);
    EXPECT_EQ(board.value(0), 0u);
}

// The hang reporter's question names ranks: none of them may lead out of the control table.
TEST_F(TargetService, InspectNamesTheHolderAndRefusesRanksThatDoNotExist) {
    const auto inspect = [&](const net::InspectQuestion& question) {
        Record record;
        record.opcode = Opcode::Inspect;
        return target_.ask(1, Body().add(record, &question), kWindow, FrameKind::Query);
    };
    EXPECT_EQ(target_.ask(2, Body().lock(LockAsk::Exclusive)).status, Status::Done);
    const Answered answered = inspect({{shm::WaitKind::Lock, 1, 0, 0}, 3, 0});
    EXPECT_EQ(answered.status, Status::Done);
    const auto found = answered.at<net::Inspection>(0);
    EXPECT_EQ(found.view.pid, 3);
    ASSERT_EQ(found.awaited.count, 1u);
    EXPECT_EQ(found.awaited.ranks[0].rank, 2u);
    EXPECT_EQ(found.awaited.ranks[0].relation, sync::Relation::HoldsExclusive);
    for (const std::uint32_t rank : {Target::kRanks, 1u << 20, ~0u}) {
        for (auto kind = shm::WaitKind::None; kind <= shm::WaitKind::Finalize;
             kind = static_cast<shm::WaitKind>(static_cast<std::uint32_t>(kind) + 1)) {
            EXPECT_EQ(inspect({{kind, 1, 0, 0}, rank, 0}).status, Status::Malformed);
            EXPECT_EQ(inspect({{kind, rank, 0, 0}, 3, 0}).status, Status::Malformed);
            const Answered other = inspect({{kind, 1, rank, 0}, 3, 0});
            EXPECT_EQ(other.status, Status::Done);
            const bool is_lock = kind == shm::WaitKind::Lock;
            EXPECT_TRUE(!is_lock || other.at<net::Inspection>(0).awaited.count == 0);
        }
    }
}

// What is returned is padded, record by record; sizes that are no multiple of a word move just their bytes.
TEST_F(TargetService, OddSizesMoveJustTheirBytes) {
    const char text[] = "thirteen chr";
    target_.words()[2] = ~std::uint64_t{0};
    const Answered answered =
        target_.ask(1, Body().add({Opcode::Put, Basic::None, Op::None, 0, 13, 3}, text).get(3, 13).get(16));
    EXPECT_EQ(answered.status, Status::Done);
    ASSERT_EQ(answered.data.size(), 24u);
    EXPECT_EQ(std::memcmp(answered.data.data(), text, 13), 0);
    EXPECT_EQ(answered.at<std::uint64_t>(16), ~std::uint64_t{0});
    EXPECT_EQ(target_.bytes()[2], std::byte{0});
}

TEST_F(TargetService, StepsReachTheSlotAndTheBarrier) {
    EXPECT_EQ(target_.ask(4, Body().step(Opcode::Complete).step(Opcode::Complete)).status, Status::Done);
    Body steps;
    steps.step(Opcode::Post);
    steps.add({Opcode::FenceCount, Basic::None, Op::None, 0, 3, 5})
        .add({Opcode::FenceCount, Basic::None, Op::None, 0, 1, 2});
    steps.add({Opcode::Barrier, Basic::None, Op::None, sync::kImmediate, 2, 17});
    target_.send(4, 0, steps, kWindow, FrameKind::Notice);
    EXPECT_EQ(target_.answers.all.size(), 1u);
    EXPECT_EQ(target_.answers.drops, 0u);
    EXPECT_NE(target_.exposed.controls->block(0).posts(4).load() & shm::ControlBlock::bit(4), 0u);
    EXPECT_TRUE(sync::take_completes(*target_.exposed.controls, 0, 2));
    sync::FenceSummary news{{{5, 1}}, sync::kDeferred};
    EXPECT_FALSE(target_.arrivals->take(17, 1, news));
    EXPECT_FALSE(target_.arrivals->take(16, 2, news));
    EXPECT_EQ(news.wants, sync::kDeferred);
    EXPECT_TRUE(target_.arrivals->take(17, 2, news));
    EXPECT_EQ(news.wants, sync::kDeferred | sync::kImmediate);
    EXPECT_EQ(news.closes, (std::map<std::uint32_t, std::uint32_t>{{2, 1}, {5, 4}}));
    EXPECT_FALSE(target_.arrivals->take(17, 2, news));
}

// What is told in several messages belongs to the arrival that its sender tells next, and to no other's.
TEST_F(TargetService, CountsBelongToTheirSendersNextArrival) {
    const auto notice = [&](std::uint32_t origin, const Record& record) {
        target_.send(origin, 0, Body().add(record), kWindow, FrameKind::Notice);
    };
    notice(1, {Opcode::FenceCount, Basic::None, Op::None, 0, 1, 0});
    notice(2, {Opcode::FenceCount, Basic::None, Op::None, 0, 2, 0});
    notice(1, {Opcode::Barrier, Basic::None, Op::None, 0, 0, 1});
    notice(1, {Opcode::FenceCount, Basic::None, Op::None, 0, 3, 0});
    sync::FenceSummary news;
    EXPECT_TRUE(target_.arrivals->take(1, 0, news));
    EXPECT_EQ(news.closes, (std::map<std::uint32_t, std::uint32_t>{{0, 1}}));
    notice(2, {Opcode::Barrier, Basic::None, Op::None, 0, 0, 2});
    EXPECT_TRUE(target_.arrivals->take(2, 0, news));
    EXPECT_EQ(news.closes, (std::map<std::uint32_t, std::uint32_t>{{0, 3}}));
    // More than there are processes, or for none of them.
    notice(1, {Opcode::FenceCount, Basic::None, Op::None, 0, 1, Target::kRanks});
    notice(1, {Opcode::FenceCount, Basic::None, Op::None, 0, 1, -1});
    notice(1, {Opcode::FenceCount, Basic::None, Op::None, 0, Target::kRanks, 0});
    EXPECT_EQ(target_.answers.drops, 3u);
}

// Operations of an epoch that this process has not opened wait, with all that their origin sends behind them, and
// hold up nobody else; what is closed is counted when it is done.
TEST_F(TargetService, OperationsWaitForTheirFence) {
    target_.send(1, 1, Body().step(Opcode::FenceOpen, 1).put(0, 5).step(Opcode::FenceClose));
    target_.send(1, 2, Body().step(Opcode::FenceOpen, 2).put(0, 6));
    target_.send(1, 3, Body().step(Opcode::FenceClose));
    EXPECT_EQ(target_.ask(2, Body().put(8, 7)).status, Status::Done);
    EXPECT_EQ(target_.words()[0], 0u);
    target_.answers.all.clear();
    EXPECT_TRUE(target_.service.resume());
    EXPECT_TRUE(target_.arrivals->open(1));  // somebody waits
    EXPECT_TRUE(target_.service.resume());
    EXPECT_EQ(target_.take_answers(), (std::vector<std::pair<std::uint32_t, Status>>{{1, Status::Done}}));
    EXPECT_EQ(target_.words()[0], 5u);
    EXPECT_EQ(target_.arrivals->closes(), 1u);
    EXPECT_TRUE(target_.arrivals->open(2));
    EXPECT_FALSE(target_.service.resume());
    EXPECT_EQ(target_.take_answers(),
              (std::vector<std::pair<std::uint32_t, Status>>{{2, Status::Done}, {3, Status::Done}}));
    EXPECT_EQ(target_.words()[0], 6u);
    EXPECT_EQ(target_.arrivals->closes(), 2u);
    EXPECT_FALSE(target_.arrivals->open(3));
    EXPECT_EQ(target_.ask(1, Body().step(Opcode::FenceOpen, 3).put(0, 8)).status, Status::Done);
}

// Whoever frees the window leaves nobody waiting.
TEST_F(TargetService, TheEndOfAWindowAnswersWaitingRequests) {
    target_.send(1, 1, Body().step(Opcode::FenceOpen, 9).put(0, 5));
    target_.send(1, 2, Body().put(0, 6));
    target_.service.remove(kWindow);
    const std::vector<std::pair<std::uint32_t, Status>> all{{1, Status::UnknownWindow}, {2, Status::UnknownWindow}};
    EXPECT_EQ(target_.take_answers(), all);
    EXPECT_EQ(target_.words()[0], 0u);
}

TEST_F(TargetService, Describes) {
    const Answered answered = target_.ask(5, Body().step(Opcode::Describe), kWindow, FrameKind::Query);
    EXPECT_EQ(answered.status, Status::Done);
    const auto description = answered.at<net::Description>(0);
    EXPECT_EQ(description.size, std::uint64_t{kWindowBytes});
    EXPECT_EQ(description.unit, 8u);
    EXPECT_EQ(description.exposed, 0u);
    EXPECT_EQ(description.dynamic, 0u);
}

TEST_F(TargetService, BoundsAreTheWindows) {
    EXPECT_EQ(target_.ask(1, Body().put(kWindowBytes - 8, 1)).status, Status::Done);
    for (const std::int64_t disp : {kWindowBytes - 7, kWindowBytes, kWindowBytes + 1, std::int64_t{-1},
                                    std::int64_t{-8}, INT64_MAX, INT64_MAX - 7, INT64_MIN}) {
        EXPECT_EQ(target_.ask(1, Body().put(disp, 1)).status, Status::OutOfRange) << disp;
        EXPECT_EQ(target_.ask(1, Body().sum(Opcode::UpdateReturn, disp, 1)).status, Status::OutOfRange) << disp;
        const Answered answered = target_.ask(1, Body().get(disp));
        EXPECT_EQ(answered.status, Status::OutOfRange) << disp;
        EXPECT_EQ(answered.at<std::uint64_t>(0), 0u);  // zeros, in their place
    }
    // Nothing is carried, so the size is anything.
    EXPECT_EQ(status(update(Opcode::Update, Basic::I8, Op::NoOp, ~0u)), Status::OutOfRange);
}

TEST_F(TargetService, StrangersAreRefused) {
    EXPECT_EQ(target_.ask(1, Body().put(0, 1), 12345).status, Status::UnknownWindow);
    net::Frame frame;
    frame.window = kWindow;
    const Body body = Body().put(0, 1);
    frame.bytes = static_cast<std::uint32_t>(body.bytes.size());
    for (const std::uint32_t origin : {2u, Target::kRanks, ~0u}) {
        frame.origin = origin;
        frame.sender = token_of(1);
        target_.answers.all.clear();
        target_.service.request(frame, body.bytes.data());
        EXPECT_EQ(target_.take_answers().at(0).second, Status::Malformed) << origin;
    }
    EXPECT_EQ(target_.words()[0], 0u);
    target_.service.remove(kWindow);
    EXPECT_EQ(target_.ask(1, Body().put(0, 1)).status, Status::UnknownWindow);
    EXPECT_EQ(target_.words()[0], 0u);
}

TEST_F(TargetService, TypesOperationsAndSizesMustFit) {
    for (const Opcode opcode : {Opcode::Update, Opcode::UpdateReturn}) {
        EXPECT_EQ(status(update(opcode, Basic::None, Op::Sum, 8)), Status::NotAdmitted);
        EXPECT_EQ(status(update(opcode, Basic::Count, Op::Sum, 8)), Status::NotAdmitted);
        EXPECT_EQ(status(update(opcode, static_cast<Basic>(255), Op::Sum, 8)), Status::NotAdmitted);
        EXPECT_EQ(status(update(opcode, Basic::I64, Op::None, 8)), Status::NotAdmitted);
        EXPECT_EQ(status(update(opcode, Basic::I64, Op::Count, 8)), Status::NotAdmitted);
        EXPECT_EQ(status(update(opcode, Basic::I64, static_cast<Op>(255), 8)), Status::NotAdmitted);
        EXPECT_EQ(status(update(opcode, Basic::F64, Op::Band, 8)), Status::NotAdmitted);
        EXPECT_EQ(status(update(opcode, Basic::I64, Op::Sum, 12)), Status::Malformed);
        EXPECT_EQ(status(update(opcode, Basic::I64, Op::Sum, 7)), Status::Malformed);
        EXPECT_EQ(status(update(opcode, Basic::I64, Op::Sum, 0)), Status::Malformed);
    }
    EXPECT_EQ(status(update(Opcode::CompareAndSwap, Basic::F64, Op::None, 8)), Status::NotAdmitted);
    EXPECT_EQ(status(update(Opcode::CompareAndSwap, Basic::I64, Op::None, 16)), Status::Malformed);
    EXPECT_EQ(status(update(Opcode::CompareAndSwap, Basic::I64, Op::None, 4)), Status::Malformed);
    EXPECT_EQ(status(update(Opcode::Put, Basic::None, Op::None, 0)), Status::Malformed);
    EXPECT_EQ(status(update(Opcode::Get, Basic::None, Op::None, 0)), Status::Malformed);
    EXPECT_TRUE(std::all_of(target_.words(), target_.words() + Target::kLongs, [](auto word) { return word == 0; }));
}

TEST_F(TargetService, RecordsBehindOneThatFailsAreExecuted) {
    const Answered answered = target_.ask(1, Body().put(-8, 1).get(kWindowBytes).put(8, 5).get(8));
    EXPECT_EQ(answered.status, Status::OutOfRange);
    EXPECT_EQ(answered.at<std::uint64_t>(0), 0u);
    EXPECT_EQ(answered.at<std::uint64_t>(8), 5u);
    EXPECT_EQ(target_.words()[1], 5u);
    // The first failure is the one that is told.
    Body body;
    body.add(update(Opcode::Update, Basic::F64, Op::Band, 8), "12345678").put(-8, 1);
    EXPECT_EQ(target_.ask(1, body).status, Status::NotAdmitted);
}

TEST_F(TargetService, AMalformedRecordEndsTheRequest) {
    Body body = Body().put(0, 1);
    body.add({static_cast<Opcode>(99), Basic::None, Op::None, 0, 8, 0}).put(8, 1);
    EXPECT_EQ(target_.ask(1, body).status, Status::Malformed);
    EXPECT_EQ(target_.words()[0], 1u);
    EXPECT_EQ(target_.words()[1], 0u);
    Body cut = Body().put(16, 1).put(24, 1);
    cut.bytes.resize(cut.bytes.size() - 8);
    EXPECT_EQ(target_.ask(1, cut).status, Status::Malformed);
    EXPECT_EQ(target_.words()[2], 1u);
    EXPECT_EQ(target_.words()[3], 0u);
}

TEST_F(TargetService, ARepliesRoomIsNotExceeded) {
    constexpr std::size_t kRoom = net::kBody - sizeof(net::ReplyHead);
    constexpr std::size_t kWhole = kRoom / kWindowBytes;  // copies of the window that fit
    Body fits;
    for (std::size_t i = 0; i < kWhole; ++i)
        fits.get(0, kWindowBytes);
    const Answered answered = target_.ask(1, Body(fits).get(0, kWindowBytes).put(0, 1));
    EXPECT_EQ(answered.status, Status::Malformed);
    EXPECT_EQ(answered.data.size(), kWhole * kWindowBytes);
    EXPECT_EQ(target_.words()[0], 0u);
    EXPECT_EQ(status({Opcode::Get, Basic::None, Op::None, 0, ~0u, 0}), Status::Malformed);
    EXPECT_EQ(status(update(Opcode::UpdateReturn, Basic::I8, Op::NoOp, ~0u)), Status::Malformed);
    constexpr auto kRest = static_cast<std::uint32_t>(kRoom - kWhole * kWindowBytes);
    EXPECT_EQ(target_.ask(1, Body(fits).get(0, kRest)).status, Status::Done);
    EXPECT_EQ(target_.ask(1, Body(fits).get(0, kRest + 1)).status, Status::Malformed);
}

TEST_F(TargetService, LocksThatAreNoneAreRefused) {
    for (const std::int64_t ask : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{4}, INT64_MAX})
        EXPECT_EQ(target_.ask(1, Body().step(Opcode::Lock, ask)).status, Status::Malformed) << ask;
    // A lock that is not held cannot be given back.
    EXPECT_EQ(target_.ask(1, Body().unlock(LockAsk::Shared)).status, Status::Done);
    EXPECT_EQ(target_.ranks.lock_cell(0).word.load(), 0u);
}

class Dynamic : public TargetService {
  protected:
    static constexpr std::uint32_t kRegion = 64;
    void SetUp() override {
        ASSERT_EQ(regions_.attach(memory_, kRegion), Fault::None);
        ASSERT_EQ(regions_.attach(memory_ + kRegion, kRegion), Fault::None);
        ASSERT_EQ(regions_.attach(memory_ + 3 * kRegion, kRegion), Fault::None);
        target_.add_dynamic(regions_);
    }
    std::int64_t at(std::size_t offset) const { return reinterpret_cast<std::int64_t>(memory_) + std::int64_t(offset); }
    Answered ask(const Body& body) { return target_.ask(2, body, kDynamicWindow); }

    alignas(64) std::byte memory_[4 * kRegion]{};
    shm::RegionTable regions_{target_.dynamic_ranks.controls().block(0)};
};

TEST_F(Dynamic, AnOperationMayGoAcrossRegionsThatTouch) {
    std::byte data[2 * kRegion];
    std::fill(std::begin(data), std::end(data), std::byte{3});
    EXPECT_EQ(ask(Body().add({Opcode::Put, Basic::None, Op::None, 0, 2 * kRegion, at(0)}, data)).status, Status::Done);
    EXPECT_EQ(std::memcmp(memory_, data, sizeof data), 0);
    const Answered answered = ask(Body().add(update(Opcode::UpdateReturn, Basic::U8, Op::Sum, 32, at(48)), data));
    EXPECT_EQ(answered.status, Status::Done);
    EXPECT_EQ(answered.data.at(31), std::byte{3});
    EXPECT_EQ(memory_[47], std::byte{3});
    EXPECT_EQ(memory_[48], std::byte{6});
    EXPECT_EQ(memory_[79], std::byte{6});
    EXPECT_EQ(memory_[80], std::byte{3});
    const Answered described = target_.ask(2, Body().step(Opcode::Describe), kDynamicWindow, FrameKind::Query);
    EXPECT_EQ(described.at<net::Description>(0).dynamic, 1u);
}

TEST_F(Dynamic, UnattachedMemoryIsRefusedAndUnchanged) {
    std::byte data[4 * kRegion];
    std::fill(std::begin(data), std::end(data), std::byte{3});
    const auto refused = [&](std::uint32_t bytes, std::int64_t disp) {
        const Body put = Body().add({Opcode::Put, Basic::None, Op::None, 0, bytes, disp}, data);
        EXPECT_EQ(ask(put).status, Status::OutOfRange) << bytes << " at " << disp - at(0);
        const Body sum = Body().add(update(Opcode::UpdateReturn, Basic::U8, Op::Sum, bytes, disp), data);
        EXPECT_EQ(ask(sum).status, Status::OutOfRange) << bytes << " at " << disp - at(0);
    };
    refused(4 * kRegion, at(0));  // the gap lies within
    refused(8, at(2 * kRegion));
    refused(8, at(2 * kRegion - 4));
    refused(8, at(3 * kRegion - 4));
    refused(8, at(4 * kRegion - 4));
    refused(8, at(0) - 4);
    for (const std::int64_t disp : {std::int64_t{0}, std::int64_t{-4}, INT64_MAX, INT64_MIN})
        refused(8, disp);
    // An element may not lie in two regions.
    EXPECT_EQ(ask(Body().sum(Opcode::Update, at(kRegion - 4), 1)).status, Status::OutOfRange);
    EXPECT_EQ(regions_.detach(memory_ + kRegion), Fault::None);
    refused(8, at(kRegion - 4));
    refused(8, at(kRegion));
    for (const std::byte byte : memory_)
        EXPECT_EQ(byte, std::byte{0});
}

}  // namespace
}  // namespace osc::test
