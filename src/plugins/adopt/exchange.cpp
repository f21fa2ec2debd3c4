// Exchanges private pages for pages of the arena's file with the same content.
// Build: osc_adopt_core
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/pages.h"
#include "plugins/adopt/adoption.h"
#include "shm/other_threads.h"

namespace osc::shm {
namespace {

// One exchange: it bounds the memory that exists twice, and it is the size of a huge page.
constexpr std::size_t kChunk = std::size_t{2} << 20;
constexpr std::size_t kSmallestPage = 4096;
constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which older headers lack

// Reads few bytes of most pages that have any content, the heap's headers among them.
__attribute__((no_sanitize("address", "thread"))) bool reads_as_zero(std::uintptr_t page) {
    using Word = std::uint64_t __attribute__((may_alias));
    const auto* const words = reinterpret_cast<const Word*>(page);
    for (std::size_t i = 0; i < base::page_bytes() / sizeof(Word); i += 4)
        if ((words[i] | words[i + 1] | words[i + 2] | words[i + 3]) != 0) return false;
    return true;
}

// The pages of [first, end) that have content of their own: bit i for page i. Anonymous pages that were never touched,
// or read as zero all the same, need no copy: holes of the file do so too.
class Present {
  public:
    Present(std::uintptr_t first, std::uintptr_t end, bool sparse) : count_((end - first) / base::page_bytes()) {
        entries_.fill(~std::uint64_t{0});
        if (!sparse) return;
        const int fd = ::open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;
        const std::size_t wanted = count_ * sizeof(std::uint64_t);
        if (::pread(fd, entries_.data(), wanted,
                    static_cast<off_t>(first / base::page_bytes() * sizeof(std::uint64_t))) !=
            static_cast<ssize_t>(wanted))
            entries_.fill(~std::uint64_t{0});
        ::close(fd);
        for (std::size_t i = 0; i < count_; ++i)
            if ((entries_[i] & kPresentOrSwapped) != 0 && reads_as_zero(first + i * base::page_bytes()))
                entries_[i] = 0;
    }
    /// Calls f(first page, end page) for each run; false as soon as f returns false.
    template <class F>
    bool each_run(F&& f) const {
        for (std::size_t at = run_end(0, false); at < count_;) {
            const std::size_t stop = run_end(at, true);
            if (!f(at, stop)) return false;
            at = run_end(stop, false);
        }
        return true;
    }

  private:
    static constexpr std::uint64_t kPresentOrSwapped = std::uint64_t{3} << 62;
    std::size_t run_end(std::size_t at, bool present) const {
        while (at < count_ && ((entries_[at] & kPresentOrSwapped) != 0) == present)
            ++at;
        return at;
    }
    std::size_t count_;
    std::array<std::uint64_t, kChunk / kSmallestPage> entries_;
};

bool write_all(int fd, const void* from, std::size_t bytes, std::uint64_t offset) {
    const auto* at = static_cast<const std::byte*>(from);
    while (bytes > 0) {
        const ssize_t done = ::pwrite(fd, at, bytes, static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        offset += static_cast<std::uint64_t>(done);
        bytes -= static_cast<std::size_t>(done);
    }
    return true;
}

}  // namespace

// While the host's thread stands, nothing here may wait for what that thread may hold: no malloc, and system calls
// instead of the C library's mmap and madvise, which a registration cache may have patched. `done`: how far it came.
Adoption::Refusal Adoption::copy_in(const Piece& piece, std::uint64_t shift, std::uintptr_t& done) {
    const Handlers handlers;
    if (!handlers.wait())
        return {"a thread of the host MPI, which may run the program's signal handlers, did not stop"};
    for (done = piece.first; done < piece.end;) {
        const std::uintptr_t end = std::min(piece.end, (done / kChunk + 1) * kChunk);
        if (!swap_chunk({done, end, piece.sparse}, shift)) return {"the system refused", errno};
        done = end;
    }
    return {};
}

// Copies the pages into the file, then puts the file's pages in their place. The old pages are free after that.
bool Adoption::swap_chunk(const Piece& chunk, std::uint64_t shift) {
    const std::size_t bytes = chunk.end - chunk.first;
    const std::uint64_t offset = shift + chunk.first;
    auto* const address = reinterpret_cast<std::byte*>(chunk.first);
    const Present present(chunk.first, chunk.end, chunk.sparse);
    bool good = drop_pages(offset, bytes);
    good = good && (!arena_.allocates_early() ||
                    ::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0);
    good = good && present.each_run([&](std::size_t from, std::size_t to) {
        return write_all(fd_, address + from * base::page_bytes(), (to - from) * base::page_bytes(),
                         offset + from * base::page_bytes());
    });
    good = good && ::syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                             static_cast<off_t>(offset)) != -1;
    if (good) return true;
    const int error = errno;
    drop_pages(offset, bytes);
    errno = error;
    return false;
}

// Maps the same pages once more, by the C library's function: a library that caches registrations of memory learns by
// its patch of that function that the old pages have gone. Then enters the pages into the page table: as if they were
// read, which the system does for 16 pages at a time, and which lets stores through in a mapping of such a file.
void Adoption::announce(const Place& place, std::uint64_t shift) const {
    auto* const address = reinterpret_cast<std::byte*>(place.first);
    const std::size_t bytes = place.end - place.first;
    static_cast<void>(::mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                             static_cast<off_t>(shift + place.first)));
    // Where shared memory may have huge pages only on demand. An error means that it may not.
    ::syscall(SYS_madvise, address, bytes, MADV_HUGEPAGE);
    auto at = static_cast<off_t>(shift + place.first);
    const auto stop = static_cast<off_t>(shift + place.end);
    while ((at = ::lseek(fd_, at, SEEK_DATA)) >= 0 && at < stop) {
        const off_t hole = std::min(std::max(::lseek(fd_, at, SEEK_HOLE), at + 1), stop);
        ::syscall(SYS_madvise, reinterpret_cast<std::byte*>(static_cast<std::uint64_t>(at) - shift), hole - at,
                  kPopulateRead);
        at = hole;
    }
}

}  // namespace osc::shm
