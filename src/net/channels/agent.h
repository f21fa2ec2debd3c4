// The agent of a process: a thread that executes the messages of other processes of the node on this one's memory, so
// that they need nothing from its application thread (I4). It never calls MPI (I2), blocks all signals, and sleeps on a
// futex while its mailbox is empty. It owns its mailbox and its view of the senders' outboxes.
//
// Nothing waits for the agent when the process ends: the state of the process's one agent is never destroyed, so exit
// may stop the thread anywhere. A child made by fork has no agent.
#pragma once

#include <pthread.h>
#include <sys/types.h>

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
    /// `open` may be empty: arenas are then opened anew.
    Fault start(OpenArena open);

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
    };

    void run();
    void serve(std::uint32_t newest);
    void accept(std::uint32_t sender);
    void answer(std::uint32_t sender, std::uint32_t number);
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
    bool spins_ = true;  // the cores are not oversubscribed
    bool woke_ = false;  // the thread has woken a sender since its last pause; of the thread
    AgentService service_;
    std::vector<Sender> senders_;         // by sender slot; of the thread
    std::vector<std::uint32_t> arrived_;  // of the thread
};

}  // namespace osc::net
