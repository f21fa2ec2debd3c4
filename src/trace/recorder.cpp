// Owns the file of this process's timeline.
// Build: osc_core_cold
#include "trace/recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>

#include "base/descriptor.h"
#include "base/helper_thread.h"
#include "base/options.h"
#include "base/random.h"
#include "base/system_file.h"
#include "base/wait_time.h"
#include "base/warn.h"
#include "shm/activity.h"
#include "trace/file.h"

namespace osc::trace {
namespace {

constexpr std::int64_t kCalibration = 2000000;    // ns between the first two pairs of the clocks
constexpr std::uint64_t kPairEvery = 1ull << 28;  // stamps between later pairs: about 0.1 s
constexpr std::uint32_t kNoRoom = ~std::uint32_t{0};

Layout* g_file = nullptr;  // mapped until the process ends, because threads may still write
std::mutex g_windows;
constinit thread_local std::uint32_t t_thread = 0;  // number; 0: none yet

// The kernel compares the counters of the cores and takes another clock where they differ.
bool counter_is_usable() {
#if defined(__x86_64__)
    constexpr unsigned kPowerManagement = 0x80000007;
    constexpr unsigned kInvariant = 1u << 8;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(kPowerManagement, &a, &b, &c, &d) == 0 || (d & kInvariant) == 0) return false;
    const std::string source = base::line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    return source == "tsc" || source == "kvm-clock" || source == "hyperv_clocksource_tsc_page";
#else
    return false;
#endif
}

// Processes compare their stamps if they run on one kernel with one CLOCK_MONOTONIC. A snapshot of a virtual machine
// has its boot id too, but hardly its host name.
std::uint64_t clock_number(const char* host) {
    struct stat space {};
    static_cast<void>(::stat("/proc/thread-self/ns/time", &space));
    const std::uint64_t parts[] = {space.st_dev, space.st_ino, base::g_stamps_are_ticks ? 1u : 0u};
    const std::uint64_t boot = base::hash_of(base::line_of("/proc/sys/kernel/random/boot_id"));
    return base::hash_of(host, base::hash_of({reinterpret_cast<const char*>(parts), sizeof parts}, boot));
}

// The closest of some readings.
ClockPair read_clocks() {
    ClockPair best;
    for (std::uint64_t least = ~std::uint64_t{0}, i = 0; i < 5; ++i) {
        const std::uint64_t before = base::stamp();
        const std::int64_t ns = now_ns();
        const std::uint64_t after = base::stamp();
        if (after - before >= least) continue;
        least = after - before;
        best = {before + least / 2, ns};
    }
    return best;
}

void wait_ended(std::uint64_t began, std::int64_t) {
    if (!is_open()) return;
    const shm::WaitScope* const scope = shm::WaitScope::innermost();
    const auto kind = static_cast<std::uint8_t>(scope != nullptr ? scope->kind() : shm::WaitKind::Other);
    write(began, base::stamp(), pack(Kind::Wait, kind, scope != nullptr ? scope->target() : kNoTarget), 0);
}

// The file with its memory, or null with errno. Later writes need no more room on the disk.
Layout* make_file(const std::string& path, std::size_t bytes) {
    ::unlink(path.c_str());
    const int file = base::above_stdio(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file < 0) return nullptr;
    void* memory = MAP_FAILED;
    int error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
    if (error == 0) {
        memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        error = errno;
    }
    ::close(file);
    if (memory != MAP_FAILED) return static_cast<Layout*>(memory);
    ::unlink(path.c_str());
    errno = error;
    return nullptr;
}

Chunk* chunk_at(std::uint32_t number) {
    return reinterpret_cast<Chunk*>(reinterpret_cast<std::byte*>(g_file) + kFirstChunk) + number;
}

std::uint32_t take_chunk(Header& header) {
    std::uint32_t used = header.used.load(std::memory_order_relaxed);
    while (used < header.chunks)
        if (header.used.compare_exchange_weak(used, used + 1, std::memory_order_relaxed)) return used;
    return kNoRoom;
}

// A cell belongs to one thread; the last one and that of threads without a chunk are shared.
void count_drop(Header& header) {
    const std::size_t cell = std::min<std::size_t>(t_thread, kCells - 1);
    header.dropped[cell].fetch_add(1, std::memory_order_relaxed);
    if (cell != 0 && cell != kCells - 1) detail::t_writer.drops = &header.dropped[cell];
}

// Gives the mapping its memory now; where the kernel cannot (before Linux 5.14), the first records do.
void populate(void* memory, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
    static_cast<void>(::madvise(memory, bytes, MADV_POPULATE_WRITE));
#else
    static_cast<void>(memory);
    static_cast<void>(bytes);
#endif
}

}  // namespace

void open(std::uint32_t rank, std::uint32_t processes, bool ticks) {
    const std::string& path = base::values().trace;
    const std::size_t limit = static_cast<std::size_t>(base::values().trace_mib) << 20;
    const std::size_t chunks = (limit - kFirstChunk) / sizeof(Chunk);
    g_file = make_file(file_of(path, rank), kFirstChunk + chunks * sizeof(Chunk));
    if (g_file == nullptr) {
        base::warn_for_job("cannot record the timeline beside %s: %s; the job runs without it", path.c_str(),
                           std::strerror(errno));
        return;
    }
    populate(g_file, kFirstChunk + chunks * sizeof(Chunk));
    base::g_stamps_are_ticks = ticks && counter_is_usable();
    Header& header = g_file->header;
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.format = kFormat;
    header.rank = rank;
    header.processes = processes;
    header.tables = table_hash();
    header.run = base::random64();
    timespec started{};
    ::clock_gettime(CLOCK_REALTIME, &started);
    header.started = started.tv_sec * 1000000000L + started.tv_nsec;
    ::gethostname(header.host, sizeof header.host - 1);
    header.clock = clock_number(header.host);
    header.chunks = static_cast<std::uint32_t>(chunks);
    header.first = read_clocks();
    while (now_ns() - header.first.ns < kCalibration) {
    }
    detail::note_clock();
    base::observe_waits(&wait_ended);
    detail::g_open.store(true, std::memory_order_release);
}

void close() {
    if (!is_open()) return;
    detail::g_open.store(false, std::memory_order_release);
    detail::note_clock();
}

Facts facts() {
    if (g_file == nullptr) return {};
    return {g_file->header.run, g_file->header.clock};
}

std::span<const std::byte> contents() {
    if (g_file == nullptr) return {};
    const std::size_t chunks = g_file->header.used.load(std::memory_order_acquire);
    return {reinterpret_cast<const std::byte*>(g_file), kFirstChunk + chunks * sizeof(Chunk)};
}

void note_clock_message(Kind kind, std::uint64_t flow) {
    const std::uint64_t now = base::stamp();
    write(now, now, pack(kind, 0, 0), flow);
}

std::uint64_t new_flow() {
    static std::atomic<std::uint64_t> count{0};
    return flow_of(g_file->header.run, 0, count.fetch_add(1, std::memory_order_relaxed));
}

std::uint16_t add_window(std::uint64_t id, const char* made_by) {
    if (!is_open()) return 0;
    const std::lock_guard lock(g_windows);
    const std::uint32_t number = g_file->header.windows.load(std::memory_order_relaxed) + 1;
    if (number > kWindows) return kWindows;
    const bool shared = number == kWindows;
    WindowEntry& entry = g_file->windows[number];
    std::strncpy(entry.made_by, shared ? "further windows" : made_by, sizeof entry.made_by - 1);
    entry.id.store(shared ? 1 : id, std::memory_order_release);
    g_file->header.windows.store(number, std::memory_order_release);
    return static_cast<std::uint16_t>(number);
}

void name_window(std::uint16_t window, const char* name) {
    if (g_file == nullptr || window == 0 || window >= kWindows) return;
    const std::lock_guard lock(g_windows);
    std::strncpy(g_file->windows[window].name, name, sizeof g_file->windows[window].name - 1);
}

namespace detail {

bool refill() {
    if (!is_open()) return false;
    Header& header = g_file->header;
    const std::uint32_t number = take_chunk(header);
    if (number == kNoRoom) {
        count_drop(header);
        return false;
    }
    if (t_thread == 0) t_thread = header.threads.fetch_add(1, std::memory_order_relaxed) + 1;
    Chunk& chunk = *chunk_at(number);
    chunk.thread = t_thread;
    chunk.helper = base::t_helper_thread ? 1 : 0;
    ::pthread_getname_np(::pthread_self(), chunk.name, sizeof chunk.name);
    t_writer = {chunk.records, chunk.records + kRecords};
    return true;
}

void note_clock() {
    static std::mutex mutex;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;
    Header& header = g_file->header;
    const std::uint32_t place = 1 - header.newest.load(std::memory_order_relaxed);
    header.last[place] = read_clocks();
    header.newest.store(place, std::memory_order_release);
    g_next_pair.store(header.last[place].stamp + kPairEvery, std::memory_order_relaxed);
}

}  // namespace detail

}  // namespace osc::trace
