// Registrations with the wanted modes, and the check that an operation's local memory lies in one.
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "fake_libfabric/decorator.h"

namespace osc::fake_libfabric {
namespace {

/// A registration as libosc sees it.
struct Registration {
    fid_mr fid;  // first
    fid_domain* domain;
    const std::byte* base;
    std::size_t bytes;
    std::uint64_t access;
    std::uint64_t key;
    fid_mr* made;  // the provider's; null until it is enabled
    bool bound;
};

std::mutex g_mutex;
std::set<const Registration*>& live() {
    static auto* all = new std::set<const Registration*>;
    return *all;
}

Registration& registration(fid* object) {
    return *reinterpret_cast<Registration*>(object);
}

bool is_mapped(const std::byte* base, std::size_t bytes) {
    if (bytes == 0) return true;
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(base) & ~(page - 1);
    const std::size_t length = reinterpret_cast<std::uintptr_t>(base) + bytes - first;
    std::vector<unsigned char> pages((length + page - 1) / page);
    return ::mincore(reinterpret_cast<void*>(first), length, pages.data()) == 0;
}

// With FI_MR_VIRT_ADDR the provider's registration begins at address 0, so that its offsets are virtual addresses.
int enable_registration(Registration& memory) {
    const auto& ops = original(memory.domain->mr);
    const bool from_zero = has_mode(FI_MR_VIRT_ADDR);
    const std::byte* const base = from_zero ? nullptr : memory.base;
    const std::size_t bytes = memory.bytes + (from_zero ? reinterpret_cast<std::uintptr_t>(memory.base) : 0);
    const int error = inside([&] {
        return ops.reg(&memory.domain->fid, base, bytes, memory.access, 0, memory.key, 0, &memory.made, nullptr);
    });
    if (error == 0) memory.fid.key = fi_mr_key(memory.made);
    return error;
}

int close_registration(fid* object) {
    Registration& memory = registration(object);
    {
        const std::lock_guard lock(g_mutex);
        if (live().erase(&memory) != 1) stop("a registration is closed twice");
    }
    const int error = memory.made != nullptr ? fi_close(&memory.made->fid) : 0;
    delete &memory;
    return error;
}

int bind_registration(fid* object, fid* endpoint, std::uint64_t) {
    if (!has_mode(FI_MR_ENDPOINT)) stop("a registration is bound without FI_MR_ENDPOINT");
    registration(object).bound = endpoint->fclass == FI_CLASS_EP;
    return 0;
}

int control_registration(fid* object, int command, void*) {
    Registration& memory = registration(object);
    if (command != FI_ENABLE) return -FI_ENOSYS;
    if (!memory.bound || memory.made != nullptr) stop("a registration is enabled before it is bound, or twice");
    return enable_registration(memory);
}

constexpr std::uint64_t kUncached = std::uint64_t{1} << 60;  // OFI_MR_NOCACHE

// The key of a registration. A cache that keeps registrations of memory that is gone gives the memory that is there now
// the earlier key. No such key is in use: libosc closes each registration of a transfer before the next one of the
// same memory.
std::uint64_t key_of(const void* base, std::size_t bytes, std::uint64_t key, std::uint64_t flags) {
    static std::atomic<std::uint64_t> keys{0x1000};
    static const bool stale = setting("FAKE_FI_CACHE") == "stale";
    if (!has_mode(FI_MR_PROV_KEY)) return key;
    const std::uint64_t made = keys.fetch_add(1);
    if (!stale || (flags & kUncached) != 0) return made;
    static std::mutex mutex;
    static auto* kept = new std::map<std::pair<const void*, std::size_t>, std::uint64_t>;
    const std::lock_guard lock(mutex);
    return kept->try_emplace({base, bytes}, made).first->second;
}

fi_ops g_registration_ops = [] {
    fi_ops ops{};
    ops.size = sizeof ops;
    ops.close = close_registration;
    ops.bind = bind_registration;
    ops.control = control_registration;
    return ops;
}();

}  // namespace

int make_registration(fid* domain, const void* base, std::size_t bytes, std::uint64_t access, std::uint64_t,
                      std::uint64_t key, std::uint64_t flags, fid_mr** made, void*) {
    static const std::string most = is_here() ? setting("FAKE_FI_REGISTRATIONS") : "";
    static const std::string largest = is_here() ? setting("FAKE_FI_LARGEST") : "";
    if (fails("mr") || (!largest.empty() && bytes > std::stoul(largest))) return -FI_ENOMEM;
    if (has_mode(FI_MR_ALLOCATED) && !is_mapped(static_cast<const std::byte*>(base), bytes))
        stop("a registration of memory that is not mapped");
    auto* const memory = new Registration{};
    memory->fid.fid.fclass = FI_CLASS_MR;
    memory->fid.fid.ops = &g_registration_ops;
    memory->fid.mem_desc = has_mode(FI_MR_LOCAL) ? memory : nullptr;
    memory->fid.key = FI_KEY_NOTAVAIL;
    memory->domain = reinterpret_cast<fid_domain*>(domain);
    memory->base = static_cast<const std::byte*>(base);
    memory->bytes = bytes;
    memory->access = access;
    memory->key = key_of(base, bytes, key, flags);
    {
        const std::lock_guard lock(g_mutex);
        if (!most.empty() && live().size() >= std::stoul(most)) {
            delete memory;
            return -FI_ENOMEM;
        }
        live().insert(memory);
    }
    *made = &memory->fid;
    const int error = has_mode(FI_MR_ENDPOINT) ? 0 : enable_registration(*memory);
    if (error != 0) close_registration(&memory->fid.fid);
    return error;
}

void check_local(const void* bytes, std::size_t count, const void* memory, std::uint64_t access) {
    if (!has_mode(FI_MR_LOCAL) || count == 0) return;
    const std::lock_guard lock(g_mutex);
    const auto found = live().find(static_cast<const Registration*>(memory));
    if (found == live().end()) stop("an operation's local memory is not registered");
    const Registration& covers = **found;
    const auto* const first = static_cast<const std::byte*>(bytes);
    if (covers.made == nullptr) stop("an operation's local registration is not enabled");
    if (first < covers.base || first + count > covers.base + covers.bytes)
        stop("an operation's local memory lies outside its registration");
    if ((covers.access & access) != access) stop("an operation's local registration lacks the access");
}

}  // namespace osc::fake_libfabric
