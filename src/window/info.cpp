// Info hints: which are known, and the values in use that MPI_Win_get_info reports (MPI 4.1 section 12.2).
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

#include "config/options.h"
#include "host/host.h"
#include "window/create.h"

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

// Of windows that span nodes; read at creation. By FenceMode.
constexpr const char* kFence = "osc_fence";
constexpr std::string_view kFenceModes[] = {"auto", "immediate", "deferred"};

FenceMode fence_mode(std::string_view name) {
    const auto* found = std::find(std::begin(kFenceModes), std::end(kFenceModes), name);
    return found != std::end(kFenceModes) ? static_cast<FenceMode>(found - kFenceModes) : FenceMode::Auto;
}

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

InfoInUse read_info(MPI_Info info, int flavor, const InfoInUse& before) {
    InfoInUse now;
    for (const Key& key : kKeys)
        take(key, info, before, now);
    // The two that only creation reads: later values change nothing and are not reported as if they did.
    const MPI_Info creation = before.empty() ? info : MPI_INFO_NULL;
    if (flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED) take(kAlignment, creation, before, now);
    if (flavor == MPI_WIN_FLAVOR_SHARED) take(kNoncontig, creation, before, now);
    for (const auto& entry : before)
        if (entry.first == kFence) now.push_back(entry);
    return now;
}

FenceMode wanted_fence(MPI_Info info) {
    const auto given = value_of(info, kFence);
    const bool known =
        given && std::find(std::begin(kFenceModes), std::end(kFenceModes), *given) != std::end(kFenceModes);
    return fence_mode(known ? *given : config::values().fence);
}

void note_fence(InfoInUse& known, FenceMode mode) {
    known.emplace_back(kFence, kFenceModes[static_cast<std::size_t>(mode)]);
}

}  // namespace osc
