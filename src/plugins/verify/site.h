// Call sites: where the program called an MPI function, as a number that means the same in every process of a job which
// runs the same program, and as text. Owns the table of loaded files.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace osc::check {

/// A place in a loaded file: a hash of the file's name and an offset in it. 0: unknown. Processes that have loaded the
/// same files at other addresses have the same value, so a site can be sent to another process.
struct Site {
    std::uint64_t value = 0;
    friend bool operator==(Site, Site) = default;
    friend auto operator<=>(Site, Site) = default;
};

/// The site of a call, from the return address of the called function. If the caller is an MPI library or a language
/// binding (libmpifort, mpi4py), the stack is walked to the first frame outside; without one, `returns_to` counts.
/// A few hundred ns at the first call from an address, a table look-up later. Thread-safe.
Site site_of(const void* returns_to);

/// The address in this process; null if it has not loaded the file. Thread-safe.
const void* address_of(Site site);

/// The site of an access to memory, from the addresses behind the instruction and of its callers, the innermost first:
/// the first of them outside the system's libraries and MPI. 0: none.
struct AccessSite {
    Site site;
    bool by_library = false;  // the instruction is one of the system's libraries
};
AccessSite site_of_access(std::span<const void* const> frames);

/// The site of the call of MPI that this thread is in; the entry points of the checker set it.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Site t_call_site;

/// "main (halo.c:37)" if addr2line is installed and the file has line numbers; else "halo+0x1169 (main+0x20)", which
/// the user can pass to addr2line. Starts a process at the first call for a site: milliseconds. Thread-safe; call it
/// without locks of libosc.
std::string text_of(Site site);

}  // namespace osc::check
