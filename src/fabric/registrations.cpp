// libosc_ofi.so: registrations of memory, exposed to peers or local to a transfer.
#include <rdma/fi_domain.h>

#include "base/random.h"
#include "fabric/libfabric.h"
#include "fabric/monitor.h"
#include "fabric/probe.h"

namespace osc::fabric {

fid_mr* Libfabric::register_memory(const void* base, std::size_t bytes, std::uint64_t access, std::uint64_t flags) {
    const std::lock_guard lock(registrations_);
    return register_locked(base, bytes, access, flags);
}

fid_mr* Libfabric::register_locked(const void* base, std::size_t bytes, std::uint64_t access, std::uint64_t flags) {
    pass_on_unmapped();
    fid_mr* memory = nullptr;
    if (fi_mr_reg(domain_, base, bytes, access, 0, base::random64(), flags, &memory, nullptr) != 0) return nullptr;
    if (!needs(FI_MR_ENDPOINT)) return memory;
    if (fi_mr_bind(memory, &endpoint_->fid, 0) == 0 && fi_mr_enable(memory) == 0) return memory;
    fi_close(&memory->fid);
    return nullptr;
}

Posted Libfabric::make_local(std::size_t bytes, const Results& results, Operation& operation, Local& used) {
    if (operation.pinned != nullptr) {
        used.description = operation.pinned;
        return Posted::Yes;
    }
    if (bytes <= Slots::kBytes && slot_memory_ != nullptr) {
        operation.slot = slots_.take(used.memory, bytes, results);
        if (operation.slot < 0) return Posted::Again;
        used.memory = slots_.at(operation.slot);
        used.description = fi_mr_desc(slot_memory_);
        return Posted::Yes;
    }
    if (ucx_came_later() && !proves_cache_again()) local_flags_.store(kUncached, std::memory_order_relaxed);
    const std::lock_guard lock(registrations_);
    fid_mr* const memory =
        register_locked(used.memory, bytes, FI_SEND | FI_WRITE | FI_READ, local_flags_.load(std::memory_order_relaxed));
    // Another operation may give back what the provider lacks.
    if (memory == nullptr) return locals_ > 0 ? Posted::Again : Posted::NoMemory;
    ++locals_;
    operation.registration = memory;
    used.description = fi_mr_desc(memory);
    return Posted::Yes;
}

void Libfabric::unregister_local(Operation& operation) {
    fi_close(&static_cast<fid_mr*>(operation.registration)->fid);
    operation.registration = nullptr;
    const std::lock_guard lock(registrations_);
    --locals_;
}

void* Libfabric::pin(void* base, std::size_t bytes) {
    if (!needs(FI_MR_LOCAL)) return nullptr;
    fid_mr* const memory = register_memory(base, bytes, FI_SEND | FI_WRITE, kUncached);
    if (memory == nullptr) return nullptr;
    const std::lock_guard lock(registrations_);
    pinned_.push_back(memory);
    return fi_mr_desc(memory);
}

// The cache is used only if new memory at an old address gets a registration of its own.
void Libfabric::choose_registration() {
    if (!needs(FI_MR_LOCAL) || !flaw_.empty()) return;
    cache_flaw_ = probe_cache(*this);
    if (cache_flaw_.empty()) return;
    local_flags_.store(kUncached, std::memory_order_relaxed);
    if (probe_cache(*this) == kStale) flaw_ = "its registrations outlive the memory";
}

// A registration of a heap's end, and one of the new memory there: they differ if the cache has noticed the change.
// Their keys tell them apart, which a provider gives; one key of 256 may come again.
bool Libfabric::proves_cache_again() {
    if (local_flags_.load(std::memory_order_relaxed) == kUncached) return false;
    std::string why = "keys of the user's choice do not show whether registrations are new";
    for (int attempt = 0; needs(FI_MR_PROV_KEY) && attempt < 3; ++attempt) {
        std::uint64_t keys[2]{};
        why = renew_heap([&](void* memory, std::size_t bytes, int time) {
            fid_mr* const made = register_memory(memory, bytes, FI_SEND | FI_WRITE | FI_READ, 0);
            if (made == nullptr) return false;
            keys[time] = fi_mr_key(made);
            fi_close(&made->fid);
            return time == 0 || keys[0] != keys[1];
        });
        if (why.empty()) return true;
    }
    const std::lock_guard lock(registrations_);
    cache_flaw_ = "UCX was loaded: " + why;
    return false;
}

std::string Libfabric::registration() const {
    if (!needs(FI_MR_LOCAL)) return "none needed";
    if (!cache_flaw_.empty()) return "each transfer by itself: " + cache_flaw_;
    return std::string("cached, by ") + monitor_;
}

bool Libfabric::expose(void* base, std::size_t bytes, Exposed& exposed) {
    if (!flaw_.empty()) return false;
    // Registrations of windows end with them, so that their keys do.
    const std::uint64_t flags = needs(FI_MR_LOCAL) ? kUncached : 0;
    // The provider refuses a random key that is in use already.
    for (int attempt = 0; attempt < 4; ++attempt) {
        fid_mr* memory = register_memory(base, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, flags);
        if (memory == nullptr) continue;
        exposed.registration = memory;
        exposed.key = fi_mr_key(memory);
        exposed.base = needs(FI_MR_VIRT_ADDR) ? reinterpret_cast<std::uint64_t>(base) : 0;
        return true;
    }
    return false;
}

void Libfabric::revoke(Exposed& exposed) {
    constexpr std::size_t kMost = 64;  // then a sleeping thread is to close them
    auto* const memory = static_cast<fid_mr*>(exposed.registration);
    exposed = {};
    if (memory == nullptr) return;
    if ((chosen_.quirks & kUnlockedClose) == 0) {
        fi_close(&memory->fid);
        return;
    }
    bool many = false;
    {
        const std::lock_guard lock(registrations_);
        revoked_.push_back(memory);
        has_revoked_.store(true, std::memory_order_relaxed);
        many = revoked_.size() % kMost == 0;
    }
    if (many) wake();
}

void Libfabric::close_revoked() {
    if (!has_revoked_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(registrations_);
    for (fid_mr* memory : revoked_)
        fi_close(&memory->fid);
    revoked_.clear();
    has_revoked_.store(false, std::memory_order_relaxed);
}

}  // namespace osc::fabric
