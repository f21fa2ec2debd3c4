// Checks a file, and takes its records apart.
#include "trace/reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

namespace osc::trace {
namespace {

// A string in a field that need not end with a zero.
template <std::size_t kBytes>
std::string text_of(const char (&field)[kBytes]) {
    return {field, ::strnlen(field, kBytes)};
}

}  // namespace

std::unique_ptr<File> File::open(const std::string& path, std::string& why) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts {};
    if (file < 0 || ::fstat(file, &facts) != 0) {
        why = std::strerror(errno);
        if (file >= 0) ::close(file);
        return nullptr;
    }
    const auto bytes = static_cast<std::size_t>(facts.st_size);
    void* memory = MAP_FAILED;
    if (S_ISREG(facts.st_mode) && bytes >= kFirstChunk) memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    why = "not a file of OSC_TRACE";
    if (memory == MAP_FAILED) return nullptr;
    std::unique_ptr<File> opened(new File(static_cast<const std::byte*>(memory), bytes));
    const Header& header = opened->header();
    if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return nullptr;
    if (header.format != kFormat || header.tables != table_hash()) {
        why = "another version of libosc has recorded it";
        return nullptr;
    }
    return opened;
}

File::File(const std::byte* memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {
    const std::size_t room = (bytes - kFirstChunk) / sizeof(Chunk);
    chunks_ = std::min<std::size_t>(room, header().used.load(std::memory_order_acquire));
    for (std::size_t i = 0; i < chunks_; ++i) {
        const Chunk& from = chunk(i);
        const auto is_it = [&](const Thread& thread) { return thread.number == from.thread; };
        if (from.thread == 0 || std::any_of(threads_.begin(), threads_.end(), is_it)) continue;
        threads_.push_back({from.thread, from.helper != 0, text_of(from.name)});
    }
}

File::~File() {
    ::munmap(const_cast<std::byte*>(memory_), bytes_);
}

std::string File::host() const {
    return text_of(header().host);
}

ClockPair File::last_pair() const {
    return header().last[header().newest.load(std::memory_order_acquire) % 2];
}

std::uint64_t File::dropped() const {
    return std::accumulate(
        std::begin(header().dropped), std::end(header().dropped), std::uint64_t{0},
        [](std::uint64_t sum, const auto& cell) { return sum + cell.load(std::memory_order_relaxed); });
}

File::Window File::window(std::uint16_t number) const {
    if (number == 0 || number > kWindows) return {};
    const WindowEntry& entry = layout().windows[number];
    if (entry.id.load(std::memory_order_acquire) == 0) return {};
    return {entry.id.load(std::memory_order_relaxed), text_of(entry.made_by), text_of(entry.name)};
}

void File::visit(base::FunctionRef<void(std::uint32_t, const Event&)> visit) const {
    for (std::size_t i = 0; i < chunks_; ++i) {
        const Chunk& from = chunk(i);
        if (from.thread == 0) continue;
        for (const Record& record : from.records) {
            const std::uint64_t what = record.what.load(std::memory_order_acquire);
            if (what == 0) break;  // not written yet: the last of its chunk
            if (record.end < record.begin) continue;
            visit(from.thread, Event(record, what));
        }
    }
}

}  // namespace osc::trace
