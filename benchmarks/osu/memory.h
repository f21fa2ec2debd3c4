// Plain memory at the start of a page, zeroed and so touched before anything is timed.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace osu {

class Memory {
  public:
    explicit Memory(std::size_t bytes) {
        if (bytes == 0) return;
        constexpr std::size_t kPage = 4096;
        const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
        at_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, whole)));
        if (at_ == nullptr) throw std::bad_alloc();
        std::memset(at_.get(), 0, whole);
    }

    std::byte* at() const { return at_.get(); }

  private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte, Free> at_;
};

}  // namespace osu
