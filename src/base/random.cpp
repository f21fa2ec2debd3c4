#include "base/random.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/clock.h"

namespace osc::base {
namespace {

bool from_kernel(std::uint64_t& value) {
    return ::getrandom(&value, sizeof value, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof value);
}

// A filter may refuse getrandom and allow this. The device answers at boot too.
bool from_device(std::uint64_t& value) {
    const int fd = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool whole = ::read(fd, &value, sizeof value) == static_cast<ssize_t>(sizeof value);
    ::close(fd);
    return whole;
}

// The last step of splitmix64: a bijection in which every bit of the result depends on every bit of `value`.
std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

// The bytes of AT_RANDOM differ between programs started, the process number between forks of one program, the clock
// and the count between calls. The stack protector's secret is among the bytes: no result gives it away by
// itself.
std::uint64_t from_circumstances() {
    static std::atomic<std::uint64_t> calls{0};
    std::uint64_t given[2] = {0, 0};
    if (const auto at = ::getauxval(AT_RANDOM); at != 0) std::memcpy(given, reinterpret_cast<void*>(at), sizeof given);
    const std::uint64_t call = calls.fetch_add(1, std::memory_order_relaxed) << 32;
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const auto time = static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
    const std::uint64_t first = mixed(given[0] + call + static_cast<std::uint64_t>(::getpid()));
    return mixed(first ^ mixed(given[1] + time) ^ static_cast<std::uint64_t>(now_ns()));
}

}  // namespace

std::uint64_t random64() {
    std::uint64_t value = 0;
    if (!from_kernel(value) && !from_device(value)) value = from_circumstances();
    return value != 0 ? value : 1;
}

}  // namespace osc::base
