// What the network gives without any MPI: the loops of net_bench by bare libfabric between two processes, of which
// rank 0 is the origin and rank 1 the target.
//   net_raw PROVIDER [--server HOST] [--port N] [--rank 0|1] [--short] [MEASURE...]
// HOST is where rank 0 runs; without --rank it is what an MPI launcher says. Names are those of net_bench without the
// window's flavour. The target polls, except in the measures "computing" and "idle_cpu", where a thread of it sleeps
// until something comes, and the rest of the process computes or sleeps.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net.h"
#include "plan.h"
#include "raw_endpoint.h"

namespace bench {
namespace {

constexpr int kOrigin = 0;
constexpr std::uint64_t kSeed = 20220;
constexpr int kWarmUps = 20;
// The target looks for the end of a measure once in so many polls: looking is a system call.
constexpr int kPollsPerLook = 256;
constexpr std::size_t kOutstanding = 128;

// The registered memory: what the peer reaches, and then the buffers of this process.
constexpr std::size_t kWindow = kLargeBytes;
constexpr std::size_t kMine = kWindow;
constexpr std::size_t kResult = kMine + kLargeBytes;
constexpr std::size_t kOperand = kResult + 64;
constexpr std::size_t kCompare = kOperand + 64;
constexpr std::size_t kMemory = kCompare + 4096;

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
          endpoint_(options.provider, options.rank == kOrigin ? Progress::polling : progress, memory_.get(), kMemory,
                    control) {}

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
    void poll_until_told() {
        while (!control_.told()) {
            for (int i = 0; i < kPollsPerLook; ++i)
                endpoint_.poll();
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
    // At the target, before the turns; and on either side after `laps` of them.
    std::function<void(Process&)> prepare = [](Process&) {};
    std::function<bool(const Process&, std::uint64_t laps)> target_right = nullptr;
    std::function<bool(const Process&, std::uint64_t laps)> origin_right = [](const Process&, std::uint64_t) {
        return true;
    };
};

void flush(Process& p) {
    p.endpoint().finish();
}

void room_for_one(Process& p) {
    while (p.endpoint().outstanding() >= kOutstanding)
        p.endpoint().poll();
}

std::vector<Raw> small_measures() {
    const auto counted = [](const Process& p, std::uint64_t laps) { return p.word(0) == laps; };
    const auto fetched = [](const Process& p, std::uint64_t laps) { return laps == 0 || p.word(kResult) == laps - 1; };
    std::vector<Raw> list;
    Raw put{"put8"};
    put.turn = [](Process& p, std::uint64_t lap) {
        p.set_word(kMine, stamp(0, lap));
        p.endpoint().write(kMine, 0, 8);
        flush(p);
    };
    put.target_right = [](const Process& p, std::uint64_t laps) { return p.word(0) == stamp(0, laps - 1); };
    list.push_back(put);

    Raw get{"get8"};
    get.turn = [](Process& p, std::uint64_t) {
        p.endpoint().read(kResult, 0, 8);
        flush(p);
    };
    get.prepare = [](Process& p) { p.set_word(0, stamp(0, 0)); };
    get.target_right = [](const Process& p, std::uint64_t) { return p.word(0) == stamp(0, 0); };
    get.origin_right = [](const Process& p, std::uint64_t) { return p.word(kResult) == stamp(0, 0); };
    list.push_back(get);

    Raw fop{"fop", true};
    fop.turn = [](Process& p, std::uint64_t) {
        p.set_word(kOperand, 1);
        p.endpoint().fetch_add(kOperand, kResult, 0);
        flush(p);
    };
    fop.target_right = counted;
    fop.origin_right = fetched;
    list.push_back(fop);

    Raw cas{"cas", true};
    cas.turn = [](Process& p, std::uint64_t lap) {
        p.set_word(kOperand, lap + 1);
        p.set_word(kCompare, lap);
        p.endpoint().compare_swap(kOperand, kCompare, kResult, 0);
        flush(p);
    };
    cas.target_right = counted;
    cas.origin_right = fetched;
    list.push_back(cas);

    Raw acc{"acc8", true};
    acc.turn = [](Process& p, std::uint64_t) {
        p.set_word(kOperand, 1);
        p.endpoint().add(kOperand, 0);
        flush(p);
    };
    acc.target_right = counted;
    list.push_back(acc);
    return list;
}

std::vector<Raw> word_streams() {
    const std::vector<std::size_t> offsets = stream_offsets(kSeed);
    Raw put{"put8_stream", false, kPerFlush};
    put.turn = [offsets](Process& p, std::uint64_t lap) {
        for (std::size_t i = 0; i < kPerFlush; ++i) {
            p.set_word(kMine + 8 * i, stamp(i, lap));
            room_for_one(p);
            p.endpoint().write(kMine + 8 * i, offsets[i], 8);
        }
        flush(p);
    };
    put.target_right = [offsets](const Process& p, std::uint64_t laps) {
        bool right = true;
        for (std::size_t i = 0; i < kPerFlush; ++i)
            right = right && p.word(offsets[i]) == stamp(i, laps - 1);
        return right;
    };
    Raw acc{"acc8_stream", true, kPerFlush};
    acc.turn = [offsets](Process& p, std::uint64_t) {
        p.set_word(kOperand, 1);
        for (const std::size_t at : offsets) {
            room_for_one(p);
            p.endpoint().add(kOperand, at);
        }
        flush(p);
    };
    acc.target_right = [offsets](const Process& p, std::uint64_t laps) {
        bool right = true;
        for (const std::size_t at : offsets)
            right = right && p.word(at) == laps;
        return right;
    };
    return {put, acc};
}

void fill(Process& p, std::size_t at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes / 8; ++i)
        p.set_word(at + 8 * i, block_word(i));
}

// The first word of each block of a put carries its stamp.
bool filled(const Process& p, std::size_t at, std::size_t bytes, std::size_t block, bool stamped, std::uint64_t laps) {
    for (std::size_t i = 0; i < bytes / 8; ++i) {
        const bool first = i % (block / 8) == 0;
        const std::uint64_t expected = stamped && first ? stamp(8 * i / block, laps - 1) : block_word(i);
        if (p.word(at + 8 * i) != expected) return false;
    }
    return true;
}

Raw block_put(const std::string& name, std::size_t block, std::size_t blocks) {
    Raw put{name, false, blocks};
    put.turn = [block, blocks](Process& p, std::uint64_t lap) {
        if (lap == 0) fill(p, kMine, block * blocks);
        for (std::size_t b = 0; b < blocks; ++b) {
            p.set_word(kMine + b * block, stamp(b, lap));
            p.endpoint().write(kMine + b * block, b * block, block);
        }
        flush(p);
    };
    put.target_right = [block, blocks](const Process& p, std::uint64_t laps) {
        return filled(p, 0, block * blocks, block, true, laps);
    };
    return put;
}

Raw block_get(const std::string& name, std::size_t block, std::size_t blocks) {
    Raw get{name, false, blocks};
    get.prepare = [block, blocks](Process& p) { fill(p, 0, block * blocks); };
    get.turn = [block, blocks](Process& p, std::uint64_t) {
        for (std::size_t b = 0; b < blocks; ++b)
            p.endpoint().read(kMine + b * block, b * block, block);
        flush(p);
    };
    get.target_right = [](const Process&, std::uint64_t) { return true; };
    get.origin_right = [block, blocks](const Process& p, std::uint64_t laps) {
        return filled(p, kMine, block * blocks, block, false, laps);
    };
    return get;
}

std::vector<Raw> polling_measures() {
    std::vector<Raw> list = small_measures();
    for (const Raw& stream : word_streams())
        list.push_back(stream);
    list.push_back(block_put("put64k_stream", kBlockBytes, kBlocksPerFlush));
    list.push_back(block_get("get64k_stream", kBlockBytes, kBlocksPerFlush));
    list.push_back(block_put("put4m", kLargeBytes, 1));
    list.push_back(block_get("get4m", kLargeBytes, 1));
    return list;
}

// `time(turn)` is the origin's part, `attend()` the target's until it is told of the end.
template <class Time, class Attend>
void run_one(Process& p, const Raw& what, const std::string& name, Time&& time, Attend&& attend) {
    if (what.atomic && !p.endpoint().atomics()) return;
    p.clear();
    if (!p.origin()) what.prepare(p);
    p.control().meet();
    if (p.origin()) {
        std::uint64_t laps = 0;
        const Timing timing = time([&] { what.turn(p, laps++); });
        const bool there = p.control().swap(laps) != 0;
        print_result(name, 2, per_one(timing, what.parts), there && what.origin_right(p, laps));
    } else {
        attend();
        std::uint64_t laps = 0;
        p.control().receive(&laps, sizeof laps);
        const std::uint64_t right = what.target_right(p, laps) ? 1 : 0;
        p.control().send(&right, sizeof right);
    }
}

void run_polling(Process& p, const Raw& what) {
    const auto time = [&](const auto& turn) {
        return timed(net_budget(p.brief()), 1, [&](std::uint64_t n) {
            for (; n > 0; --n)
                turn();
        });
    };
    run_one(p, what, what.name, time, [&] { p.poll_until_told(); });
}

void run_computing(Process& p, const Raw& what) {
    const auto time = [&](const auto& turn) {
        for (int i = 0; i < kWarmUps; ++i)
            turn();
        return sampled(p.brief(), turn);
    };
    run_one(p, what, "computing." + what.name, time, [&] {
        while (!p.control().told())
            spin_for_ns(kAwayNs);
    });
}

// The processor time of the target while all of it sleeps.
void run_idle(Process& p, const Raw& put) {
    p.clear();
    p.control().meet();
    if (p.origin()) put.turn(p, 0);
    p.control().meet();
    const double before = cpu_ns();
    sleep_ns(idle_ns(p.brief()));
    const auto took = static_cast<std::uint64_t>(cpu_ns() - before);
    const std::uint64_t of_target = p.control().swap(took);
    const bool right = p.origin() || put.target_right(p, 1);
    const bool there = p.control().swap(right ? 1 : 0) != 0;
    if (p.origin()) print_result("idle_cpu", 2, summarise({static_cast<double>(of_target)}, 1), there);
}

bool wants(const Options& options, const std::string& name) {
    if (options.wanted.empty()) return true;
    return std::find(options.wanted.begin(), options.wanted.end(), name) != options.wanted.end();
}

void run_all(const Options& options) {
    const Control control(options.rank, options.server, options.port);
    std::vector<Raw> polling;
    std::vector<Raw> computing;
    for (const Raw& one : polling_measures()) {
        if (wants(options, one.name)) polling.push_back(one);
    }
    for (const Raw& one : small_measures()) {
        if (wants(options, "computing." + one.name)) computing.push_back(one);
    }
    if (!polling.empty()) {
        Process p(options, control, Progress::polling);
        for (const Raw& one : polling)
            run_polling(p, one);
        control.meet();
    }
    const bool idle = wants(options, "idle_cpu");
    if (!computing.empty() || idle) {
        Process p(options, control, Progress::thread);
        if (!p.origin()) p.endpoint().start_thread();
        for (const Raw& one : computing)
            run_computing(p, one);
        if (idle) run_idle(p, small_measures().front());
        if (!p.origin()) p.endpoint().stop_thread();
        control.meet();
    }
}

bool parse(int argc, char** argv, Options& options) {
    const char* launched = std::getenv("PMI_RANK");
    if (launched != nullptr) options.rank = std::atoi(launched);
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool more = i + 1 < argc;
        if (word == "--short") {
            options.brief = true;
        } else if (word == "--server" && more) {
            options.server = argv[++i];
        } else if (word == "--port" && more) {
            options.port = std::atoi(argv[++i]);
        } else if (word == "--rank" && more) {
            options.rank = std::atoi(argv[++i]);
        } else if (word.starts_with("--")) {
            return false;
        } else if (options.provider.empty()) {
            options.provider = word;
        } else {
            options.wanted.push_back(word);
        }
    }
    return !options.provider.empty();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    bench::Options options;
    if (!bench::parse(argc, argv, options)) {
        std::fprintf(stderr,
                     "usage: net_raw PROVIDER [--server HOST] [--port N] [--rank 0|1] [--short] [MEASURE...]\n");
        return 1;
    }
    try {
        bench::run_all(options);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "net_raw: %s\n", e.what());
        return 1;
    }
    return 0;
}
