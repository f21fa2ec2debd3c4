// The agent's thread, and the threads that read its mailbox while they wait.
#include "net/channels/agent.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/helper_thread.h"
#include "base/process_state.h"
#include "trace/recorder.h"

namespace osc::net {
namespace {

constexpr std::int64_t kSpinNs = 20000;  // after work, before sleeping: an answer often brings the next request
// Calls of poll() before the mailbox counts as attended: a program that polls the host now and then does not wait.
constexpr std::uint32_t kPollsToAttend = 16;
constexpr std::uint32_t kRare = 1000;  // polls without a message after which messages are rare
constexpr std::uint32_t kSoon = 8;     // polls between messages that follow one another
constexpr std::uint32_t kRow = 4;      // such messages before a thread waits for the next one
constexpr int kLinger = 24;            // some hundred ns
constexpr int kMostAtOnce = 32;        // messages before the thread returns to its wait

}  // namespace

Agent& Agent::mine() {
    static auto* agent = new Agent;  // never destroyed: its thread may run until the process's last instruction
    return *agent;
}

Fault Agent::start(OpenArena open, bool attends) {
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
    arrived_.reserve(kLinks);  // nothing is allocated inside the host
    spins_ = shm::wait_policy().spin >= 100;
    attends_ = attends && spins_;
    box_->attended.store(0, std::memory_order_relaxed);
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
        bool any = false;
        {
            const std::lock_guard lock(reading_);
            left_.store(false, std::memory_order_relaxed);
            serve(Reader::Agent);
            if (last || has_mail()) {
                any = true;
                fetch(box_->head.exchange(last ? kClosed : 0, std::memory_order_seq_cst));
                serve(Reader::Agent);
            }
        }
        if (last) return;
        if (!any) pause();
    }
}

// Whether there is nothing for the agent's thread.
bool Agent::is_idle() const {
    return (!has_mail() || is_attended(box_->attended.load(std::memory_order_seq_cst))) &&
           !left_.load(std::memory_order_seq_cst) && !stopping_.load(std::memory_order_seq_cst);
}

// Spins a while, then sleeps until there is something to do. A sender changes the head, or makes the mailbox
// unattended, and then reads `sleepers`; this thread raises `sleepers`, then reads both; all in one total order, so one
// of them sees the other.
void Agent::pause() {
    // A sender that has just been woken may wait for this very core, which spinning would keep it from; and so may the
    // thread that attends the mailbox.
    const bool yields =
        woke_.exchange(false, std::memory_order_relaxed) || is_attended(box_->attended.load(std::memory_order_relaxed));
    const std::int64_t end = yields ? 0 : now_ns() + kSpinNs;
    while (now_ns() < end) {
        for (int i = 0; i < 16; ++i) {
            if (!is_idle()) return;
            shm::cpu_relax();
        }
        if (!spins_) ::sched_yield();
    }
    while (is_idle()) {
        sleeps_.fetch_add(1, std::memory_order_relaxed);
        box_->bell.sleep([&] { return !is_idle(); }, 0);
    }
}

// All links of a chain are read before the first reply, because an answered sender may push the same link again at
// once. A chain longer than there are links means that some process has overwritten links.
void Agent::fetch(std::uint32_t newest) {
    for (std::uint32_t next = newest; next != 0 && next <= kLinks && arrived_.size() < kLinks;) {
        arrived_.push_back(next - 1);
        const std::uint32_t link = next - 1;
        next = box_->sender_slots[link / kLinksPerSender].links[link % kLinksPerSender].load(std::memory_order_relaxed);
    }
}

// Serves what has been fetched, oldest first. False if the rest is for the agent's thread: an introduction, which maps
// memory and may wait.
bool Agent::serve(Reader reader) {
    for (; !arrived_.empty(); arrived_.pop_back()) {
        const std::uint32_t sender = arrived_.back() / kLinksPerSender;
        const std::uint32_t number = arrived_.back() % kLinksPerSender;
        if (number == kIntroduction) {
            if (reader == Reader::Waiting) return false;
            accept(sender);
        } else {
            answer(sender, number, reader);
        }
    }
    return true;
}

// Has the processor fetch the lines of a question that is probably the newest message, all at once, while this thread
// takes the message out of the mailbox.
void Agent::fetch_question_of(std::uint32_t newest) const {
    const std::uint32_t sender = (newest - 1) / kLinksPerSender;
    if (sender >= kSenders || senders_[sender].question == nullptr) return;
    QuestionSlot& question = *senders_[sender].question;
    __builtin_prefetch(&question.state, 1);
    __builtin_prefetch(&question.answered, 1);
}

// Whether the mailbox becomes attended is decided under the lock: the agent's thread then sees the change before it
// sleeps, or its last look at the mailbox was before this thread's.
void Agent::read_mail(bool attends) {
    const std::unique_lock lock(reading_, std::try_to_lock);
    if (!lock.owns_lock() || left_.load(std::memory_order_relaxed)) return;
    if (attends) {
        std::uint32_t seen = box_->attended.load(std::memory_order_relaxed);
        if (!is_attended(seen)) box_->attended.compare_exchange_strong(seen, seen + 1, std::memory_order_seq_cst);
    }
    serve_shown();
    if (!has_mail()) return;
    std::uint32_t newest = box_->head.load(std::memory_order_relaxed);
    fetch_question_of(newest);
    while (newest != kClosed && !box_->head.compare_exchange_weak(newest, 0, std::memory_order_seq_cst)) {
    }
    if (newest == kClosed) return;
    fetch(newest);
    if (serve(Reader::Waiting)) return;
    left_.store(true, std::memory_order_seq_cst);
    box_->bell.ring();
}

bool Agent::poll() {
    if (box_ == nullptr) return true;
    const bool attended = is_attended(box_->attended.load(std::memory_order_relaxed));
    const bool attends = attends_ && !attended && polls_.fetch_add(1, std::memory_order_relaxed) >= kPollsToAttend;
    if (attends) polls_.store(0, std::memory_order_relaxed);
    if (!attends && !has_mail() && !is_shown()) {
        const std::uint32_t quiet = quiet_polls_.load(std::memory_order_relaxed);
        if (quiet < kRare) quiet_polls_.store(quiet + 1, std::memory_order_relaxed);
        return quiet >= kRare && (attended || !attends_);
    }
    for (int left = kMostAtOnce; left > 0; --left) {
        read_mail(attends);
        if (!expects_more()) break;
    }
    return false;
}

// Whether another message has come so soon that the thread need not return to its wait: a sender that asks one question
// after the other asks the next one before the host or the wait has come round. Guesses: a wrong one costs the wait
// kLinger rounds, and the next messages make none.
bool Agent::expects_more() {
    const std::uint32_t quiet = quiet_polls_.exchange(0, std::memory_order_relaxed);
    const std::uint32_t before = quiet <= kSoon ? in_row_.load(std::memory_order_relaxed) : 0;
    in_row_.store(before + 1, std::memory_order_relaxed);
    if (before < kRow) return false;
    for (int i = 0; i < kLinger; ++i) {
        if (has_mail() || is_shown()) return true;
        shm::cpu_relax();
    }
    in_row_.store(0, std::memory_order_relaxed);
    return false;
}

// A sender that has seen the mailbox attended has pushed before, and is served here, or sees it unattended and wakes
// the agent.
void Agent::leave() {
    if (box_ == nullptr) return;
    polls_.store(0, std::memory_order_relaxed);
    std::uint32_t seen = box_->attended.load(std::memory_order_relaxed);
    if (!is_attended(seen)) return;
    box_->attended.compare_exchange_strong(seen, seen + 1, std::memory_order_seq_cst);
    if (has_mail()) box_->bell.ring();
}

void Agent::accept(std::uint32_t number) {
    SenderSlot& slot = box_->sender_slots[number];
    Sender& sender = senders_[number];
    sender.arena = open_ ? open_(slot.arena) : std::make_shared<shm::PeerArena>(slot.arena);
    if (sender.arena != nullptr) {
        sender.outbox = reinterpret_cast<OutboxMemory*>(map_once(*sender.arena, slot.outbox, sizeof(OutboxMemory)));
        sender.question = reinterpret_cast<QuestionSlot*>(map_once(*sender.arena, slot.question, sizeof(QuestionSlot)));
    }
    const bool mapped = sender.outbox != nullptr && sender.question != nullptr;
    slot.state.exchange(mapped ? SenderState::Accepted : SenderState::Refused, std::memory_order_seq_cst);
    slot.bell.ring();
}

void Agent::answer(std::uint32_t sender, std::uint32_t number, Reader reader) {
    const Sender& from = senders_[sender];
    if (from.outbox == nullptr || from.question == nullptr) return;  // never accepted: its sender does not wait
    if (number == kQuestion) {
        MessageState sent = MessageState::Sent;
        if (!from.question->state.compare_exchange_strong(sent, MessageState::Claimed, std::memory_order_acquire))
            return from.question->state.store(MessageState::Idle, std::memory_order_release);
        if (reader == Reader::Waiting) watch(*from.question);
        return answer_question(*from.question);
    }
    MessageSlot& slot = from.outbox->slots[number];
    {
        const trace::Span span(trace::pack(trace::Kind::ServeAgent, 0, static_cast<std::uint32_t>(slot.bytes)),
                               slot.flow);
        slot.status = service_.execute(slot.window, slot.body, slot.bytes, kMessageBody);
    }
    slot.state.exchange(MessageState::Answered, std::memory_order_seq_cst);
    if (slot.bell.sleepers.load(std::memory_order_relaxed) != 0) woke_.store(true, std::memory_order_relaxed);
    slot.bell.ring();
}

// From the kRow-th question of a sender in a row on, threads that wait look into its slot: each link costs the pair two
// exchanges of the mailbox's cache line. A sender that loses its place pushes links again.
void Agent::watch(QuestionSlot& slot) {
    asked_in_row_ = std::exchange(asked_, &slot) == &slot ? asked_in_row_ + 1 : 0;
    if (asked_in_row_ < kRow) return;
    slot.watched.store(1, std::memory_order_relaxed);
    if (std::ranges::find(watched_, &slot, [](const auto& watched) { return watched.load(); }) != watched_.end())
        return;
    QuestionSlot* const before = watched_[next_watched_++ % kWatched].exchange(&slot, std::memory_order_relaxed);
    if (before != nullptr) before->watched.store(0, std::memory_order_relaxed);
}

void Agent::serve_shown() {
    for (const std::atomic<QuestionSlot*>& watched : watched_) {
        QuestionSlot* const slot = watched.load(std::memory_order_relaxed);
        MessageState shown = MessageState::Shown;
        if (slot == nullptr || slot->state.load(std::memory_order_relaxed) != shown) continue;
        __builtin_prefetch(&slot->answered, 1);
        if (slot->state.compare_exchange_strong(shown, MessageState::Claimed, std::memory_order_acquire))
            answer_question(*slot);
    }
}

// The question is claimed.
void Agent::answer_question(QuestionSlot& slot) {
    // The sender polls the line of the answer. So the thread writes that line in one go, when the answer is complete.
    alignas(16) std::byte reply[kQuickBody];
    Status status = Status::Done;
    Record record;
    std::memcpy(&record, slot.body, sizeof record);
    {
        const trace::Span span(trace::pack(trace::Kind::ServeAgent, 0, slot.bytes), slot.flow);
        status = service_.execute(slot.window, slot.body, slot.bytes, kQuickBody, reply);
    }
    if (status == Status::Done) std::memcpy(slot.reply, reply, std::min(returned(record), sizeof reply));
    slot.status = status;
    slot.answered.exchange(1, std::memory_order_seq_cst);
    slot.bell.ring();
}

}  // namespace osc::net
