// The cache of flattened datatypes. An attribute on the datatype owns one reference to its TypeInfo: the host calls
// back when the type is duplicated or freed. The table is only a faster way to the same object.
//
// libosc holds no lock while it calls the host, because the host may call back under a lock of its own.
// Build: osc -O3
#include "host/datatype.h"

#include <new>
#include <stdexcept>

#include "host/datatype_contents.h"
#include "host/real.h"

namespace osc::host {

namespace detail {
constinit HandleTable<const TypeInfo> g_types;
}

namespace {

std::mutex g_init_mutex;
std::atomic<int> g_keyval{MPI_KEYVAL_INVALID};
std::atomic<MPI_Comm> g_comm{};  // for check_committed(); set before g_keyval

int share(MPI_Datatype, int, void*, void* value, void* copy, int* wanted) {
    static_cast<const TypeInfo*>(value)->retain();
    *static_cast<void**>(copy) = value;
    *wanted = 1;
    return MPI_SUCCESS;
}

// Runs before the host reissues the handle.
int drop(MPI_Datatype type, int, void* value, void*) {
    detail::g_types.erase(abi::handle_key(type));
    static_cast<const TypeInfo*>(value)->release();
    return MPI_SUCCESS;
}

// MPI has no query for this. MPI_Pack of no elements is local, and the host checks the type first. A send to
// MPI_PROC_NULL would not do, because MPICH does not check its type.
int check_committed(MPI_Datatype type, MPI_Comm self) {
    char nothing = 0;
    int position = 0;
    const int code = real().Pack(&nothing, 0, type, &nothing, 1, &position, self);
    if (code == MPI_SUCCESS) return MPI_SUCCESS;
    int error_class = MPI_ERR_TYPE;
    real().Error_class(code, &error_class);
    return error_class;
}

const TypeInfo* attached(MPI_Datatype type, int keyval) {
    void* value = nullptr;
    int found = 0;
    if (real().Type_get_attr(type, keyval, static_cast<void*>(&value), &found) != MPI_SUCCESS || !found) return nullptr;
    return static_cast<const TypeInfo*>(value);
}

const TypeInfo* enter(MPI_Datatype type, int keyval) {
    const std::uint64_t key = abi::handle_key(type);
    // A duplicate has inherited the attribute.
    if (const TypeInfo* info = attached(type, keyval)) return detail::g_types.insert(key, info);
    const bool unnamed = detail::is_unnamed(detail::combiner_of(type));
    const TypeRef made = TypeRef::adopt(new TypeInfo(key, detail::flatten(type), false, unnamed));
    // If two threads flatten a new type at once, one of them enters its result.
    const TypeInfo* info = detail::g_types.insert(key, made.get());
    if (info != made.get()) return info;
    info->retain();
    if (real().Type_set_attr(type, keyval, const_cast<TypeInfo*>(info)) != MPI_SUCCESS) {
        // Another thread may have found the object meanwhile, so this thread drops its reference without a release.
        detail::g_types.erase(key);
        throw std::bad_alloc();
    }
    return info;  // NOLINT(clang-analyzer-cplusplus.NewDelete): the attribute has a reference
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): `made` counts references

}  // namespace

namespace detail {

const TypeInfo* resolve(MPI_Datatype type, int& error) noexcept {
    const int keyval = g_keyval.load(std::memory_order_acquire);
    error = MPI_ERR_TYPE;
    if (!abi::may_be_datatype(type)) return nullptr;
    error = MPI_ERR_OTHER;
    if (keyval == MPI_KEYVAL_INVALID) return nullptr;
    error = check_committed(type, g_comm.load(std::memory_order_relaxed));
    if (error != MPI_SUCCESS) return nullptr;
    try {
        return enter(type, keyval);
    } catch (const std::invalid_argument&) {
        error = MPI_ERR_UNSUPPORTED_OPERATION;
    } catch (const std::overflow_error&) {
        error = MPI_ERR_COUNT;
    } catch (const std::exception&) {
        error = MPI_ERR_NO_MEM;
    }
    return nullptr;
}

}  // namespace detail

int init_types(MPI_Comm self) noexcept {
    if (g_keyval.load(std::memory_order_acquire) != MPI_KEYVAL_INVALID) return MPI_SUCCESS;
    const std::lock_guard lock(g_init_mutex);
    if (g_keyval.load(std::memory_order_relaxed) != MPI_KEYVAL_INVALID) return MPI_SUCCESS;
    detail::enter_predefined();
    int keyval = MPI_KEYVAL_INVALID;
    const int error = real().Type_create_keyval(&share, &drop, &keyval, nullptr);
    if (error != MPI_SUCCESS) return error;
    g_comm.store(self, std::memory_order_relaxed);
    g_keyval.store(keyval, std::memory_order_release);
    return MPI_SUCCESS;
}

void release_types() noexcept {
    int keyval = g_keyval.exchange(MPI_KEYVAL_INVALID);
    if (keyval == MPI_KEYVAL_INVALID) return;
    // Types that the user never freed; deleting the attribute calls drop().
    std::vector<std::uint64_t> derived;
    detail::g_types.for_each([&](std::uint64_t key, const TypeInfo& info) {
        if (!info.predefined) derived.push_back(key);
    });
    for (const std::uint64_t key : derived)
        real().Type_delete_attr(abi::handle_of<MPI_Datatype>(static_cast<abi::HandleKey>(key)), keyval);
    real().Type_free_keyval(&keyval);
}

}  // namespace osc::host
