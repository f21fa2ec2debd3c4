// A libcuda.so.1 with the one function that libosc asks.
#include <cstdint>

#include "fake.h"

namespace {
std::uint64_t g_memory = 0, g_bytes = 0;
bool g_managed = false;
}  // namespace

extern "C" {

void fake_cuda_claims(const void* memory, std::size_t bytes, bool managed) {
    g_memory = reinterpret_cast<std::uint64_t>(memory);
    g_bytes = bytes;
    g_managed = managed;
}

int cuPointerGetAttribute(void* data, int attribute, unsigned long long address) {
    if (address - g_memory >= g_bytes) return 1;                          // the value is invalid
    if (attribute == 2) return *static_cast<unsigned*>(data) = 2, 0;      // the type of the memory: the device's
    if (attribute == 8) return *static_cast<bool*>(data) = g_managed, 0;  // managed
    return 1;
}
}
