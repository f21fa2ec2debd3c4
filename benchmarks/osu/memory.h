// Plain memory, zeroed and so touched before anything is timed.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace osu {

class Memory {
  public:
    static constexpr std::size_t kPage = 4096;

    /// `offset`: from the start of a page, less than kPage.
    explicit Memory(std::size_t bytes, std::size_t offset = 0) : offset_(offset) {
        if (bytes == 0) return;
        const std::size_t whole = (offset + bytes + kPage - 1) / kPage * kPage;
        at_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, whole)));
        if (at_ == nullptr) throw std::bad_alloc();
        std::memset(at_.get(), 0, whole);
    }

    std::byte* at() const { return at_ != nullptr ? at_.get() + offset_ : nullptr; }

  private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte, Free> at_;
    std::size_t offset_;
};

}  // namespace osu
