// For tests of the arena's memory: /proc and /sys of a test's own, and what the arena's file has pages for.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "shm/arena.h"

namespace osc::test {

using shm::Arena;
using shm::ArenaBlock;
using shm::KeptPieces;
using shm::Mapping;
using shm::SystemMemory;

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

// A folder with /proc and /sys of the test's own.
class FakeSystem {
  public:
    FakeSystem() {
        // mkdtemp replaces the last six characters.
        std::string name = (std::filesystem::temp_directory_path() / "osc_memory_").string() + std::string(6, 'X');
        root_ = ::mkdtemp(name.data());
        write("/proc/sys/vm/overcommit_memory", "0\n");
        meminfo(1024, 1024, 0);
    }
    ~FakeSystem() { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    void meminfo(std::size_t total_mib, std::size_t available_mib, std::size_t swap_mib) const {
        write("/proc/meminfo", "MemTotal: " + std::to_string(total_mib * 1024) +
                                   " kB\nMemFree: 1 kB\nMemAvailable: " + std::to_string(available_mib * 1024) +
                                   " kB\nSwapTotal: " + std::to_string(swap_mib * 1024) + " kB\n");
    }
    SystemMemory memory() const { return SystemMemory(root_); }
    const std::string& root() const { return root_; }

  private:
    std::string root_;
};

// Bytes that the arena's file has pages for.
inline std::size_t backed(const Arena& arena) {
    struct stat file = {};
    EXPECT_EQ(::fstat(arena.address().fd, &file), 0);
    return static_cast<std::size_t>(file.st_blocks) * 512;
}

inline bool is_mapped(const ArenaBlock& piece) {
    return ::msync(piece.address, 4096, MS_ASYNC) == 0;
}

}  // namespace osc::test
