// Ways in which memory goes and returns at the same address, with other pages below it. A cache of registrations that
// misses one of them lets the adapter access pages that the process no longer has. Each thread has memory of its own.
#pragma once

#include <malloc.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace rdma {

inline constexpr std::size_t kMost = std::size_t{1} << 21;  // bytes that a way gives at most

/// take() gives memory of this many bytes, aligned to 16 at least, or null if the system refuses it; leave() takes it
/// back.
struct Way {
    char* (*take)(std::size_t bytes);
    void (*leave)(char* memory, std::size_t bytes);
    bool threads = true;  // each thread takes and leaves by itself; else the main thread alone
    bool may_be_refused = false;
};

inline std::size_t pages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

inline char* map(char* at, std::size_t bytes, int flags) {
    void* const got = ::mmap(at, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return got == MAP_FAILED ? nullptr : static_cast<char*>(got);
}

/// The calling thread's addresses, of which each way uses its own part. They lie far below the mappings that the system
/// places by itself, so no other mapping comes there while a part is unmapped.
inline char* addresses() {
    static std::atomic<std::ptrdiff_t> threads{0};
    thread_local char* const mine = [] {
        char* const anywhere = map(nullptr, 1, 0);
        if (anywhere != nullptr) ::munmap(anywhere, 1);
        return anywhere - (++threads << 36);
    }();
    return mine;
}

/// Addresses at which nothing is mapped between leave() and take().
inline char* free_place() {
    return addresses();
}

/// Addresses that stay mapped.
inline char* mapped_place() {
    thread_local char* const place = map(addresses() + 2 * kMost, kMost, MAP_FIXED_NOREPLACE);
    return place;
}

/// The program's break moves down, or free pages inside the heap go back to the system.
inline constexpr Way kHeapThatShrinks = {[](std::size_t bytes) { return static_cast<char*>(std::malloc(bytes)); },
                                         [](char* memory, std::size_t) {
                                             std::free(memory);
                                             ::malloc_trim(0);
                                         }};

/// malloc maps large memory by itself, realloc moves it, and free unmaps it.
inline constexpr Way kLargeMalloc = {[](std::size_t bytes) {
                                         char* const small = static_cast<char*>(std::malloc(std::size_t{3} << 18));
                                         char* const large =
                                             static_cast<char*>(std::realloc(small, (std::size_t{3} << 18) + bytes));
                                         if (large == nullptr) std::free(small);
                                         return large;
                                     },
                                     [](char* memory, std::size_t) {
                                         std::free(memory);
                                         ::malloc_trim(0);
                                     }};

inline constexpr Way kMunmap = {[](std::size_t bytes) { return map(free_place(), bytes, MAP_FIXED_NOREPLACE); },
                                [](char* memory, std::size_t bytes) { ::munmap(memory, pages(bytes)); }};

/// A mapping comes over one that is still there.
inline constexpr Way kMapOver = {[](std::size_t bytes) { return map(mapped_place(), bytes, MAP_FIXED); },
                                 [](char*, std::size_t) {}};

inline constexpr Way kDontNeed = {
    [](std::size_t) { return mapped_place(); },
    [](char* memory, std::size_t bytes) { ::madvise(memory, pages(bytes), MADV_DONTNEED); }};

/// mremap moves the pages away, because it finds no room behind them.
inline constexpr Way kMoveAway = {[](std::size_t bytes) { return map(free_place(), bytes, MAP_FIXED_NOREPLACE); },
                                  [](char* memory, std::size_t bytes) {
                                      const std::size_t size = pages(bytes), page = pages(1);
                                      char* const behind = map(memory + size, page, MAP_FIXED_NOREPLACE);
                                      void* const moved = ::mremap(memory, size, size + page, MREMAP_MAYMOVE);
                                      ::munmap(moved != MAP_FAILED ? moved : memory,
                                               moved != MAP_FAILED ? size + page : size);
                                      if (behind != nullptr) ::munmap(behind, page);
                                  }};

/// mremap moves other pages over those that are there. UCX 1.13 puts a function in mremap's place that drops the
/// address.
inline constexpr Way kMoveOver = {.take = [](std::size_t bytes) -> char* {
                                      char* const fresh = map(nullptr, bytes, 0);
                                      if (fresh == nullptr) return nullptr;
                                      void* const moved = ::mremap(fresh, pages(bytes), pages(bytes),
                                                                   MREMAP_MAYMOVE | MREMAP_FIXED, mapped_place());
                                      if (moved == MAP_FAILED) ::munmap(fresh, pages(bytes));
                                      return moved == MAP_FAILED ? nullptr : static_cast<char*>(moved);
                                  },
                                  .leave = [](char*, std::size_t) {},
                                  .may_be_refused = true};

/// mremap cuts a mapping down to nothing but a page in front of the memory, and lets it grow again.
inline constexpr Way kCutDown = {
    [](std::size_t bytes) -> char* {
        const std::size_t page = pages(1);
        thread_local char* const front = map(addresses() + 4 * kMost, page, MAP_FIXED_NOREPLACE);
        if (front == nullptr || ::mremap(front, page, page + pages(bytes), 0) == MAP_FAILED) return nullptr;
        return front + page;
    },
    [](char* memory, std::size_t bytes) { ::mremap(memory - pages(1), pages(1) + pages(bytes), pages(1), 0); }};

/// A segment of System V, another one each time.
inline constexpr Way kSegments = {[](std::size_t bytes) -> char* {
                                      const int id = ::shmget(IPC_PRIVATE, pages(bytes), IPC_CREAT | 0600);
                                      if (id < 0) return nullptr;
                                      void* const got = ::shmat(id, free_place(), 0);
                                      ::shmctl(id, IPC_RMID, nullptr);
                                      const bool failed = reinterpret_cast<std::intptr_t>(got) == -1;
                                      return failed ? nullptr : static_cast<char*>(got);
                                  },
                                  [](char* memory, std::size_t) { ::shmdt(memory); }};

/// The program moves the break itself. If an allocation has come behind the memory, the memory stays.
inline constexpr Way kBreak = {[](std::size_t bytes) -> char* {
                                   void* const got = ::sbrk(static_cast<std::intptr_t>(pages(bytes)));
                                   return reinterpret_cast<std::intptr_t>(got) == -1 ? nullptr
                                                                                     : static_cast<char*>(got);
                               },
                               [](char* memory, std::size_t bytes) {
                                   if (::sbrk(0) == memory + pages(bytes))
                                       ::sbrk(-static_cast<std::intptr_t>(pages(bytes)));
                               },
                               false};

}  // namespace rdma
