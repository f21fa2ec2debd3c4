// The runtime finds the races, and reports them.
// Build: osc_verify_core
#include "plugins/verify/local_fibres.h"

namespace osc::check {
namespace {

// The runtime has room for some thousand threads and fibres. Operations of further groups have none.
constexpr std::size_t kMostGroups = 256;

}  // namespace

// Null: there are too many.
LocalFibres::Group* LocalFibres::group_of(const Operation& operation) {
    const auto [place, fresh] = groups_.try_emplace({operation.target, operation.request ? operation.number : 0});
    if (!fresh) return place->second.get();
    if (!spare_.empty()) {
        place->second = std::move(spare_.back());
        spare_.pop_back();
    } else if (groups_.size() <= kMostGroups) {
        place->second = std::make_unique<Group>();
    } else {
        groups_.erase(place);
        return nullptr;
    }
    return place->second.get();
}

void LocalFibres::on_operation(const Operation& operation) {
    if (!operation.exact_here || (operation.reads_here.empty() && operation.writes_here.empty())) return;
    const void* const returns_to = address_of(operation.site);  // it takes a lock, which orders nothing
    const HeededScope heeded;
    Group* const group = group_of(operation);
    if (group == nullptr) return;
    group->began.reach();
    group->fibre.run([&] {
        group->began.pass();
        access(operation.reads_here, false, returns_to);
        access(operation.writes_here, true, returns_to);
        group->ended.reach();
    });
}

void LocalFibres::before(const Synchronisation& call) {
    if (!completes_here(call.act)) return;
    const bool all = call.target == kEveryTarget;
    const bool one = call.act == Act::Request;
    const auto first = groups_.lower_bound({all ? 0 : call.target, call.operation});
    const auto last = groups_.upper_bound({call.target, one ? call.operation : UINT64_MAX});
    const HeededScope heeded;
    for (auto at = first; at != last; ++at) {
        at->second->ended.pass();
        spare_.push_back(std::move(at->second));
    }
    groups_.erase(first, last);
}

}  // namespace osc::check
