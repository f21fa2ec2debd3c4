// Loads the network transport when it is first needed.
// Build: osc_core_cold
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "base/beside.h"
#include "base/descriptor.h"
#include "fabric/endpoint.h"

namespace osc::fabric {

namespace {

// The bytes of ofi_rxm's buffers where the user has not set them.
constexpr std::size_t kBufferOfOthers = 16384;

// Sets variables that libfabric reads from the environment, once, at load. The user's values stay. The result is the
// size of ofi_rxm's buffers.
std::size_t set_variables(std::uint32_t processes) {
    const bool late = ::dlopen("libfabric.so.1", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
    // Without this, one of libfabric's libraries replaces the handlers of SIGSEGV, SIGINT and others when it is loaded.
    ::setenv("IPATH_NO_BACKTRACE", "1", 0);
    ::setenv("FI_OFI_RXM_BUFFER_SIZE", std::to_string(late ? kBufferOfOthers : kLargestBuffered).c_str(), 0);
    // One queue of receives for all connections; else each connection of `verbs;ofi_rxm` has one of its own. The
    // completion queue has room for these receives, and for the sends to so many peers; its default size, for 1,024
    // peers, exceeds what small devices have.
    ::setenv("FI_OFI_RXM_USE_SRX", "1", 0);
    ::setenv("FI_OFI_RXM_MSG_RX_SIZE", "512", 0);
    announce_processes(processes);
    const char* const size = std::getenv("FI_OFI_RXM_BUFFER_SIZE");  // null without memory for the variable
    return size != nullptr ? std::strtoull(size, nullptr, 0) : kBufferOfOthers;
}

// A function of libosc_ofi.so; null with the reason in `why`. `buffer`: see set_variables().
void* load(const char* name, const char* folder, std::uint32_t processes, std::size_t& buffer, std::string& why) {
    static const std::size_t size = set_variables(processes);
    buffer = size;
    return base::function_beside("libosc_ofi.so", name, folder, why);
}

}  // namespace

void announce_processes(std::uint32_t processes) {
    const std::uint32_t universe = std::clamp(processes, kSmallestUniverse, kLargestUniverse);
    ::setenv("FI_UNIVERSE_SIZE", std::to_string(universe).c_str(), 0);
}

Endpoint* open(const Wishes& wishes, std::string& why, const char* folder) {
    base::occupy_stdio();  // libfabric opens sockets until the last connection is made
    Wishes all = wishes;
    auto* const function =
        reinterpret_cast<OpenFunction*>(load("osc_ofi_open", folder, wishes.processes, all.buffer, why));
    if (function == nullptr) return nullptr;
    char text[256] = "";
    Endpoint* endpoint = function(&all, text, sizeof text);
    if (endpoint == nullptr) why = text;
    return endpoint;
}

std::map<std::string, std::string> describe(const char* provider, std::string& why, const char* folder) {
    std::size_t buffer = 0;
    std::map<std::string, std::string> found;
    auto* const function = reinterpret_cast<DescribeFunction*>(load("osc_ofi_describe", folder, 0, buffer, why));
    if (function == nullptr) return found;
    char text[2048] = "";
    function(provider, text, sizeof text);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (const std::size_t end = line.find('='); end != std::string::npos)
            found[line.substr(0, end)] = line.substr(end + 1);
    return found;
}

}  // namespace osc::fabric
