// Clocks that differ by hours and drift are aligned so that no message arrives before it was sent.
#include <gtest/gtest.h>

#include <random>

#include "trace/align.h"

namespace osc::trace {
namespace {

constexpr std::int64_t kSecond = 1000000000;

// A clock that shows ahead + rate * true time.
struct Skewed {
    double ahead = 0;
    double rate = 1;
    std::int64_t shows(double time) const { return std::llround(ahead + rate * time); }
};

// Random messages between clocks, both ways, over `seconds`. Each takes 2 to 50 us.
std::vector<Message> messages_between(const std::vector<Skewed>& clocks,
                                      const std::vector<std::pair<std::size_t, std::size_t>>& pairs, double seconds,
                                      int number) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> when(0, seconds * 1e9);
    std::uniform_real_distribution<double> flight(2000, 50000);
    std::vector<Message> messages;
    for (int i = 0; i < number; ++i)
        for (const auto& [from, to] : pairs) {
            const double sent = when(random);
            messages.push_back({from, to, clocks[from].shows(sent), clocks[to].shows(sent + flight(random))});
        }
    return messages;
}

void expect_causal(const std::vector<Message>& messages, const std::vector<Correction>& corrections,
                   std::int64_t tolerance) {
    for (const Message& message : messages)
        EXPECT_GE(corrections[message.to].apply(message.received) + tolerance,
                  corrections[message.from].apply(message.sent));
}

TEST(TraceAlign, AnOffsetOfHoursIsFound) {
    const std::vector<Skewed> clocks = {{}, {-7200e9, 1}};
    const auto messages = messages_between(clocks, {{0, 1}, {1, 0}}, 1, 200);
    const auto corrections = align(2, messages);
    EXPECT_TRUE(corrections[1].known);
    EXPECT_NEAR(corrections[1].offset, 7200e9, corrections[1].error + 1);
    EXPECT_LE(corrections[1].error, 50000);
    EXPECT_EQ(corrections[1].drift, 0);
    EXPECT_EQ(corrections[0].apply(5 * kSecond), 5 * kSecond);
    expect_causal(messages, corrections, 1);
}

TEST(TraceAlign, AClockThatDriftsIsFollowed) {
    const std::vector<Skewed> clocks = {{}, {3e9, 1 + 80e-6}};  // 80 us in each second
    const auto messages = messages_between(clocks, {{0, 1}, {1, 0}}, 100, 3000);
    const auto corrections = align(2, messages);
    EXPECT_NEAR(corrections[1].drift, -80e-6, 2e-6);
    // What is left of the drift over the whole time is below the messages' flight.
    expect_causal(messages, corrections, 50000);
    for (const double time : {0.0, 50e9, 100e9})
        EXPECT_NEAR(static_cast<double>(corrections[1].apply(clocks[1].shows(time))), time, 50000);
}

TEST(TraceAlign, AClockIsReachedByWayOfAnother) {
    const std::vector<Skewed> clocks = {{}, {1e9, 1}, {-5e9, 1}};
    const auto messages = messages_between(clocks, {{0, 1}, {1, 0}, {1, 2}, {2, 1}}, 1, 100);
    const auto corrections = align(3, messages);
    EXPECT_TRUE(corrections[2].known);
    EXPECT_NEAR(corrections[2].offset, 5e9, corrections[2].error + 1);
    expect_causal(messages, corrections, 1);
}

TEST(TraceAlign, OneDirectionSaysTooLittle) {
    const std::vector<Skewed> clocks = {{}, {1e9, 1}};
    const auto corrections = align(2, messages_between(clocks, {{0, 1}}, 1, 100));
    EXPECT_FALSE(corrections[1].known);
    EXPECT_EQ(corrections[1].apply(42), 42);
    EXPECT_FALSE(align(2, {})[1].known);
    EXPECT_TRUE(align(0, {}).empty());
}

TEST(TraceAlign, ContradictionsEnd) {
    // No offset suits both: the clock has jumped in between.
    const std::vector<Message> messages = {{0, 1, 100, 50}, {1, 0, 100, 50}};
    EXPECT_EQ(align(2, messages).size(), 2u);
}

}  // namespace
}  // namespace osc::trace
