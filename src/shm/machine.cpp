// Reads the boot id and the network namespace from /proc.
#include "shm/machine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

#include "base/hash.h"

namespace osc::shm {
namespace {

std::uint64_t find_number() {
    const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char boot[64];
    const ssize_t length = ::read(file, boot, sizeof boot);
    ::close(file);
    struct stat network {};
    if (length <= 0 || ::stat("/proc/thread-self/ns/net", &network) != 0) return 0;
    const std::uint64_t space[] = {network.st_dev, network.st_ino};
    const std::uint64_t hash = base::hash_of({reinterpret_cast<const char*>(space), sizeof space},
                                             base::hash_of({boot, static_cast<std::size_t>(length)}));
    return hash != 0 ? hash : 1;
}

}  // namespace

std::uint64_t machine_number() {
    static const std::uint64_t kNumber = find_number();
    return kNumber;
}

}  // namespace osc::shm
