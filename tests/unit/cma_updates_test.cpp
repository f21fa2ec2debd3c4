// Operations across address spaces, against the same ones by load and store. The process is its own target, and its
// system calls are counted and cut short here.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "local/cma_transport.h"
#include "local/direct.h"
#include "op/copy.h"
#include "thread_ranks.h"

namespace {

std::atomic<int> g_calls{0};
std::atomic<std::size_t> g_most_pieces{0};
std::atomic<bool> g_short{false};  // transfers stop after some bytes, in the middle of a piece
std::atomic<int> g_allowed{-1};    // calls until the system refuses all; -1: it refuses none
std::atomic<bool> g_once{false};   // it refuses one call

ssize_t transfer(long number, pid_t pid, const iovec* local, unsigned long locals, const iovec* remote,
                 unsigned long remotes) {
    ++g_calls;
    if (g_allowed == 0) {
        if (g_once) g_allowed = -1;
        errno = EPERM;
        return -1;
    }
    if (g_allowed > 0) --g_allowed;
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

// Executes by load and store, and not before finish().
class Late final : public Transport {
  public:
    explicit Late(const cma::Place& place) : direct_(reinterpret_cast<std::byte*>(place.base), place.stripes) {}

    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override {
        operations_.emplace_back([=, this] { direct_.move(write, disp, memory, bytes); });
    }
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override {
        operations_.emplace_back([=, this, &how] { direct_.update(how, disp, origin, result, count); });
    }
    Fault finish() override {
        for (const std::function<void()>& operation : std::exchange(operations_, {}))
            operation();
        return direct_.finish();
    }

  private:
    shm::Direct direct_;
    std::vector<std::function<void()>> operations_;
};

class CmaUpdates : public testing::Test, protected cma::Detours {
  protected:
    void SetUp() override { g_short = false; }
    void TearDown() override {
        g_allowed = -1;
        g_once = false;
    }

    std::unique_ptr<Transport> open_detour(const cma::Place& place) override {
        ++detours_;
        return std::make_unique<Late>(place);
    }
    cma::Place place_of(void* memory) {
        return {::getpid(), reinterpret_cast<std::uint64_t>(memory), {*block_, 0, alive_}, 0, this};
    }

    // By words: ThreadSanitizer takes 100 ns for each access.
    std::vector<std::byte> random_bytes(std::size_t bytes) {
        std::vector<std::uint32_t> words(bytes / sizeof(std::uint32_t) + 1);
        std::ranges::generate(words, [this] { return static_cast<std::uint32_t>(random_()); });
        std::vector<std::byte> made(bytes);
        std::memcpy(made.data(), words.data(), bytes);
        return made;
    }

    /// The pieces by both ways on memory at byte `shift` of a page's line: memory and results must agree. Returns the
    /// system calls made.
    int compare(const Update& what, const std::vector<Piece>& pieces, std::size_t bytes, std::size_t shift,
                bool returns) {
        const std::vector<std::byte> at_first = random_bytes(bytes + 64);
        std::vector<std::byte> remote = at_first, mapped = at_first;
        std::size_t elements = 0;
        for (const Piece& piece : pieces)
            elements += piece.count;
        const std::vector<std::byte> origin = random_bytes(elements * what.width);
        std::vector<std::byte> back(origin.size()), expected(origin.size());
        const cma::Place place = place_of(remote.data() + shift);
        cma::Detour detour(place);
        cma::Updates updates(place, &detour);
        shm::Direct direct(mapped.data() + shift, place.stripes);
        std::size_t at = 0;
        const int before = g_calls;
        for (const Piece& piece : pieces) {
            const std::byte* from = what.op == Op::NoOp ? nullptr : &origin[at];
            updates.add(what, piece.disp, from, returns ? &back[at] : nullptr, piece.count);
            direct.update(what, piece.disp, from, returns ? &expected[at] : nullptr, piece.count);
            at += piece.count * what.width;
        }
        EXPECT_EQ(updates.finish(), Fault::None);
        EXPECT_EQ(detour.finish(), Fault::None);
        EXPECT_EQ(direct.finish(), Fault::None);
        EXPECT_TRUE(remote == mapped);
        EXPECT_TRUE(back == expected);
        for (const shm::Stripe& stripe : block_->stripes)
            EXPECT_EQ(stripe.holder, 0u);
        return g_calls - before;
    }

    std::mt19937 random_{11};
    int detours_ = 0;
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

// Four chunks at a time: a call each way. The last chunk's last element ends behind it.
TEST_F(CmaUpdates, LongPiecesTakeFewCalls) {
    EXPECT_EQ(compare(update_of(Op::Sum, Basic::I64), {{0, 8192}}, 65536, 0, false), 4);
    EXPECT_EQ(compare(update_of(Op::Replace, Basic::I64), {{0, 8192}}, 65536, 0, false), 2);
    for (const std::int64_t disp : {8, 4095, 8191, 32767, 511 * 8192})
        EXPECT_LE(compare(update_of(Op::Sum, Basic::I64), {{disp, 8192}}, 65536 + 512 * 8192, 0, true), 6) << disp;
}

// Two ranges with the same stripes in different orders, by more threads than processors: none waits for ever.
TEST_F(CmaUpdates, LongPiecesTakeTheirLocksInOneOrder) {
    const Deadline deadline(100);
    constexpr std::int64_t kFar = std::int64_t{272} << shm::kStripeShift;
    constexpr std::size_t kElements = std::size_t{cma::Updates::kMostChunks} << (shm::kStripeShift - 3);
    ASSERT_EQ(shm::ControlBlock::stripe_number(0), shm::ControlBlock::stripe_number(kFar + (1 << shm::kStripeShift)));
    ASSERT_EQ(shm::ControlBlock::stripe_number(1 << shm::kStripeShift), shm::ControlBlock::stripe_number(kFar));
    std::vector<std::int64_t> memory(kFar / 8 + kElements);
    const std::vector<std::int64_t> ones(kElements, 1);
    const Update what = update_of(Op::Sum, Basic::I64);
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < 8; ++rank)
        ranks.emplace_back([&, rank] {
            const shm::Stripes stripes{*block_, rank, alive_};
            for (int n = 0; n < 2000; ++n) {
                cma::Updates updates({::getpid(), reinterpret_cast<std::uint64_t>(memory.data()), stripes}, nullptr);
                updates.add(what, (n + rank) % 2 == 0 ? 0 : kFar, ones.data(), nullptr, kElements);
                EXPECT_EQ(updates.finish(), Fault::None);
            }
        });
    for (std::thread& rank : ranks)
        rank.join();
    for (std::size_t i = 0; i < kElements; ++i)
        ASSERT_EQ(memory[i] + memory[kFar / 8 + i], 16000) << i;
}

// The locks that were taken before are released.
TEST_F(CmaUpdates, ALongPieceMeetsADeadHolder) {
    const Waiting waiting(10, 1, 10);
    std::vector<std::int64_t> memory(8192), ones(8192, 1);
    std::uint32_t dead = 0;
    ASSERT_TRUE(sync::stripe_lock(block_->stripes[2].holder, 5, alive_, dead));
    alive_.kill(5);
    cma::Updates updates({::getpid(), reinterpret_cast<std::uint64_t>(memory.data()), {*block_, 0, alive_}}, nullptr);
    updates.add(update_of(Op::Sum, Basic::I64), 0, ones.data(), nullptr, ones.size());
    EXPECT_EQ(updates.finish(), Fault::Dead);
    for (const shm::Stripe& stripe : block_->stripes)
        EXPECT_EQ(stripe.holder != 0, &stripe == &block_->stripes[2]);
    EXPECT_EQ(memory, std::vector<std::int64_t>(8192));
}

class CmaGets : public CmaUpdates {
  protected:
    /// Gets one element of `from` at `there` by process_vm_*.
    Fault get(const op::Operand& origin, const op::Layout& from, const void* there) {
        op::Call call;
        call.kind = op::OpKind::Get;
        call.origin = origin;
        call.target = {nullptr, 1, &from};
        cma::Cross cross({::getpid(), reinterpret_cast<std::uint64_t>(there), {*block_, 0, alive_}});
        const int before = g_calls;
        const Fault fault = op::execute(call, {}, 0, cross);
        calls_ = g_calls - before;
        return fault;
    }

    int calls_ = 0;
};

// Vectors of both directions, blocks in any order, near and far, that overlap at the target or not, and spans of one
// step and of many: to memory that is contiguous, and to memory that is not.
TEST_F(CmaGets, ShapesAgreeWithCopies) {
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    std::vector<std::byte> there(kBytes);
    for (std::byte& byte : there)
        byte = static_cast<std::byte>(random_());
    const auto below = [&](std::size_t most) { return static_cast<std::size_t>(random_()) % most; };
    const op::Layout byte = op::Layout::leaf(Basic::U8);
    for (int round = 0; round < 600; ++round) {
        g_short = round % 16 == 15;
        op::LayoutBuilder builder;
        const std::size_t pieces = 1 + below(std::size_t{1} << below(11));
        const std::size_t most = std::size_t{1} << below(13);
        const std::size_t longest = std::min<std::size_t>(std::size_t{1} << below(14), kBytes / pieces / 2);
        std::size_t total = 0;
        if (round % 3 == 0) {
            const std::size_t bytes = 1 + below(std::max<std::size_t>(1, std::min(most, kBytes / pieces / 2)));
            const auto stride = static_cast<std::ptrdiff_t>(below(bytes + longest));
            const bool back = below(2) == 0;
            total = pieces * bytes;
            builder.add_strided(back ? static_cast<std::ptrdiff_t>(pieces - 1) * stride : 0, pieces, bytes,
                                back ? -stride : stride, byte);
        } else {
            std::vector<std::pair<std::size_t, std::size_t>> blocks;
            for (std::size_t i = 0, at = 0; i < pieces && at + most < kBytes; ++i) {
                blocks.emplace_back(at, 1 + below(most));
                at += round % 5 == 0 ? below(blocks.back().second) : blocks.back().second + below(longest);
            }
            if (round % 3 == 2) std::shuffle(blocks.begin(), blocks.end(), random_);
            for (const auto& [at, bytes] : blocks) {
                builder.add(static_cast<std::ptrdiff_t>(at), bytes, byte);
                total += bytes;
            }
        }
        const op::Layout from = builder.finish(0);
        builder.add_strided(0, total, 1, round % 2 == 0 ? 1 : 3, byte);
        const op::Layout to = builder.finish(0);
        std::vector<std::byte> here(3 * total), expected(3 * total);
        op::copy(to, 1, expected.data(), from, 1, there.data());
        EXPECT_EQ(get({here.data(), 1, &to}, from, there.data()), Fault::None);
        ASSERT_TRUE(here == expected) << round;
    }
}

TEST_F(CmaGets, ShapesTakeFewCalls) {
    std::vector<std::int64_t> there(100000), here(20000);
    const op::Layout word = op::Layout::leaf(Basic::I64);
    for (const auto& [pieces, stride, most] :
         {std::tuple{1000, 16, 1}, {1000, -16, 1}, {20000, 16, 40}, {1000, 264, 10}, {16, 2048, 1}}) {
        op::LayoutBuilder builder;
        builder.add_strided(stride < 0 ? 16 * pieces : 0, static_cast<std::size_t>(pieces), 1, stride, word);
        const op::Layout from = builder.finish(0);
        EXPECT_EQ(get({here.data(), static_cast<std::size_t>(pieces), &word}, from, there.data()), Fault::None);
        EXPECT_LE(calls_, most) << pieces << " pieces, " << stride;
    }
}

// The memory between two pieces need not exist; that of a piece must.
TEST_F(CmaGets, AHoleBetweenPieces) {
    constexpr std::size_t kPage = 4096;
    void* const pages = ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    auto* const words = static_cast<std::int64_t*>(pages);
    for (std::size_t i = 0; i < 3 * kPage / 8; ++i)
        words[i] = static_cast<std::int64_t>(i);
    ASSERT_EQ(::munmap(words + 512, kPage), 0);
    const op::Layout word = op::Layout::leaf(Basic::I64);
    for (const std::ptrdiff_t second : {1024, 1023}) {
        op::LayoutBuilder builder;
        builder.add_strided(400 * 8, 56, 1, 16, word);
        builder.add_strided(second * 8, 56, 1, 16, word);
        const op::Layout from = builder.finish(0);
        std::vector<std::int64_t> here(112);
        const Fault fault = get({here.data(), 112, &word}, from, words);
        EXPECT_EQ(fault, second == 1024 ? Fault::None : Fault::Range);
        for (int i = 0; i < 56 && fault == Fault::None; ++i) {
            EXPECT_EQ(here[static_cast<std::size_t>(i)], 400 + 2 * i);
            EXPECT_EQ(here[static_cast<std::size_t>(56 + i)], second + 2 * i);
        }
    }
    ::munmap(pages, 3 * kPage);
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

// Nothing is written to what lies between the elements: another process may put there.
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
                cma::Updates remote({::getpid(), reinterpret_cast<std::uint64_t>(memory.data()), stripes}, nullptr);
                for (std::size_t i = 0; i < kElements; ++i)
                    add(rank == 0 ? &direct : nullptr, rank == 0 ? nullptr : &remote, i);
                EXPECT_EQ(remote.finish(), Fault::None);
            }
        });
    for (std::int64_t round = 0; round < kEach; ++round)
        for (std::size_t i = 1; i < memory.size(); i += 2)
            EXPECT_EQ(std::atomic_ref(memory[i]).exchange(round + 1), round) << i;
    for (std::thread& rank : ranks)
        rank.join();
    for (std::size_t i = 0; i < memory.size(); ++i)
        ASSERT_EQ(memory[i], i % 2 == 0 ? 3 * kEach : kEach) << i;
}

// An unmapped page: the error is returned, and no stripe lock stays held.
TEST_F(CmaUpdates, UnmappedTarget) {
    const shm::Stripes stripes{*block_, 0, alive_};
    const std::int64_t one = 1;
    for (const Op op : {Op::Sum, Op::Replace}) {
        cma::Updates updates({::getpid(), 64, stripes}, nullptr);
        for (int i = 0; i < 20; ++i)
            updates.add(update_of(op, Basic::I64), i * 8, &one, nullptr, 1);
        EXPECT_EQ(updates.finish(), Fault::Range);
        EXPECT_EQ(updates.finish(), Fault::Range);
        for (const shm::Stripe& stripe : block_->stripes)
            EXPECT_EQ(stripe.holder, 0u);
    }
}

// The system refuses the n-th call, or all from there on: each element is updated once all the same, in the order of
// the calls.
TEST_F(CmaUpdates, RefusedCallsTakeTheDetour) {
    const Deadline deadline(100);  // the detour takes stripes, which must be free
    for (const Op op : {Op::Sum, Op::Replace})
        for (const bool long_ones : {false, true}) {
            std::vector<Piece> pieces;
            for (int i = 0; i < 200; ++i)
                pieces.push_back({static_cast<std::int64_t>(random_() % 1500 * 64), 1 + random_() % 12});
            if (long_ones) pieces.push_back({808, 10000});
            g_allowed = -1;
            const int calls = compare(update_of(op, Basic::I64), pieces, 100000, 8, true);
            detours_ = 0;
            for (int n = 0; n < 2 * calls; ++n) {
                g_allowed = n / 2;
                g_once = n % 2 == 1;
                compare(update_of(op, Basic::I64), pieces, 100000, 8, true);
                ASSERT_EQ(detours_, n + 1);
            }
        }
}

// Some elements of the stripe are written when the system refuses the rest: to update them again would be wrong.
TEST_F(CmaUpdates, AnUpdateThatIsHalfWrittenFails) {
    std::vector<std::int64_t> memory(1024);
    const std::int64_t one = 1;
    cma::Cross cross(place_of(memory.data()));
    const Update what = update_of(Op::Sum, Basic::I64);
    for (int i = 0; i < 512; ++i)
        cross.update(what, i * 16, &one, nullptr, 1);
    g_allowed = 2;  // a call that reads all, and one that writes a half
    EXPECT_EQ(cross.finish(), Fault::Other);
    EXPECT_EQ(detours_, 0);
    for (std::size_t i = 0; i < memory.size(); ++i)
        ASSERT_EQ(memory[i], i % 2 == 0 && i < 2 * cma::PieceList::kPieces ? 1 : 0) << i;
}

TEST_F(CmaUpdates, RefusedPutsAndGetsTakeTheDetour) {
    constexpr std::size_t kBytes = std::size_t{6} << 20;
    std::vector<std::byte> there(kBytes), from(kBytes), back(kBytes);
    for (std::byte& byte : from)
        byte = static_cast<std::byte>(random_());
    for (const std::size_t bytes : {std::size_t{16}, std::size_t{5} << 20})
        for (int allowed = 0; allowed < 3; ++allowed)
            for (const bool write : {true, false}) {
                if (write) there.assign(kBytes, std::byte{});
                back.assign(kBytes, std::byte{});
                cma::Cross cross(place_of(there.data()));
                g_allowed = allowed;
                for (std::size_t at = 0; at + bytes <= kBytes && at < 700 * bytes; at += 2 * bytes)
                    cross.move(write, static_cast<std::int64_t>(at), write ? &from[at] : &back[at], bytes);
                EXPECT_EQ(cross.finish(), Fault::None);
                const std::vector<std::byte>& moved = write ? there : back;
                for (std::size_t at = 0; at + bytes <= kBytes && at < 700 * bytes; at += 2 * bytes)
                    ASSERT_TRUE(std::equal(&from[at], &from[at] + bytes, &moved[at])) << at;
                const int calls = bytes == 16 && write ? 2 : 1;
                EXPECT_EQ(cross.has_detour(), allowed < calls) << bytes << ' ' << write << ' ' << allowed;
            }
}

TEST_F(CmaUpdates, RefusedOperationsOfARunTakeTheDetour) {
    std::vector<std::int64_t> memory(1000), results(1000);
    for (int allowed = 0; allowed < 6; ++allowed) {
        memory.assign(1000, 7);
        cma::Collected run(place_of(memory.data()));
        g_allowed = allowed;
        const Update sum = update_of(Op::Sum, Basic::I64);
        for (std::int64_t i = 0; i < 500; ++i) {
            const std::int64_t value = i;  // each operand is copied
            const std::int64_t at = i * 16;
            run.add({op::OpKind::Put, 8, at, &value}, at);
            run.add({op::OpKind::Accumulate, 8, at + 8, &value, nullptr, &sum}, at + 8);
            run.add({op::OpKind::Accumulate, 8, at + 8, &value, nullptr, &sum}, at + 8);
        }
        EXPECT_EQ(run.finish(), Fault::None);
        for (std::int64_t i = 0; i < 500; ++i) {
            ASSERT_EQ(memory[static_cast<std::size_t>(2 * i)], i) << allowed;
            ASSERT_EQ(memory[static_cast<std::size_t>(2 * i + 1)], 7 + 2 * i) << allowed;
        }
    }
}

// Errors of the operation stay its own, and where no detour leads the refusal is reported.
TEST_F(CmaUpdates, OnlyRefusalsTakeTheDetour) {
    const std::int64_t one = 1;
    cma::Cross nowhere({::getpid(), 64, {*block_, 0, alive_}, 0, this});
    nowhere.put(0, &one, sizeof one);
    EXPECT_EQ(nowhere.finish(), Fault::Range);
    EXPECT_EQ(detours_, 0);
    std::int64_t there = 0;
    g_allowed = 0;
    cma::Cross alone({::getpid(), reinterpret_cast<std::uint64_t>(&there), {*block_, 0, alive_}});
    alone.put(0, &one, sizeof one);
    EXPECT_EQ(alone.finish(), Fault::Other);
}

}  // namespace
}  // namespace osc::test
