#include "base/beside.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace osc::base {
namespace {

// The path of the library that has this code, without symbolic links; null if it cannot be found out. Never freed.
const char* own_path() {
    static const char* const kPath = [] {
        Dl_info here{};
        const bool known = ::dladdr(reinterpret_cast<const void*>(&function_beside), &here) != 0;
        return known && here.dli_fname != nullptr ? ::realpath(here.dli_fname, nullptr) : nullptr;
    }();
    return kPath;
}

}  // namespace

void find_own_folder() {
    static_cast<void>(own_path());
}

void* library_beside(const char* file, const char* folder, std::string& why) {
    if (folder == nullptr && own_path() == nullptr) {
        why = "cannot find out where libosc lies";
        return nullptr;
    }
    const std::filesystem::path beside =
        folder != nullptr ? std::filesystem::path(folder) : std::filesystem::path(own_path()).parent_path();
    void* const loaded = ::dlopen((beside / file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) why = ::dlerror();
    return loaded;
}

void* function_beside(const char* file, const char* name, const char* folder, std::string& why) {
    void* const loaded = library_beside(file, folder, why);
    void* const function = loaded != nullptr ? ::dlsym(loaded, name) : nullptr;
    if (loaded != nullptr && function == nullptr) why = std::string(file) + " is not libosc's";
    return function;
}

}  // namespace osc::base
