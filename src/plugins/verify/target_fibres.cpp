// The runtime finds the races, and reports them.
// Build: osc_verify_core
#include "plugins/verify/target_fibres.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/log.h"

namespace osc::check {
namespace {

constexpr std::uint32_t kMostOrigins = 128;  // the runtime has room for some thousand threads and fibres
constexpr std::size_t kMostPending = 65536;  // parts of operations of this process in a window
constexpr std::size_t kMostPieces = 64;      // of one operation
constexpr std::int64_t kMostBlocks = 65536;  // of one piece
constexpr std::int64_t kMostParts = 4096;    // of a window's memory

constexpr std::uint64_t kWorldRow = 0;  // windows have their numbers, from 1

constinit JobFibres* g_mine = nullptr;

}  // namespace

JobFibres* JobFibres::mine() {
    return g_mine;
}

void JobFibres::make(std::unique_ptr<ProcessOrder> order) {
    g_mine = new JobFibres(std::move(order));
}

// Other threads may still look at it.
void JobFibres::end() {
    g_mine = nullptr;
}

JobFibres::JobFibres(std::unique_ptr<ProcessOrder> order)
    : order_(std::move(order)), all_(order_->processes()), origins_(std::min(order_->processes(), kMostOrigins)) {
    std::iota(all_.begin(), all_.end(), 0u);
    const HeededScope heeded;
    for (std::size_t i = 0; i < origins_.size(); ++i)
        if (i != order_->me())
            origins_[i].fibre = std::make_unique<Fibre>(("operations of rank " + std::to_string(i)).c_str());
}

// Before a release.
void JobFibres::reach() {
    const HeededScope heeded;
    releases_[(order_->released() + 1) % kReleases].reach();
}

std::uint64_t JobFibres::release_now() {
    reach();
    return order_->release();
}

void JobFibres::acquire_now(std::span<const std::uint32_t> processes) {
    for (const std::uint32_t process : processes)
        order_->acquire(process);
    advance();
}

// Performs what is complete now, and has the calling thread go on behind it.
void JobFibres::advance() {
    for (std::uint32_t origin = 0; origin < origins_.size(); ++origin) {
        if (origin == order_->me()) continue;
        const bool complete = order_->read(origin, [&](const RemoteAccess& access) {
            const auto window = access.target == order_->me() ? windows_.find(access.window) : windows_.end();
            if (window != windows_.end())
                window->second->shown_.push_back({origin, access, address_of(Site{access.site})});
        });
        if (!complete && !std::exchange(told_loss_, true))
            base::say("OSC_CHECK: operations were too many to compare all with the loads and stores of their targets");
    }
    const HeededScope heeded;
    for (const auto& [number, window] : windows_)
        window->access_complete();
    for (Origin& origin : origins_)
        if (origin.fibre != nullptr) origin.ended.pass();
}

void JobFibres::release() {
    const std::lock_guard lock(mutex_);
    release_now();
}

void JobFibres::acquire(std::span<const std::uint32_t> processes) {
    const std::lock_guard lock(mutex_);
    acquire_now(processes);
}

void JobFibres::acquire_all() {
    const std::lock_guard lock(mutex_);
    acquire_now(all_);
}

std::uint64_t JobFibres::enter() {
    const std::lock_guard lock(mutex_);
    reach();
    return order_->enter(kWorldRow);
}

void JobFibres::leave(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    order_->leave(kWorldRow, number, all_);
    advance();
}

TargetFibres::TargetFibres(JobFibres& job, Setting setting) : job_(job), setting_(std::move(setting)) {
    while (setting_.bytes / part_ >= kMostParts)
        part_ *= 2;
    parts_ = std::vector<SyncPoint>(static_cast<std::size_t>(setting_.bytes / part_ + 1));
    const std::lock_guard lock(job_.mutex_);
    job_.windows_.emplace(setting_.window, this);
    job_.release_now();
}

TargetFibres::~TargetFibres() {
    const std::lock_guard lock(job_.mutex_);
    job_.windows_.erase(setting_.window);
}

std::vector<std::uint32_t> TargetFibres::in_job(std::span<const std::uint32_t> ranks) const {
    std::vector<std::uint32_t> processes;
    for (const std::uint32_t rank : ranks)
        processes.push_back(setting_.processes[rank]);
    return processes;
}

// Others may see an update, or a notification, before the call returns.
void TargetFibres::before_operation(const Operation& operation) {
    const bool reads = operation.kind == op::OpKind::Get || operation.op == Op::NoOp;
    if (!reads || operation.notification >= 0) job_.release();
}

// What a notified operation orders, this process does not know, and of its own memory it accesses parts by loads and
// stores.
void TargetFibres::on_operation(const Operation& operation, const Access& epoch) {
    const std::lock_guard lock(job_.mutex_);
    const std::uint32_t target = operation.target;
    // The first operation acquires the lock.
    if (lock_all_) job_.order_->acquire_lock(setting_.window, setting_.processes[target], false);
    if (operation.kind != op::OpKind::Put && operation.kind != op::OpKind::Accumulate) results_.insert(target);
    const bool hidden = operation.notification >= 0 || target == setting_.me || !operation.exact ||
                        (epoch.world == World::Lock && setting_.defers_locks);
    if (hidden) return;
    RemoteAccess access;
    access.window = setting_.window;
    access.site = operation.site.value;
    access.known = job_.order_->acquired(setting_.processes[target]);
    access.epoch = epoch.world == World::Pscw ? epoch.exposure : fences_;
    access.target = setting_.processes[target];
    access.world = epoch.world;
    access.store = operation.kind != op::OpKind::Get && operation.op != Op::NoOp;
    const std::vector<Piece> pieces = pieces_of(operation.bytes, 1);
    std::vector<RemoteAccess>& pending = pending_[target];
    if (pieces.size() > kMostPieces || pending.size() >= kMostPending) return;
    for (const Piece& piece : pieces) {
        access.piece = piece;
        RemoteAccess* const before = pending.empty() ? nullptr : &pending.back();
        const bool alike = before != nullptr && before->site == access.site && before->known == access.known &&
                           before->store == access.store && before->epoch == access.epoch &&
                           before->world == access.world;
        if (!alike || (before->piece != piece && !extend(before->piece, piece, 1))) pending.push_back(access);
    }
    // The program may await its result with a call that the checker does not see.
    if (operation.request && !access.store) show(target, true);
}

// Shows what is pending on `target`, or kEveryTarget, before the release that completes it; with `results_only` what
// leaves the target as it is. Returns whether there were results.
bool TargetFibres::show(std::uint32_t target, bool results_only) {
    bool results = false;
    for (auto& [rank, pending] : pending_) {
        if (target != kEveryTarget && target != rank) continue;
        std::vector<RemoteAccess> rest;
        for (RemoteAccess& access : pending)
            if (results_only && access.store) {
                rest.push_back(access);
            } else {
                access.complete = job_.order_->released() + 1;
                job_.order_->show(access);
            }
        pending = std::move(rest);
    }
    if (target == kEveryTarget) {
        results = !results_.empty();
        results_.clear();
    } else {
        results = results_.erase(target) > 0;
    }
    return results;
}

// What the call completes counts as complete from its begin, as its effects may reach others before it returns.
void TargetFibres::before(const Synchronisation& call) {
    const std::lock_guard lock(job_.mutex_);
    if (completes(call.act) || call.act == Act::Free) awaits_results_ = show(call.target, false);
    if (call.act == Act::FlushLocal) awaits_results_ = show(call.target, true);
    if (call.act == Act::Fence || call.act == Act::Free) {
        job_.reach();
        meeting_ = job_.order_->enter(setting_.window);
        return;
    }
    job_.reach();
    if (call.act == Act::Post)
        post_ = job_.order_->post();
    else
        job_.order_->release();
    if (call.act == Act::Unlock)
        job_.order_->release_lock(setting_.window, setting_.processes[call.target], locks_[call.target]);
    if (call.act == Act::UnlockAll)
        for (const std::uint32_t process : setting_.processes)
            job_.order_->release_lock(setting_.window, process, false);
}

void TargetFibres::after(const Synchronisation& call) {
    const std::lock_guard lock(job_.mutex_);
    const auto acquire_lock = [&](std::uint32_t rank) {
        job_.order_->acquire_lock(setting_.window, setting_.processes[rank], locks_[rank]);
        job_.advance();
    };
    // A deferred start waits for the posts in MPI_Win_complete.
    if (call.act == Act::Start) started_ = in_job(call.group);
    if (call.act == Act::Start || call.act == Act::Complete) {
        for (const std::uint32_t target : started_)
            job_.order_->acquire_post(target);
        job_.advance();
    }
    if (call.act == Act::Complete) started_.clear();
    if (call.act == Act::Post) {
        posted_ = in_job(call.group);
        for (const std::uint32_t origin : posted_)
            exposures_[origin].posts.push_back(post_);
    }
    if (call.act == Act::Wait) {
        for (const std::uint32_t origin : posted_)
            exposures_[origin].waited = exposures_[origin].posts.size();
        job_.acquire_now(std::exchange(posted_, {}));
    }
    if (call.act == Act::Lock) {
        locks_[call.target] = call.exclusive;
        acquire_lock(call.target);
    }
    if (call.act == Act::LockAll) {
        lock_all_ = true;
        for (std::uint32_t rank = 0; rank < setting_.processes.size(); ++rank)
            job_.order_->acquire_lock(setting_.window, setting_.processes[rank], false);
        job_.advance();
    }
    // A deferred lock has been acquired now.
    if (call.act == Act::Unlock && setting_.defers_locks) acquire_lock(call.target);
    if (call.act == Act::Unlock) locks_.erase(call.target);
    if (call.act == Act::UnlockAll) lock_all_ = false;
    // A result may tell what another process has done.
    const bool results = std::exchange(awaits_results_, false) && call.act != Act::Fence;
    if (results || call.act == Act::Request || call.act == Act::Sync) job_.acquire_now(setting_.processes);
}

void TargetFibres::on_notification() {
    job_.acquire(setting_.processes);
}

void TargetFibres::meet(bool last) {
    const std::lock_guard lock(job_.mutex_);
    ++fences_;
    ended_ = last;
    job_.order_->leave(setting_.window, meeting_, setting_.processes);
    job_.advance();
}

bool TargetFibres::is_complete(const Shown& shown) const {
    const RemoteAccess& access = shown.access;
    if (ended_) return true;
    if (access.world == World::Fence) return access.epoch < fences_;
    if (access.world == World::Lock) return job_.order_->acquired(shown.origin) >= access.complete;
    const auto found = exposures_.find(shown.origin);
    return found != exposures_.end() && access.epoch <= found->second.waited;
}

void TargetFibres::access_complete() {
    std::erase_if(shown_, [&](const Shown& shown) {
        if (!is_complete(shown)) return false;
        perform(shown);
        return true;
    });
}

void TargetFibres::perform(const Shown& shown) {
    const RemoteAccess& access = shown.access;
    std::uint64_t known = access.known;
    // A deferred start lets the operation be called before the post, which it is behind all the same.
    if (const auto found = exposures_.find(shown.origin); access.world == World::Pscw && found != exposures_.end()) {
        const std::vector<std::uint64_t>& posts = found->second.posts;
        if (access.epoch > 0 && access.epoch <= posts.size()) known = std::max(known, posts[access.epoch - 1]);
    }
    const Piece& piece = access.piece;
    const bool by_address = setting_.base == 0;
    if (!by_address && (piece.lo < 0 || piece.hi() > setting_.bytes)) return;
    std::vector<Bytes> bytes;
    for (std::int64_t i = 0; i < std::min(piece.count, kMostBlocks); ++i) {
        const std::int64_t lo = setting_.base + piece.lo + i * piece.stride;
        bytes.push_back({lo, lo + piece.bytes});
    }
    const std::size_t first = by_address ? 0 : static_cast<std::size_t>(piece.lo / part_);
    const std::size_t last = by_address ? 0 : static_cast<std::size_t>((piece.hi() - 1) / part_);
    JobFibres::Origin& origin = job_.origins_[shown.origin];
    origin.fibre->run([&] {
        // Releases with equal places in the table come together; the last ones fill it.
        const std::uint64_t from =
            std::max(origin.behind, known - std::min(known, std::uint64_t{JobFibres::kReleases}));
        for (std::uint64_t release = from + 1; release <= known; ++release)
            job_.releases_[release % JobFibres::kReleases].pass();
        origin.behind = std::max(origin.behind, known);
        for (std::size_t part = first; part <= last; ++part)
            parts_[part].pass();
        check::access(bytes, access.store, shown.returns_to);
        for (std::size_t part = first; part <= last; ++part)
            parts_[part].reach();
        origin.ended.reach();
    });
}

}  // namespace osc::check
