// A history of accesses to one target, which a test writes call by call, and what conflict detection finds in it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "plugins/verify/access_log.h"
#include "plugins/verify/race_finder.h"

namespace osc::check {

inline constexpr std::uint32_t kTarget = 0;

// Origins of one window whose accesses go to one target. Time is the number of calls so far.
class History {
  public:
    /// `most`: pairs that the target compares at a fence.
    explicit History(std::uint32_t origins, Promises promises = {}, std::uint64_t most = 20'000'000)
        : finder_(kTarget, promises, most) {
        for (std::uint32_t rank = 0; rank < origins; ++rank)
            logs_.push_back(std::make_unique<AccessLog>(rank, promises));
    }
    AccessLog& at(std::uint32_t rank) { return *logs_[rank]; }
    std::int64_t tick() { return ++time_; }

    void access(std::uint32_t rank, std::uint64_t site, op::OpKind kind, Bytes bytes, Op op = Op::None,
                Basic basic = Basic::I32, bool request = false) {
        Operation operation;
        operation.kind = kind;
        operation.op = op;
        operation.basic = basic;
        operation.call = "MPI_Test";
        operation.target = kTarget;
        operation.bytes = {bytes};
        operation.request = request;
        operation.site.value = site;
        at(rank).add(operation, tick(), own);
    }
    void rows(std::uint32_t rank, std::uint64_t site, std::vector<Bytes> bytes, Op op, Basic basic,
              op::OpKind kind = op::OpKind::Accumulate) {
        Operation operation;
        operation.kind = kind;
        operation.op = op;
        operation.basic = basic;
        operation.call = "MPI_Test";
        operation.target = kTarget;
        operation.bytes = std::move(bytes);
        operation.site.value = site;
        at(rank).add(operation, tick(), own);
    }
    void put(std::uint32_t rank, std::uint64_t site, Bytes bytes) { access(rank, site, op::OpKind::Put, bytes); }
    void get(std::uint32_t rank, std::uint64_t site, Bytes bytes) { access(rank, site, op::OpKind::Get, bytes); }
    void sum(std::uint32_t rank, std::uint64_t site, Bytes bytes, Op op = Op::Sum, Basic basic = Basic::I32) {
        access(rank, site, op::OpKind::Accumulate, bytes, op, basic);
    }
    void lock(std::uint32_t rank, bool exclusive = false) { at(rank).lock(kTarget, exclusive); }
    void flush(std::uint32_t rank) { at(rank).complete(kTarget, tick()); }
    void unlock(std::uint32_t rank) {
        flush(rank);
        at(rank).unlock(kTarget);
    }
    void post(std::vector<std::uint32_t> origins) { finder_.post(origins, tick()); }
    void start(std::uint32_t rank) { at(rank).start(std::vector<std::uint32_t>{kTarget}); }
    void complete(std::uint32_t rank) {
        flush(rank);
        at(rank).end_start();
    }
    /// What a fence of all origins finds.
    std::vector<Conflict> fence() {
        for (const auto& log : logs_)
            log->fence(tick());
        for (std::uint32_t rank = 0; rank < logs_.size(); ++rank)
            for (auto& [target, entries] : at(rank).take())
                finder_.add(rank, clock_of.count(rank) > 0 ? clock_of[rank] : 1, std::move(entries));
        return finder_.find();
    }

    /// Whether a fence has left out pairs.
    bool is_incomplete() { return finder_.take_incomplete(); }

    std::vector<Conflict> own;                        // found at the origins
    std::map<std::uint32_t, std::uint64_t> clock_of;  // 1 unless given

  private:
    RaceFinder finder_;
    std::vector<std::unique_ptr<AccessLog>> logs_;
    std::int64_t time_ = 0;
};

}  // namespace osc::check
