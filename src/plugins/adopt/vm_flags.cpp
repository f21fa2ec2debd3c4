// Parses /proc/thread-self/smaps: for each area a line as in /proc/thread-self/maps, and a line "VmFlags: rd wr mr
// ...".
// Build: osc_adopt_core
#include "plugins/adopt/vm_flags.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace osc::shm {
namespace {

struct Flag {
    const char* name;  // as smaps writes it
    const char* meaning;
};

// What a mapping of the arena's file could not keep, or may not have.
constexpr Flag kFlags[] = {{"lo", "it is locked"},
                           {"ht", "it has reserved huge pages"},
                           {"io", "it is a device's"},
                           {"pf", "it is a device's"},
                           {"wf", "the program gave it MADV_WIPEONFORK"},
                           {"dc", "the program gave it MADV_DONTFORK"},
                           {"dd", "the program gave it MADV_DONTDUMP"},
                           {"um", "a userfaultfd watches it"},
                           {"uw", "a userfaultfd watches it"},
                           {"ui", "a userfaultfd watches it"}};

const char* meaning_of(const char* flags) {
    for (const Flag& flag : kFlags) {
        const char padded[] = {' ', flag.name[0], flag.name[1], ' ', '\0'};
        if (std::strstr(flags, padded) != nullptr) return flag.meaning;
    }
    return nullptr;
}

// Areas with different policies are different areas.
bool has_policy(std::uintptr_t address) {
    constexpr unsigned long kOfAddress = 2;  // MPOL_F_ADDR
    int policy = 0;
    return ::syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, address, kOfAddress) == 0 && policy != 0;
}

}  // namespace

const char* special_treatment(std::uintptr_t first, std::uintptr_t end) {
    std::FILE* const file = std::fopen("/proc/thread-self/smaps", "re");
    if (file == nullptr) return nullptr;
    char line[512];
    const char* found = nullptr;
    bool begins = true;  // a line, which may be longer than the buffer
    bool within = false;
    while (found == nullptr && std::fgets(line, sizeof line, file) != nullptr) {
        const bool is_start = begins;
        char* const stop = std::strchr(line, '\n');
        begins = stop != nullptr;
        if (!is_start) continue;
        unsigned long from = 0, to = 0;
        if (std::sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            if (from >= end) break;
            within = to > first;
            if (within && has_policy(from > first ? from : first)) found = "the program gave it a NUMA policy";
        } else if (within && std::strncmp(line, "VmFlags:", 8) == 0) {
            if (stop != nullptr) *stop = ' ';
            found = meaning_of(line);
        }
    }
    std::fclose(file);
    return found;
}

}  // namespace osc::shm
