// A window's way to its processes on other nodes: a stream for each that is used, and the synchronisation with them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "agent/book.h"
#include "sync/far.h"
#include "transport/net/stream.h"

namespace osc::net {

/// All processes of a team, as one of them sees them.
struct Job : Book {
    std::uint32_t node = 0;  // this process's
};

class Far final : public sync::Far, public Caches {
  public:
    /// `arrivals`: of this process's own service of the window.
    Far(Network& network, const Job& job, std::uint64_t window, std::uint32_t me, Protocol protocol,
        std::atomic<std::uint32_t>& unsettled);
    ~Far();
    Far(const Far&) = delete;
    Far& operator=(const Far&) = delete;

    void served(std::shared_ptr<Arrivals> arrivals) { arrivals_ = std::move(arrivals); }

    /// The stream to a target; null if it cannot be reached, with a fault.
    Stream* stream(std::uint32_t target);

    Fault lock(std::uint32_t target, sync::LockKind kind, bool passing) override;
    Fault await_lock(std::uint32_t target) override;
    Fault unlock(std::uint32_t target) override;
    Fault post(std::uint32_t origin) override;
    Fault complete(std::uint32_t target) override;
    Fault close(std::uint32_t target, bool held) override;
    void opened(std::uint64_t fence, bool ahead) override;
    bool await_closes(std::uint64_t closes, sync::Liveness& liveness) override;
    void forget_results() override;
    sync::Traffic take_traffic() override;
    Fault barrier(sync::Liveness& liveness, sync::News& news) override;

    /// Ends what is under way to one target, or to all; the first fault that was met.
    Fault settle(std::uint32_t target);
    Fault settle_local(std::uint32_t target);
    static constexpr std::uint32_t kAll = ~std::uint32_t{0};

    /// Returns when nobody goes by a lease of this process's any more, of those who hold it and live.
    void withdraw(const Lease& lease, const std::vector<std::uint32_t>& holders);
    bool drop(std::uint32_t owner, std::uint64_t address, std::uint32_t number) override;

    /// Whether the process is not known to be dead; asks it.
    bool alive(std::uint32_t rank);

  private:
    std::uint32_t first_dead(sync::Liveness& liveness) const;
    template <class F>
    Fault each(std::uint32_t target, F&& f);

    Network& network_;
    const Job& job_;
    const std::uint64_t window_;
    const std::uint32_t me_;
    const Protocol protocol_;
    std::atomic<std::uint32_t>& unsettled_;
    std::shared_ptr<Arrivals> arrivals_;
    std::uint64_t barriers_ = 0;
    std::atomic<std::uint64_t> fence_{0};  // that targets have to have made
    std::mutex mutex_;
    std::map<std::uint32_t, std::unique_ptr<Stream>> streams_;
};

}  // namespace osc::net
