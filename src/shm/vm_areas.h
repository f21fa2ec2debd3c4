// The areas of this process's address space, as /proc/thread-self/maps lists them. The kernel's list is the only truth
// about what lies at an address: the program may unmap, move or replace memory at any time. Reading it calls no malloc
// and needs little stack, so it is usable between fork and exec, and in a thread or signal handler with the smallest
// stack.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace osc::shm {

/// One area: [first, end) has one kind of backing and one protection.
struct VmArea {
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    std::uint64_t offset = 0;  // in the file
    dev_t device = 0;
    ino_t inode = 0;  // 0: no file
    bool readable = false;
    bool writable = false;
    bool executable = false;
    bool shared = false;
    bool special = false;  // a stack, or memory of the kernel
};

/// The area's protection, as for mmap().
inline int protection_of(const VmArea& area) {
    return (area.readable ? PROT_READ : 0) | (area.writable ? PROT_WRITE : 0) | (area.executable ? PROT_EXEC : 0);
}

/// The area that contains `address`, in a microsecond; false if there is none, or if the kernel (before 6.11) lists
/// areas only. Does not tell special areas.
bool area_at(std::uintptr_t address, VmArea& area);

/// Reads the areas in the order of their addresses, by a buffer in pages of its own. Not thread-safe.
class VmAreas {
  public:
    VmAreas();
    ~VmAreas();
    VmAreas(const VmAreas&) = delete;
    VmAreas& operator=(const VmAreas&) = delete;

    /// The next area; false behind the last one, or if /proc cannot be read.
    bool next(VmArea& area);
    /// After next() was false: whether it has returned every area.
    bool complete() const { return complete_; }

  private:
    bool line(const char*& text, std::size_t& length);

    static constexpr std::size_t kBytes = 16384;
    char* buffer_;
    int fd_;
    std::size_t begin_ = 0;
    std::size_t filled_ = 0;
    bool ended_ = false;
    bool complete_ = false;
};

}  // namespace osc::shm
