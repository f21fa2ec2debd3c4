// Loads the network transport when it is first needed.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "transport/ofi/endpoint.h"

namespace osc::ofi {

namespace {

// What libfabric takes from the environment only, and once. What the user has set stays.
void set_variables() {
    // One of its libraries takes over the handlers of SIGSEGV, SIGINT and others when it is loaded, but for this.
    ::setenv("IPATH_NO_BACKTRACE", "1", 0);
    // Buffers of `...;ofi_rxm` that hold a message of ours: longer ones go in pieces, at half the speed. It allots
    // 1,024 of them at a time, and would keep 4,096 ready for what comes: 140 MB.
    ::setenv("FI_OFI_RXM_BUFFER_SIZE", std::to_string(kLargestMessage).c_str(), 0);
    ::setenv("FI_OFI_RXM_MSG_RX_SIZE", "512", 0);
}

}  // namespace

Endpoint* open(const Wishes& wishes, std::string& why) {
    Dl_info here{};
    if (::dladdr(reinterpret_cast<const void*>(&open), &here) == 0 || here.dli_fname == nullptr) {
        why = "cannot find out where libosc lies";
        return nullptr;
    }
    const std::filesystem::path library = std::filesystem::path(here.dli_fname).parent_path() / "libosc_ofi.so";
    set_variables();
    void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) {
        why = ::dlerror();
        return nullptr;
    }
    auto* function = reinterpret_cast<OpenFunction*>(::dlsym(loaded, "osc_ofi_open"));
    if (function == nullptr) {
        why = library.string() + " is not libosc's";
        return nullptr;
    }
    char text[256] = "";
    Endpoint* endpoint = function(&wishes, text, sizeof text);
    if (endpoint == nullptr) why = text;
    return endpoint;  // the library stays loaded: providers have threads and handlers of their own
}

}  // namespace osc::ofi
