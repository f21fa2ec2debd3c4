// A stand-in for libxpmem.so, for machines without the kernel's module. It has the functions of that library, and an
// allocator in the place of malloc's whose memory is a file in memory, so that another process can map the same pages.
//
// Each process that makes a segment has a table of them in a file of its own, which other processes read: the number of
// a segment has the process's number, as the module's has. An attachment is a mapping of the file that the owner's
// address space has at that place; memory of no shared file cannot be attached, and an attachment keeps its pages
// where the module's would follow the owner. Differences from the module that a test can ask for:
//   XPMEM_STAND_IN=refuse    odd ranks of the launcher get no permit
// At its end a process with attachments left says so and ends with 99. Permits may be left: a process has one for each
// other one.
//
// xpmem_stand_in_attached(): the live attachments of this process. xpmem_stand_in_die(): the process is killed and its
// memory goes with it, as the module's does: the others get SIGBUS.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {

// The heap: blocks of powers of two, from a file in memory.
constexpr std::size_t kHeap = std::size_t{64} << 30;  // addresses
constexpr unsigned kSmallest = 6;

struct Head {
    std::uint32_t order;
    std::uint32_t lead;  // from the block's start to the program's first byte
};
static_assert(sizeof(Head) == 8);

class Heap {
  public:
    void* take(std::size_t bytes, std::size_t alignment) {
        constexpr std::size_t kLeast = 16;
        alignment = std::max(alignment, kLeast);
        if (bytes > kHeap) return nullptr;
        const std::size_t all = bytes + alignment + kLeast;
        const unsigned order = std::max(kSmallest, static_cast<unsigned>(std::bit_width(all - 1)));
        const Lock lock(*this);
        if (base_ == nullptr && !open()) return nullptr;
        std::byte* block = free_[order];
        if (block != nullptr) {
            std::memcpy(&free_[order], block, sizeof(std::byte*));
        } else {
            if (used_ + (std::size_t{1} << order) > kHeap) return nullptr;
            block = base_ + used_;
            used_ += std::size_t{1} << order;
        }
        const auto start = reinterpret_cast<std::uintptr_t>(block);
        const std::uintptr_t at = (start + kLeast + alignment - 1) / alignment * alignment;
        const Head head{order, static_cast<std::uint32_t>(at - start)};
        std::memcpy(reinterpret_cast<void*>(at - sizeof head), &head, sizeof head);
        return reinterpret_cast<void*>(at);
    }
    void give(void* piece) {
        const Head head = head_of(piece);
        std::byte* const block = static_cast<std::byte*>(piece) - head.lead;
        const Lock lock(*this);
        std::memcpy(block, &free_[head.order], sizeof(std::byte*));
        free_[head.order] = block;
    }
    static std::size_t room(void* piece) {
        const Head head = head_of(piece);
        return (std::size_t{1} << head.order) - head.lead;
    }
    void drop() const { static_cast<void>(::ftruncate(fd_, 0)); }

  private:
    struct Lock {
        explicit Lock(Heap& heap) : heap_(heap) {
            while (heap_.taken_.exchange(true, std::memory_order_acquire)) {
            }
        }
        ~Lock() { heap_.taken_.store(false, std::memory_order_release); }
        Heap& heap_;
    };
    static Head head_of(void* piece) {
        Head head;
        std::memcpy(&head, static_cast<std::byte*>(piece) - sizeof head, sizeof head);
        return head;
    }
    bool open() {
        const int fd = ::memfd_create("xpmem_heap", MFD_CLOEXEC);
        fd_ = ::fcntl(fd, F_DUPFD_CLOEXEC, 900);  // not where tests count descriptors
        ::close(fd);
        if (::ftruncate(fd_, kHeap) != 0) return false;
        void* const at = ::mmap(nullptr, kHeap, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
        if (at == MAP_FAILED) return false;
        ::madvise(at, kHeap, MADV_DONTDUMP);
        base_ = static_cast<std::byte*>(at);
        return true;
    }

    std::atomic<bool> taken_{false};
    int fd_ = -1;
    std::byte* base_ = nullptr;
    std::size_t used_ = 0;
    std::array<std::byte*, 48> free_{};
};

constinit Heap g_heap;

// What this process shows to others.
struct Segment {
    std::atomic<int> mode;  // 0: none, or removed
};
struct Table {
    std::array<Segment, 64> segments;  // number 1 is the first
    std::atomic<int> made;
    std::atomic<bool> dead;
};
constexpr char kTableName[] = "/memfd:xpmem_table (deleted)";

Table* own_table() {
    static Table* const table = [] {
        const int fd = ::memfd_create("xpmem_table", MFD_CLOEXEC);
        if (::ftruncate(fd, sizeof(Table)) != 0) std::abort();
        return static_cast<Table*>(::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    }();
    return table;
}

// A descriptor of another process's file that fits; -1 if it has none, or cannot be read.
template <class Fits>
int open_file(pid_t process, Fits&& fits) {
    for (int number = 0; number < 1024; ++number) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/%d/fd/%d", static_cast<int>(process), number);
        struct stat about {};
        if (::stat(path, &about) != 0 || !fits(path, about)) continue;
        return ::open(path, O_RDWR | O_CLOEXEC);
    }
    return -1;
}

struct Permit {
    std::int64_t number = 0;
    pid_t process = 0;
    const Table* table = nullptr;
};

std::mutex g_mutex;
std::array<Permit, 1024> g_permits;
std::int64_t g_numbers = 0;
struct Attachment {
    void* address = nullptr;
    std::size_t bytes = 0;
};
std::array<Attachment, 8192> g_attachments;

bool refuses() {
    const char* const how = std::getenv("XPMEM_STAND_IN");
    const char* const rank = std::getenv("PMI_RANK");
    return how != nullptr && std::strcmp(how, "refuse") == 0 && rank != nullptr && std::atoi(rank) % 2 == 1;
}

std::int64_t failed(int error) {
    errno = error;
    return -1;
}

std::size_t count_attached() {
    const std::lock_guard lock(g_mutex);
    return static_cast<std::size_t>(
        std::count_if(g_attachments.begin(), g_attachments.end(), [](const Attachment& a) { return a.bytes != 0; }));
}

struct AtTheEnd {
    ~AtTheEnd() {
        const std::size_t attached = count_attached();
        if (attached == 0) return;
        std::fprintf(stderr, "FAILED: %zu attachments are left\n", attached);
        ::_exit(99);
    }
} const g_at_the_end;

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

struct xpmem_addr {
    std::int64_t apid;
    off_t offset;
};

EXPORT std::int64_t xpmem_make(void* start, std::size_t bytes, int type, void* permission) {
    const auto mode = static_cast<int>(reinterpret_cast<std::uintptr_t>(permission));
    // The whole memory, and no right for other users.
    if (start != nullptr || bytes != ~std::size_t{0} || type != 1 || (mode & ~0700) != 0) return failed(EINVAL);
    Table& table = *own_table();
    const int number = table.made.fetch_add(1) + 1;
    table.segments.at(static_cast<std::size_t>(number)).mode.store(mode);
    return static_cast<std::int64_t>(number) << 32 | ::getpid();
}

EXPORT int xpmem_remove(std::int64_t segment) {
    own_table()->segments.at(static_cast<std::size_t>(segment >> 32)).mode.store(0);
    return 0;
}

EXPORT std::int64_t xpmem_get(std::int64_t segment, int access, int type, void* permission) {
    if (access != 2 || type != 1 || permission != nullptr) return failed(EINVAL);
    if (refuses()) return failed(EACCES);
    const auto process = static_cast<pid_t>(segment & 0xffffffff);
    const int fd = open_file(process, [](const char* path, const struct stat&) {
        char name[64] = "";
        return ::readlink(path, name, sizeof name - 1) > 0 && std::strcmp(name, kTableName) == 0;
    });
    if (fd < 0) return failed(ENOENT);
    void* const at = ::mmap(nullptr, sizeof(Table), PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) return -1;
    const auto* const table = static_cast<const Table*>(at);
    const int mode = table->segments.at(static_cast<std::size_t>(segment >> 32)).mode.load();
    const std::lock_guard lock(g_mutex);
    Permit* const place =
        std::find_if(g_permits.begin(), g_permits.end(), [](const Permit& permit) { return permit.number == 0; });
    if ((mode & 0600) != 0600 || table->dead || place == g_permits.end()) {
        ::munmap(at, sizeof(Table));
        return failed(EACCES);
    }
    *place = {++g_numbers << 32 | ::getpid(), process, table};
    return place->number;
}

EXPORT int xpmem_release(std::int64_t number) {
    const std::lock_guard lock(g_mutex);
    for (Permit& permit : g_permits) {
        if (permit.number != number) continue;
        ::munmap(const_cast<Table*>(permit.table), sizeof(Table));
        permit = {};
        return 0;
    }
    return static_cast<int>(failed(EINVAL));
}

EXPORT void* xpmem_attach(xpmem_addr from, std::size_t bytes, void* wanted) {
    const std::lock_guard lock(g_mutex);
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = static_cast<std::uintptr_t>(from.offset);
    const Permit* const permit = std::find_if(g_permits.begin(), g_permits.end(), [&](const Permit& known) {
        return known.number == from.apid && from.apid != 0;
    });
    Attachment* const place =
        std::find_if(g_attachments.begin(), g_attachments.end(), [](const Attachment& a) { return a.bytes == 0; });
    errno = EINVAL;
    if (permit == g_permits.end() || place == g_attachments.end() || wanted != nullptr || first % page != 0 ||
        permit->table->dead)
        return MAP_FAILED;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/maps", static_cast<int>(permit->process));
    std::FILE* const areas = std::fopen(path, "re");
    if (areas == nullptr) return MAP_FAILED;
    void* at = MAP_FAILED;
    // Areas of one file that follow each other differ in their protection only, which the module ignores.
    unsigned long file = 0, start = 0, upto = 0;
    unsigned device[2] = {};
    for (char line[512]; std::fgets(line, sizeof line, areas) != nullptr;) {
        unsigned long begin = 0, end = 0, offset = 0, inode = 0;
        unsigned major = 0, minor = 0;
        char rights[8] = "";
        if (std::sscanf(line, "%lx-%lx %7s %lx %x:%x %lu", &begin, &end, rights, &offset, &major, &minor, &inode) != 7)
            continue;
        if (upto == 0 && (first < begin || first >= end)) continue;
        errno = EFAULT;
        if (rights[3] != 's' || inode == 0) break;
        if (upto == 0) {
            file = inode;
            start = offset + first - begin;
            device[0] = major;
            device[1] = minor;
        } else if (begin != upto || inode != file || offset + first - begin != start) {
            break;
        }
        upto = end;
        if (bytes > upto - first) continue;
        const int fd = open_file(permit->process, [&](const char*, const struct stat& about) {
            return about.st_ino == file && about.st_dev == makedev(device[0], device[1]);
        });
        if (fd < 0) break;
        at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(start));
        ::close(fd);
        break;
    }
    std::fclose(areas);
    if (at != MAP_FAILED) *place = {at, bytes};
    return at;
}

EXPORT int xpmem_detach(void* address) {
    const std::lock_guard lock(g_mutex);
    for (Attachment& attachment : g_attachments) {
        if (attachment.bytes == 0 || attachment.address != address) continue;
        ::munmap(attachment.address, attachment.bytes);
        attachment = {};
        return 0;
    }
    return static_cast<int>(failed(EINVAL));
}

EXPORT long xpmem_stand_in_attached() {
    return static_cast<long>(count_attached());
}

EXPORT void xpmem_stand_in_die() {
    // The memory goes when the process is gone already for all calls of the system, as with the module.
    const pid_t process = ::getpid();
    if (::fork() == 0) {
        while (::getppid() == process) {
        }
        own_table()->dead.store(true);
        g_heap.drop();
        ::_exit(0);
    }
    ::kill(process, SIGKILL);
}

// The allocator.
EXPORT void* malloc(std::size_t bytes) {
    void* const piece = g_heap.take(bytes, 16);
    if (piece == nullptr) errno = ENOMEM;
    return piece;
}
EXPORT void free(void* piece) {
    if (piece != nullptr) g_heap.give(piece);
}
EXPORT void* calloc(std::size_t count, std::size_t bytes) {
    std::size_t all = 0;
    void* const piece = __builtin_mul_overflow(count, bytes, &all) ? nullptr : g_heap.take(all, 16);
    if (piece == nullptr) return errno = ENOMEM, nullptr;
    return std::memset(piece, 0, all);
}
EXPORT void* realloc(void* piece, std::size_t bytes) {
    if (piece == nullptr) return malloc(bytes);
    if (bytes == 0) return free(piece), nullptr;
    if (bytes <= Heap::room(piece)) return piece;
    void* const moved = malloc(bytes);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, piece, Heap::room(piece));
    free(piece);
    return moved;
}
EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
    return g_heap.take(bytes, alignment);
}
EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return g_heap.take(bytes, alignment);
}
EXPORT int posix_memalign(void** piece, std::size_t alignment, std::size_t bytes) {
    void* const made = g_heap.take(bytes, alignment);
    if (made == nullptr) return ENOMEM;
    *piece = made;
    return 0;
}
EXPORT void* valloc(std::size_t bytes) {
    return g_heap.take(bytes, 4096);
}
EXPORT std::size_t malloc_usable_size(void* piece) {
    return piece != nullptr ? Heap::room(piece) : 0;
}
