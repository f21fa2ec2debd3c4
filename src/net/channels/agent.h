// The agent of a process: a thread that executes the messages of other processes of the node on this one's memory, so
// that they need nothing from its application thread (I4). It never calls MPI (I2), blocks all signals, and sleeps on a
// futex while its mailbox is empty. It owns its mailbox and its view of the senders' outboxes.
//
// An application thread that waits reads the mailbox too, and answers in less than a microsecond: the agent would have
// to be woken, on a core that the waiting thread may use.
//
// Nothing waits for the agent when the process ends: the state of the process's one agent is never destroyed, so exit
// may stop the thread anywhere. A child made by fork has no agent.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/fault.h"
#include "net/channels/mailbox.h"
#include "net/target/agent_service.h"

namespace osc::net {

/// Gives the view of another process's arena; called in the agent's thread.
using OpenArena = std::function<std::shared_ptr<shm::PeerArena>(const shm::ArenaAddress&)>;

class Agent {
  public:
    /// The agent of this process, not yet started.
    static Agent& mine();

    Agent() = default;
    ~Agent() { stop(); }
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    /// Starts the thread if it does not run; Fault::NoMem or Fault::Other if the system refuses. Thread-safe.
    /// `open` may be empty: arenas are then opened anew. `attends`: poll() may attend the mailbox.
    Fault start(OpenArena open, bool attends = true);

    /// For a thread that waits, in libosc or in the host, then perhaps under its locks: executes the messages that have
    /// come, unless another thread does. Some of these calls and the mailbox counts as attended. True: it does, and no
    /// message has come for many calls. Thread-safe.
    bool poll();
    /// The thread does not wait any more.
    void leave();
    /// Executes the messages that have come, unless another thread does, for a thread that will not wait long.
    void serve_now() {
        if (box_ != nullptr && (has_mail() || is_shown())) read_mail(false);
    }

    /// Ends the thread: it answers the messages that are in the mailbox, later ones fail at their senders. Thread-safe;
    /// does nothing in a child made by fork.
    void stop();

    /// Offset of the mailbox in this process's arena; 0 before the start.
    std::uint64_t mailbox() const { return mailbox_piece_.offset; }

    AgentService& service() { return service_; }

    /// How often the thread has gone to sleep, for tests and statistics.
    std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

  private:
    struct Sender {
        std::shared_ptr<shm::PeerArena> arena;
        OutboxMemory* outbox = nullptr;
        QuestionSlot* question = nullptr;
    };
    enum class Reader : std::uint8_t { Agent, Waiting };

    bool has_mail() const {
        const std::uint32_t head = box_->head.load(std::memory_order_seq_cst);
        return head != 0 && head != kClosed;
    }
    bool is_shown() const {
        return std::ranges::any_of(watched_, [](const std::atomic<QuestionSlot*>& watched) {
            const QuestionSlot* const slot = watched.load(std::memory_order_relaxed);
            return slot != nullptr && slot->state.load(std::memory_order_relaxed) == MessageState::Shown;
        });
    }
    void run();
    void read_mail(bool attends);
    bool expects_more();
    void fetch(std::uint32_t newest);
    void fetch_question_of(std::uint32_t newest) const;
    bool serve(Reader reader);
    void accept(std::uint32_t sender);
    void serve_shown();
    void answer(std::uint32_t sender, std::uint32_t number, Reader reader);
    void answer_question(QuestionSlot& slot);
    void watch(QuestionSlot& slot);
    bool is_idle() const;
    void pause();

    std::mutex mutex_;
    OpenArena open_;
    shm::ArenaBlock mailbox_piece_;
    Mailbox* box_ = nullptr;
    pthread_t thread_{};
    pid_t process_ = 0;  // that started the thread; 0: not started
    std::atomic<int> ready_{0};
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> sleeps_{0};
    bool spins_ = true;                          // the cores are not oversubscribed
    std::atomic<bool> attends_{true};            // poll() may attend the mailbox
    std::atomic<std::uint32_t> polls_{0};        // of threads that wait, since the mailbox was attended last
    std::atomic<std::uint32_t> quiet_polls_{0};  // since the last message
    std::atomic<std::uint32_t> in_row_{0};       // messages that have followed one another
    std::atomic<bool> woke_{false};              // a sender has been woken since the agent's last pause
    AgentService service_;

    std::mutex reading_;
    // Under reading_.
    std::vector<Sender> senders_;          // by sender slot
    std::vector<std::uint32_t> arrived_;   // links, newest first, that are not served yet
    std::atomic<bool> left_{false};        // some of them are for the agent's thread
    const QuestionSlot* asked_ = nullptr;  // of the last question that came by the mailbox
    std::uint32_t asked_in_row_ = 0;       // such questions of this sender, one after the other
    std::uint32_t next_watched_ = 0;
    // The slots that threads watch while they wait; changed under reading_.
    static constexpr std::uint32_t kWatched = 4;
    std::array<std::atomic<QuestionSlot*>, kWatched> watched_{};
};

}  // namespace osc::net
