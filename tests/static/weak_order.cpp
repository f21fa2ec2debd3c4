// One function for each step of the protocols that use no lock, for weak_order.py, which reads their code for aarch64.
#include "core/epoch.h"
#include "net/channels/fabric_sender.h"
#include "net/channels/mailbox.h"
#include "net/connections.h"
#include "shm/regions.h"
#include "sync/notify.h"
#include "sync/pscw.h"
#include "sync/stripe.h"

using namespace osc;

extern "C" {
bool flush(std::atomic<std::uint32_t>& word) {
    return epoch::order_and_count(word);
}
void unlock_no_check() {
    epoch::fence_if_weak();
}
void bell_ring(shm::Doorbell& bell) {
    bell.ring();
}
bool bell_sleep(shm::Doorbell& bell, base::FunctionRef<bool()> done) {
    return bell.sleep(done, 1);
}
bool barrier(shm::Barrier& barrier, base::FunctionRef<bool()> dead) {
    return barrier.arrive_and_wait(2, dead);
}
bool post(const shm::ControlTable& controls) {
    return sync::send_post(controls, 1, 0);
}
void complete(const shm::ControlTable& controls) {
    sync::send_complete(controls, 0);
}
bool completes(const shm::ControlTable& controls) {
    return sync::take_completes(controls, 0, 1);
}
void notify(sync::NotifyBoard& board) {
    board.increment(0);
}
std::uint32_t notified(sync::NotifyBoard& board, std::uint64_t& value) {
    return board.find(0, 1, 1, value);
}
bool lock_exclusive(shm::LockCell& cell) {
    return sync::try_lock_exclusive(cell, 1);
}
bool lock_shared(shm::LockCell& cell) {
    return sync::try_lock_shared(cell);
}
sync::Released unlock_exclusive(shm::LockCell& cell) {
    return sync::try_unlock_as(cell, sync::exclusive_word(1));
}
void unlock_shared(sync::LockContext& context) {
    sync::unlock_shared(context, 0);
}
bool stripe_lock(std::atomic<std::uint32_t>& holder, sync::Liveness& liveness, std::uint32_t& dead) {
    return sync::stripe_lock(holder, 1, liveness, dead);
}
void stripe_unlock(std::atomic<std::uint32_t>& holder) {
    sync::stripe_unlock(holder);
}
bool mailbox_push(net::Mailbox& box) {
    return net::push(box, 0, 0);
}
void mailbox_give_up(net::Mailbox& box) {
    net::give_up(box, 1);
}
std::byte* last_region(const shm::LastRegion& last, const shm::ControlBlock& target) {
    return last.find(target, 1, 1);
}
bool unsent(const net::FabricSender& sender) {
    return sender.has_unsent();
}
bool unsettled(const net::Connections& connections) {
    return connections.unsettled();
}
}
