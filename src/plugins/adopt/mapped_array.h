// An array in pages of its own. It neither calls malloc nor the C library's mmap, so it can be used inside replacements
// of those functions and between fork and exec, and its storage never lies on memory that a window has adopted.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace osc::shm {

/// Not thread-safe.
template <class T>
class MappedArray {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    MappedArray() = default;
    ~MappedArray() { release(); }
    MappedArray(const MappedArray&) = delete;
    MappedArray& operator=(const MappedArray&) = delete;

    /// False if the system has no memory; the array is unchanged then.
    bool push(const T& value) {
        if (size_ == room_ && !grow()) return false;
        items_[size_++] = value;
        return true;
    }
    void clear() { size_ = 0; }
    T* begin() { return items_; }
    T* end() { return items_ + size_; }
    const T* begin() const { return items_; }
    const T* end() const { return items_ + size_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& back() { return items_[size_ - 1]; }

  private:
    void release() {
        if (items_ != nullptr) ::syscall(SYS_munmap, items_, room_ * sizeof(T));
    }
    bool grow() {
        const std::size_t room = room_ == 0 ? kFirstBytes / sizeof(T) : 2 * room_;
        const long fresh =
            ::syscall(SYS_mmap, nullptr, room * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
        if (fresh == -1) return false;
        T* const items = reinterpret_cast<T*>(fresh);
        std::copy(begin(), end(), items);
        release();
        items_ = items;
        room_ = room;
        return true;
    }
    static constexpr std::size_t kFirstBytes = 4096;
    static_assert(sizeof(T) <= kFirstBytes);
    T* items_ = nullptr;
    std::size_t size_ = 0;
    std::size_t room_ = 0;
};

}  // namespace osc::shm
