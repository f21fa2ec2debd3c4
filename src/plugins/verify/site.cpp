// Finds the file of a return address, and the frames above a language binding.
#include "plugins/verify/site.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>
#include <unwind.h>

#include <mutex>
#include <string_view>
#include <unordered_map>

#include "base/hash.h"
#include "plugins/verify/symbols.h"

namespace osc::check {

[[gnu::tls_model("initial-exec")]] constinit thread_local Site t_call_site;

namespace {

constexpr int kFileShift = 48;  // a site is 16 bits of the file's hash above 48 bits of offset
constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kFileShift) - 1;
constexpr int kMostFrames = 64;

std::uint64_t hash_of(std::string_view text) {
    const std::uint64_t hash = base::hash_of(text);
    return hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48;
}

std::string path_of_program() {
    char path[4096];
    const ssize_t length = ::readlink("/proc/thread-self/exe", path, sizeof path);
    return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

// Whether a file is libosc, the host MPI or a binding to it: its calls are made for the program.
bool is_mpi(std::string_view path) {
    const std::string_view name = base_name(path);
    for (const std::string_view start : {"libosc", "libmpi", "libpmpi", "libfmpich", "libcaf"})
        if (name.starts_with(start)) return true;
    return path.find("/mpi4py/") != std::string_view::npos;
}

// Whether a file is a library of the system, or one below MPI: it accesses memory for its caller.
bool is_system(std::string_view path) {
    const std::string_view name = base_name(path);
    for (const std::string_view start : {"libc.so", "libc-", "libm.so", "libm-", "libmvec", "ld-linux", "libpthread",
                                         "libstdc++", "libgcc_s", "libgfortran", "libuc", "libfabric", "linux-vdso"})
        if (name.starts_with(start)) return true;
    return false;
}

struct Known {
    Site site;
    bool inside_mpi = false;
    bool inside_system = false;
};

// Never destroyed: MPI may be used by exit handlers.
struct Tables {
    std::mutex mutex;
    std::unordered_map<const void*, Known> addresses;
    std::unordered_map<std::uint64_t, LoadedFile> files;  // by the upper bits of a site
};
Tables& tables() {
    static auto* made = new Tables;
    return *made;
}

Known look_up(const void* address) {
    Tables& known = tables();
    const std::lock_guard lock(known.mutex);
    if (const auto found = known.addresses.find(address); found != known.addresses.end()) return found->second;
    Known result;
    Dl_info symbol{};
    void* extra = nullptr;
    if (::dladdr1(address, &symbol, &extra, RTLD_DL_LINKMAP) != 0 && extra != nullptr) {
        const auto* const map = static_cast<const link_map*>(extra);
        const std::string path = *map->l_name != '\0' ? std::string(map->l_name) : path_of_program();
        const std::uint64_t file = hash_of(base_name(path)) >> 1 & 0xffff;
        known.files.try_emplace(file, LoadedFile{path, map->l_addr});
        result.site.value =
            file << kFileShift | ((reinterpret_cast<std::uintptr_t>(address) - map->l_addr) & kOffsetMask);
        result.inside_mpi = is_mpi(path);
        result.inside_system = is_system(path);
    }
    known.addresses.emplace(address, result);
    return result;
}

struct Walk {
    Site found;
    int frames = 0;
    bool entered = false;  // a frame of MPI has been met
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* data) {
    auto& walk = *static_cast<Walk*>(data);
    const auto* const address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
    if (address == nullptr || ++walk.frames > kMostFrames) return _URC_END_OF_STACK;
    const Known frame = look_up(address);
    if (frame.inside_mpi) {
        walk.entered = true;
        return _URC_NO_REASON;
    }
    if (!walk.entered || frame.site == Site{}) return _URC_NO_REASON;
    walk.found = frame.site;
    return _URC_END_OF_STACK;
}

}  // namespace

Site site_of(const void* returns_to) {
    const Known direct = look_up(returns_to);
    if (!direct.inside_mpi) return direct.site;
    Walk walk;
    ::_Unwind_Backtrace(&visit, &walk);
    return walk.found != Site{} ? walk.found : direct.site;
}

AccessSite site_of_access(std::span<const void* const> frames) {
    const bool by_library = !frames.empty() && look_up(frames.front()).inside_system;
    for (const void* const frame : frames)
        if (const Known known = look_up(frame); !known.inside_mpi && !known.inside_system)
            return {known.site, by_library};
    return {};
}

std::string text_of(Site site) {
    if (site == Site{}) return "an unknown place";
    LoadedFile file;
    {
        Tables& known = tables();
        const std::lock_guard lock(known.mutex);
        const auto found = known.files.find(site.value >> kFileShift);
        if (found == known.files.end()) return "a file that this process has not loaded";
        file = found->second;
    }
    return describe(file, site.value & kOffsetMask);
}

}  // namespace osc::check
