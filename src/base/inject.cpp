// The choice of the fault, and the actions that it delays. Only in builds with OSC_FAULTS.
#include "base/inject.h"

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace osc::base {
namespace {

struct Entry {
    const char* name;
    Injected fault;
};

constexpr Entry entries[] = {
#define OSC_FAULT_ENTRY(name, what) {#name, Injected::name},
#include "base/faults.def"
#undef OSC_FAULT_ENTRY
};

[[gnu::constructor]] void choose() {
    const char* wanted = std::getenv("OSC_TEST_FAULT");
    if (wanted == nullptr || *wanted == '\0') return;
    for (const Entry& entry : entries)
        if (std::strcmp(entry.name, wanted) == 0) g_injected = entry.fault;
    if (g_injected != Injected::None) return;
    say("OSC_TEST_FAULT=%s: no such fault", wanted);
    std::abort();
}

using Tasks = std::vector<std::function<void()>>;

Tasks& kept() {
    static Tasks all;
    return all;
}

void run(Tasks& tasks) {
    Tasks now;
    now.swap(tasks);
    for (const std::function<void()>& task : now)
        task();
}

}  // namespace

constinit Injected g_injected = Injected::None;

void postpone(std::function<void()> what, bool overtaken) {
    if (overtaken && !kept().empty()) {
        what();
        run(kept());
    } else {
        kept().push_back(std::move(what));
    }
}

void postpone_put(void* target, const void* origin, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(origin);
    postpone(
        [target, data = std::vector<std::byte>(from, from + bytes)] { std::memcpy(target, data.data(), data.size()); });
}

void synchronise(const char* function) {
    static Tasks older;
    const std::string_view name(function);
    if (g_injected == Injected::late_put) {  // one synchronisation too late
        run(older);
        older.swap(kept());
    } else if (g_injected != Injected::get_before_put || !name.starts_with("Win_flush")) {
        run(kept());
    }
}

}  // namespace osc::base
