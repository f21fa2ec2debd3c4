// A libze_loader.so.1 with two drivers, of which the second has the device.
#include <cstdint>

#include "fake.h"

namespace {
std::uint64_t g_memory = 0, g_bytes = 0;
bool g_managed = false;
int g_drivers[2];
int g_contexts[2];

struct Description {
    std::uint32_t structure;
    const void* next;
    std::uint32_t flags;
};
struct Properties {
    std::uint32_t structure;
    void* next;
    std::uint32_t type;
    std::uint64_t id, page;
};
constexpr int kInvalid = 0x78000004;
}  // namespace

extern "C" {

void fake_ze_claims(const void* memory, std::size_t bytes, bool managed) {
    g_memory = reinterpret_cast<std::uint64_t>(memory);
    g_bytes = bytes;
    g_managed = managed;
}

int zeDriverGet(std::uint32_t* count, void** drivers) {
    for (std::uint32_t i = 0; drivers != nullptr && i < *count && i < 2; ++i)
        drivers[i] = &g_drivers[i];
    *count = 2;
    return 0;
}

int zeContextCreate(void* driver, const Description* description, void** context) {
    if (description->structure != 0xd) return kInvalid;
    *context = &g_contexts[driver == &g_drivers[1]];
    return 0;
}

int zeMemGetAllocProperties(void* context, const void* address, Properties* properties, void** device) {
    if (properties->structure != 0x17) return kInvalid;
    const bool known = context == &g_contexts[1] && reinterpret_cast<std::uint64_t>(address) - g_memory < g_bytes;
    properties->type = !known ? 0 : g_managed ? 3 : 2;
    *device = nullptr;
    return 0;
}
}
