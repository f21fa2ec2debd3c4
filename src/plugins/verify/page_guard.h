// Finds loads and stores of the program to its own window memory (OSC_CHECK=2). The program uses a mapping of that
// memory of its own, the view; libosc's own accesses, which use another mapping, are never seen. While other processes
// may access the window, no page of the view can be accessed: a load or store faults, a handler of SIGSEGV records it,
// opens the page, and lets the instruction run. On x86-64 the handler runs that one instruction (by the trap flag, and
// SIGTRAP) and closes the page again, so that it sees further accesses too. Elsewhere, and beyond bounds, the page
// stays open: for loads if the access was one, else for both.
//
// The handler passes faults that are not its own to the handler that was there before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plugins/verify/site.h"

namespace osc::check {

/// A load or store of the program. Its first byte in a page is known, not its length.
struct Touch {
    std::int64_t offset = 0;  // of the byte, in the view
    std::int64_t when = 0;    // ns: not later than the access
    bool store = false;
    Site site;
};

class PageGuard {
  public:
    /// `view`: `bytes` bytes that the program uses, in a mapping of whole pages of their own; `own`: libosc's address
    /// of the same memory. Null if there are too many guards, or no memory.
    static std::unique_ptr<PageGuard> make(std::byte* view, std::byte* own, std::size_t bytes);
    /// Opens the view for good.
    ~PageGuard();
    PageGuard(const PageGuard&) = delete;
    PageGuard& operator=(const PageGuard&) = delete;

    /// Begins to record accesses, by any thread. Each call allows a bounded number of them.
    void close();
    /// Ends it.
    void open();
    /// The accesses since the last call, while the view is open. Accesses that MPI makes for the program have the site
    /// of its call; those that libosc makes, and loads by the C library, are left out.
    std::vector<Touch> take();

    struct Record;
    struct Guarded;

  private:
    explicit PageGuard(Guarded& guarded) : guarded_(guarded) {}
    Guarded& guarded_;
};

/// libosc's own address of what the program sees at `address`; `address` itself outside the views. libosc and the
/// system calls that it makes must not access a view. Thread-safe.
void* own_address(const void* address);
/// The reverse: what the program uses for libosc's `address`.
void* program_address(const void* address);

}  // namespace osc::check
