// Keeps the open epochs and passes events to the parts.
// Build: osc_verify_core
#include "plugins/verify/ledger.h"

namespace osc::check {

void Ledger::before_operation(const Operation& operation) {
    if (target_fibres_ != nullptr) target_fibres_->before_operation(operation);
}

void Ledger::on_operation(Operation& operation) {
    const std::lock_guard lock(mutex_);
    operation.number = ++operations_;
    local_buffers_.on_operation(operation);
    if (local_fibres_ != nullptr) local_fibres_->on_operation(operation);
    if (target_fibres_ != nullptr) target_fibres_->on_operation(operation, races_->epoch_at(operation.target));
    if (races_ != nullptr) races_->on_operation(operation);
}

void Ledger::before(const Synchronisation& call) {
    const std::lock_guard lock(mutex_);
    local_buffers_.before(call);
    if (local_fibres_ != nullptr) local_fibres_->before(call);
    if (target_fibres_ != nullptr) target_fibres_->before(call);
    if (races_ != nullptr) races_->before(call);
}

void Ledger::after(const Synchronisation& call) {
    const std::lock_guard lock(mutex_);
    if (target_fibres_ != nullptr) target_fibres_->after(call);
    if (races_ != nullptr) races_->after(call);
    const Earlier opened{call.call, call.site};
    if (call.act == Act::Fence || call.act == Act::Start || call.act == Act::LockAll) {
        access_ = opened;
        is_fence_ = call.act == Act::Fence;
    }
    if (call.act == Act::Complete || call.act == Act::UnlockAll) access_ = {};
    if (call.act == Act::Post) exposure_ = opened;
    if (call.act == Act::Wait) exposure_ = {};
    if (call.act == Act::Lock) locks_[call.target] = opened;
    if (call.act == Act::Unlock) locks_.erase(call.target);
}

void Ledger::compare(bool last) {
    if (races() == nullptr) return;
    const bool met = races_->compare();
    const std::lock_guard lock(mutex_);
    if (!met) target_fibres_.reset();
    if (target_fibres_ != nullptr) target_fibres_->meet(last);
}

void Ledger::on_notification(std::uint32_t counter, std::uint64_t value, bool resets) {
    if (races() != nullptr) races_->on_notification(counter, value, resets);
    if (target_fibres_ != nullptr) target_fibres_->on_notification();
}

void Ledger::report_with_epochs(Rule rule, Line line) const {
    std::vector<Line> lines = open_epochs();
    lines.insert(lines.begin(), std::move(line));
    report(rule, std::move(lines));
}

std::vector<Line> Ledger::open_epochs() const {
    constexpr std::size_t kMostLocks = 3;
    const std::lock_guard lock(mutex_);
    std::vector<Line> lines;
    if (access_.call != nullptr)
        lines.push_back({std::string(access_.call) + (is_fence_ ? " was the last one" : " has opened the access epoch"),
                         access_.site});
    std::size_t locks = 0;
    for (const auto& [target, opened] : locks_) {
        if (locks++ == kMostLocks) break;
        lines.push_back({std::string(opened.call) + " has locked rank " + std::to_string(target), opened.site});
    }
    if (exposure_.call != nullptr)
        lines.push_back({std::string(exposure_.call) + " has opened the exposure epoch", exposure_.site});
    if (lines.empty()) lines.push_back({"no epoch is open", {}});
    return lines;
}

bool Ledger::has_open_epoch() const {
    const std::lock_guard lock(mutex_);
    return !locks_.empty() || exposure_.call != nullptr || (access_.call != nullptr && !is_fence_);
}

}  // namespace osc::check
