// The copy behind copy_bytes.h. From some 2 KB on, glibc's memcpy is one string instruction (rep movsb) on processors
// that announce it as fast. On AMD's Zen 4 that takes 30 to 100 times as long where the destination lies 1 to 15 bytes
// behind the source modulo a page, and up to 6 times as long to some 500 bytes: the processor compares the low twelve
// bits of a load's address with those of stores that are under way, and takes the load for one of their data. From the
// last byte to the first, loads run away from the stores before them.
//
// A store fetches the line from the caches of the core that has read it last. Where the cores of an AMD processor share
// no cache, a message of 32 KiB that one writes and the other reads in turn takes 17 us so, and 5 us by stores past the
// caches.
#include "base/copy_bytes.h"

#include <cstdint>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace osc::base {
namespace {

#ifdef __x86_64__
using Vector = __m256i_u;

[[gnu::target("avx2")]] Vector load(const std::byte* from) {
    return *reinterpret_cast<const Vector*>(from);
}

[[gnu::target("avx2")]] void store(std::byte* to, Vector value) {
    *reinterpret_cast<Vector*>(to) = value;
}

// The first 128 bytes are loaded at the start and stored at the end: the loop stops somewhere in them.
[[gnu::target("avx2")]] void copy_backwards(std::byte* to, const std::byte* from, std::size_t bytes) {
    constexpr std::size_t kStep = 4 * sizeof(Vector);
    const Vector first[4] = {load(from), load(from + 32), load(from + 64), load(from + 96)};
    store(to + bytes - 32, load(from + bytes - 32));
    std::size_t left = bytes - (reinterpret_cast<std::uintptr_t>(to) + bytes) % sizeof(Vector);
    for (; left > kStep; left -= kStep) {
        const Vector a = load(from + left - 32);
        const Vector b = load(from + left - 64);
        const Vector c = load(from + left - 96);
        const Vector d = load(from + left - 128);
        store(to + left - 32, a);
        store(to + left - 64, b);
        store(to + left - 96, c);
        store(to + left - 128, d);
    }
    for (std::size_t i = 0; i < 4; ++i)
        store(to + i * sizeof(Vector), first[i]);
}

// Of whole vectors; returns the bytes copied.
std::size_t copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::size_t done = 0;
    for (; done + sizeof(__m128i) <= bytes; done += sizeof(__m128i))
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + done),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done)));
    _mm_sfence();
    return done;
}

// Whether the loop takes no longer than memcpy, and perhaps much less.
bool better_backwards(std::size_t distance, std::size_t bytes) {
    constexpr std::size_t kShort = std::size_t{64} << 10;
    constexpr std::size_t kMost = std::size_t{1} << 20;  // memcpy uses other instructions from here on
    constexpr std::size_t kPage = 4096;
    constexpr std::size_t kNear = 1024;
    return bytes <= kShort || (bytes < kMost && distance % kPage - 1 < kNear);
}
#endif

}  // namespace

void copy_long(void* to, const void* from, std::size_t bytes) noexcept {
#ifdef __x86_64__
    const std::size_t distance = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
    const bool overlap = distance < bytes || -distance < bytes;
    if (!overlap && better_backwards(distance, bytes) && __builtin_cpu_supports("avx2"))
        return copy_backwards(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
#endif
    std::memmove(to, from, bytes);
}

void copy_to_reader(void* to, const void* from, std::size_t bytes) noexcept {
    std::size_t done = 0;
#ifdef __x86_64__
    if (reinterpret_cast<std::uintptr_t>(to) % sizeof(__m128i) == 0 && __builtin_cpu_is("amd"))
        done = copy_past_caches(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
#endif
    copy_bytes(static_cast<std::byte*>(to) + done, static_cast<const std::byte*>(from) + done, bytes - done);
}

}  // namespace osc::base
