// Asks the device libraries whether an address is device memory. The types and constants used are part of their binary
// interfaces and are written out here, so that libosc builds without their headers.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "window/create.h"

namespace osc {
namespace {

// A library whose file name begins with `name`, if it is loaded. The program may load it at any time; once found, it
// stays.
struct Library {
    const char* name;
    void* handle = nullptr;

    template <class F>
    F* find(const char* function) const {
        return handle != nullptr ? reinterpret_cast<F*>(::dlsym(handle, function)) : nullptr;
    }
};

Library g_cuda{"libcuda.so"};
Library g_hip{"libamdhip64.so"};
Library g_zero{"libze_loader.so"};
std::mutex g_devices_mutex;  // of all that this file has

// Searches the loaded libraries, if any was loaded since the last call. dlopen alone would search the file system for
// libraries that are not loaded, which takes longer than the rest of a window's creation.
void look_for_libraries() {
    struct Look {
        unsigned long long loads;  // the process's count of loads at the last call
        bool changed = false;
        std::vector<std::pair<Library*, std::string>> found;
    };
    static unsigned long long loads = 0;
    Look look{loads, false, {}};
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            auto& seen = *static_cast<Look*>(data);
            if (!seen.changed && info->dlpi_adds == seen.loads) return 1;
            seen.loads = info->dlpi_adds;
            seen.changed = true;
            const char* slash = std::strrchr(info->dlpi_name, '/');
            const std::string_view file = slash != nullptr ? slash + 1 : info->dlpi_name;
            for (Library* library : {&g_cuda, &g_hip, &g_zero})
                if (library->handle == nullptr && file.starts_with(library->name))
                    seen.found.emplace_back(library, info->dlpi_name);
            return 0;
        },
        &look);
    loads = look.loads;
    for (const auto& [library, path] : look.found)
        library->handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

bool is_cuda_device(std::uint64_t address) {
    auto* get = g_cuda.find<int(void*, int, std::uint64_t)>("cuPointerGetAttribute");
    if (get == nullptr) return false;
    constexpr int kMemoryType = 2;
    constexpr int kIsManaged = 8;
    unsigned type = 0;
    unsigned managed = 0;
    // For memory that it does not know it returns an error.
    if (get(&type, kMemoryType, address) != 0 || (type != 2 && type != 3)) return false;  // device, array
    return get(&managed, kIsManaged, address) != 0 || (managed & 0xff) == 0;
}

bool is_hip_device(const void* address) {
    struct Attributes {
        int type;
        std::byte rest[252];  // differs between releases
    };
    auto* get = g_hip.find<int(Attributes*, const void*)>("hipPointerGetAttributes");
    auto* version = g_hip.find<int(int*)>("hipRuntimeGetVersion");
    if (get == nullptr || version == nullptr) return false;
    alignas(16) Attributes attributes{};
    if (get(&attributes, address) != 0) {
        // Clears the error, so that the program's next hipGetLastError does not return it.
        if (auto* forget = g_hip.find<int()>("hipGetLastError"); forget != nullptr) forget();
        return false;
    }
    // Release 6 changed the numbers of the memory types device and array.
    int release = 0;
    return version(&release) == 0 && release < 60000000 ? attributes.type == 1 || attributes.type == 2
                                                        : attributes.type == 2 || attributes.type == 10;
}

// Level Zero answers for a context only, but a driver knows the memory of all contexts in each of them.
class LevelZero {
  public:
    bool is_device(const void* address) {
        struct Properties {
            std::uint32_t structure = 0x17;
            void* next = nullptr;
            std::uint32_t type = 0;
            std::uint64_t id = 0;
            std::uint64_t page = 0;
        };
        auto* get = g_zero.find<int(void*, const void*, Properties*, void**)>("zeMemGetAllocProperties");
        if (get == nullptr) return false;
        if (contexts_.empty()) make_contexts();
        for (void* context : contexts_) {
            Properties properties;
            void* device = nullptr;
            if (get(context, address, &properties, &device) == 0 && properties.type == 2) return true;
        }
        return false;
    }

  private:
    // Finds no driver until the program has initialised the library.
    void make_contexts() {
        struct Description {
            std::uint32_t structure = 0xd;
            const void* next = nullptr;
            std::uint32_t flags = 0;
        };
        auto* get = g_zero.find<int(std::uint32_t*, void**)>("zeDriverGet");
        auto* create = g_zero.find<int(void*, const Description*, void**)>("zeContextCreate");
        std::uint32_t count = 0;
        if (get == nullptr || create == nullptr || get(&count, nullptr) != 0 || count == 0) return;
        std::vector<void*> drivers(count);
        if (get(&count, drivers.data()) != 0) return;
        for (void* driver : drivers) {
            const Description description;
            void* context = nullptr;
            if (create(driver, &description, &context) == 0) contexts_.push_back(context);
        }
    }
    std::vector<void*> contexts_;
};

}  // namespace

bool look_for_devices() {
    const std::lock_guard lock(g_devices_mutex);
    look_for_libraries();
    const bool found = g_cuda.handle != nullptr || g_hip.handle != nullptr || g_zero.handle != nullptr;
    g_has_devices.store(found, std::memory_order_relaxed);
    return found;
}

bool in_device_memory(const void* address) {
    const std::lock_guard lock(g_devices_mutex);
    static auto& level_zero = *new LevelZero;  // never destroyed: a destructor may make a window
    look_for_libraries();
    return is_cuda_device(reinterpret_cast<std::uint64_t>(address)) || is_hip_device(address) ||
           level_zero.is_device(address);
}

}  // namespace osc
