// libosc_ofi.so: registrations of memory, exposed to peers or local to a transfer.
#include <rdma/fi_domain.h>

#include "base/random.h"
#include "transport/fabric/libfabric.h"

namespace osc::fabric {

std::uint64_t random_key() {
    return base::random64();
}

fid_mr* Libfabric::register_memory(const void* base, std::size_t bytes, std::uint64_t access, std::uint64_t key) {
    const std::lock_guard lock(registrations_);
    fid_mr* memory = nullptr;
    if (fi_mr_reg(domain_, base, bytes, access, 0, key, 0, &memory, nullptr) != 0) return nullptr;
    if (!needs(FI_MR_ENDPOINT)) return memory;
    if (fi_mr_bind(memory, &endpoint_->fid, 0) == 0 && fi_mr_enable(memory) == 0) return memory;
    fi_close(&memory->fid);
    return nullptr;
}

bool Libfabric::register_local(const void* base, std::size_t bytes, Operation& operation, void*& description) {
    fid_mr* memory = register_memory(base, bytes, FI_SEND | FI_WRITE | FI_READ, random_key());
    if (memory == nullptr) return false;
    locals_.fetch_add(1, std::memory_order_relaxed);
    operation.registration = memory;
    description = fi_mr_desc(memory);
    return true;
}

void Libfabric::unregister_local(Operation& operation) {
    fi_close(&static_cast<fid_mr*>(operation.registration)->fid);
    operation.registration = nullptr;
    locals_.fetch_sub(1, std::memory_order_relaxed);
}

bool Libfabric::expose(void* base, std::size_t bytes, Exposed& exposed) {
    if (!flaw_.empty()) return false;
    // The provider refuses a random key that is in use already.
    for (int attempt = 0; attempt < 4; ++attempt) {
        fid_mr* memory = register_memory(base, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, random_key());
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
