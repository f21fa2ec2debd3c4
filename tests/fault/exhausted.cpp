// Windows of all kinds where a resource ends, on rank 1 or on all: campaign.py runs it.
//
//   fault_exhausted RESOURCE one|all first|later OUTCOME
//
// RESOURCE: none (something outside the program is wrong), namespace (the same, and the program ends without
// MPI_Finalize), or what ends before the first window, or when windows of all kinds have been made and live. Each
// creation has one outcome on all ranks, which OUTCOME allows: served; refused; served_or_refused, which libosc decides
// by what is left; host, by the host MPI. What is served works. When the resource is back a new communicator's windows
// are served, unless RESOURCE is none or is for good.
//   descriptors      0, 3, 6, ... of them are left
//   addresses        8 MiB of address space are left
//   locked           no memory may be locked
//   shm_full         /dev/shm takes no byte (root; for good)
//   shm_absent       there is no /dev/shm (root; for good)
//   process_vm       the system forbids process_vm_readv and process_vm_writev (for good)
//   memfd_create     the system forbids it (for good)
//   each_FUNCTION    each call of the FUNCTION by libosc in a creation fails once, one after the other
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "all_kinds.h"
#include "few_descriptors.h"
#include "refuse_calls.h"

namespace {

using osct::agreed;
using osct::expect;
using osct::g_failures;
using osct::g_rank;
using osct::Outcome;

// The call of this thread that fails, counted down; 0: none. Only calls of libosc count.
thread_local long t_fails_in = 0;
std::string g_failing;
int g_failed = 0;  // calls

bool refuses(const char* call, const void* caller) {
    if (t_fails_in == 0 || g_failing != call) return false;
    Dl_info info{};
    if (::dladdr(caller, &info) == 0 || std::strstr(info.dli_fname, "libosc") == nullptr) return false;
    if (--t_fails_in != 0) return false;
    ++g_failed;
    return true;
}

template <class Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// Defines a function of the system that returns `failure` with errno where refuses() says so.
#define FAILING(type, name, parameters, arguments, failure, error)               \
    extern "C" type name parameters {                                            \
        static auto* const next = real<type parameters>(#name);                  \
        if (!refuses(#name, __builtin_return_address(0))) return next arguments; \
        errno = error;                                                           \
        return failure;                                                          \
    }
FAILING(void*, mmap, (void* place, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept,
        (place, bytes, protection, flags, fd, offset), MAP_FAILED, ENOMEM)
FAILING(int, mprotect, (void* place, std::size_t bytes, int protection) noexcept, (place, bytes, protection), -1,
        ENOMEM)
FAILING(int, memfd_create, (const char* name, unsigned flags) noexcept, (name, flags), -1, EMFILE)
FAILING(int, ftruncate, (int fd, off_t bytes) noexcept, (fd, bytes), -1, ENOSPC)
FAILING(int, fallocate, (int fd, int mode, off_t offset, off_t bytes), (fd, mode, offset, bytes), -1, ENOSPC)
FAILING(int, socket, (int domain, int type, int protocol) noexcept, (domain, type, protocol), -1, EMFILE)
FAILING(int, bind, (int fd, const sockaddr* address, socklen_t bytes) noexcept, (fd, address, bytes), -1, EADDRINUSE)
FAILING(int, eventfd, (unsigned value, int flags) noexcept, (value, flags), -1, EMFILE)
FAILING(int, timerfd_create, (clockid_t clock, int flags) noexcept, (clock, flags), -1, EMFILE)
FAILING(int, epoll_create1, (int flags) noexcept, (flags), -1, EMFILE)
FAILING(int, pthread_create,
        (pthread_t * thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) noexcept,
        (thread, attributes, body, argument), EAGAIN, EAGAIN)
#undef FAILING
extern "C" int open(const char* path, int flags, ...) {
    static auto* const next = real<int(const char*, int, ...)>("open");
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (!refuses("open", __builtin_return_address(0))) return next(path, flags, mode);
    errno = EMFILE;
    return -1;
}

namespace {

// A limit of this process while the object lives.
class Limit {
  public:
    Limit(__rlimit_resource_t resource, rlim_t value) : resource_(resource) {
        ::getrlimit(resource_, &before_);
        const rlimit low{value, before_.rlim_max};
        expect(::setrlimit(resource_, &low) == 0, "a limit cannot be set");
    }
    ~Limit() { ::setrlimit(resource_, &before_); }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

  private:
    __rlimit_resource_t resource_;
    rlimit before_{};
};

rlim_t addresses_in_use() {
    long pages = 0;
    if (std::FILE* const file = std::fopen("/proc/self/statm", "re"); file != nullptr) {
        if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
        std::fclose(file);
    }
    return static_cast<rlim_t>(pages) * 4096;
}

// This process's /dev/shm, or /dev, becomes another file system.
void mount_over(const char* place, const char* options) {
    expect(::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount("tmpfs", place, "tmpfs", 0, options) == 0,
           "a file system cannot be mounted");
}

void take_shm() {
    mount_over("/dev", "size=64k");
    for (const auto& [name, number] : {std::pair{"/dev/null", 3}, {"/dev/zero", 5}, {"/dev/urandom", 9}})
        expect(::mknod(name, S_IFCHR | 0666, makedev(1, static_cast<unsigned>(number))) == 0, "no device");
}

struct Ended {  // what a process lacks
    std::unique_ptr<osct::FewDescriptors> descriptors;
    std::unique_ptr<Limit> limit;
};

bool is_for_good(const std::string& resource) {
    return resource == "none" || resource == "namespace" || resource == "shm_full" || resource == "shm_absent" ||
           resource == "process_vm" || resource == "memfd_create";
}

Ended end_resource(const std::string& resource, int left) {
    Ended ended;
    if (resource == "descriptors") ended.descriptors = std::make_unique<osct::FewDescriptors>(left);
    if (resource == "addresses") ended.limit = std::make_unique<Limit>(RLIMIT_AS, addresses_in_use() + (8 << 20));
    if (resource == "locked") ended.limit = std::make_unique<Limit>(RLIMIT_MEMLOCK, 0);
    if (resource == "shm_full") mount_over("/dev/shm", "size=4k,nr_inodes=1");
    if (resource == "shm_absent") take_shm();
    if (resource == "process_vm")
        expect(refuse_calls(SYS_process_vm_readv, SYS_process_vm_writev), "the system has no filters");
    if (resource == "memfd_create")
        expect(refuse_calls(SYS_memfd_create, SYS_memfd_create), "the system has no filters");
    return ended;
}

int g_checks = 0;
int g_outcomes[3] = {};

// Windows of all kinds on new communicators; the outcome of the last one.
Outcome use_all(const std::string& allowed, const std::string& failing, bool fails_here) {
    static std::vector<std::int64_t> own(osct::kWords);
    Outcome outcome = osct::kServed;
    for (const osct::Kind kind : {osct::kAllocated, osct::kCreated, osct::kDynamic}) {
        int refused = failing.empty() ? 0 : 1;
        for (long number = 1; number == 1 || refused != 0; ++number) {
            MPI_Comm comm = MPI_COMM_NULL;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
            outcome = osct::create_and_use(osct::kCalls[kind], [&](MPI_Win& win, std::int64_t*& base) {
                if (fails_here) t_fails_in = refused * number;
                const int error = osct::create(kind, comm, MPI_INFO_NULL, own.data(), win, base);
                refused = fails_here && refused != 0 && t_fails_in == 0 ? 1 : 0;
                t_fails_in = 0;
                return error;
            });
            MPI_Comm_free(&comm);
            const bool good = allowed == "host" ? outcome == osct::kHost
                                                : (outcome == osct::kServed && allowed != "refused") ||
                                                      (outcome == osct::kRefused && allowed != "served");
            expect(good, osct::kCalls[kind]);
            ++g_checks;
            ++g_outcomes[outcome - osct::kRefused];
            if (!failing.empty()) MPI_Allreduce(MPI_IN_PLACE, &refused, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        }
    }
    return outcome;
}

}  // namespace

int main(int argc, char** argv) {
    osct::start(argc, argv);
    if (argc < 5) return 1;
    const std::string resource = argv[1], moment = argv[3], allowed = argv[4];
    const bool here = std::string(argv[2]) == "all" || g_rank == 1;
    const bool each = resource.starts_with("each_");
    // What the host opens for its first messages is open: MPICH's UCX ends a program that cannot open it.
    std::vector<std::int64_t> out(osct::kWords), in(osct::kWords);
    for (int other = 0; other < osct::g_size; ++other)
        MPI_Sendrecv(out.data(), osct::kWords, MPI_INT64_T, (g_rank + other) % osct::g_size, 0, in.data(), osct::kWords,
                     MPI_INT64_T, (g_rank + osct::g_size - other) % osct::g_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (moment == "later") use_all("served", "", false);
    if (each) g_failing = resource.substr(std::strlen("each_"));
    for (int left = 0, last = osct::kRefused; left < (resource == "descriptors" ? 60 : 1); left += 3) {
        {
            const Ended ended = here ? end_resource(resource, left) : Ended();
            last = use_all(allowed, g_failing, here);
        }
        if (resource == "descriptors" && last == osct::kServed) break;
    }
    g_failing.clear();
    if (!is_for_good(resource)) expect(use_all("served", "", false) == osct::kServed, "the resource is back");
    if (g_rank == 1)
        std::printf("windows refused: %d, of the host: %d, served: %d; calls that failed: %d\n", g_outcomes[0],
                    g_outcomes[1], g_outcomes[2], g_failed);
    std::printf("survivor %d: %d checks, %d failures\n", g_rank, g_checks, g_failures);
    std::fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (resource == "namespace") ::_exit(g_failures == 0 ? 0 : 1);
    MPI_Finalize();
    return g_failures == 0 ? 0 : 1;
}
