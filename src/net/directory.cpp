#include "net/directory.h"

#include <utility>

namespace osc::net {
namespace {

constexpr std::uint32_t kKeepers = 2;  // of a part: its first process, and that of the next part

}  // namespace

/// To a keeper. It keeps itself until it is answered: the team may end before.
class LookUpRequest final : public ReplyHandler {
  public:
    LookUpRequest(Connection& to, const Job& job, std::uint32_t part) : keeper(to), job_(&job), part_(part) {}

    static void send(const std::shared_ptr<LookUpRequest>& request, Messenger& messenger, std::uint64_t team,
                     std::uint32_t rank, Message* message) {
        request->self_ = request;
        messenger.request(request->keeper, FrameKind::LookUp, team, rank, message, *request);
    }
    bool is_open() {
        const std::lock_guard lock(mutex_);
        return job_ != nullptr;
    }
    /// Drops the answer, if it has not come.
    void close() {
        const std::lock_guard lock(mutex_);
        if (const Job* const job = std::exchange(job_, nullptr); job != nullptr)
            job->look_up(part_).store(ProcessTable::kUnasked);
    }

    Connection& keeper;

  private:
    // A keeper that has died, or does not know the others, leaves the look-up to the next process that needs it.
    void answered(Status status, const std::byte* data, std::size_t bytes) override {
        const std::shared_ptr<LookUpRequest> keep = std::move(self_);
        const std::lock_guard lock(mutex_);
        const Job* const job = std::exchange(job_, nullptr);
        if (job == nullptr) return;
        if (status == Status::Done && bytes == job->others_of(part_).size())
            job->enter_others(part_, {data, bytes});
        else
            job->look_up(part_).store(ProcessTable::kUnasked);
    }

    std::shared_ptr<LookUpRequest> self_;
    std::mutex mutex_;
    const Job* job_;  // null: answered
    const std::uint32_t part_;
};

void Job::learn(std::uint32_t part, std::span<const std::byte> its) const {
    std::uint32_t unasked = kUnasked;
    if (look_up(part).compare_exchange_strong(unasked, me + 1)) enter_others(part, its.first(others_of(part).size()));
}

void Job::end_look_ups() {
    const std::lock_guard lock(mutex_);
    for (auto& [part, its] : own_look_ups_)
        if (its.request != nullptr) its.request->close();
}

Directory::Found Directory::find(Job& job, std::uint32_t rank, Connection*& peer) {
    peer = connections_.find(job.tokens[rank], job.lacks_own());
    if (peer != nullptr) return Found::Yes;
    const ProcessTable::Place place = job.place_of(rank);
    if (!job.knows(place))
        if (const Found found = look_up(job, rank, place.part); found != Found::Yes) return found;
    peer = connections_.connect(job.address(rank, place), job.lacks_own());
    return peer != nullptr ? Found::Yes : Found::No;
}

// Asks the next keeper, unless a living process of this node asks. What throws changes nothing.
Directory::Found Directory::look_up(Job& job, std::uint32_t rank, std::uint32_t part) {
    const std::uint32_t mine = job.me + 1;
    if (!job.admitted.load()) return Found::Asked;
    const std::lock_guard lock(job.mutex_);
    Job::LookUp& its = job.own_look_ups_[part];
    for (;;) {
        std::uint32_t state = job.look_up(part).load();
        if (state == ProcessTable::kKnown) return Found::Yes;
        if (state != ProcessTable::kUnasked && (state == mine || job.liveness->alive(state - 1))) return Found::Asked;
        if (its.keepers == kKeepers) return Found::No;
        const std::uint32_t at = (part + its.keepers) % job.size.parts;
        Connection* const keeper =
            job.firsts[at] != job.me ? connections_.connect(job.first_address(at), job.lacks_own()) : nullptr;
        if (keeper == nullptr || keeper->ended()) {
            ++its.keepers;
            continue;
        }
        const auto request = std::make_shared<LookUpRequest>(*keeper, job, part);
        Message* const message = sender_.claim();
        if (!job.look_up(part).compare_exchange_strong(state, mine)) {
            sender_.give_back(message);
            continue;
        }
        its.request = request;
        ++its.keepers;
        LookUpRequest::send(request, messenger_, job.number, rank, message);
        return Found::Asked;
    }
}

Connection* Directory::connect(Job& job, std::uint32_t rank, progress::ProgressEngine& engine) {
    Connection* peer = nullptr;
    engine.wait([&] { return find(job, rank, peer) != Found::Asked; },
                [&] {
                    look_at_keeper(job, rank);
                    return false;
                });
    return peer;
}

bool Directory::alive(Job& job, std::uint32_t rank) {
    Connection* peer = nullptr;
    if (find(job, rank, peer) == Found::Asked) look_at_keeper(job, rank);
    // Libfabric may refuse the address of a process that lives: operations on it then fail, and nothing else does.
    return peer == nullptr || messenger_.alive(*peer);
}

// The messenger answers for a dead one.
void Directory::look_at_keeper(Job& job, std::uint32_t rank) {
    std::shared_ptr<LookUpRequest> request;
    {
        const std::lock_guard lock(job.mutex_);
        request = job.own_look_ups_[job.place_of(rank).part].request;
    }
    if (request != nullptr && request->is_open()) static_cast<void>(messenger_.alive(request->keeper));
}

}  // namespace osc::net
