// The slots for messages of `tcp;ofi_rxm`, for libfabric 1.17 and older (docs/PROVIDERS.md), between two endpoints on
// the loopback interface.
#include <gtest/gtest.h>
#include <rdma/fabric.h>

#include <array>
#include <memory>
#include <random>
#include <string>

#include "transport/am/channels/eager_slots.h"
#include "transport/fabric/endpoint.h"

namespace osc::test {
namespace {

struct Deaf final : fabric::Receiver {
    void received(std::byte*, std::size_t) override {}
};

// Garbage in slots is delivered only as far as its head can be true.
TEST(Slots, GarbageIsBounded) {
    if (FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 18)))
        GTEST_SKIP() << "libfabric is newer than 1.17";
    std::string why;
    constexpr fabric::Wishes kWishes{"tcp;ofi_rxm", "", true, false};
    // On a full machine the probe of an endpoint may end before its data has moved; a later one does not.
    std::unique_ptr<fabric::Endpoint> mine;
    for (int tries = 0; tries < 8 && (mine == nullptr || !mine->prefers_deposits()); ++tries) {
        mine.reset(fabric::open(kWishes, why));
        if (mine == nullptr) GTEST_SKIP() << why;
    }
    const std::unique_ptr<fabric::Endpoint> peer(fabric::open(kWishes, why));
    if (peer == nullptr) GTEST_SKIP() << why;
    ASSERT_TRUE(mine->prefers_deposits());
    am::EagerSlotsIn slots(*mine);
    ASSERT_TRUE(slots.open());
    fabric::PeerId to = 0;
    ASSERT_TRUE(peer->insert(mine->address(), to));
    Deaf deaf;
    std::minstd_rand random(1);
    am::SlotHead head;
    std::array<std::byte, am::kSlotBody> body{};
    EXPECT_FALSE(slots.landed());
    slots.begin();
    int oversized = 0;
    int several = 0;
    for (std::uint32_t count = 0; count < 300 * am::kSlots;) {
        alignas(8) std::array<std::byte, 64> garbage;
        for (std::byte& byte : garbage)
            byte = static_cast<std::byte>(random());
        const bool turn = count % 3 != 0;
        am::SlotHead& sent = *reinterpret_cast<am::SlotHead*>(garbage.data() + garbage.size() - sizeof head);
        sent.sends = turn ? 0 : 1;
        sent.lap = am::lap_of(count);
        sent.words %= 2 * am::kSlotBody / am::kAlign;
        const std::uint64_t address = slots.offer().base + am::slot_end(count) - garbage.size();
        while (peer->deposit(to, garbage.data(), garbage.size(), address, slots.offer().key, nullptr) ==
               fabric::Posted::Again) {
            peer->poll(deaf);
            mine->poll(deaf);
        }
        while (!slots.landed())
            mine->poll(deaf);
        ASSERT_EQ(slots.take(head, body.data(), false, count), turn);
        if (!turn) {
            // Behind a message that has not come.
            slots.sent();
            ASSERT_TRUE(slots.take(head, body.data(), false, count));
            slots.begin();
        }
        EXPECT_EQ(head.number, sent.number);
        const std::size_t bytes = std::size_t{head.words} * am::kAlign;
        const std::uint32_t taken = am::slots_of(bytes + sizeof head, count);
        oversized += bytes > am::kSlotBody ? 1 : 0;
        several += taken > 1 ? 1 : 0;
        count += taken;
        ASSERT_EQ(slots.emptied(), count);
        ASSERT_FALSE(slots.landed());
    }
    EXPECT_GT(oversized, 500);
    EXPECT_GT(several, 500);
}

}  // namespace
}  // namespace osc::test
