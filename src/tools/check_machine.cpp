// The checks of this machine. Memory between the processes of a node: memfd, /proc/PID/fd, process_vm_*, XPMEM,
// /dev/shm, huge pages; resource limits; the boundaries around the process: namespaces, containers, control groups,
// seccomp; and its processors.
#include <fcntl.h>
#include <sched.h>
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
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/control_groups.h"
#include "base/log.h"
#include "base/options.h"
#include "base/system_file.h"
#include "base/xpmem.h"
#include "local/cma.h"
#include "tools/check.h"

namespace osc::tools {
namespace {

using base::line_of;

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
        add(findings, "memfd", State::Ok, "anonymous shared memory works");
    else
        add(findings, "memfd", State::Problem, std::string("no anonymous shared memory: ") + std::strerror(errno),
            "libosc leaves all windows to the host MPI; allow memfd_create (seccomp), raise `ulimit -n` and -f");
    const Reach reach = try_sibling(memory);
    if (made && reach.opens_descriptors)
        add(findings, "proc_fd", State::Ok, "processes open each other's descriptors in /proc/PID/fd");
    else if (made)
        add(findings, "proc_fd", State::Note, "a process cannot open another one's descriptors in /proc/PID/fd",
            "libosc passes shared memory through sockets, one descriptor for each peer; mount /proc without hidepid");
    if (reach.accesses_memory)
        add(findings, "process_vm", State::Ok, "processes access each other's private memory");
    else
        add(findings, "process_vm", State::Problem,
            "process_vm_readv is forbidden: windows over private memory are slow",
            why_no_access() + "; or use MPI_Win_allocate");
    if (memory >= 0) ::close(memory);
}

// Where the machine has the library: a child attaches memory of this process. One that reads what is not there dies.
void check_xpmem(Findings& findings) {
    static std::uint64_t token = kToken;
    const base::Xpmem* const xpmem = base::xpmem();
    if (xpmem == nullptr) return;
    const base::Xpmem::Segment segment = base::show_memory();
    const int error = errno;
    const pid_t child = segment > 0 ? ::fork() : -1;
    if (child == 0) {
        const auto address = reinterpret_cast<std::uintptr_t>(&token);
        const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        const auto permit = xpmem->get(segment, base::Xpmem::kReadAndWrite, base::Xpmem::kMode, nullptr);
        void* const seen = xpmem->attach({permit, static_cast<off_t>(address / page * page)}, page, nullptr);
        ::_exit(seen != MAP_FAILED &&
                        std::memcmp(static_cast<std::byte*>(seen) + address % page, &token, sizeof token) == 0
                    ? 0
                    : 1);
    }
    int status = 1;
    if (child > 0) ::waitpid(child, &status, 0);
    if (status == 0)
        add(findings, "xpmem", State::Ok, "XPMEM attaches other processes' private memory: no system calls for it");
    else
        add(findings, "xpmem", State::Note,
            std::string("libxpmem.so does not attach memory: ") +
                (segment > 0 ? "the system refuses it" : std::strerror(error)),
            "windows over private memory cost system calls; load the kernel's module xpmem, and let users open "
            "/dev/xpmem");
}

void check_dev_shm(Findings& findings) {
    struct statvfs place {};
    if (::statvfs("/dev/shm", &place) != 0) {
        add(findings, "dev_shm", State::Problem, std::string("/dev/shm: ") + std::strerror(errno),
            "the host MPI needs it; mount a tmpfs there, or set UCX_TLS=tcp,self for MPICH over UCX");
        return;
    }
    const std::uint64_t size = place.f_blocks * place.f_frsize;
    const std::uint64_t free = place.f_bavail * place.f_frsize;
    const std::string text = "/dev/shm has " + mib(size) + ", " + mib(free) + " free";
    const bool good = free > kLeastShm && ::access("/dev/shm", W_OK) == 0;
    add(findings, "dev_shm", good ? State::Ok : State::Problem, text,
        "libosc does not use it, the host MPI does: enlarge it (Docker: --shm-size=1g), or set UCX_TLS=tcp,self for "
        "MPICH over UCX",
        {{"size_bytes", size}, {"free_bytes", free}});
}

void check_huge_pages(Findings& findings) {
    const std::string line = line_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    const std::size_t begin = line.find('[');
    const std::size_t end = line.find(']');
    if (begin == line.npos || end == line.npos || end < begin) {
        add(findings, "huge_pages", State::Note, "the kernel has no transparent huge pages for shared memory",
            "large windows have pages of 4 KiB; nothing to do");
        return;
    }
    const std::string mode = line.substr(begin + 1, end - begin - 1);
    const bool in_use = mode == "always" || mode == "within_size" || mode == "force";
    add(findings, "huge_pages", in_use ? State::Ok : State::Note, "transparent huge pages for shared memory: " + mode,
        "large windows have pages of 4 KiB; `echo within_size > /sys/kernel/mm/transparent_hugepage/shmem_enabled` "
        "(root) gives them larger ones",
        {{"mode", mode}});
}

// The namespaces that the kernel starts with (include/linux/proc_ns.h). The first network namespace has no fixed
// number.
constexpr const char* kFirstPid = "pid:[4026531836]";
constexpr const char* kFirstUser = "user:[4026531837]";

std::string namespace_of(const char* kind) {
    char text[64] = "";
    const std::string path = std::string("/proc/self/ns/") + kind;
    return ::readlink(path.c_str(), text, sizeof text - 1) > 0 ? text : "hidden";
}

// The sign of a container, or "".
std::string container() {
    if (::access("/.dockerenv", F_OK) == 0) return "/.dockerenv";
    if (::access("/run/.containerenv", F_OK) == 0) return "/run/.containerenv";
    for (const char* variable : {"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "container"})
        if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return variable;
    std::ifstream groups("/proc/self/cgroup");
    std::string line;
    while (std::getline(groups, line))
        for (const char* word : {"docker", "kubepods", "containerd", "libpod", "lxc"})
            if (line.find(word) != line.npos) return "/proc/self/cgroup";
    return "";
}

// The memory limit of the process's control group (version 2), or of the first group above it that has one.
std::string memory_limit() {
    for (const base::ControlGroup& group : base::control_groups("memory")) {
        std::string found = group.unified ? line_of(group.folder + "/memory.max") : "";
        if (!found.empty() && !found.starts_with("max")) return found;
    }
    return "";
}

}  // namespace

void check_memory(Findings& findings) {
    check_shared_memory(findings);
    check_xpmem(findings);
    check_dev_shm(findings);
    check_huge_pages(findings);
}

void check_limits(Findings& findings) {
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    const bool unlimited = limit.rlim_cur == RLIM_INFINITY;
    add(findings, "locked_memory", unlimited || limit.rlim_cur >= kLeastLocked ? State::Ok : State::Note,
        "limit of locked memory: " + (unlimited ? "unlimited" : std::to_string(limit.rlim_cur / 1024) + " KiB"),
        "no matter over TCP; providers that pin memory (verbs, cxi, efa, psm3) need `ulimit -l unlimited`",
        {{"bytes", unlimited ? -1 : static_cast<std::int64_t>(limit.rlim_cur)}});
    ::getrlimit(RLIMIT_NOFILE, &limit);
    add(findings, "descriptors", limit.rlim_cur >= kLeastFiles ? State::Ok : State::Problem,
        "limit of open descriptors: " + std::to_string(limit.rlim_cur),
        "creation of windows fails without descriptors: raise it with `ulimit -n` (at most " +
            std::to_string(limit.rlim_max) + " here)",
        {{"soft", limit.rlim_cur}, {"hard", limit.rlim_max}});
}

void check_options(Findings& findings) {
    for (const base::UnknownOption& unknown : base::unknown_options())
        add(findings, "options", State::Problem, "unknown option " + unknown.name, unknown.remedy);
}

void check_container(Findings& findings) {
    const nlohmann::json data = {{"pid", namespace_of("pid")},
                                 {"user", namespace_of("user")},
                                 {"net", namespace_of("net")},
                                 {"seccomp", line_of("/proc/self/status", "Seccomp:\t")}};
    const bool pid_apart = data["pid"] != kFirstPid;
    const bool user_apart = data["user"] != kFirstUser;
    if (pid_apart || user_apart)
        add(findings, "namespaces", State::Note,
            std::string("in ") + (pid_apart ? "a PID namespace" : "a user namespace") +
                (pid_apart && user_apart ? " and a user namespace" : "") + " of its own",
            "no matter if all processes of the node share it; else share the PID or the network namespace "
            "(--pid=host, --network=host)",
            data);
    else
        add(findings, "namespaces", State::Ok, "the machine's own PID and user namespace", "", data);
    if (const std::string sign = container(); sign.empty())
        add(findings, "container", State::Ok, "none found");
    else
        add(findings, "container", State::Note, "inside a container (" + sign + ")",
            "best is one container for each node with all its ranks inside; docs/TROUBLESHOOTING.md, Containers",
            {{"sign", sign}});
    if (const std::string limit = memory_limit(); !limit.empty())
        add(findings, "memory_limit", State::Note,
            "the control group has " + std::to_string(std::strtoull(limit.c_str(), nullptr, 10) >> 20) + " MiB",
            "windows count against it at the first touch; beyond it the kernel kills a process",
            {{"bytes", std::strtoull(limit.c_str(), nullptr, 10)}});
}

void check_cores(Findings& findings) {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    const int mine = CPU_COUNT(&set);
    const long all = ::sysconf(_SC_NPROCESSORS_ONLN);
    std::string list;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &set)) list += (list.empty() ? "" : ",") + std::to_string(core);
    nlohmann::json data = {{"cores", mine}, {"online", all}, {"list", list}};
    const std::string text = "may run on " + std::to_string(mine) + " of " + std::to_string(all) + " cores";
    if (mine == 1 && all > 1)
        add(findings, "cores", State::Note, text + " (core " + list + ")",
            "the threads that serve other processes share that core with the program; bind ranks to two cores where "
            "targets compute",
            data);
    else
        add(findings, "cores", State::Ok, text, "", data);
    const std::vector<base::CpuQuota> quotas = base::cpu_quotas();
    if (quotas.empty()) return;
    const double quota = static_cast<double>(quotas[0].milli_cores) / 1000;
    data = {{"cores", quota}};
    const std::string allowed = base::format("the control group may use %.2f cores", quota);
    if (quota < mine)
        add(findings, "cpu_quota", State::Problem, allowed + " of " + std::to_string(mine),
            "a process that polls is stopped when the quota is used up; raise it (Docker: --cpus), or run fewer ranks",
            data);
    else
        add(findings, "cpu_quota", State::Ok, allowed, "", data);
}

}  // namespace osc::tools
