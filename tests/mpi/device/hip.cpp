// A fake libamdhip64.so with the functions that libosc calls, of release 6 or 5.
#include <cstdint>

#include "fake.h"

namespace {
std::uint64_t g_memory = 0, g_bytes = 0;
bool g_managed = false;
int g_release = 0;

struct Attributes {
    int type, device;
    void *on_device, *on_host;
    int managed;
    unsigned flags;
};
}  // namespace

extern "C" {

void fake_hip_claims(const void* memory, std::size_t bytes, bool managed) {
    g_release = 60342134;
    g_memory = reinterpret_cast<std::uint64_t>(memory);
    g_bytes = bytes;
    g_managed = managed;
}

void fake_old_hip_claims(const void* memory, std::size_t bytes, bool managed) {
    fake_hip_claims(memory, bytes, managed);
    g_release = 50731921;
}

int hipRuntimeGetVersion(int* version) {
    *version = g_release;
    return 0;
}

int hipPointerGetAttributes(Attributes* attributes, const void* address) {
    const bool known = reinterpret_cast<std::uint64_t>(address) - g_memory < g_bytes;
    const bool old = g_release < 60000000;
    if (old && !known) return 1;
    *attributes = {!known ? 0 : g_managed ? (old ? 4 : 3) : (old ? 1 : 2), 0, nullptr, nullptr, g_managed, 0};
    return 0;
}
}
