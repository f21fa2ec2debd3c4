// Reads the boot id, the network namespace and the host's name.
#include "shm/machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <string>

#include "base/hash.h"
#include "base/system_file.h"

namespace osc::shm {
namespace {

std::string boot_id() {
    return base::line_of("/proc/sys/kernel/random/boot_id");
}

std::uint64_t find_number() {
    const std::string boot = boot_id();
    struct stat network {};
    if (boot.empty() || ::stat("/proc/thread-self/ns/net", &network) != 0) return 0;
    const std::uint64_t space[] = {network.st_dev, network.st_ino};
    const std::uint64_t hash = base::hash_of({reinterpret_cast<const char*>(space), sizeof space}, base::hash_of(boot));
    return hash != 0 ? hash : 1;
}

}  // namespace

std::uint64_t machine_number() {
    static const std::uint64_t kNumber = find_number();
    return kNumber;
}

std::uint64_t host_number() {
    static const std::uint64_t kNumber = [] {
        char name[HOST_NAME_MAX + 1] = {};
        ::gethostname(name, HOST_NAME_MAX);
        return base::hash_of(name, base::hash_of(boot_id()));
    }();
    return kNumber;
}

}  // namespace osc::shm
