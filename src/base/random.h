// Random numbers for tokens, secrets, keys and names.
#pragma once

#include <cstdint>

namespace osc::base {

/// 64 random bits, not all zero. They come from the kernel. Where it gives none (a seccomp filter refuses getrandom, no
/// /dev/urandom, a pool that is not ready at boot), they are a hash of what differs between processes and calls: enough
/// against accidents, which is all that libosc's numbers are for, but an attacker may guess them. Never fails, never
/// waits. Thread-safe.
std::uint64_t random64();

}  // namespace osc::base
