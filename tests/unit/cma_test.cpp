// Cross-memory access to a forked child: many pieces, transfers that stop short, addresses that are not mapped.
#include "local/cma.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <vector>

namespace osc::test {
namespace {

using cma::Direction;
using cma::PieceList;

// A process with a copy of everything here, at the same addresses, that only waits to be killed.
class Child {
  public:
    Child() : pid_(::fork()) {
        if (pid_ != 0) return;
        for (;;)
            ::pause();
    }
    ~Child() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_;
};

std::uint64_t number(const void* address) {
    return reinterpret_cast<std::uint64_t>(address);
}

TEST(Cma, MovesFiveThousandPieces) {
    constexpr std::size_t kPieces = 5000;
    std::vector<int> there(2 * kPieces, -1);
    const Child child;
    std::vector<int> here(kPieces);
    std::iota(here.begin(), here.end(), 1);
    PieceList writes(Direction::Write, child.pid());
    for (std::size_t i = 0; i < kPieces; ++i)
        writes.add(number(&there[2 * i]), &here[i], sizeof(int));
    ASSERT_EQ(writes.finish(), 0);
    std::vector<int> back(2 * kPieces);
    PieceList reads(Direction::Read, child.pid());
    for (std::size_t i = 0; i < 2 * kPieces; ++i)
        reads.add(number(&there[i]), &back[i], sizeof(int));
    ASSERT_EQ(reads.finish(), 0);
    for (std::size_t i = 0; i < kPieces; ++i) {
        ASSERT_EQ(back[2 * i], static_cast<int>(i) + 1);
        ASSERT_EQ(back[2 * i + 1], -1);
    }
    EXPECT_EQ(there[0], -1);
}

// Where the two places lie a little apart in their pages, the bytes may go through an array of four pages.
TEST(Cma, MovesBytesBetweenPlacesApartInTheirPages) {
    constexpr std::size_t kBytes = 70000, kEdge = 64;
    std::vector<unsigned char> there(kBytes + 2 * kEdge + 4096);
    const Child child;
    std::vector<unsigned char> here(there.size()), back(there.size());
    for (const std::size_t bytes :
         {std::size_t{2047}, std::size_t{2048}, std::size_t{16384}, std::size_t{16385}, kBytes})
        for (std::size_t apart = 0; apart <= 17; ++apart) {
            // Addresses of equal places in their pages, and one of them `apart` bytes further.
            const auto at = [](std::vector<unsigned char>& all, std::size_t more) {
                return all.data() + kEdge + (4096 - number(all.data() + kEdge) % 4096) % 4096 + more;
            };
            std::iota(here.begin(), here.end(), static_cast<unsigned char>(bytes + apart));
            unsigned char* const from = at(here, 0);
            const std::uint64_t to = number(at(there, apart));
            ASSERT_EQ(cma::transfer(Direction::Write, child.pid(), to, from, bytes), 0);
            std::fill(back.begin(), back.end(), 0);
            ASSERT_EQ(cma::transfer(Direction::Read, child.pid(), to, at(back, 2 * apart), bytes), 0);
            ASSERT_TRUE(std::equal(from, from + bytes, at(back, 2 * apart))) << bytes << " " << apart;
            EXPECT_EQ(at(back, 2 * apart)[-1], 0);
            EXPECT_EQ(at(back, 2 * apart)[bytes], 0);
        }
}

TEST(Cma, MixesLongAndShortPiecesInOrder) {
    std::vector<char> there(std::size_t{12} << 20, 'a');
    const Child child;
    std::vector<char> here(there.size(), 'b');
    const char last = 'c';
    PieceList writes(Direction::Write, child.pid());
    writes.add(number(&there[5]), here.data(), 1);
    writes.add(number(there.data()), here.data(), here.size());
    writes.add(number(&there[5]), const_cast<char*>(&last), 1);
    writes.add(number(&there[6]), here.data(), 0);
    ASSERT_EQ(writes.finish(), 0);
    std::vector<char> back(there.size());
    ASSERT_EQ(cma::transfer(Direction::Read, child.pid(), number(there.data()), back.data(), back.size()), 0);
    EXPECT_EQ(back[5], 'c');
    back[5] = 'b';
    EXPECT_EQ(back, here);
}

// Bytes that follow the last piece at both ends lengthen it; others begin a piece of their own.
TEST(Cma, JoinsPiecesThatFollowOneAnother) {
    std::vector<char> there(std::size_t{6} << 20, 'a');
    const Child child;
    std::vector<char> here(there.size());
    std::iota(here.begin(), here.end(), 'b');
    PieceList writes(Direction::Write, child.pid());
    const auto add = [&](std::size_t to, std::size_t from, std::size_t bytes) {
        writes.add(number(&there[to]), &here[from], bytes);
        std::copy_n(&here[from], bytes, &there[to]);
        return writes.pieces();
    };
    for (std::size_t i = 0; i < 1000; ++i)
        ASSERT_EQ(add(i, i, 1), 1u);
    EXPECT_EQ(add(1000, 1001, 4), 2u);
    EXPECT_EQ(add(1005, 1005, 4), 3u);
    EXPECT_EQ(add(1005, 1005, 4), 4u);
    EXPECT_EQ(add(1009, 1009, std::size_t{4} << 20), 5u);  // longer than a piece may become
    EXPECT_EQ(add(1009 + (std::size_t{4} << 20), 1009 + (std::size_t{4} << 20), 8), 6u);
    ASSERT_EQ(writes.finish(), 0);
    EXPECT_EQ(writes.pieces(), 0u);
    EXPECT_EQ(add(2000, 2000, 4), 1u);
    EXPECT_EQ(writes.finish(), 0);
    std::vector<char> back(there.size());
    ASSERT_EQ(cma::transfer(Direction::Read, child.pid(), number(there.data()), back.data(), back.size()), 0);
    EXPECT_EQ(back, there);
}

// The system stops at an unmapped page and reports the bytes moved: the data in front of it has arrived, and the error
// is returned, for a hole inside a piece and between two.
TEST(Cma, StopsAtAHoleAndSaysSo) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* room = ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    auto* pages = static_cast<char*>(room);
    ASSERT_EQ(::munmap(pages + page, page), 0);
    const Child child;
    std::vector<char> here(3 * page, 'x');
    EXPECT_EQ(cma::transfer(Direction::Write, child.pid(), number(pages), here.data(), here.size()), EFAULT);
    PieceList batch(Direction::Write, child.pid());
    batch.add(number(pages + 2 * page), here.data(), 8);
    batch.add(number(pages + page - 4), here.data(), 8);
    batch.add(number(pages), here.data(), 8);
    EXPECT_EQ(batch.finish(), EFAULT);
    char seen[8] = "";
    EXPECT_EQ(cma::transfer(Direction::Read, child.pid(), number(pages + 2 * page), seen, 8), 0);
    EXPECT_EQ(seen[7], 'x');
    // The error stays with the operation, and does not stay with the next one.
    batch.add(number(pages), here.data(), 8);
    EXPECT_EQ(batch.finish(), EFAULT);
    PieceList next(Direction::Write, child.pid());
    next.add(number(pages), here.data(), 8);
    EXPECT_EQ(next.finish(), 0);
    ::munmap(pages, page);
    ::munmap(pages + 2 * page, page);
}

TEST(Cma, TellsTheDeadAndTheForeign) {
    const std::uint64_t token = 12345;
    pid_t pid = 0;
    {
        const Child child;
        pid = child.pid();
        EXPECT_TRUE(cma::reachable(pid, number(&token), token));
        EXPECT_FALSE(cma::reachable(pid, number(&token), token + 1));
        EXPECT_FALSE(cma::reachable(pid, 8, token));
    }
    EXPECT_FALSE(cma::reachable(pid, number(&token), token));
    char byte = 0;
    EXPECT_EQ(cma::transfer(Direction::Read, pid, number(&token), &byte, 1), ESRCH);
}

}  // namespace
}  // namespace osc::test
