// The shared memory of one process: a memfd that it owns, from which windows, MPI_Alloc_mem and libosc's own control
// data are carved, and the view of a peer's arena. One descriptor per process, whatever the number of windows, and no
// name in any file system (invariant I5).
//
// Offsets [0, pool) are one mapping made at the start, grown as needed; larger pieces get offsets beyond it and a
// mapping of their own. The pool's memory is allocated (fallocate) as it grows; addresses behind it are reserved,
// without access, and no core file has them. A large piece gets its pages at first touch, as malloc's does, except
// under vm.overcommit_memory = 2, where a touch that the system refuses would be SIGBUS: there the pages are allocated
// with the piece (system_memory.h has the reasons). A freed large piece is kept, with its pages, for the next one of
// the same use (KeptPieces), up to a bound and while memory is not short. What exceeds the bound loses its pages and
// stays mapped.
//
// A core file has the process's own memory in use, and nothing of its peers' arenas.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>

#include "base/core_sharing.h"
#include "shm/activity.h"
#include "shm/attachment.h"
#include "shm/spans.h"
#include "shm/system_memory.h"

namespace osc::shm {

/// What a peer needs to know to reach this process's arena; exchanged by the host's collectives.
struct ArenaAddress {
    std::uint64_t token = 0;       // random, also in the arena's first bytes: proves that it is this process's arena
    std::uint64_t start_time = 0;  // of the process, in clock ticks since boot
    std::uint64_t pool_bytes = 0;  // length of the pool's reservation
    std::uint64_t probe = 0;       // address of a copy of the token, for the probe of process_vm_readv
    std::int32_t pid = 0;
    std::int32_t fd = -1;
};

/// First bytes of the pool. Peers read the constant part without mapping the arena.
struct ArenaHeader {
    struct Constant {
        std::uint64_t token;  // first
        base::CoreAllowance cores;
        std::uint64_t address;  // of this header, in its owner's process
    } constant;
    Activity activity;
    std::atomic<base::Xpmem::Segment> segment;  // by which XPMEM shows the owner's memory; 0: it does not
};

/// Offsets of adopted memory (src/plugins/adopt) in the arena's file, which follow those of all other pieces.
inline constexpr std::uint64_t kAdoptedOffset = std::uint64_t{1} << 47;
inline constexpr std::uint64_t kAdoptedEnd = kAdoptedOffset + (std::uint64_t{1} << 62);

/// A piece of an arena.
struct ArenaBlock {
    std::byte* address = nullptr;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    explicit operator bool() const { return address != nullptr; }
};

/// A part of the arena's file and where it is mapped. Both start and end at page boundaries.
struct Mapping {
    std::byte* address = nullptr;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
};

/// Freed large pieces that the arena keeps, with their mappings, for the next allocation, oldest first: mapping,
/// faulting in and clearing 40 MiB costs milliseconds, taking a kept piece costs a search of a short list. It neither
/// maps nor unmaps. Not thread-safe: the arena's mutex protects it.
class KeptPieces {
  public:
    /// Removes and returns `bytes` bytes (a multiple of the page size) at a multiple of `alignment`, cut from the
    /// smallest piece that has them. What remains of that piece stays if it has at least `least` bytes, and is
    /// returned with the rest otherwise. Nothing if no piece fits, or if the smallest one has more than `most` bytes.
    std::optional<Mapping> take(std::size_t bytes, std::size_t alignment, std::size_t least,
                                std::size_t most = ~std::size_t{0});

    /// Adds a piece as the newest.
    void keep(const Mapping& piece);

    /// Removes and returns the oldest piece; nothing if there is none.
    std::optional<Mapping> oldest();

    /// The sum of the kept pieces' sizes.
    std::size_t bytes() const { return bytes_; }
    std::size_t count() const { return pieces_.size(); }

  private:
    std::list<Mapping> pieces_;
    std::size_t bytes_ = 0;
};

/// This process's arena. Thread-safe. A child made by fork has its parent's arena, whose file it must not change: there
/// allocate() gives nothing, and release() frees nothing. The private functions are the steps of allocate() and
/// release(), which share the file, its free offsets and one mutex.
class Arena {
  public:
    static Arena& mine();

    /// An arena of its own (tests): `keep` is the most bytes of freed pieces that it keeps.
    Arena(SystemMemory system, std::size_t keep);
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    /// Unmaps all pieces, live ones too.
    ~Arena();

    /// Creates the memfd and the pool; false with errno set if the system refuses. Idempotent.
    bool open();

    /// A piece of at least `bytes` bytes at a multiple of `alignment` (a power of two). `clear`: it reads as zero;
    /// without it the piece may contain data that this process left in a freed one.
    /// Returns an empty piece, with errno set, if the system refuses: more than it can ever give (SystemMemory), an
    /// address-space or file-size limit, or the commit limit where pages are allocated early; also in a child made by
    /// fork.
    ArenaBlock allocate(std::size_t bytes, std::size_t alignment, bool clear);

    /// Frees the piece that starts at `address`; false if no such piece exists. The arena may keep its pages.
    bool release(void* address);

    /// A further mapping of [offset, offset + bytes), which one live piece contains, in whole pages of its own; null
    /// with errno set if the system refuses. offset_of() knows its addresses.
    std::byte* map_view(std::uint64_t offset, std::size_t bytes);
    /// Removes it; before the piece is released.
    void unmap_view(std::byte* view);

    /// The offset of [address, address + bytes), if one piece contains all of it; kNoOffset otherwise.
    std::uint64_t offset_of(const void* address, std::size_t bytes) const;

    /// The address of `offset`; null if no live piece contains it.
    std::byte* at(std::uint64_t offset) const;

    /// The file, long enough for adopted memory; -1 with errno set if the system refuses that, or `bytes`
    /// more bytes.
    int adoption_file(std::size_t bytes);
    /// Whether the system can probably provide `bytes` more bytes.
    bool can_provide(std::uint64_t bytes);
    /// Whether each of `processes` processes of the node can touch `bytes` more bytes now.
    bool has_for_each(std::uint64_t processes, std::uint64_t bytes);
    /// Whether pages must be allocated before they are touched.
    bool allocates_early() const { return system_.allocates_early(); }

    ArenaAddress address() const;

    /// Lets every process with a descriptor of this arena test whether this process lives (arena_owner_lives).
    /// Idempotent.
    bool show_life();
    /// Whether `path` is this arena's file. Opens nothing.
    bool is_file(const char* path) const;
    std::uint64_t token() const { return token_; }
    /// The process's activity in the arena, which is open.
    const base::CoreAllowance& cores() const { return reinterpret_cast<const ArenaHeader*>(pool_)->constant.cores; }
    Activity& activity() { return reinterpret_cast<ArenaHeader*>(pool_)->activity; }
    void publish(base::Xpmem::Segment segment) {
        reinterpret_cast<ArenaHeader*>(pool_)->segment.store(segment, std::memory_order_release);
    }

    /// Bytes of live pieces.
    std::uint64_t in_use() const;
    /// Bytes of freed pieces kept for the next allocation.
    std::uint64_t kept() const;

  private:
    struct Live {
        std::uint64_t offset;
        std::size_t bytes;
        std::size_t mapped;  // length of a large piece's mapping; 0 in the pool
        bool may_be_kept;    // large, and not asked for cleared
    };
    /// Whose arena this is.
    enum class Owner {
        Me,
        Parent,  // a child of fork has this copy
        Torn,    // also, and a thread of the parent was changing it at the fork
    };
    Arena();
    static void after_fork_in_child();
    ArenaBlock from_pool(std::size_t bytes, std::size_t alignment, bool clear);
    ArenaBlock large(std::size_t bytes, std::size_t alignment, bool clear);
    Mapping map_fresh(std::size_t length, std::size_t alignment);
    std::byte* map_aligned(std::uint64_t offset, std::size_t length, std::size_t alignment);
    bool punch(std::uint64_t offset, std::size_t length);
    void free_offsets(std::uint64_t offset, std::size_t length);
    void give_back(const Mapping& piece);
    void give_back_all();
    void drop_pages(const Mapping& piece);
    std::optional<Mapping> reuse(std::size_t length, std::size_t alignment);
    bool grow_pool(std::size_t bytes);
    static bool allows_file(std::uint64_t end);
    bool extend_file(std::uint64_t end);

    mutable std::mutex mutex_;
    Owner owner_ = Owner::Me;
    int fd_ = -1;
    std::uint64_t token_ = 0;
    std::byte* pool_ = nullptr;
    std::size_t pool_bytes_ = 0;  // reserved
    std::size_t committed_ = 0;   // allocated from the system
    std::uint64_t file_end_ = 0;
    std::uint64_t in_use_ = 0;
    FreeSpans free_;                       // of the pool, with pages
    FreeSpans large_free_;                 // behind the pool, without pages
    KeptPieces kept_;                      // freed large pieces, with pages
    KeptPieces empty_;                     // freed large pieces, mapped, without pages
    std::map<std::uintptr_t, Live> live_;  // address -> piece
    struct View {
        std::uint64_t offset;
        std::size_t bytes;
    };
    std::map<std::uintptr_t, View> views_;  // address -> what map_view() has mapped there
    SystemMemory system_;
    std::size_t keep_;  // the most bytes in kept_
};

/// A peer's arena as mapped here. Thread-safe.
class PeerArena {
  public:
    explicit PeerArena(const ArenaAddress& address) : address_(address) {}
    PeerArena(const PeerArena&) = delete;
    PeerArena& operator=(const PeerArena&) = delete;
    ~PeerArena();

    /// Maps [offset, offset + bytes) of the peer's arena, or from kAttachedOffset on of its private memory; null with
    /// errno set on failure. A piece outside the pool gets a mapping of its own, which unmap() with the same arguments
    /// removes.
    std::byte* map(std::uint64_t offset, std::size_t bytes);
    void unmap(std::uint64_t offset, std::byte* address, std::size_t bytes);
    /// Whether XPMEM attaches the peer's private memory here.
    bool attaches();
    bool has(const Permit& permit) const { return &permit == &permit_; }

    /// Whether this process can open the peer's descriptor through /proc, or has adopted it.
    bool reachable();
    /// Takes over a descriptor that the peer has passed, if it refers to the peer's arena; closes it otherwise. `pid`:
    /// the peer's number in this process's PID namespace, 0 if it has none.
    bool adopt(int descriptor, pid_t pid);
    /// False if the system knows that the peer has ended.
    bool owner_lives() const;
    /// Whether the peer's descriptor was adopted. Then its process and thread numbers mean nothing here.
    bool adopted() const { return passed_.load(std::memory_order_acquire) >= 0; }

    /// The cores that the peer may use, once `reachable` was true; an empty mask if the system refuses to read it.
    base::CoreAllowance cores() const;

    /// Constant once `reachable` was true.
    const ArenaAddress& address() const { return address_; }

  private:
    int open_peer() const;
    int descriptor() const;
    const ArenaHeader* header();
    bool open_pool(std::uint64_t end);
    void close_unless_passed(int descriptor) const;

    ArenaAddress address_;
    std::mutex mutex_;
    std::atomic<int> passed_{-1};  // stays open, to map large pieces and to test whether the peer lives
    bool verified_ = false;        // opened or adopted once
    std::byte* pool_ = nullptr;
    std::uint64_t accessible_ = 0;  // of the pool; the rest is reserved
    Permit permit_;
};

/// Reserves addresses for `bytes` bytes from the start of an arena's file, without access and without a place in core
/// files; null with errno set on failure. Thread-safe.
std::byte* reserve_pool(int fd, std::size_t bytes);

}  // namespace osc::shm
