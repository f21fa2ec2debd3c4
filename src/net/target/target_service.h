// The target's side between nodes: the windows of this process that span nodes, and the execution of requests on them.
// docs/NETWORK.md has the protocols. Operations go to the executor; locks take the same words and queue as those of the
// processes of the node: a process of another node stands in the queue by a cell of the target's own block.
//
// Not thread-safe: the polling thread has the drive lock. No thread, no libfabric and no MPI here.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/target/arrivals.h"
#include "net/target/executor.h"
#include "net/target/leases.h"

namespace osc::net {

/// Where replies go: (the sender's token, the request's number, status, what the records return).
class Answers {
  public:
    virtual void answer(std::uint64_t token, std::uint32_t number, Status status, const std::byte* data,
                        std::size_t bytes) = 0;
    /// A notice was not executed, or not whole.
    virtual void dropped() = 0;

  protected:
    ~Answers() = default;
};

class TargetService {
  public:
    explicit TargetService(Answers& answers) : answers_(answers) {}
    /// Before all others: the most bytes of a message's body, if it is not kBody.
    void set_largest_body(std::size_t bytes) { room_ = bytes - sizeof(ReplyHead); }

    [[gnu::cold]] std::shared_ptr<Arrivals> add(const ExposedWindow& window);
    [[gnu::cold]] void remove(std::uint64_t id);

    /// Executes a request, query or notice of a process that is known to be in the job.
    void request(const Frame& frame, const std::byte* body);

    /// Continues requests whose lock has been granted or whose fence has been made, and answers withdrawals of leases
    /// that nothing in flight uses any more. True while something waits: the caller calls again soon.
    bool resume();
    /// Whether resume() has anything to look at.
    bool waits() const { return !busy_.empty() || !withdrawing_.empty(); }

    /// A process of another node has died: breaks the locks that it had, and ends its withdrawals. Its earlier requests
    /// are still done, and a lock that it waits for is broken when it is granted.
    [[gnu::cold]] void died(std::uint64_t token);

    /// Breaks locks that requests wait for and dead processes of this node have. Called now and then.
    [[gnu::cold]] void look_for_dead();

    /// Like sync::find_awaited; also knows requests that wait here, and holders on other nodes.
    void find_awaited(std::uint64_t window, const sync::WaitQuestion& wait, sync::Awaited& awaited) const;

    /// Tokens of processes that have a lock here for which others wait.
    void holders(std::vector<std::uint64_t>& tokens) const;

  private:
    struct Saved {  // a request that waits, copied
        std::uint32_t number = 0;
        std::size_t at = 0;  // of the record to go on with
        std::vector<std::byte> body;
        std::vector<std::byte> out;
        Status status = Status::Done;
    };
    struct RankLock {  // that a process of another node has, or waits for
        std::uint32_t rank;
        LockAsk ask;
    };
    struct Window {
        ExposedWindow exposed;
        std::shared_ptr<Arrivals> arrivals = std::make_shared<Arrivals>();
        std::map<std::uint32_t, std::deque<Saved>> saved;  // by origin, in the order of arrival
        std::deque<RankLock> waiting;                      // for the lock, outside a lock_all
        std::deque<RankLock> barging;                      // for the lock, inside a lock_all
        std::size_t turns = 0;               // the first so many of `waiting` get the lock one after the other
        std::vector<std::uint32_t> granted;  // origins that got it so, whose requests have not gone on yet
        bool queued = false;                 // the next of `waiting` stands in the lock's queue
        bool barging_queued = false;         // the first of `barging`
        std::vector<std::pair<std::uint32_t, std::uint64_t>> fenced;  // origins, and the fences that they wait for
        std::vector<RankLock> held;
        std::vector<std::uint32_t> refused;  // origins whose lock was refused: their operations under it are not done
    };
    using LeaseName = std::pair<std::uint64_t, std::uint32_t>;  // address and number
    struct Withdrawing {  // a query whose reply is due when nothing uses the leases
        std::uint64_t window;
        std::uint32_t origin;
        std::uint64_t token;
        std::uint32_t number;
        Status status;
        std::vector<std::byte> out;
        std::vector<LeaseName> in_use;
    };
    enum class Ran { Ended, Waits };

    Ran run(Window& window, FrameKind kind, std::uint32_t origin, const std::byte* body, std::size_t bytes,
            std::size_t& at, Status& status, std::vector<std::byte>& out);
    Status execute(Window& window, std::uint32_t origin, const Record& record, const std::byte* data,
                   std::vector<std::byte>& out);
    Status operate(Window& window, std::uint32_t origin, CheckedRecord operation, std::byte* out);
    Status inspect(Window& window, const std::byte* data, std::byte* out) const;
    void find_awaited(const Window& window, const sync::WaitQuestion& wait, sync::Awaited& awaited) const;
    static Status notify(const Window& window, std::uint32_t origin, const Record& record);
    Status withdraw(const ExposedWindow& window, std::uint32_t origin, const Record& record);
    void resume_withdrawing();
    template <class Which>
    void end_withdrawals(Which&& which);
    void break_locks(Window& window, std::uint64_t token);
    bool lock(Window& window, std::uint32_t origin, LockAsk ask, Status& status);
    void unlock(Window& window, std::uint32_t origin);
    bool resume(Window& window);
    bool resume_fenced(Window& window);
    bool resume_queue(Window& window, std::deque<RankLock>& queue, bool& queued, std::size_t& turns);
    bool resume_granted(Window& window);
    void go_on(Window& window, std::uint32_t origin);
    sync::LockContext context(Window& window, std::uint32_t origin) const;

    std::size_t room_ = kBody - sizeof(ReplyHead);  // bytes that a reply returns, at most
    Answers& answers_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Window>> windows_;
    std::vector<Window*> busy_;  // windows in which a request waits
    std::vector<std::byte> out_;
    ShapeCache shapes_;
    std::vector<LeaseName> in_use_;  // leases of the withdrawals in the message that is being executed
    std::vector<Withdrawing> withdrawing_;
};

}  // namespace osc::net
