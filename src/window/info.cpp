// Info hints: which are known, and the values in use that MPI_Win_get_info reports (MPI 4.1 section 12.2).
// Build: -O2
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/options.h"
#include "host/host.h"
#include "window/create.h"
#include "window/window.h"

namespace osc {
namespace {

bool is_bool(std::string_view value) {
    return value == "true" || value == "false";
}

bool is_ops(std::string_view value) {
    return value == "same_op" || value == "same_op_no_op";
}

bool is_order(std::string_view value) {
    for (std::string_view rest = value; !rest.empty();)
        if (const std::string_view word = base::next_word(rest, ',');
            word != "rar" && word != "raw" && word != "war" && word != "waw")
            return value == "none";
    return !value.empty() && value.back() != ',';
}

// The alignment that a value names: a power of two up to 1 TiB, as a decimal number. Else 0.
std::size_t alignment_in(const std::string& value) {
    if (value.empty() || value.find_first_not_of("0123456789") != value.npos) return 0;
    const unsigned long long number = std::strtoull(value.c_str(), nullptr, 10);
    return number <= (1ull << 40) && std::has_single_bit(number) ? number : 0;
}

bool is_alignment(std::string_view value) {
    return alignment_in(std::string(value)) != 0;
}

struct Key {
    const char* name;
    const char* fallback;
    bool (*accepts)(std::string_view value);  // null: no value, because the library chooses
};

const Key kKeys[] = {
    {"no_locks", "false", is_bool},
    {"accumulate_ordering", "rar,raw,war,waw", is_order},
    {"accumulate_ops", "same_op_no_op", is_ops},
    {"mpi_accumulate_granularity", "0", nullptr},  // the size of stripes is fixed
    {"same_size", "false", is_bool},
    {"same_disp_unit", "false", is_bool},
};
const Key kAlignment = {"mpi_minimum_memory_alignment", "64", is_alignment};
const Key kNoncontig = {"alloc_shared_noncontig", "false", is_bool};

// Read at creation only. Indexed by strategy::SyncKind.
constexpr const char* kStrategyKeys[] = {"osc_fence", "osc_pscw", "osc_lock"};

void take(const Key& key, MPI_Info info, const InfoInUse& before, InfoInUse& now) {
    std::string value = key.fallback;
    for (const auto& [name, old] : before)
        if (name == key.name) value = old;
    if (const auto given = host::info_value(info, key.name); given && key.accepts != nullptr && key.accepts(*given))
        value = *given;
    now.emplace_back(key.name, std::move(value));
}

}  // namespace

std::size_t wanted_alignment(MPI_Info info) {
    return std::max<std::size_t>(64, alignment_in(host::info_value(info, kAlignment.name).value_or("")));
}

InfoInUse read_info(MPI_Info info, int flavor, const InfoInUse& before) {
    InfoInUse now;
    now.reserve(std::size(kKeys) + 8);  // and the alignment, and those of libosc
    for (const Key& key : kKeys)
        take(key, info, before, now);
    // Only creation reads these two keys: later values have no effect and are not reported.
    const MPI_Info creation = before.empty() ? info : MPI_INFO_NULL;
    if (flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED) take(kAlignment, creation, before, now);
    if (flavor == MPI_WIN_FLAVOR_SHARED) take(kNoncontig, creation, before, now);
    for (const auto& entry : before)
        if (entry.first.starts_with("osc_")) now.push_back(entry);  // libosc's own: read at creation
    return now;
}

int wanted_strategy(strategy::SyncKind kind, MPI_Info info) {
    const base::Values& options = base::values();
    const std::string* const defaults[] = {&options.fence, &options.pscw, &options.lock};
    const auto given = host::info_value(info, kStrategyKeys[static_cast<std::size_t>(kind)]);
    const int by_key = strategy::find(kind, given.value_or("").c_str());
    return by_key >= 0 ? by_key : std::max(strategy::find(kind, defaults[static_cast<std::size_t>(kind)]->c_str()), 0);
}

bool wants_two_level(MPI_Info info) {
    const auto given = host::info_value(info, "osc_lock_scheme");
    if (given == "queued" || given == "two_level") return given == "two_level";
    return base::values().lock_scheme == "two_level";
}

AtomicsWish wanted_atomics(MPI_Info info) {
    std::string wish = host::info_value(info, "osc_atomics").value_or("");
    if (wish != "auto" && wish != "messages" && wish != "provider") wish = base::values().atomics;
    return wish == "provider" ? AtomicsWish::Provider : wish == "messages" ? AtomicsWish::Messages : AtomicsWish::Auto;
}

bool promises_ops(MPI_Info info) {
    return is_ops(host::info_value(info, "accumulate_ops").value_or(""));
}

std::string wanted_adoption(MPI_Info info) {
    const std::string given(base::spelled("OSC_ADOPT", host::info_value(info, "osc_adopt").value_or("")));
    return given == "auto" || given == "always" || given == "off" ? given : base::values().adopt;
}

Window::StrategyTexts Window::strategy_texts() const {
    const auto text = [&](const auto& chosen) {
        const std::string how = chosen->explain(core);
        return how.empty() ? chosen->name() : chosen->name() + (" (" + how + ')');
    };
    return {text(core.strategies.fence), text(core.strategies.pscw), text(core.strategies.lock)};
}

void Window::choose_strategies(MPI_Info hints, int fences) {
    const int pscws = wanted_strategy(strategy::SyncKind::Pscw, hints);
    const int locks = wanted_strategy(strategy::SyncKind::Lock, hints);
    core.strategies.fence = strategy::make_fence(fences);
    core.strategies.pscw = strategy::make_pscw(pscws);
    core.strategies.lock = strategy::make_lock(locks);
    info.emplace_back(kStrategyKeys[0], core.strategies.fence->name());
    info.emplace_back(kStrategyKeys[1], core.strategies.pscw->name());
    info.emplace_back(kStrategyKeys[2], core.strategies.lock->name());
    // In a dynamic window a deferred fence costs more than it saves: the origin may have to look up a region that the
    // target has not attached yet.
    if (fences == 0 && !core.can_defer)
        core.strategies.fence = strategy::make_fence(strategy::find(strategy::SyncKind::Fence, "immediate"));
}

void Window::say_strategies() const {
    if (core.me != 0 || !base::verbose("strategy")) return;
    const bool spans = core.remote_sync != nullptr;
    const StrategyTexts texts = strategy_texts();
    base::say("window %#llx of %u processes on %s: fences %s, start and complete %s, locks %s", abi::printable(handle),
              core.size, spans ? "several nodes" : "one node", texts.fence.c_str(), texts.pscw.c_str(),
              texts.lock.c_str());
    if (const shm::ControlBlock& mine = core.mine();
        mine.memory == shm::Memory::Private && mine.offset != shm::kNoOffset)
        base::say("window %#llx: memory that is not shared is loaded and stored by XPMEM", abi::printable(handle));
    if (spans) base::say("window %#llx: %s", abi::printable(handle), sync::text_of(core.costs).c_str());
}

}  // namespace osc
