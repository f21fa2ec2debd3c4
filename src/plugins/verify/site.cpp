// Finds the file of a return address, and the frames above a language binding; and its line by addr2line, which reads
// debug information: the preloaded library has no parser of its own. The child process is this process's alone, and is
// awaited by its number.
// Build: osc_verify_core
#include "plugins/verify/site.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"

extern "C" char** environ;

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

bool starts_with(std::string_view name, std::initializer_list<std::string_view> starts) {
    return std::ranges::any_of(starts, [&](std::string_view start) { return name.starts_with(start); });
}

// Whether a file is libosc, the host MPI or a binding to it: its calls are made for the program.
bool is_mpi(std::string_view path) {
    return starts_with(base_name(path), {"libosc", "libmpi", "libpmpi", "libfmpich", "libcaf"}) ||
           path.find("/mpi4py/") != std::string_view::npos;
}

// Whether a file is a library of the system, or one below MPI: it accesses memory for its caller.
bool is_system(std::string_view path) {
    return starts_with(base_name(path), {"libc.so", "libc-", "libm.so", "libm-", "libmvec", "ld-linux", "libpthread",
                                         "libstdc++", "libgcc_s", "libgfortran", "libuc", "libfabric", "linux-vdso"});
}

// A file that the process has loaded, and what the loader added to its addresses.
struct LoadedFile {
    std::string path;
    std::uintptr_t base = 0;
};

constexpr std::int64_t kLimit = 30'000'000'000;  // ns that the tool may take; a loaded machine is slow
constexpr std::size_t kMostText = 64 * 1024;

std::string hexadecimal(std::uint64_t number) {
    return base::format("0x%llx", static_cast<unsigned long long>(number));
}

// The environment without what would load libosc, or another tool, into the child.
std::vector<char*> plain_environment() {
    std::vector<char*> kept;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
        if (std::strncmp(*entry, "LD_PRELOAD=", 11) != 0) kept.push_back(*entry);
    kept.push_back(nullptr);
    return kept;
}

// Reads until the end, or the limit; false at the limit.
bool read_all(int file, std::string& text) {
    const std::int64_t until = now_ns() + kLimit;
    std::array<char, 4096> piece{};
    for (;;) {
        pollfd wait{file, POLLIN, 0};
        const std::int64_t left = (until - now_ns()) / 1'000'000;
        if (left <= 0) return false;
        const int ready = ::poll(&wait, 1, static_cast<int>(left));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        const ssize_t got = ::read(file, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        if (text.size() < kMostText) text.append(piece.data(), static_cast<std::size_t>(got));
    }
}

// What the tool prints; empty if it is not installed or fails.
std::string output_of(const std::vector<std::string>& words) {
    int pipes[2];
    if (::pipe2(pipes, O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<char*> environment = plain_environment();
    pid_t child = -1;
    const int error =
        ::posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(pipes[1]);
    std::string text;
    if (error == 0) {
        if (!read_all(pipes[0], text)) {
            ::kill(child, SIGKILL);
            text.clear();
        }
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    ::close(pipes[0]);
    return text;
}

// The innermost inlined frame is what the program's author wrote: the first pair of lines.
std::string by_tool(const LoadedFile& file, std::uint64_t offset) {
    for (const char* tool : {"addr2line", "eu-addr2line"}) {
        const std::string text = output_of({tool, "-f", "-C", "-e", file.path, hexadecimal(offset)});
        const std::size_t end = text.find('\n');
        if (end == std::string::npos) continue;
        const std::string function = text.substr(0, end);
        std::string place = text.substr(end + 1, text.find('\n', end + 1) - end - 1);
        place.resize(std::min(place.size(), place.find(" (discriminator")));
        if (function.starts_with("??") || place.starts_with("??") || place.find(":?") != std::string::npos ||
            place.ends_with(":0"))
            return {};
        return function + " (" + place + ")";
    }
    return {};
}

// The text of the call before `offset`, an address of the file as its symbols count.
std::string describe(const LoadedFile& file, std::uint64_t offset) {
    // A return address is that of the next instruction, which may belong to another line.
    const std::uint64_t call = offset - 1;
    if (std::string text = by_tool(file, call); !text.empty()) return text;
    std::string text = file.path.substr(file.path.rfind('/') + 1) + "+" + hexadecimal(call);
    Dl_info symbol{};
    const auto* const address = reinterpret_cast<const void*>(file.base + call);
    if (::dladdr(address, &symbol) != 0 && symbol.dli_sname != nullptr)
        text += std::string(" (") + symbol.dli_sname + "+" +
                hexadecimal(file.base + call - reinterpret_cast<std::uintptr_t>(symbol.dli_saddr)) + ")";
    return text;
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

const void* address_of(Site site) {
    Tables& known = tables();
    const std::lock_guard lock(known.mutex);
    const auto found = known.files.find(site.value >> kFileShift);
    if (found == known.files.end()) return nullptr;
    return reinterpret_cast<const void*>(found->second.base + (site.value & kOffsetMask));
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
