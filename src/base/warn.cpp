// Claims of warnings, and the variables by which launchers describe the job.
#include "base/warn.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <set>
#include <string>

#include "base/log.h"

namespace osc::base {
namespace {

constexpr int kMostClaims = 8;  // descriptors that claims may take; a process with more warnings prints the others

enum class Finders { Job, Group };

std::uint64_t hash_of(const char* text) {
    std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
    for (; *text != '\0'; ++text)
        hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211ULL;
    return hash;
}

const char* first_of(std::initializer_list<const char*> variables) {
    for (const char* variable : variables)
        if (const char* value = std::getenv(variable); value != nullptr) return value;
    return nullptr;
}

// The launcher's number of this process; null without a launcher.
const char* rank_in_job() {
    return first_of({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"});
}

// Whether the launcher says that all processes of the job are on this node.
bool is_whole_job_here() {
    const char* here = first_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
    const char* all = first_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
    if (here != nullptr && all != nullptr) return std::strcmp(here, all) == 0;
    const char* nodes = first_of({"SLURM_STEP_NUM_NODES"});
    return nodes != nullptr && std::strcmp(nodes, "1") == 0;
}

// The parent of a process; 0 where /proc does not say.
long parent_of(long process) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%ld/stat", process);
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr) return 0;
    char line[512];
    const std::size_t bytes = std::fread(line, 1, sizeof line - 1, file);
    std::fclose(file);
    line[bytes] = '\0';
    const char* behind = std::strrchr(line, ')');  // the command's name may contain anything
    long parent = 0;
    return behind != nullptr && std::sscanf(behind + 1, " %*c %ld", &parent) == 1 ? parent : 0;
}

// A name of the job that all its processes on this node compute; empty if there is none.
std::string job() {
    if (const char* name = first_of({"PMIX_NAMESPACE"}); name != nullptr) return std::string("x") + name;
    if (first_of({"MPI_LOCALRANKID"}) != nullptr) {
        // Hydra's proxy starts each rank in a session of its own, so a shell around the program does not matter.
        const long proxy = parent_of(::getsid(0));
        return proxy > 0 ? "h" + std::to_string(proxy) : std::string();
    }
    const char* id = first_of({"SLURM_JOB_ID"});
    const char* step = first_of({"SLURM_STEP_ID"});
    return id != nullptr && step != nullptr ? std::string("s") + id + "." + step : std::string();
}

// True if no other process of the node's part of the job has claimed the text.
bool claim(std::uint64_t text) {
    static int claims = 0;
    const std::string mine = job();
    if (mine.empty() || claims >= kMostClaims) return true;
    const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return true;
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    // The first byte stays 0: a name in no file system.
    const int length = std::snprintf(
        name.sun_path + 1, sizeof name.sun_path - 1, "libosc-%u-%016llx-%016llx", static_cast<unsigned>(::getuid()),
        static_cast<unsigned long long>(hash_of(mine.c_str())), static_cast<unsigned long long>(text));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&name), size) == 0) {
        ++claims;  // the socket stays open until the process ends
        return true;
    }
    const bool taken = errno == EADDRINUSE;
    ::close(socket);
    return !taken;
}

bool may_print(std::uint64_t text, Finders finders) {
    static std::mutex mutex;
    static auto& printed = *new std::set<std::uint64_t>;  // never freed: exit handlers may warn
    const std::lock_guard lock(mutex);
    if (!printed.insert(text).second) return false;
    const char* rank = rank_in_job();
    if (rank == nullptr) return true;
    if (finders == Finders::Job && !is_whole_job_here()) return std::strcmp(rank, "0") == 0;
    return claim(text);
}

}  // namespace

void warn_for_job(const char* format, ...) {
    char text[900];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (may_print(hash_of(text), Finders::Job)) say("%s", text);
}

void warn_for_group(const char* format, ...) {
    char text[900];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (may_print(hash_of(text), Finders::Group)) say("%s", text);
}

}  // namespace osc::base
