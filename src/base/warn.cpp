// Claims of warnings.
#include "base/warn.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "base/abstract_name.h"
#include "base/hash.h"
#include "base/launcher.h"
#include "base/log.h"

namespace osc::base {
namespace {

// Descriptors that claims may take; a process with more messages prints the others.
constexpr int kMostWarnings = 8;
constexpr int kMostFindings = 64;

enum class Finders { Job, Group };

// True if no other process of the node's part of the job has claimed the text. `claims` counts those of this process.
bool claim(std::uint64_t text, int& claims, int most) {
    const std::string mine = launcher::job_on_node();
    if (mine.empty() || claims >= most) return true;
    const Claim claimed =
        claim_name(format("libosc-%u-%016llx-%016llx", static_cast<unsigned>(::getuid()),
                          static_cast<unsigned long long>(hash_of(mine)), static_cast<unsigned long long>(text)));
    if (claimed == Claim::Mine) ++claims;
    return claimed != Claim::Taken;
}

bool may_print(std::uint64_t text, Finders finders) {
    static std::mutex mutex;
    static int claims = 0;
    static auto& printed = *new std::set<std::uint64_t>;  // never freed: exit handlers may warn
    const std::lock_guard lock(mutex);
    if (!printed.insert(text).second) return false;
    const int rank = launcher::rank();
    if (rank < 0) return true;
    if (finders == Finders::Job && !launcher::is_on_one_node()) return rank == 0;
    return claim(text, claims, kMostWarnings);
}

void warn(Finders finders, const char* format, va_list arguments) {
    char text[900];
    std::vsnprintf(text, sizeof text, format, arguments);
    if (may_print(hash_of(text), finders)) say("%s", text);
}

}  // namespace

void warn_for_job(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    warn(Finders::Job, format, arguments);
    va_end(arguments);
}

void warn_for_group(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    warn(Finders::Group, format, arguments);
    va_end(arguments);
}

bool claim_for_job(std::uint64_t key) {
    static std::mutex mutex;
    static int claims = 0;
    const std::lock_guard lock(mutex);
    return launcher::rank() < 0 || claim(key, claims, kMostFindings);
}

}  // namespace osc::base
