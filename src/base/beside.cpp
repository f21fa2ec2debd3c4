#include "base/beside.h"

#include <dlfcn.h>

#include <filesystem>

namespace osc::base {

void* function_beside(const char* file, const char* name, const char* folder, std::string& why) {
    Dl_info here{};
    if (folder == nullptr &&
        (::dladdr(reinterpret_cast<const void*>(&function_beside), &here) == 0 || here.dli_fname == nullptr)) {
        why = "cannot find out where libosc lies";
        return nullptr;
    }
    const std::filesystem::path beside =
        folder != nullptr ? std::filesystem::path(folder) : std::filesystem::path(here.dli_fname).parent_path();
    const std::filesystem::path library = beside / file;
    void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) {
        why = ::dlerror();
        return nullptr;
    }
    void* const function = ::dlsym(loaded, name);
    if (function == nullptr) why = library.string() + " is not libosc's";
    return function;
}

}  // namespace osc::base
