// A window's processes on other nodes: a stream to each that this process uses, and the synchronisation with them. In
// windows whose accumulates go by the provider's atomics also streams to processes of this node.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "net/directory.h"
#include "net/origin/stream.h"
#include "sync/remote_sync.h"

namespace osc::net {

class RemoteWindow final : public sync::RemoteSync, public Caches {
  public:
    /// `incomplete`: see Stream.
    RemoteWindow(NetworkStack& network, Job& job, std::uint64_t window, std::uint32_t me, Protocol protocol,
                 std::atomic<std::uint32_t>& incomplete);
    ~RemoteWindow();
    RemoteWindow(const RemoteWindow&) = delete;
    RemoteWindow& operator=(const RemoteWindow&) = delete;

    /// `arrivals`: of this process's own service of the window. Before the first synchronisation.
    void served(std::shared_ptr<Arrivals> arrivals) { arrivals_ = std::move(arrivals); }

    /// The connection to a process; null with a fault if there is none. May wait.
    Connection* connect(std::uint32_t rank);
    /// The stream to a target; null if it cannot be reached, with a fault.
    Stream* stream(std::uint32_t target);

    Fault lock(std::uint32_t target, sync::LockKind kind, bool inside_lock_all) override;
    void await_lock(std::uint32_t target) override;
    void unlock(std::uint32_t target) override;
    Fault post(std::uint32_t origin) override;
    Fault send_complete(std::uint32_t target) override;
    bool awaits_complete(std::uint32_t target) override;
    void announce_test(std::span<const std::uint32_t> origins) override;
    Fault close(std::uint32_t target, bool piggyback) override;
    void opened(std::uint64_t fence, bool ahead) override;
    bool await_closes(std::uint64_t closes, sync::Liveness& liveness) override;
    void forget_results() override;
    sync::Traffic take_traffic() override;
    Fault barrier(sync::Liveness& liveness, sync::FenceSummary& news) override;

    /// Completes what was issued to one target, or to shm::kEveryTarget; the first fault that was met.
    Fault complete_ops(std::uint32_t target);
    Fault complete_local(std::uint32_t target);

    /// Withdraws a lease from its holders; returns when no living one uses it.
    void withdraw(const Lease& lease, const std::vector<std::uint32_t>& holders);
    bool drop(std::uint32_t owner, std::uint64_t address, std::uint32_t number) override;

    /// False if the process is known to be dead; otherwise asks it.
    bool alive(std::uint32_t rank);

  private:
    Fault notify(std::uint32_t rank, std::span<const Record> steps);
    void ask(std::span<const std::uint32_t> ranks, const Record& record);
    std::uint32_t first_dead(sync::Liveness& liveness) const;
    /// The stream to a target; null if this process has not used it.
    Stream* used_stream(std::uint32_t target);
    template <class F>
    Fault each(F&& f);

    NetworkStack& network_;
    Job& job_;
    const std::uint64_t window_;
    const std::uint32_t me_;
    const Protocol protocol_;
    std::atomic<std::uint32_t>& incomplete_;
    std::shared_ptr<Arrivals> arrivals_;
    std::uint64_t barriers_ = 0;
    std::atomic<std::uint64_t> fence_{0};  // the fence that targets must have made before they execute operations
    std::mutex mutex_;
    std::map<std::uint32_t, std::unique_ptr<Stream>> streams_;
    std::set<std::uint32_t> announced_;  // origins that announce_test() has reached; under mutex_
};

}  // namespace osc::net
