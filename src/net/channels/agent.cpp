// The agent's thread.
// Build: osc_core_cold
#include "net/channels/agent.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/helper_thread.h"
#include "base/process_state.h"
#include "trace/recorder.h"

namespace osc::net {
namespace {

constexpr std::int64_t kSpinNs = 20000;  // after work, before sleeping: an answer often brings the next request

}  // namespace

Agent& Agent::mine() {
    static auto* agent = new Agent;  // never destroyed: its thread may run until the process's last instruction
    return *agent;
}

Fault Agent::start(OpenArena open) {
    const std::lock_guard lock(mutex_);
    if (process_ == ::getpid()) return Fault::None;
    if (process_ != 0) return base::fail(Fault::Other, "a child made by fork cannot use its parent's windows");
    if (!mailbox_piece_) {
        mailbox_piece_ = shm::Arena::mine().allocate(sizeof(Mailbox), alignof(Mailbox), true);
        if (!mailbox_piece_) return base::fail(Fault::NoMem, "no shared memory for the agent's mailbox");
        box_ = new (mailbox_piece_.address) Mailbox;
    }
    box_->head.store(0, std::memory_order_relaxed);
    stopping_.store(false, std::memory_order_relaxed);
    ready_.store(0, std::memory_order_relaxed);
    open_ = std::move(open);
    senders_.resize(kSenders);
    arrived_.reserve(64);
    spins_ = shm::wait_policy().spin >= 100;
    const int error = base::start_helper_thread<&Agent::run>(thread_, this);
    if (error != 0) return base::fail(Fault::Other, "cannot start the agent's thread: %s", std::strerror(error));
    process_ = ::getpid();
    ready_.wait(0, std::memory_order_acquire);
    return Fault::None;
}

void Agent::stop() {
    const std::lock_guard lock(mutex_);
    if (process_ != ::getpid()) return;
    stopping_.store(true, std::memory_order_seq_cst);
    // Even if the thread does not sleep: before it does, it reads this word.
    box_->bell.word.fetch_add(1, std::memory_order_seq_cst);
    shm::futex_wake(box_->bell.word);
    ::pthread_join(thread_, nullptr);
    process_ = 0;
}

void Agent::run() {
    ::pthread_setname_np(::pthread_self(), "osc-agent");
    box_->process = ::getpid();
    box_->thread = static_cast<std::int32_t>(::syscall(SYS_gettid));
    box_->thread_start_time = base::process_start_time(box_->thread);
    ready_.store(1, std::memory_order_release);
    ready_.notify_all();
    for (;;) {
        const bool last = stopping_.load(std::memory_order_seq_cst);
        const std::uint32_t newest = box_->head.exchange(last ? kClosed : 0, std::memory_order_seq_cst);
        if (newest != 0) serve(newest);
        if (last) return;
        if (newest == 0) pause();
    }
}

// Spins a while, then sleeps until a message arrives. A sender pushes, then reads `sleepers`; this thread raises
// `sleepers`, then reads the head; both in one total order, so one of them sees the other.
void Agent::pause() {
    const auto idle = [&] {
        return box_->head.load(std::memory_order_seq_cst) == 0 && !stopping_.load(std::memory_order_seq_cst);
    };
    // A sender that has just been woken may wait for this very core, which spinning would keep it from.
    const std::int64_t end = std::exchange(woke_, false) ? 0 : now_ns() + kSpinNs;
    while (now_ns() < end) {
        for (int i = 0; i < 16; ++i) {
            if (!idle()) return;
            shm::cpu_relax();
        }
        if (!spins_) ::sched_yield();
    }
    while (idle()) {
        sleeps_.fetch_add(1, std::memory_order_relaxed);
        box_->bell.sleep([&] { return !idle(); }, 0);
    }
}

void Agent::serve(std::uint32_t newest) {
    // All links are read before the first reply, because an answered sender may push the same link again at once. A
    // chain longer than there are links means that some process has overwritten links.
    arrived_.clear();
    for (std::uint32_t next = newest; next != 0 && next <= kLinks && arrived_.size() < kLinks;) {
        arrived_.push_back(next - 1);
        const std::uint32_t link = next - 1;
        next = box_->sender_slots[link / kLinksPerSender].links[link % kLinksPerSender].load(std::memory_order_relaxed);
    }
    for (auto link = arrived_.rbegin(); link != arrived_.rend(); ++link) {
        const std::uint32_t sender = *link / kLinksPerSender;
        const std::uint32_t number = *link % kLinksPerSender;
        if (number == kMessageSlots) {
            accept(sender);
        } else {
            answer(sender, number);
        }
    }
}

void Agent::accept(std::uint32_t number) {
    SenderSlot& slot = box_->sender_slots[number];
    Sender& sender = senders_[number];
    sender.arena = open_ ? open_(slot.arena) : std::make_shared<shm::PeerArena>(slot.arena);
    if (sender.arena != nullptr)
        sender.outbox = reinterpret_cast<OutboxMemory*>(map_once(*sender.arena, slot.outbox, sizeof(OutboxMemory)));
    slot.state.exchange(sender.outbox != nullptr ? SenderState::Accepted : SenderState::Refused,
                        std::memory_order_seq_cst);
    slot.bell.ring();
}

void Agent::answer(std::uint32_t sender, std::uint32_t number) {
    OutboxMemory* outbox = senders_[sender].outbox;
    if (outbox == nullptr) return;  // never accepted: its sender does not wait
    MessageSlot& slot = outbox->slots[number];
    {
        const trace::Span span(trace::pack(trace::Kind::ServeAgent, 0, static_cast<std::uint32_t>(slot.bytes)),
                               slot.flow);
        slot.status = service_.execute(slot.window, slot.body, slot.bytes, kMessageBody);
    }
    slot.state.exchange(MessageState::Answered, std::memory_order_seq_cst);
    woke_ = woke_ || slot.bell.sleepers.load(std::memory_order_relaxed) != 0;
    slot.bell.ring();
}

}  // namespace osc::net
