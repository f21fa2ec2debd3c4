// Random numbers where the kernel gives some, and where a filter refuses them.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <set>

#include "../fault/refuse_calls.h"
#include "base/random.h"

namespace osc::test {
namespace {

constexpr std::size_t kNumbers = 1000;
constexpr unsigned kPatience = 10;  // seconds
using Numbers = std::array<std::uint64_t, kNumbers>;

/// The numbers of a child whose system refuses two calls. The system kills a child that does not end in time.
Numbers numbers_without(unsigned first, unsigned second) {
    Numbers numbers{};
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) return numbers;
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(kPatience);
        if (!refuse_calls(first, second)) ::_exit(1);
        for (std::uint64_t& number : numbers)
            number = base::random64();
        ::_exit(::write(ends[1], numbers.data(), sizeof numbers) == sizeof numbers ? 0 : 1);
    }
    int status = -1;
    if (child > 0) ::waitpid(child, &status, 0);  // the pipe has room for all numbers
    EXPECT_EQ(status, 0);
    ::close(ends[1]);
    EXPECT_EQ(::read(ends[0], numbers.data(), sizeof numbers), ssize_t{sizeof numbers});
    ::close(ends[0]);
    return numbers;
}

/// No number comes twice, none is 0, and each bit is set in about half of them.
void expect_random(const std::set<std::uint64_t>& all, std::size_t count) {
    EXPECT_EQ(all.size(), count);
    EXPECT_EQ(all.count(0), 0u);
    for (int bit = 0; bit < 64; ++bit) {
        std::size_t ones = 0;
        for (const std::uint64_t number : all)
            ones += number >> bit & 1;
        EXPECT_GT(ones, count * 2 / 5) << bit;
        EXPECT_LT(ones, count * 3 / 5) << bit;
    }
}

TEST(Random, NumbersDiffer) {
    std::set<std::uint64_t> all;
    for (std::size_t i = 0; i < kNumbers; ++i)
        all.insert(base::random64());
    expect_random(all, kNumbers);
}

TEST(Random, AFilterThatRefusesGetrandomLeavesTheDevice) {
    const Numbers numbers = numbers_without(SYS_getrandom, SYS_getrandom);
    expect_random({numbers.begin(), numbers.end()}, kNumbers);
}

// The children have the same bytes of AT_RANDOM, the same count of calls and nearly the same time.
TEST(Random, WithoutAnySourceNumbersDifferBetweenProcessesToo) {
    std::set<std::uint64_t> all;
    for (int child = 0; child < 4; ++child)
        for (const std::uint64_t number : numbers_without(SYS_getrandom, SYS_openat))
            all.insert(number);
    expect_random(all, 4 * kNumbers);
}

}  // namespace
}  // namespace osc::test
