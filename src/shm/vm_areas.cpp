// Parses /proc/thread-self/maps: "first-end rwxp offset major:minor inode   name".
#include "shm/vm_areas.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace osc::shm {
namespace {

// Reads a number and the character behind it.
bool number(const char*& at, const char* end, int base, std::uint64_t& value) {
    const auto [stop, error] = std::from_chars(at, end, value, base);
    if (error != std::errc() || stop == end) return false;
    at = stop + 1;
    return true;
}

bool parse(const char* at, const char* end, VmArea& area) {
    std::uint64_t first = 0, last = 0, major = 0, minor = 0, inode = 0;
    if (!number(at, end, 16, first) || !number(at, end, 16, last) || end - at < 5) return false;
    area.readable = at[0] == 'r';
    area.writable = at[1] == 'w';
    area.executable = at[2] == 'x';
    area.shared = at[3] == 's';
    at += 5;
    if (!number(at, end, 16, area.offset) || !number(at, end, 16, major) || !number(at, end, 16, minor)) return false;
    const auto [stop, error] = std::from_chars(at, end, inode, 10);
    if (error != std::errc()) return false;
    const char* name = stop;
    while (name < end && *name == ' ')
        ++name;
    const auto is = [&](const char* prefix) {
        const std::size_t length = std::strlen(prefix);
        return static_cast<std::size_t>(end - name) >= length && std::memcmp(name, prefix, length) == 0;
    };
    area.first = first;
    area.end = last;
    area.device = ::makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
    area.inode = inode;
    area.special = is("[") && !is("[heap]") && !is("[anon:");
    return true;
}

// The kernel's query of one area (PROCMAP_QUERY), which older headers lack.
struct Query {
    std::uint64_t size = sizeof(Query);
    std::uint64_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t first = 0, end = 0;
    std::uint64_t rights = 0;
    std::uint64_t page = 0;
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    std::uint32_t major = 0, minor = 0;
    std::uint32_t name_size = 0, build_size = 0;
    std::uint64_t name = 0, build = 0;
};

}  // namespace

bool area_at(std::uintptr_t address, VmArea& area) {
    const int fd = ::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    Query query;
    query.address = address;
    const bool found = ::ioctl(fd, _IOWR('f', 17, Query), &query) == 0;
    ::close(fd);
    if (!found) return false;
    constexpr std::uint64_t kReadable = 1, kWritable = 2, kExecutable = 4, kShared = 8;
    area.first = query.first;
    area.end = query.end;
    area.offset = query.offset;
    area.device = ::makedev(query.major, query.minor);
    area.inode = query.inode;
    area.readable = (query.rights & kReadable) != 0;
    area.writable = (query.rights & kWritable) != 0;
    area.executable = (query.rights & kExecutable) != 0;
    area.shared = (query.rights & kShared) != 0;
    return true;
}

// Not by the C library's mmap, which may be patched by a library that calls libosc.
VmAreas::VmAreas() {
    const long buffer =
        ::syscall(SYS_mmap, nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    buffer_ = buffer == -1 ? nullptr : reinterpret_cast<char*>(buffer);
    fd_ = buffer_ == nullptr ? -1 : ::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
}

VmAreas::~VmAreas() {
    if (fd_ >= 0) ::close(fd_);
    if (buffer_ != nullptr) ::syscall(SYS_munmap, buffer_, kBytes);
}

// The next line without its end. A line longer than the buffer (a name of 16 KiB) ends the list.
bool VmAreas::line(const char*& text, std::size_t& length) {
    for (;;) {
        const auto* end = static_cast<const char*>(std::memchr(buffer_ + begin_, '\n', filled_ - begin_));
        if (end != nullptr) {
            text = buffer_ + begin_;
            length = static_cast<std::size_t>(end - text);
            begin_ += length + 1;
            return true;
        }
        if (ended_) return false;
        if (begin_ == 0 && filled_ == kBytes) return false;
        std::memmove(buffer_, buffer_ + begin_, filled_ - begin_);
        filled_ -= begin_;
        begin_ = 0;
        ssize_t got = 0;
        do
            got = ::read(fd_, buffer_ + filled_, kBytes - filled_);
        while (got < 0 && errno == EINTR);
        if (got <= 0) ended_ = true;
        if (got == 0) complete_ = filled_ == 0;
        if (got > 0) filled_ += static_cast<std::size_t>(got);
    }
}

bool VmAreas::next(VmArea& area) {
    const char* text = nullptr;
    std::size_t length = 0;
    if (fd_ < 0 || !line(text, length)) return false;
    if (parse(text, text + length, area)) return true;
    ended_ = true;
    filled_ = begin_;
    return false;
}

}  // namespace osc::shm
