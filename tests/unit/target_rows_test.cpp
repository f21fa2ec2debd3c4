// Rows of alike records between nodes (execute_alike): they do what single records do.
#include <random>

#include "net_target.h"
#include "sync/stripe.h"

namespace osc::test {
namespace {

// Rows of records that differ in their displacements: as one by one, whatever the operation.
TEST(TargetRows, ExecutesRowsLikeSingleRecords) {
    Target target;
    std::mt19937_64 random(7);
    constexpr std::size_t kWords = Target::kLongs;
    std::vector<std::uint64_t> model(kWords);
    for (std::size_t i = 0; i < kWords; ++i)
        target.words()[i] = model[i] = random() % 4;
    for (int round = 0; round < 200; ++round) {
        Body body;
        std::vector<std::uint64_t> expected;
        bool fails = false;
        while (body.bytes.size() < 4000) {
            const Opcode opcode = static_cast<Opcode>(1 + random() % 5);
            const Op op = random() % 2 == 0 ? Op::Sum : Op::Bxor;
            for (std::size_t i = random() % 40; i > 0; --i) {
                // Now and then outside the window; often in the same stripe.
                const bool outside = random() % 64 == 0;
                const std::size_t at = outside ? kWords + random() % 2 : random() % (random() % 2 == 0 ? 8 : kWords);
                const std::uint64_t values[2] = {random() % 4, random() % 4};
                const bool typed = opcode != Opcode::Put && opcode != Opcode::Get;
                body.add({opcode, typed ? Basic::U64 : Basic::None,
                          opcode == Opcode::Update || opcode == Opcode::UpdateReturn ? op : Op::None, 0, 8,
                          static_cast<std::int64_t>(8 * at)},
                         values);
                fails = fails || outside;
                if (opcode != Opcode::Put && opcode != Opcode::Update) expected.push_back(outside ? 0 : model[at]);
                if (outside || opcode == Opcode::Get) continue;
                std::uint64_t& word = model[at];
                if (opcode == Opcode::Put)
                    word = values[0];
                else if (opcode == Opcode::CompareAndSwap)
                    word = word == values[1] ? values[0] : word;
                else
                    word = op == Op::Sum ? word + values[0] : word ^ values[0];
            }
        }
        const Answered answered = target.ask(1, body);
        EXPECT_EQ(answered.status, fails ? Status::OutOfRange : Status::Done);
        ASSERT_EQ(answered.data.size(), 8 * expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
            ASSERT_EQ(answered.at<std::uint64_t>(8 * i), expected[i]) << round << ' ' << i;
        for (std::size_t i = 0; i < kWords; ++i)
            ASSERT_EQ(target.words()[i], model[i]) << round << ' ' << i;
    }
    for (std::size_t stripe = 0; stripe < shm::kStripes; ++stripe)
        EXPECT_EQ(target.ranks.controls().block(0).stripes[stripe].holder.load(), 0u);
}

// A process of the target's node died with a stripe: the network thread does not wait for it in each record of a row.
TEST(TargetRows, ALostStripeDelaysTheTargetOnce) {
    const Deadline deadline(60);
    const Waiting waiting(10, 1, 10);
    Target target;
    std::uint32_t dead = 0;
    ASSERT_TRUE(sync::stripe_lock(target.ranks.controls().block(0).stripe_of(0), 2, target.ranks.lives(), dead));
    target.ranks.lives().kill(2);
    Body body;
    for (std::int64_t i = 0; i < 1000; ++i)
        body.sum(Opcode::Update, 8 * (i % 500), 1);
    body.put(0, 7);
    EXPECT_EQ(target.ask(1, body).status, Status::HolderDied);
    EXPECT_EQ(target.words()[0], 7u);
    EXPECT_EQ(target.words()[1], 0u);
}

}  // namespace
}  // namespace osc::test
