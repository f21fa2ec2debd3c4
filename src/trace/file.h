// The file of one process's timeline, which its threads write through a shared mapping: a process that ends without
// MPI_Finalize leaves its records. A header, the table of windows, then chunks, each of one thread.
#pragma once

#include <string>

#include "base/hash.h"
#include "trace/record.h"

namespace osc::trace {

inline constexpr char kMagic[8] = {'O', 'S', 'C', 'T', 'R', 'A', 'C', 'E'};
inline constexpr std::uint32_t kFormat = 3;
inline constexpr std::size_t kWindows = 1023;  // with a name each; later ones share the last place
inline constexpr std::size_t kRecords = 1023;  // of a chunk
inline constexpr std::size_t kCells = 64;      // counters of drops; threads beyond share the last

/// A hash of the numbers that records use, so that no other version's file is misread.
consteval std::uint64_t table_hash() {
    std::uint64_t hash = base::kHashOfNothing;
#define OSC_ENTRY(kind, name, parameters, arguments) hash = base::hash_of(#name ";", hash);
#include "api/entries.def"
#define OSC_NOTIFY_ENTRY(kind, name) hash = base::hash_of(#name ";", hash);
#include "api/notify.def"
    return hash;
}

/// One instant on both clocks.
struct ClockPair {
    std::uint64_t stamp = 0;
    std::int64_t ns = 0;  // CLOCK_MONOTONIC
};

struct alignas(4096) Header {
    char magic[8];
    std::uint32_t format;
    std::uint32_t rank;  // in MPI_COMM_WORLD
    std::uint32_t processes;
    std::uint64_t tables;  // table_hash()
    std::uint64_t run;     // random
    std::int64_t started;  // CLOCK_REALTIME, ns
    std::uint64_t clock;   // equal for processes whose stamps can be compared
    char host[64];
    ClockPair first;
    ClockPair last[2];  // one is whole while the other changes
    std::atomic<std::uint32_t> newest;
    std::atomic<std::uint32_t> threads;
    std::atomic<std::uint32_t> windows;
    std::uint32_t chunks;             // that the file has room for
    std::atomic<std::uint32_t> used;  // chunks that threads have taken
    std::atomic<std::uint64_t> dropped[kCells];
};

/// A window as its process knows it. `id` is equal on all processes of the window, and written last.
struct WindowEntry {
    std::atomic<std::uint64_t> id;
    char made_by[28];
    char name[92];
};
static_assert(sizeof(WindowEntry) == 128);

struct Chunk {
    std::uint32_t thread;  // from 1
    std::uint32_t helper;  // 1: libosc's own
    char name[24];
    Record records[kRecords];
};
static_assert(sizeof(Chunk) == std::size_t{32} << 10);

struct Layout {
    Header header;
    WindowEntry windows[kWindows + 1];  // the first is for calls without a window of libosc
};
inline constexpr std::size_t kFirstChunk = (sizeof(Layout) + 4095) / 4096 * 4096;

/// The file of a process, beside the job's file.
inline std::string file_of(const std::string& path, std::uint32_t rank) {
    return path + ".rank-" + std::to_string(rank);
}

}  // namespace osc::trace
