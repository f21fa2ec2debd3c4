// Private memory of another process of the node, attached here by XPMEM: what no arena has is then loaded and stored
// too.
//
// An attachment has no pages of its own. A load or store in it finds the page that its owner's page table has at that
// address, and the kernel's module takes the page back when that table changes: the owner unmaps, moves or protects
// the page, or a fork shares it with a child. So owner and origin use one physical page, and stripes, locks and
// processor atomics hold on it as in shared memory. The module makes sure of less than process_vm_* does, hence:
//
// - It maps a page that the owner may only read for stores too, and one that the owner has not mapped is SIGBUS here.
//   The owner offers memory that it can read and write, all of it, and that the system's own access to memory of
//   processes reaches (no device's).
// - What the program does to that memory later is a mistake for MPI_Win_create. A dynamic window's region may go, and
//   another one come at its address: an attachment belongs to one region (Region::number).
// - A segment is numbered by its process and a count, and the number of a process may be another's later. So a permit
//   counts once it shows the token of the owner's arena.
// - The module numbers permits, and never a number twice: a process has one for each peer, not one for each window.
// - An owner that dies takes its memory along: the next access here is SIGBUS. Its handler then puts empty pages in the
//   attachment's place, so that the operation ends, and on_loss() makes it a fault of the window. The handler passes on
//   every other SIGBUS, also that of an owner that lives and has unmapped the page. It runs where libosc copies or
//   updates elements, which holds none of the locks that it takes. Two limits: a program that replaces the handler gets
//   the signal; and while the pages are exchanged, another thread's access to the same attachment is SIGSEGV.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/xpmem.h"

namespace osc::shm {

struct ArenaHeader;

/// Whether processes of the node may attach [base, base + bytes) of this process; their place is then kAttachedOffset
/// plus the address. The first call for a process shows its memory to them. Thread-safe.
bool offer_memory(const void* base, std::size_t bytes);

/// This process's permit for the memory of another one. Not thread-safe: PeerArena's mutex protects it, except from the
/// handler of SIGBUS.
class Permit {
  public:
    Permit() = default;
    ~Permit();
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

    /// Whether the owner of the arena with this header shows its memory to this process. A refusal is final.
    bool obtain(const ArenaHeader& owner);
    /// Attaches [address, address + bytes) of the owner; null with errno if the system refuses. After obtain().
    std::byte* attach(std::uint64_t address, std::size_t bytes);
    static void detach(std::byte* place);
    /// Whether the owner still shows its memory: false once it has begun to end.
    bool shows() const;
    /// The owner has died: nothing more is attached.
    void lose() { permit_.store(kRefused, std::memory_order_relaxed); }

  private:
    static constexpr base::Xpmem::Permit kRefused = -1;
    std::atomic<base::Xpmem::Permit> permit_ = 0;  // 0: not asked for yet
    const ArenaHeader* owner_ = nullptr;
};

/// From now on, the thread that meets the death of an owner calls `lost` before its operation goes on.
void on_loss(void (*lost)(const Permit& permit));

}  // namespace osc::shm
