// The addresses that the fake device libraries report as device memory, and as managed memory.
#pragma once

#include <cstddef>

#define FAKE_DECLARE(device) void device##_claims(const void* memory, std::size_t bytes, bool managed);
extern "C" {
FAKE_DECLARE(fake_cuda)
FAKE_DECLARE(fake_hip)
FAKE_DECLARE(fake_old_hip)
FAKE_DECLARE(fake_ze)
}
