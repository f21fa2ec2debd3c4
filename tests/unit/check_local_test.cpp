// Loads and stores in conflict detection, the guard that finds them, and the log of notifications.
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "check_sites.h"
#include "plugins/verify/notification_log.h"
#include "plugins/verify/page_guard.h"
#include "plugins/verify/race_finder.h"

namespace osc::check {
namespace {

Entry entry_at(std::uint64_t site, World world, std::int64_t issued, op::OpKind kind) {
    Entry entry;
    entry.access.site = site;
    entry.access.world = world;
    entry.access.issued = issued;
    entry.access.kind = kind;
    entry.pieces = {{8, 4, 0, 1}};
    return entry;
}

// A load or store of the target conflicts with operations of its epoch that have been issued before it.
TEST(Local, LoadsAndStores) {
    constexpr std::uint32_t kMe = 2;
    using enum op::OpKind;
    const auto find = [](Entry operation, Entry local, std::uint32_t origin = 1, std::uint64_t clock = 1) {
        RaceFinder finder(kMe, {});
        const std::uint32_t origins[] = {1, 3};
        finder.post(origins, 5);
        EXPECT_EQ(finder.exposures(), 1u);
        if (operation.access.world == World::Pscw) operation.access.exposure = 1;
        if (local.access.world == World::Pscw) local.access.exposure = finder.exposures();
        local.access.local = true;
        local.pieces.front().bytes = 1;
        finder.add(origin, clock, {operation});
        finder.add_local(1, {local});
        return sites_of(finder.find());
    };
    const Sites kBoth{{10, 20}};
    for (const World world : {World::Fence, World::Pscw}) {
        EXPECT_EQ(find(entry_at(10, world, 50, Put), entry_at(20, world, 60, Put)), kBoth);
        EXPECT_EQ(find(entry_at(10, world, 50, Put), entry_at(20, world, 60, Get)), kBoth);
        EXPECT_EQ(find(entry_at(10, world, 50, Get), entry_at(20, world, 60, Put)), kBoth);
        EXPECT_EQ(find(entry_at(10, world, 50, Accumulate), entry_at(20, world, 60, Get)), kBoth);
        EXPECT_EQ(find(entry_at(10, world, 50, Put), entry_at(20, world, 60, Put), 3), kBoth);
        EXPECT_EQ(find(entry_at(10, world, 50, Get), entry_at(20, world, 60, Get)), kNone);
        EXPECT_EQ(find(entry_at(10, world, 70, Put), entry_at(20, world, 60, Put)), kNone);        // it comes first
        EXPECT_EQ(find(entry_at(10, world, 50, Put), entry_at(20, world, 60, Put), 1, 2), kNone);  // another clock
        Entry beside = entry_at(20, world, 60, Put);
        beside.pieces.front().lo = 12;
        EXPECT_EQ(find(entry_at(10, world, 50, Put), beside), kNone);
        Entry later = entry_at(20, world, 60, Put);
        later.access.fence = 1;
        EXPECT_EQ(find(entry_at(10, world, 50, Put), later), kNone);
    }
    EXPECT_EQ(find(entry_at(10, World::Fence, 50, Put), entry_at(20, World::Fence, 60, Put), kMe), kNone);
    EXPECT_EQ(find(entry_at(10, World::Fence, 50, Put), entry_at(20, World::Pscw, 60, Put)), kNone);
    EXPECT_EQ(find(entry_at(10, World::Lock, 50, Put), entry_at(20, World::Fence, 60, Put)), kNone);
}

TEST(Local, NotificationsSeen) {
    for (const bool threads : {false, true}) {
        NotificationLog log(threads);
        log.observe(3, 0, false, 10);
        EXPECT_EQ(log.seen_since(3, 0), NotificationLog::kNever);
        log.observe(3, 2, false, 20);
        log.observe(3, 2, false, 30);  // nothing new, if one thread calls
        log.observe(4, 1, false, 35);
        EXPECT_EQ(log.seen_since(3, 5), 20);
        EXPECT_EQ(log.seen_since(3, 20), 20);
        EXPECT_EQ(log.seen_since(3, 25), threads ? 30 : NotificationLog::kNever);
        EXPECT_EQ(log.seen_since(4, 25), 35);
        EXPECT_EQ(log.seen_since(5, 0), NotificationLog::kNever);
        log.observe(3, 3, true, 40);
        log.observe(3, 3, false, 50);  // as many again
        EXPECT_EQ(log.seen_since(3, 45), 50);
        log.reset_all();
        log.observe(3, 3, false, 60);
        EXPECT_EQ(log.seen_since(3, 55), 60);
    }
}

// A view and libosc's own mapping of the same memory.
class GuardedMemory {
  public:
    GuardedMemory() {
        const int file = ::memfd_create("test", MFD_CLOEXEC);
        EXPECT_EQ(::ftruncate(file, static_cast<off_t>(kBytes)), 0);
        for (std::byte** const at : {&view, &own})
            *at = static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
        ::close(file);
    }
    ~GuardedMemory() {
        ::munmap(view, kBytes);
        ::munmap(own, kBytes);
    }
    GuardedMemory(const GuardedMemory&) = delete;
    GuardedMemory& operator=(const GuardedMemory&) = delete;

    static constexpr std::size_t kBytes = 1 << 18;
    std::byte* view = nullptr;
    std::byte* own = nullptr;
};

[[gnu::noinline]] void store(std::byte* at) {
    *const_cast<volatile std::byte*>(at) = std::byte{1};
}
[[gnu::noinline]] std::byte load(const std::byte* at) {
    return *const_cast<const volatile std::byte*>(at);
}

TEST(Local, TheGuardSeesAccessesWhileItIsClosed) {
    GuardedMemory memory;
    const auto guard = PageGuard::make(memory.view + 16, memory.own + 16, 1 << 17);
    ASSERT_NE(guard, nullptr);
    EXPECT_EQ(own_address(memory.view + 100), memory.own + 100);
    EXPECT_EQ(own_address(memory.own), memory.own);
    store(memory.view + 20);
    for (int round = 0; round < 3; ++round) {
        guard->close();
        EXPECT_EQ(load(memory.view + 24), std::byte{0});
        store(memory.view + 70000);
        store(memory.own + 200);  // libosc's
        EXPECT_EQ(load(memory.own + 70000), std::byte{1});
        guard->open();
        EXPECT_EQ(load(memory.view + 200), std::byte{1});
        // Where the kind of an access is not known, a store is a load before it is one.
        std::vector<Touch> touches = guard->take();
        if (touches.size() == 3 && touches[1].offset == touches[2].offset) touches.erase(touches.begin() + 1);
        ASSERT_EQ(touches.size(), 2u);
        EXPECT_EQ(touches[0].offset, 24 - 16);
        EXPECT_FALSE(touches[0].store);
        EXPECT_EQ(touches[1].offset, 70000 - 16);
        EXPECT_TRUE(touches[1].store);
        EXPECT_LE(touches[0].when, touches[1].when);
        EXPECT_NE(touches[0].site, touches[1].site);
        EXPECT_TRUE(guard->take().empty());
    }
}

// The handler, which walks the stack, takes no lock of the loader: its holder may wait for the thread that faults.
TEST(Local, TheGuardTakesNoLockOfTheLoader) {
    GuardedMemory memory;
    const auto guard = PageGuard::make(memory.view, memory.own, GuardedMemory::kBytes);
    ASSERT_NE(guard, nullptr);
    guard->close();
    std::atomic<int> step{0};
    std::thread loader([&] {
        ::dl_iterate_phdr(
            [](dl_phdr_info*, std::size_t, void* data) {
                auto& reached = *static_cast<std::atomic<int>*>(data);
                reached.store(1);
                while (reached.load() != 2)
                    std::this_thread::yield();
                return 1;
            },
            &step);
    });
    while (step.load() != 1)
        std::this_thread::yield();
    ::alarm(20);
    store(memory.view + 20);
    ::alarm(0);
    step.store(2);
    loader.join();
    guard->open();
    EXPECT_FALSE(guard->take().empty());
}

// What exceeds the bounds is not recorded, and runs.
TEST(Local, TheGuardIsBounded) {
    GuardedMemory memory;
    const auto guard = PageGuard::make(memory.view, memory.own, GuardedMemory::kBytes);
    ASSERT_NE(guard, nullptr);
    guard->close();
    for (std::size_t at = 0; at < GuardedMemory::kBytes; ++at)
        store(memory.view + at);
    guard->open();
    EXPECT_LE(guard->take().size(), 16384u);
    for (std::size_t at = 0; at < GuardedMemory::kBytes; ++at)
        ASSERT_EQ(memory.own[at], std::byte{1});
}

}  // namespace
}  // namespace osc::check
