// The choice of the fault, and the actions that it delays.
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace osc::faults {
namespace {

struct Entry {
    const char* name;
    Name fault;
};

constexpr Entry entries[] = {
#define OSC_FAULT_ENTRY(name) {#name, Name::name},
#include "faults.def"
#undef OSC_FAULT_ENTRY
};

[[gnu::constructor]] void choose() {
    const char* wanted = std::getenv("OSC_TEST_FAULT");
    if (wanted == nullptr || *wanted == '\0') return;
    for (const Entry& entry : entries)
        if (std::strcmp(entry.name, wanted) == 0) g_chosen = entry.fault;
    if (g_chosen != Name::None) return;
    base::say("OSC_TEST_FAULT=%s: no such fault", wanted);
    std::abort();
}

using Actions = std::vector<std::function<void()>>;

Actions& kept() {
    static Actions all;
    return all;
}

void run(Actions& actions) {
    Actions now;
    now.swap(actions);
    for (const std::function<void()>& action : now)
        action();
}

}  // namespace

constinit Name g_chosen = Name::None;

std::vector<std::byte> bytes(const void* data, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(data);
    return {from, from + count};
}

void postpone(std::function<void()> action, bool overtaken) {
    if (overtaken && !kept().empty()) {
        action();
        run(kept());
    } else {
        kept().push_back(std::move(action));
    }
}

void postpone_put(void* target, const void* origin, std::size_t count) {
    postpone([target, data = bytes(origin, count)] { std::memcpy(target, data.data(), data.size()); });
}

void synchronise(const char* function) {
    static Actions older;
    const std::string_view name(function);
    if (g_chosen == Name::late_put) {  // one synchronisation too late
        run(older);
        older.swap(kept());
    } else if (g_chosen != Name::get_before_put || !name.starts_with("Win_flush")) {
        run(kept());
    }
}

}  // namespace osc::faults
