// The settings of libosc_fake_libfabric.so, from the environment.
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "fake_libfabric/decorator.h"

namespace osc::fake_libfabric {
namespace {

// The calls that can fail, in the order in which an endpoint opens; `mr` and `insert` come later too.
constexpr const char* kSteps[] = {"getinfo", "fabric", "domain", "av", "cq",   "endpoint", "bind",
                                  "enable",  "name",   "wait",   "mr", "recv", "insert"};

}  // namespace

void stop(const char* what) {
    std::fprintf(stderr, "fake libfabric: %s\n", what);
    std::abort();
}

std::string setting(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

bool is_here() {
    const std::string rank = setting("FAKE_FI_RANK");
    return rank.empty() || rank == setting("PMI_RANK") || rank == setting("OMPI_COMM_WORLD_RANK");
}

bool fails(const char* step) {
    static const std::string failing = is_here() ? setting("FAKE_FI_FAIL") : "";
    static const long after = std::atol(setting("FAKE_FI_AFTER").c_str());
    static std::atomic<long> calls{0};
    static const bool known = [] {
        for (const char* each : kSteps)
            if (failing == each) return true;
        return failing.empty();
    }();
    if (!known) stop("FAKE_FI_FAIL names no step");
    static const bool once = !setting("FAKE_FI_ONCE").empty();
    if (failing != step) return false;
    const long call = calls.fetch_add(1, std::memory_order_relaxed);
    return once ? call == after : call >= after;
}

int wanted_modes() {
    static const int modes = [] {
        const std::string text = "," + setting("FAKE_FI_MODES") + ",";
        const auto has = [&](const char* name) {
            return text.find("," + std::string(name) + ",") != std::string::npos;
        };
        return (has("local") ? FI_MR_LOCAL : 0) | (has("prov_key") ? FI_MR_PROV_KEY : 0) |
               (has("endpoint") ? FI_MR_ENDPOINT : 0) | (has("virt_addr") ? FI_MR_VIRT_ADDR : 0) |
               (has("allocated") ? FI_MR_ALLOCATED : 0);
    }();
    return modes;
}

}  // namespace osc::fake_libfabric
