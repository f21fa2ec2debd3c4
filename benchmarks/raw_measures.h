// What net_raw measures: its two processes with their registered memory, and what each measure does there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net.h"
#include "raw_endpoint.h"

namespace bench {

inline constexpr int kOrigin = 0;
// The target looks for the end of a measure once in so many polls: looking is a system call.
inline constexpr int kPollsPerLook = 256;

// The registered memory: what the peer reaches, and then the buffers of this process.
inline constexpr std::size_t kWindow = kLargeBytes;
inline constexpr std::size_t kMine = kWindow;
inline constexpr std::size_t kResult = kMine + kLargeBytes;
inline constexpr std::size_t kOperand = kResult + 64;
inline constexpr std::size_t kCompare = kOperand + 64;
inline constexpr std::size_t kMessage = kCompare + 64;
inline constexpr std::size_t kLargestMessage = std::size_t{8} << 10;
inline constexpr std::size_t kMemory = kMessage + kLargestMessage + 4096;

struct Options {
    std::string provider;
    std::string server = "127.0.0.1";
    int port = 47017;
    int rank = 0;
    bool brief = false;
    std::vector<std::string> wanted;
};

class Process {
  public:
    Process(const Options& options, const Control& control, Progress progress)
        : options_(options),
          control_(control),
          memory_(static_cast<std::byte*>(std::aligned_alloc(4096, kMemory))),
          endpoint_(options.provider,
                    options.rank == kOrigin && progress == Progress::thread ? Progress::polling : progress,
                    memory_.get(), kMemory, control) {}

    bool origin() const { return options_.rank == kOrigin; }
    bool brief() const { return options_.brief; }
    Endpoint& endpoint() { return endpoint_; }
    const Control& control() const { return control_; }
    std::byte* at(std::size_t offset) { return memory_.get() + offset; }
    std::uint64_t word(std::size_t offset) const {
        std::uint64_t value = 0;
        std::memcpy(&value, memory_.get() + offset, sizeof value);
        return value;
    }
    void set_word(std::size_t offset, std::uint64_t value) {
        std::memcpy(memory_.get() + offset, &value, sizeof value);
    }
    void clear() { std::memset(memory_.get(), 0, kMemory); }
    // Calls `answer`, if there is one, after each poll.
    void poll_until_told(const std::function<void(Process&)>& answer) {
        while (!control_.stopped()) {
            for (int i = 0; i < kPollsPerLook; ++i) {
                endpoint_.poll();
                if (answer) answer(*this);
            }
        }
    }

  private:
    struct Free {
        void operator()(std::byte* p) const { std::free(p); }
    };
    const Options& options_;
    const Control& control_;
    std::unique_ptr<std::byte[], Free> memory_;
    Endpoint endpoint_;
};

// One measure: what the origin does in a turn (an operation, or all that one flush covers) and what must be true then.
struct Raw {
    std::string name;
    bool atomic = false;
    std::size_t parts = 1;
    std::function<void(Process&, std::uint64_t lap)> turn = nullptr;
    // At the target: before the turns, and after each of its polls. On either side: after `laps` turns.
    std::function<void(Process&)> prepare = [](Process&) {};
    std::function<void(Process&)> answer = nullptr;
    // At the target when the turns have ended, and then at the origin: takes what is under way.
    std::function<void(Process&, std::uint64_t laps)> finish = [](Process&, std::uint64_t) {};
    std::function<bool(const Process&, std::uint64_t laps)> target_right = nullptr;
    std::function<bool(const Process&, std::uint64_t laps)> origin_right = [](const Process&, std::uint64_t) {
        return true;
    };
};

// Single operations, each with its flush: for either kind of target.
std::vector<Raw> small_measures();

// All that a polling target is measured with.
std::vector<Raw> polling_measures();

// The same with puts, gets and additions of every size, and puts and gets as many to a flush as fit: the curves of
// compare. And a message of every size up to kLargestMessage, one way (message.BYTES), and two that cross
// (exchange.BYTES).
std::vector<Raw> curve_measures();

}  // namespace bench
