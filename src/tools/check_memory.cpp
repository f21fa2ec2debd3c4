// Memory between the processes of a node: memfd, /proc/PID/fd, process_vm_*, /dev/shm, huge pages; and resource limits.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "local/cma.h"
#include "tools/check.h"

namespace osc::tools {
namespace {

constexpr std::uint64_t kToken = 0x6f73635f696e666f;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLeastShm = 64 * kMiB;  // the default of container runtimes, which the host MPI outgrows
constexpr rlim_t kLeastFiles = 256;
constexpr rlim_t kLeastLocked = 64 * kMiB;

std::string mib(std::uint64_t bytes) {
    return std::to_string(bytes / kMiB) + " MiB";
}

// The access of a process to a sibling, whose memory and memfd have the token.
struct Reach {
    bool opens_descriptors = false;
    bool accesses_memory = false;
};

bool has_token(pid_t process, int descriptor) {
    const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
    const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (opened < 0) return false;
    std::uint64_t found = 0;
    const bool right = ::pread(opened, &found, sizeof found, 0) == sizeof found && found == kToken;
    ::close(opened);
    return right;
}

// Two siblings, because a parent may access its child where strangers may not: one lets its peers in, as each process
// with libosc does, and the other one tries.
Reach try_sibling(int memory) {
    static const std::uint64_t token = kToken;
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) return {};
    const pid_t target = ::fork();
    if (target == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        cma::allow_peers();
        static_cast<void>(::write(ready[1], "x", 1) == 1);
        for (;;)
            ::pause();
    }
    ::close(ready[1]);  // so the read ends if there is no child, or it dies
    char byte = 0;
    static_cast<void>(::read(ready[0], &byte, 1) == 1);
    const pid_t prober = target > 0 ? ::fork() : -1;
    if (prober == 0) {
        const bool memory_reached = cma::reachable(target, reinterpret_cast<std::uint64_t>(&token), kToken);
        ::_exit((has_token(target, memory) ? 1 : 0) | (memory_reached ? 2 : 0));
    }
    int status = 0;
    if (prober > 0) ::waitpid(prober, &status, 0);
    if (target > 0) {
        ::kill(target, SIGKILL);
        ::waitpid(target, nullptr, 0);
    }
    ::close(ready[0]);
    if (prober <= 0 || !WIFEXITED(status)) return {};
    return {(WEXITSTATUS(status) & 1) != 0, (WEXITSTATUS(status) & 2) != 0};
}

std::string why_no_access() {
    const std::string scope = line_of("/proc/sys/kernel/yama/ptrace_scope");
    if (scope == "2" || scope == "3") return "kernel.yama.ptrace_scope is " + scope + "; set it to 0 or 1";
    return "a seccomp filter or a user namespace forbids it; allow process_vm_readv and process_vm_writev (Docker: "
           "--cap-add=SYS_PTRACE)";
}

void check_shared_memory(Findings& findings) {
    const int memory = ::memfd_create("osc_info", MFD_CLOEXEC);
    const bool made = memory >= 0 && ::ftruncate(memory, 4096) == 0 && ::fallocate(memory, 0, 0, 4096) == 0 &&
                      ::pwrite(memory, &kToken, sizeof kToken, 0) == sizeof kToken;
    if (made)
        add_ok(findings, "memfd", "anonymous shared memory works");
    else
        add_problem(
            findings, "memfd", std::string("no anonymous shared memory: ") + std::strerror(errno),
            "libosc leaves all windows to the host MPI; allow memfd_create (seccomp), raise `ulimit -n` and -f");
    const Reach reach = try_sibling(memory);
    if (made && reach.opens_descriptors)
        add_ok(findings, "proc_fd", "processes open each other's descriptors in /proc/PID/fd");
    else if (made)
        add_note(
            findings, "proc_fd", "a process cannot open another one's descriptors in /proc/PID/fd",
            "libosc passes shared memory through sockets, one descriptor for each peer; mount /proc without hidepid");
    if (reach.accesses_memory)
        add_ok(findings, "process_vm", "processes access each other's private memory");
    else
        add_problem(findings, "process_vm", "process_vm_readv is forbidden: windows over private memory are slow",
                    why_no_access() + "; or use MPI_Win_allocate");
    if (memory >= 0) ::close(memory);
}

void check_dev_shm(Findings& findings) {
    struct statvfs place {};
    if (::statvfs("/dev/shm", &place) != 0) {
        add_problem(findings, "dev_shm", std::string("/dev/shm: ") + std::strerror(errno),
                    "the host MPI needs it; mount a tmpfs there, or set UCX_TLS=tcp,self for MPICH over UCX");
        return;
    }
    const std::uint64_t size = place.f_blocks * place.f_frsize;
    const std::uint64_t free = place.f_bavail * place.f_frsize;
    const nlohmann::json data = {{"size_bytes", size}, {"free_bytes", free}};
    const std::string text = "/dev/shm has " + mib(size) + ", " + mib(free) + " free";
    if (free <= kLeastShm || ::access("/dev/shm", W_OK) != 0)
        add_problem(findings, "dev_shm", text,
                    "libosc does not use it, the host MPI does: enlarge it (Docker: --shm-size=1g), or set "
                    "UCX_TLS=tcp,self for MPICH over UCX",
                    data);
    else
        add_ok(findings, "dev_shm", text, data);
}

void check_huge_pages(Findings& findings) {
    const std::string line = line_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    const std::size_t begin = line.find('[');
    const std::size_t end = line.find(']');
    if (begin == line.npos || end == line.npos || end < begin) {
        add_note(findings, "huge_pages", "the kernel has no transparent huge pages for shared memory",
                 "large windows have pages of 4 KiB; nothing to do");
        return;
    }
    const std::string mode = line.substr(begin + 1, end - begin - 1);
    const std::string text = "transparent huge pages for shared memory: " + mode;
    if (mode == "always" || mode == "within_size" || mode == "force")
        add_ok(findings, "huge_pages", text, {{"mode", mode}});
    else
        add_note(findings, "huge_pages", text,
                 "large windows have pages of 4 KiB; `echo within_size > "
                 "/sys/kernel/mm/transparent_hugepage/shmem_enabled` (root) gives them larger ones",
                 {{"mode", mode}});
}

}  // namespace

std::string line_of(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

void check_memory(Findings& findings) {
    check_shared_memory(findings);
    check_dev_shm(findings);
    check_huge_pages(findings);
}

void check_limits(Findings& findings) {
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    const bool unlimited = limit.rlim_cur == RLIM_INFINITY;
    const nlohmann::json locked = {{"bytes", unlimited ? -1 : static_cast<std::int64_t>(limit.rlim_cur)}};
    const std::string text = unlimited ? "unlimited" : std::to_string(limit.rlim_cur / 1024) + " KiB";
    if (unlimited || limit.rlim_cur >= kLeastLocked)
        add_ok(findings, "locked_memory", "limit of locked memory: " + text, locked);
    else
        add_note(findings, "locked_memory", "limit of locked memory: " + text,
                 "no matter over TCP; providers that pin memory (verbs, cxi, efa, psm3) need `ulimit -l unlimited`",
                 locked);
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const nlohmann::json files = {{"soft", limit.rlim_cur}, {"hard", limit.rlim_max}};
    const std::string descriptors = "limit of open descriptors: " + std::to_string(limit.rlim_cur);
    if (limit.rlim_cur >= kLeastFiles)
        add_ok(findings, "descriptors", descriptors, files);
    else
        add_problem(findings, "descriptors", descriptors,
                    "creation of windows fails without descriptors: raise it with `ulimit -n` (at most " +
                        std::to_string(limit.rlim_max) + " here)",
                    files);
}

}  // namespace osc::tools
