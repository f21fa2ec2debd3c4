// Reads the boot id and the network namespace from /proc.
#include "shm/machine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

namespace osc::shm {
namespace {

// FNV-1a.
std::uint64_t mix(std::uint64_t hash, const void* data, std::size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i)
        hash = (hash ^ at[i]) * 0x100000001b3ull;
    return hash;
}

std::uint64_t find_number() {
    const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char boot[64];
    const ssize_t length = ::read(file, boot, sizeof boot);
    ::close(file);
    struct stat network {};
    if (length <= 0 || ::stat("/proc/self/ns/net", &network) != 0) return 0;
    const std::uint64_t space[] = {network.st_dev, network.st_ino};
    const std::uint64_t hash =
        mix(mix(0xcbf29ce484222325ull, boot, static_cast<std::size_t>(length)), space, sizeof space);
    return hash != 0 ? hash : 1;
}

}  // namespace

std::uint64_t machine_number() {
    static const std::uint64_t kNumber = find_number();
    return kNumber;
}

}  // namespace osc::shm
