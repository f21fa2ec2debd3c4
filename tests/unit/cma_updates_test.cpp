// Accumulates across address spaces, against the same ones by load and store. The process is its own target, and its
// system calls are counted and cut short here.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "local/direct.h"
#include "local/updates.h"
#include "thread_ranks.h"

namespace {

std::atomic<int> g_calls{0};
std::atomic<std::size_t> g_most_pieces{0};
std::atomic<bool> g_short{false};  // transfers stop after some bytes, in the middle of a piece

ssize_t transfer(long number, pid_t pid, const iovec* local, unsigned long locals, const iovec* remote,
                 unsigned long remotes) {
    ++g_calls;
    g_most_pieces = std::max(g_most_pieces.load(), static_cast<std::size_t>(remotes));
    if (!g_short) return ::syscall(number, pid, local, locals, remote, remotes, 0);
    iovec here = local[0];
    iovec there = remote[0];
    here.iov_len = there.iov_len = std::min<std::size_t>(101, std::min(here.iov_len, there.iov_len));
    return ::syscall(number, pid, &here, 1, &there, 1, 0);
}

}  // namespace

// These definitions replace the C library's.
extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long locals, const iovec* remote,
                                    unsigned long remotes, unsigned long) {
    return transfer(SYS_process_vm_readv, pid, local, locals, remote, remotes);
}
extern "C" ssize_t process_vm_writev(pid_t pid, const iovec* local, unsigned long locals, const iovec* remote,
                                     unsigned long remotes, unsigned long) {
    return transfer(SYS_process_vm_writev, pid, local, locals, remote, remotes);
}

namespace osc::test {
namespace {

struct Piece {
    std::int64_t disp;
    std::size_t count;
};

class CmaUpdates : public testing::Test {
  protected:
    void SetUp() override { g_short = false; }

    /// The pieces by both ways on memory at byte `shift` of a page's line: memory and results must agree. Returns the
    /// system calls made.
    int compare(const Update& what, const std::vector<Piece>& pieces, std::size_t bytes, std::size_t shift,
                bool returns) {
        std::vector<std::byte> remote(bytes + 64), mapped(bytes + 64);
        for (std::size_t i = 0; i < remote.size(); ++i)
            remote[i] = mapped[i] = static_cast<std::byte>(random_());
        std::size_t elements = 0;
        for (const Piece& piece : pieces)
            elements += piece.count;
        std::vector<std::byte> origin(elements * what.width);
        for (std::byte& byte : origin)
            byte = static_cast<std::byte>(random_());
        std::vector<std::byte> back(origin.size()), expected(origin.size());
        const shm::Stripes stripes{*block_, 0, alive_};
        cma::Updates updates(::getpid(), reinterpret_cast<std::uint64_t>(remote.data() + shift), stripes);
        shm::Direct direct(mapped.data() + shift, stripes);
        std::size_t at = 0;
        const int before = g_calls;
        for (const Piece& piece : pieces) {
            const std::byte* from = what.op == Op::NoOp ? nullptr : &origin[at];
            updates.add(what, piece.disp, from, returns ? &back[at] : nullptr, piece.count);
            direct.update(what, piece.disp, from, returns ? &expected[at] : nullptr, piece.count);
            at += piece.count * what.width;
        }
        EXPECT_EQ(updates.finish(), Fault::None);
        EXPECT_EQ(direct.finish(), Fault::None);
        EXPECT_TRUE(remote == mapped);
        EXPECT_TRUE(back == expected);
        for (const shm::Stripe& stripe : block_->stripes)
            EXPECT_EQ(stripe.holder, 0u);
        return g_calls - before;
    }

    std::mt19937 random_{11};
    Lives alive_;
    std::unique_ptr<shm::ControlBlock> block_ = std::make_unique<shm::ControlBlock>();
};

TEST_F(CmaUpdates, ManySmallPiecesTakeFewCalls) {
    std::vector<Piece> pieces;
    for (int i = 0; i < 5000; ++i)
        pieces.push_back({i * 16, 1});
    const int dense = compare(update_of(Op::Sum, Basic::I64), pieces, 80000, 0, false);
    EXPECT_LE(dense, 60);
    std::shuffle(pieces.begin(), pieces.end(), random_);
    const int shuffled = compare(update_of(Op::Sum, Basic::I64), pieces, 80000, 5, true);
    EXPECT_LE(shuffled, 200);
    EXPECT_LE(g_most_pieces.load(), 1024u);
    for (Piece& piece : pieces)
        piece.disp *= 64;
    EXPECT_LE(compare(update_of(Op::Sum, Basic::I64), pieces, 64 * 80000, 0, false), 400);
}

TEST_F(CmaUpdates, AgreeWithLoadAndStore) {
    struct Kind {
        Op op;
        Basic basic;
        bool returns;
    };
    for (const Kind kind :
         {Kind{Op::Sum, Basic::I32, false}, Kind{Op::Replace, Basic::I64, false}, Kind{Op::Replace, Basic::U8, true},
          Kind{Op::NoOp, Basic::I64, true}, Kind{Op::Bxor, Basic::I128, true}, Kind{Op::Maxloc, Basic::ShortInt, false},
          Kind{Op::Replace, Basic::DoubleInt, true}, Kind{Op::Replace, Basic::LongDoubleInt, false},
          Kind{Op::Replace, Basic::LongDouble, false}})
        for (int round = 0; round < 60; ++round) {
            g_short = round % 4 == 3;
            const Update what = update_of(kind.op, kind.basic);
            const std::size_t most = std::size_t{1} << random_() % 12;
            const std::size_t distance = (most + random_() % 5) * what.width + random_() % 40;
            const std::size_t slots = 1 + random_() % std::min<std::size_t>(3000, 1 + 100000 / distance);
            std::vector<Piece> pieces;
            for (std::size_t i = 0; i < slots; ++i)
                if (random_() % 8 != 0)
                    pieces.push_back({static_cast<std::int64_t>(i * distance), 1 + random_() % most});
            if (round % 3 == 1) std::reverse(pieces.begin(), pieces.end());
            if (round % 3 == 2) std::shuffle(pieces.begin(), pieces.end(), random_);
            compare(what, pieces, slots * distance + most * what.width, round % 2 == 0 ? 0 : random_() % 64,
                    kind.returns);
        }
}

// Elements that one operation touches more than once are combined in the order of its pieces.
TEST_F(CmaUpdates, RepeatedElementsKeepTheirOrder) {
    for (const Op op : {Op::Replace, Op::Sum})
        for (int round = 0; round < 50; ++round) {
            std::vector<Piece> pieces;
            for (int i = 0; i < 300; ++i)
                pieces.push_back({static_cast<std::int64_t>(random_() % 2000 * 8), 1 + random_() % 5});
            compare(update_of(op, Basic::I64), pieces, 2100 * 8, random_() % 8, true);
        }
}

TEST_F(CmaUpdates, ExcludeOtherPaths) {
    constexpr int kEach = 300;
    constexpr std::size_t kElements = 1500;
    std::vector<std::int64_t> memory(2 * kElements);
    const std::vector<std::int64_t> ones(kElements, 1);
    const Update what = update_of(Op::Sum, Basic::I64);
    const auto add = [&](Transport* direct, cma::Updates* remote, std::size_t i) {
        if (direct != nullptr) direct->update(what, static_cast<std::int64_t>(i * 16), &ones[i], nullptr, 1);
        if (remote != nullptr) remote->add(what, static_cast<std::int64_t>(i * 16), &ones[i], nullptr, 1);
    };
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank)
        ranks.emplace_back([&, rank] {
            const shm::Stripes stripes{*block_, rank, alive_};
            for (int n = 0; n < kEach; ++n) {
                shm::Direct direct(reinterpret_cast<std::byte*>(memory.data()), stripes);
                cma::Updates remote(::getpid(), reinterpret_cast<std::uint64_t>(memory.data()), stripes);
                for (std::size_t i = 0; i < kElements; ++i)
                    add(rank == 0 ? &direct : nullptr, rank == 0 ? nullptr : &remote, i);
                EXPECT_EQ(remote.finish(), Fault::None);
            }
        });
    for (std::thread& rank : ranks)
        rank.join();
    for (std::size_t i = 0; i < memory.size(); ++i)
        ASSERT_EQ(memory[i], i % 2 == 0 ? 3 * kEach : 0) << i;
}

// An unmapped page: the error is returned, and no stripe lock stays held.
TEST_F(CmaUpdates, UnmappedTarget) {
    const shm::Stripes stripes{*block_, 0, alive_};
    const std::int64_t one = 1;
    for (const Op op : {Op::Sum, Op::Replace}) {
        cma::Updates updates(::getpid(), 64, stripes);
        for (int i = 0; i < 20; ++i)
            updates.add(update_of(op, Basic::I64), i * 8, &one, nullptr, 1);
        EXPECT_EQ(updates.finish(), Fault::Range);
        EXPECT_EQ(updates.finish(), Fault::Range);
        for (const shm::Stripe& stripe : block_->stripes)
            EXPECT_EQ(stripe.holder, 0u);
    }
}

}  // namespace
}  // namespace osc::test
