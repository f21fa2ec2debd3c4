// Info hints: which are known, and the values in use that MPI_Win_get_info reports (MPI 4.1 section 12.2).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

#include "config/options.h"
#include "diag/log.h"
#include "host/host.h"
#include "window/create.h"
#include "window/window.h"

namespace osc {
namespace {

struct Key {
    const char* name;
    const char* fallback;
    const char* allowed;  // "bool", "ops", "order", "number": what a value must look like to be taken; "fixed": none is
};

const Key kKeys[] = {
    {"no_locks", "false", "bool"},
    {"accumulate_ordering", "rar,raw,war,waw", "order"},
    {"accumulate_ops", "same_op_no_op", "ops"},
    {"mpi_accumulate_granularity", "0", "fixed"},  // the library's choice: its stripes are what they are
    {"same_size", "false", "bool"},
    {"same_disp_unit", "false", "bool"},
};
const Key kAlignment = {"mpi_minimum_memory_alignment", "64", "number"};
const Key kNoncontig = {"alloc_shared_noncontig", "false", "bool"};

bool in_order_list(const char* value) {
    if (std::strcmp(value, "none") == 0) return true;
    for (const char* word = value;; word += 4) {
        if (std::strncmp(word, "rar", 3) != 0 && std::strncmp(word, "raw", 3) != 0 &&
            std::strncmp(word, "war", 3) != 0 && std::strncmp(word, "waw", 3) != 0)
            return false;
        if (word[3] != ',') return word[3] == '\0';
    }
}

// Read at creation. By Kind, and by Mode.
constexpr const char* kModeKeys[] = {"osc_fence", "osc_pscw", "osc_lock"};
constexpr std::string_view kModes[] = {"auto", "immediate", "deferred"};

bool acceptable(const Key& key, const char* value) {
    if (std::strcmp(key.allowed, "bool") == 0)
        return std::strcmp(value, "true") == 0 || std::strcmp(value, "false") == 0;
    if (std::strcmp(key.allowed, "ops") == 0)
        return std::strcmp(value, "same_op") == 0 || std::strcmp(value, "same_op_no_op") == 0;
    if (std::strcmp(key.allowed, "order") == 0) return in_order_list(value);
    if (std::strcmp(key.allowed, "fixed") == 0) return false;
    return *value != '\0' && std::strspn(value, "0123456789") == std::strlen(value);
}

std::optional<std::string> value_of(MPI_Info info, const char* key) {
    char text[256];
    int found = 0;
    if (info != MPI_INFO_NULL) host::real().Info_get(info, key, sizeof text - 1, text, &found);
    return found ? std::optional<std::string>(text) : std::nullopt;
}

void take(const Key& key, MPI_Info info, const InfoInUse& before, InfoInUse& now) {
    std::string value = key.fallback;
    for (const auto& [name, old] : before)
        if (name == key.name) value = old;
    if (const auto given = value_of(info, key.name); given && acceptable(key, given->c_str())) value = *given;
    now.emplace_back(key.name, value);
}

}  // namespace

std::size_t wanted_alignment(MPI_Info info) {
    char text[64];
    int found = 0;
    if (info == MPI_INFO_NULL) return 64;
    char key[] = "mpi_minimum_memory_alignment";
    host::real().Info_get(info, key, sizeof text - 1, text, &found);
    if (!found) return 64;
    const unsigned long long value = std::strtoull(text, nullptr, 10);
    if (value == 0 || (value & (value - 1)) != 0 || value > (1ull << 40)) return 64;
    return std::max<std::size_t>(64, value);
}

InfoInUse read_info(MPI_Info info, int flavor, const InfoInUse& before) {
    InfoInUse now;
    for (const Key& key : kKeys)
        take(key, info, before, now);
    // The two that only creation reads: later values change nothing and are not reported as if they did.
    const MPI_Info creation = before.empty() ? info : MPI_INFO_NULL;
    if (flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED) take(kAlignment, creation, before, now);
    if (flavor == MPI_WIN_FLAVOR_SHARED) take(kNoncontig, creation, before, now);
    for (const auto& entry : before)
        if (entry.first.starts_with("osc_")) now.push_back(entry);  // libosc's own: read at creation
    return now;
}

Mode wanted_mode(Kind kind, MPI_Info info) {
    const config::Values& options = config::values();
    const std::string* const defaults[] = {&options.fence, &options.pscw, &options.lock};
    const auto given = value_of(info, kModeKeys[static_cast<std::size_t>(kind)]);
    for (const std::string& name : {given.value_or(""), *defaults[static_cast<std::size_t>(kind)]}) {
        const auto* found = std::find(std::begin(kModes), std::end(kModes), name);
        if (found != std::end(kModes)) return static_cast<Mode>(found - kModes);
    }
    return Mode::Auto;
}

bool wants_two_level(MPI_Info info) {
    const auto given = value_of(info, "osc_lock_scheme");
    if (given == "queued" || given == "two_level") return given == "two_level";
    return config::values().lock_scheme == "two_level";
}

void note_mode(InfoInUse& known, Kind kind, Mode mode) {
    known.emplace_back(kModeKeys[static_cast<std::size_t>(kind)], kModes[static_cast<std::size_t>(mode)]);
}

void Window::choose_modes(MPI_Info hints, Mode fences) {
    fence_mode = fences;
    pscw_mode = wanted_mode(Kind::Pscw, hints);
    lock_mode = wanted_mode(Kind::Lock, hints);
    note_mode(info, Kind::Fence, fence_mode);
    note_mode(info, Kind::Pscw, pscw_mode);
    note_mode(info, Kind::Lock, lock_mode);
    // A look-up of regions that may not be there yet costs more than the replies that are not awaited.
    if (fence_mode == Mode::Auto && !puts_off()) fence_mode = Mode::Immediate;
    if (me != 0 || !config::verbose("strategy")) return;
    const bool far = far_sync != nullptr;
    const auto told = [](Mode mode, const char* chosen) {
        return mode == Mode::Auto ? chosen : kModes[static_cast<std::size_t>(mode)].data();
    };
    diag::say("window 0x%x of %u processes on %s: fences %s, start and complete %s, locks %s",
              static_cast<unsigned>(handle), size, far ? "several nodes" : "one node",
              told(fence_mode, far ? "deferred (auto, until an epoch would have been faster without)"
                                   : "immediate (auto: by load and store)"),
              told(pscw_mode, "with the first operation to each target (auto)"),
              two_level != nullptr
                  ? "two-level"
                  : told(lock_mode, far ? "immediate on this node, deferred to others (auto: one message)"
                                        : "immediate (auto: by load and store)"));
    if (far) diag::say("window 0x%x: %s", static_cast<unsigned>(handle), sync::text_of(costs).c_str());
}

}  // namespace osc
