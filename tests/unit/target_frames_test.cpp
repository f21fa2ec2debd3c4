// Which record may come in which frame: the target executes what an honest origin sends there, and nothing else.
#include "net_target.h"
#include "sync/pscw.h"

namespace osc::test {
namespace {

class TargetFrames : public ::testing::Test {
  protected:
    Target target_;
};

/// What the records of an origin have changed at the target.
struct Traces {
    explicit Traces(Target& target)
        : word(target.ranks.lock_cell(0).word.load()),
          completes(target.ranks.controls().block(0).completes.load()),
          closes(target.arrivals->closes()),
          posts(target.ranks.controls().block(0).posts(1).load()),
          first(target.words()[0]) {}
    bool operator==(const Traces&) const = default;
    std::uint64_t word, completes, closes, posts, first;
};

// A record in a frame that must not carry it is refused with all records behind it, and changes nothing. A query or
// notice passes the requests of its origin that wait: an unlock, a complete or a close in it would overtake the
// operations that it ends.
TEST_F(TargetFrames, RecordsInFramesOfAnotherKindAreRefused) {
    EXPECT_EQ(target_.ask(1, Body().lock(LockAsk::Exclusive)).status, Status::Done);
    const std::vector<std::byte> data(sizeof(net::InspectQuestion));
    const Traces before(target_);
    std::uint64_t drops = 0;
    std::size_t refused = 0;
    for (std::size_t number = 1; number < std::size(net::kFrames); ++number) {
        const auto opcode = static_cast<Opcode>(number);
        const Record record{opcode, Basic::U64, Op::Sum, 0, 8, opcode == Opcode::Lock ? 1 : 0};
        for (const FrameKind kind : {FrameKind::Request, FrameKind::Query, FrameKind::Notice}) {
            if (net::travels_in(opcode, kind)) continue;
            ++refused;
            Body body = Body().add(record, data.data());
            if (kind == FrameKind::Request) body.put(0, 77);
            if (kind == FrameKind::Notice) {
                target_.send(1, 0, body, kWindow, kind);
                EXPECT_EQ(target_.answers.drops, ++drops) << number;
            } else {
                const Answered answered = target_.ask(1, body, kWindow, kind);
                EXPECT_EQ(answered.status, Status::Malformed) << number;
                EXPECT_TRUE(answered.data.empty()) << number;
            }
            EXPECT_EQ(Traces(target_), before) << number << " in " << static_cast<int>(kind);
        }
    }
    EXPECT_EQ(refused, 2 * (std::size(net::kFrames) - 1));  // each record has one kind of frame
    EXPECT_FALSE(target_.service.waits());
}

TEST_F(TargetFrames, NoNoticeOvertakesARequestThatWaits) {
    target_.send(1, 1, Body().step(Opcode::FenceOpen, 1).put(0, 5).step(Opcode::FenceClose));
    for (const Opcode opcode : {Opcode::FenceClose, Opcode::Complete, Opcode::Unlock, Opcode::Notify})
        target_.send(1, 0, Body().step(opcode), kWindow, FrameKind::Notice);
    EXPECT_EQ(target_.answers.drops, 4u);
    EXPECT_EQ(target_.arrivals->closes(), 0u);
    EXPECT_FALSE(sync::take_completes(*target_.exposed.controls, 0, 1));
}

TEST_F(TargetFrames, ANoticeForAWindowThatIsGoneIsCounted) {
    target_.service.remove(kWindow);
    target_.send(1, 0, Body().step(Opcode::Post), kWindow, FrameKind::Notice);
    EXPECT_EQ(target_.answers.drops, 1u);
}

}  // namespace
}  // namespace osc::test
