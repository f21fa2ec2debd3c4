// The description of a datatype without the host's handle, and a reference that keeps it alive while an operation is
// queued: the user may free the datatype right after the call that used it (MPI 4.1 section 5.1.9).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "op/layout.h"

namespace osc::op {

/// A committed datatype. Immutable except for its reference count, so any thread may read it. The first fields repeat
/// properties of the layout for the fast path.
class TypeInfo {
  public:
    /// `handle`: the host's, as a number. `builtin`: a predefined type, which lives as long as the process. `unnamed`:
    /// one that the host makes on request, as MPI_Type_create_f90_integer does.
    TypeInfo(std::uint64_t handle, Layout made, bool builtin, bool unnamed = false)
        : key(handle),
          size(made.size()),
          basic(made.basic()),
          contiguous(made.contiguous()),
          predefined(builtin),
          element(builtin || unnamed),
          layout(std::move(made)) {}
    TypeInfo(const TypeInfo&) = delete;
    TypeInfo& operator=(const TypeInfo&) = delete;

    const std::uint64_t key;  // of the type that was flattened; duplicates of it share this object
    const std::size_t size;   // bytes of data
    const Basic basic;
    const bool contiguous;  // any count is `count * size` bytes at displacement 0
    const bool predefined;
    const bool element;  // the standard counts it among the predefined types (MPI 4.1 section 19.1.9)
    const Layout layout;

    void retain() const noexcept {
        if (!predefined) references_.fetch_add(1, std::memory_order_relaxed);
    }
    void release() const noexcept {
        if (!predefined && references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

  private:
    ~TypeInfo() = default;

    mutable std::atomic<std::size_t> references_{1};
};

/// Keeps a TypeInfo alive. As thread-safe as a shared_ptr: copies in different threads are independent.
class TypeRef {
  public:
    TypeRef() = default;
    /// Pins `info`, which the caller's datatype keeps alive during this call.
    explicit TypeRef(const TypeInfo* info) noexcept : info_(info) {
        if (info_) info_->retain();
    }
    /// Takes over the initial reference of a new TypeInfo.
    static TypeRef adopt(const TypeInfo* info) noexcept {
        TypeRef reference;
        reference.info_ = info;
        return reference;
    }
    TypeRef(const TypeRef& other) noexcept : TypeRef(other.info_) {}
    TypeRef(TypeRef&& other) noexcept : info_(std::exchange(other.info_, nullptr)) {}
    TypeRef& operator=(TypeRef other) noexcept {
        std::swap(info_, other.info_);
        return *this;
    }
    ~TypeRef() {
        if (info_) info_->release();
    }

    [[nodiscard]] const TypeInfo* get() const noexcept { return info_; }
    const TypeInfo* operator->() const noexcept { return info_; }
    const TypeInfo& operator*() const noexcept { return *info_; }
    explicit operator bool() const noexcept { return info_ != nullptr; }

  private:
    const TypeInfo* info_ = nullptr;
};

}  // namespace osc::op
