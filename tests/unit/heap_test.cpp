// Large allocations from shared memory (heap/shared_heap.h), against a model: pieces never overlap, keep their contents
// and read as zero when that is asked for; and from several threads.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "heap/shared_heap.h"

namespace {
int g_news = -1;  // allocations that succeed from now on; -1: all
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (g_news == 0) throw std::bad_alloc();
    if (g_news > 0) --g_news;
    if (void* const piece = std::malloc(bytes)) return piece;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* piece) noexcept {
    std::free(piece);
}
[[gnu::noinline]] void operator delete(void* piece, std::size_t /*bytes*/) noexcept {
    std::free(piece);
}

namespace {

using osc::heap::SharedHeap;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 256;

void discard(void* address, std::size_t bytes) {
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(address) % kPage, 0U);
    ASSERT_EQ(bytes % kPage, 0U);
    std::memset(address, 0, bytes);
}

class Heap : public ::testing::Test {
  protected:
    explicit Heap(std::size_t keep = 0)
        : base_(static_cast<unsigned char*>(
              ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          heap(base_, kPages * kPage, kPage, keep, &discard) {}
    ~Heap() override { ::munmap(base_, kPages * kPage); }

    unsigned char* const base_;
    SharedHeap heap;
};

class KeepingHeap : public Heap {
  protected:
    static constexpr std::size_t kKeep = 64;  // pages
    KeepingHeap() : Heap(kKeep * kPage) {}
};

bool reads_as(const unsigned char* piece, std::size_t bytes, unsigned char value) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (piece[i] != value) return false;
    return true;
}

TEST_F(Heap, GivesAllPagesAndNoMore) {
    std::vector<void*> pieces;
    for (std::size_t i = 0; i < kPages; ++i) {
        pieces.push_back(heap.allocate(1, 1, true));
        ASSERT_NE(pieces.back(), nullptr);
        EXPECT_TRUE(heap.contains(pieces.back()));
        EXPECT_EQ(heap.length(pieces.back()), kPage);
    }
    EXPECT_EQ(heap.allocate(1, 1, true), nullptr);
    EXPECT_TRUE(heap.release(pieces[7]));
    EXPECT_FALSE(heap.release(pieces[7]));
    EXPECT_EQ(heap.allocate(kPage + 1, 1, true), nullptr);
    EXPECT_EQ(heap.allocate(kPage, 1, true), pieces[7]);
    for (void* const piece : pieces)
        EXPECT_TRUE(heap.release(piece));
    EXPECT_NE(heap.allocate(kPages * kPage, 1, true), nullptr);
}

TEST_F(Heap, RefusesWhatIsNotAPiece) {
    auto* const piece = static_cast<unsigned char*>(heap.allocate(2 * kPage, 1, true));
    EXPECT_FALSE(heap.release(piece + kPage));
    EXPECT_EQ(heap.length(piece + 1), 0U);
    EXPECT_FALSE(heap.resize(piece + kPage, kPage));
    EXPECT_FALSE(heap.contains(base_ - 1));
    EXPECT_FALSE(heap.contains(base_ + kPages * kPage));
    EXPECT_EQ(heap.allocate(0, 1, true), nullptr);
    EXPECT_EQ(heap.allocate(~std::size_t{0}, 1, true), nullptr);
    EXPECT_FALSE(heap.resize(piece, ~std::size_t{0}));
}

TEST_F(Heap, ResizesInPlaceWhileTheNextPagesAreFree) {
    auto* const piece = static_cast<unsigned char*>(heap.allocate(4 * kPage, 1, true));
    auto* const next = static_cast<unsigned char*>(heap.allocate(kPage, 1, true));
    ASSERT_EQ(next, piece + 4 * kPage);
    std::memset(piece, 5, 4 * kPage);
    EXPECT_FALSE(heap.resize(piece, 4 * kPage + 1));
    EXPECT_TRUE(heap.resize(piece, 2 * kPage));
    EXPECT_TRUE(heap.resize(piece, 4 * kPage));
    EXPECT_TRUE(reads_as(piece, 2 * kPage, 5));
    EXPECT_TRUE(reads_as(piece + 2 * kPage, 2 * kPage, 0));
    EXPECT_TRUE(heap.release(next));
    EXPECT_TRUE(heap.resize(piece, kPages * kPage));
    EXPECT_EQ(heap.length(piece), kPages * kPage);
}

// A random program against a model.
void run_random_program(SharedHeap& heap) {
    struct Piece {
        std::size_t bytes;
        unsigned char value;
    };
    std::mt19937 random(20260001);
    std::map<unsigned char*, Piece> live;
    const auto any = [&](std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
    };
    std::size_t refused = 0;
    for (int step = 0; step < 5000; ++step) {
        const std::size_t what = any(4);
        if (what < 2 || live.empty()) {
            const std::size_t bytes = 1 + any(24 * kPage);
            const bool zero = any(2) == 0;
            const std::size_t alignment = std::size_t{1} << any(16);
            auto* const piece = static_cast<unsigned char*>(heap.allocate(bytes, alignment, zero));
            if (piece == nullptr) {
                ++refused;
                continue;
            }
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(piece) % alignment, 0U);
            ASSERT_TRUE(!zero || reads_as(piece, bytes, 0));
            const auto value = static_cast<unsigned char>(1 + any(255));
            std::memset(piece, value, bytes);
            ASSERT_TRUE(live.emplace(piece, Piece{bytes, value}).second);
            continue;
        }
        const auto chosen = std::next(live.begin(), static_cast<std::ptrdiff_t>(any(live.size())));
        auto& [piece, had] = *chosen;
        ASSERT_TRUE(reads_as(piece, had.bytes, had.value));
        if (what == 2) {
            const std::size_t bytes = 1 + any(24 * kPage);
            if (!heap.resize(piece, bytes)) continue;
            std::memset(piece, had.value, bytes);
            had.bytes = bytes;
        } else {
            ASSERT_TRUE(heap.release(piece));
            live.erase(chosen);
        }
    }
    EXPECT_GT(refused, 0U) << "the range was never full";
}

TEST_F(Heap, PiecesOfARandomProgramKeepTheirContents) {
    run_random_program(heap);
}

TEST_F(KeepingHeap, PiecesOfARandomProgramKeepTheirContents) {
    run_random_program(heap);
}

TEST_F(KeepingHeap, KeepsFreedPagesUpToItsLimit) {
    auto* const piece = static_cast<unsigned char*>(heap.allocate(kKeep * kPage, 1, false));
    auto* const other = static_cast<unsigned char*>(heap.allocate(kPage, 1, false));
    std::memset(piece, 5, kKeep * kPage);
    *other = 6;
    EXPECT_TRUE(heap.release(piece));
    EXPECT_TRUE(heap.release(other));
    EXPECT_TRUE(reads_as(piece, kKeep * kPage, 5));
    EXPECT_EQ(*other, 0);
    EXPECT_EQ(heap.allocate(kPage, 1, false), piece);
    EXPECT_TRUE(reads_as(piece, kPage, 5));
    EXPECT_TRUE(heap.resize(piece, 2 * kPage));
    EXPECT_TRUE(reads_as(piece, 2 * kPage, 5));
    EXPECT_EQ(heap.allocate(kPage, 1, true), piece + 2 * kPage);
    EXPECT_TRUE(reads_as(piece + 2 * kPage, kPage, 0));
    // All that is kept goes when the rest has no room.
    EXPECT_NE(heap.allocate((kPages - 3) * kPage, 1, true), nullptr);
    EXPECT_TRUE(reads_as(piece + 3 * kPage, (kPages - 3) * kPage, 0));
}

TEST_F(Heap, OtherHandlersOfForkMayUseIt) {
    heap.before_fork();
    void* const piece = heap.allocate(kPage, 1, true);
    EXPECT_NE(piece, nullptr);
    EXPECT_EQ(heap.length(piece), kPage);
    EXPECT_TRUE(heap.resize(piece, 2 * kPage));
    EXPECT_TRUE(heap.release(piece));
    heap.after_fork();
    EXPECT_EQ(heap.allocate(kPage, 1, true), piece);
}

// Where the heap's own bookkeeping gets no memory, an allocation fails and takes nothing.
TEST_F(Heap, LosesNothingWhenItFails) {
    bool failed = false;
    for (int news = 0; news < 6; ++news)
        for (const std::size_t alignment : {std::size_t{1}, 8 * kPage}) {
            void* const first = heap.allocate(kPage, 1, false);
            ASSERT_NE(first, nullptr);
            g_news = news;
            void* const second = heap.allocate(2 * kPage, alignment, false);
            g_news = -1;
            failed = failed || second == nullptr;
            EXPECT_TRUE(second == nullptr || heap.release(second));
            EXPECT_TRUE(heap.release(first));
            void* const all = heap.allocate(kPages * kPage, 1, false);
            ASSERT_NE(all, nullptr) << news;
            EXPECT_TRUE(heap.release(all));
        }
    EXPECT_TRUE(failed);
}

TEST_F(Heap, ThreadsGetPiecesOfTheirOwn) {
    std::vector<std::jthread> threads;
    for (unsigned char number = 1; number <= 4; ++number)
        threads.emplace_back([this, number] {
            for (int turn = 0; turn < 500; ++turn) {
                const std::size_t bytes = (1 + static_cast<std::size_t>(turn) % 5) * kPage;
                auto* const piece = static_cast<unsigned char*>(heap.allocate(bytes, 1, true));
                ASSERT_NE(piece, nullptr);
                ASSERT_TRUE(reads_as(piece, bytes, 0));
                std::memset(piece, number, bytes);
                ASSERT_TRUE(heap.resize(piece, kPage));
                ASSERT_TRUE(reads_as(piece, kPage, number));
                ASSERT_TRUE(heap.release(piece));
            }
        });
    threads.clear();
    EXPECT_NE(heap.allocate(kPages * kPage, 1, true), nullptr);
}

}  // namespace
