// Litmus tests of the protocols that use no lock, by the library's own functions. Two threads meet in each round and
// then run one side of a protocol each.
//
// Store buffering: a notifier changes the state and looks for sleepers, a waiter counts itself and looks at the state.
// If neither sees the other, the wake-up is lost. A processor may delay a store behind a later load, x86-64 too, so the
// weak notifier at the end loses wake-ups, and the others would without their read-modify-write.
// Message passing: what is written before a notification is read behind it. x86-64 keeps this order by itself; here the
// tests say something on other processors, and under ThreadSanitizer.
// Level: gate
#include <ctime>
#include <functional>
#include <memory>

#include "net/channels/mailbox.h"
#include "sync/notify.h"
#include "sync/pscw.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

// How many rounds a test has: as many as this time allows, on a busy machine few.
constexpr int kMostRounds = times(200000, 5000);
constexpr auto kMostTime = std::chrono::milliseconds(700);
constexpr int kPollsToYield = 100000;  // most of a time slice: on a busy machine two threads seldom run at once

// Runs mine(round) here and other(round) in a second thread, together within nanoseconds if each has a core, and then
// check(round) here; until check() returns false.
template <class Mine, class Other, class Check>
void meet(Mine&& mine, Other&& other, Check&& check) {
    alignas(128) std::atomic<int> arrived{0};
    std::atomic<bool> over{false};
    const auto arrive = [&](int arrivals) {
        arrived.fetch_add(1);
        for (int polls = 1; arrived.load() < arrivals; ++polls)
            if (polls % kPollsToYield == 0) std::this_thread::yield();
    };
    std::jthread second([&] {
        for (int round = 0;; ++round) {
            arrive(4 * round + 2);
            if (over) return;
            other(round);
            arrive(4 * round + 4);
        }
    });
    const auto end = std::chrono::steady_clock::now() + kMostTime;
    for (int round = 0;; ++round) {
        over = over || round == kMostRounds || std::chrono::steady_clock::now() > end;
        arrive(4 * round + 2);
        if (over) return;
        for (int i = round % 16; i > 0; --i)
            shm::cpu_relax();
        mine(round);
        arrive(4 * round + 4);
        over = !check(round);
    }
}

// Whether a wake-up is lost: the notifier sees no sleeper, and the waiter, which counts as one, sees no change. The
// waiter does not sleep: its look at the state lasts until the notifier is done.
template <class Notify, class Changed, class Reset>
bool loses_wake_up(shm::Doorbell& bell, Notify&& notify, Changed&& changed, Reset&& reset) {
    std::atomic<int> notified{-1};
    std::uint32_t before = bell.word.load();
    bool seen = false;
    bool lost = false;
    meet(
        [&](int round) {
            notify();
            notified.store(round);
        },
        [&](int round) {
            bell.sleep(
                [&] {
                    seen = changed();
                    for (int polls = 1; notified.load() != round; ++polls)
                        if (polls % kPollsToYield == 0) std::this_thread::yield();
                    return true;
                },
                1);
        },
        [&](int) {
            lost = !seen && bell.word.load() == before;
            before = bell.word.load();
            reset();
            return !lost;
        });
    return lost;
}

struct Board {
    alignas(sync::NotifyBoard) std::byte bytes[sizeof(sync::NotifyBoard) + sizeof(std::uint64_t)];
    sync::NotifyBoard& board = *new (bytes) sync::NotifyBoard(1, false);
};

TEST(Litmus, ANotificationIsSeenOrWakes) {
    const Deadline deadline(120);
    const auto memory = std::make_unique<Board>();
    sync::NotifyBoard& board = memory->board;
    std::uint64_t value = 0;
    EXPECT_FALSE(loses_wake_up(
        board.bell, [&] { board.increment(0); }, [&] { return board.find(0, 1, 1, value) == 0; },
        [&] { board.reset_all(1); }));
}

TEST(Litmus, APostIsSeenOrWakes) {
    const Deadline deadline(120);
    Ranks ranks(2);
    shm::ControlBlock& origin = ranks.controls().block(0);
    EXPECT_FALSE(loses_wake_up(
        origin.pscw_bell, [&] { sync::send_post(ranks.controls(), 1, 0); },
        [&] { return origin.posts(1).load(std::memory_order_seq_cst) != 0; },
        [&] { sync::take_post(ranks.controls(), 0, 1, kNoneDead); }));
}

TEST(Litmus, ACompleteIsSeenOrWakes) {
    const Deadline deadline(120);
    Ranks ranks(2);
    shm::ControlBlock& target = ranks.controls().block(1);
    bool taken = false;
    EXPECT_FALSE(loses_wake_up(
        target.pscw_bell, [&] { sync::send_complete(ranks.controls(), 1); },
        [&] { return taken = sync::take_completes(ranks.controls(), 1, 1); },
        [&] {
            if (!taken) sync::take_completes(ranks.controls(), 1, 1);
            taken = false;
        }));
}

TEST(Litmus, AFenceIsSeenOrWakes) {
    const Deadline deadline(120);
    Ranks ranks(2);
    RankCore& core = ranks.core(1);
    core.epoch.needs_target_fence = true;
    std::uint64_t fence = 0;
    EXPECT_FALSE(loses_wake_up(
        core.mine().pscw_bell, [&] { core.announce_fence(fence + 1, false); },
        [&] { return core.mine().fences.load(std::memory_order_seq_cst) > fence; }, [&] { ++fence; }));
}

TEST(Litmus, ABarrierThatEndsIsSeenOrWakes) {
    const Deadline deadline(120);
    shm::Barrier barrier;
    std::uint32_t generation = 0;
    EXPECT_FALSE(loses_wake_up(
        barrier.bell, [&] { barrier.arrive_and_wait(1, kNoneDead); },
        [&] { return barrier.generation.load(std::memory_order_seq_cst) != generation; }, [&] { ++generation; }));
}

TEST(Litmus, AMessageIsSeenOrWakes) {
    const Deadline deadline(120);
    const auto box = std::make_unique<net::Mailbox>();
    EXPECT_FALSE(loses_wake_up(
        box->bell, [&] { net::push(*box, 0, 0); }, [&] { return box->head.load(std::memory_order_seq_cst) != 0; },
        [&] { box->head = 0; }));
}

// The agent and a thread that attends: a sender that still sees the mailbox attended leaves its message to the thread,
// which then sees the message when it leaves.
TEST(Litmus, AMessageIsSeenByTheThreadThatLeaves) {
    const Deadline deadline(120);
    const auto box = std::make_unique<net::Mailbox>();
    shm::Doorbell& bell = box->bell;
    bell.sleepers = 1;  // the agent
    bool seen = false;
    int lost = 0;
    std::uint32_t before = 0;
    box->attended = 1;
    meet([&](int) { net::push(*box, 0, 0); },
         [&](int round) {
             before = bell.word.load();
             std::uint32_t attended = 2 * static_cast<std::uint32_t>(round) + 1;
             box->attended.compare_exchange_strong(attended, attended + 1, std::memory_order_seq_cst);
             seen = box->head.load(std::memory_order_seq_cst) != 0;
         },
         [&](int) {
             lost += !seen && bell.word.load() == before ? 1 : 0;
             box->head = 0;
             ++box->attended;
             return true;
         });
    EXPECT_EQ(lost, 0);
}

// Without it the tests above would say nothing: they must see what this processor does.
TEST(Litmus, AWeakNotifierLosesWakeUps) {
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "two threads need two cores";
    if (kSanitized) GTEST_SKIP() << "a sanitizer makes each access slow";
    shm::Doorbell bell;
    alignas(128) std::atomic<int> state{0};
    constexpr std::clock_t kMost = 60 * CLOCKS_PER_SEC;  // of the processor
    bool lost = false;
    while (!lost && std::clock() < kMost)
        lost = loses_wake_up(
            bell,
            [&] {
                state.store(1, std::memory_order_relaxed);
                bell.ring();
            },
            [&] { return state.load(std::memory_order_seq_cst) != 0; }, [&] { state = 0; });
    EXPECT_TRUE(lost);
}

// The writer's data are plain: only the protocol orders them. The reader reads them when it has seen what tell() does.
void expect_data_first(const std::function<void()>& tell, const std::function<void(int)>& see) {
    const Deadline deadline(120);
    alignas(128) int data = 0;
    int read = -1;
    int wrong = 0;
    meet(
        [&](int round) {
            data = round;
            tell();
        },
        [&](int round) {
            see(round);
            read = data;
        },
        [&](int round) {
            wrong += read != round ? 1 : 0;
            return true;
        });
    EXPECT_EQ(wrong, 0);
}

TEST(Litmus, DataComeBeforeTheirNotification) {
    const auto memory = std::make_unique<Board>();
    sync::NotifyBoard& board = memory->board;
    expect_data_first([&] { board.increment(0); },
                      [&](int round) {
                          std::uint64_t value = 0;
                          while (board.find(0, 1, static_cast<std::uint64_t>(round) + 1, value) != 0)
                              shm::cpu_relax();
                      });
}

TEST(Litmus, DataComeBeforeTheirMessage) {
    const auto box = std::make_unique<net::Mailbox>();
    expect_data_first([&] { net::push(*box, 0, 0); },
                      [&](int) {
                          while (box->head.exchange(0, std::memory_order_seq_cst) == 0)
                              shm::cpu_relax();
                      });
}

// The holder reads and writes under the lock, and releases by one store: the next holder must see it.
TEST(Litmus, ALockPassesOnWhatItsHolderWrote) {
    const Deadline deadline(120);
    const Waiting waiting(200, 50, 10);
    Ranks ranks(2);
    long counter = 0;
    const auto add = [&](std::uint32_t me) {
        sync::LockContext context = ranks.context(me);
        if (!sync::try_lock_exclusive(ranks.lock_cell(0), me)) {
            ASSERT_EQ(sync::lock_wait(context, 0, sync::LockKind::Exclusive), sync::LockResult::Granted);
        }
        ++counter;
        sync::unlock_exclusive(context, 0);
    };
    int rounds = 0;
    meet([&](int) { add(0); }, [&](int) { add(1); },
         [&](int) {
             ++rounds;
             return true;
         });
    EXPECT_EQ(counter, 2L * rounds);
}

}  // namespace
}  // namespace osc::test
