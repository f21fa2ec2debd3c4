// The options that the programs share, under the names that users of the OSU benchmarks know, and what each program
// says about itself: which of them it takes, with which defaults, and how many ranks it needs.
#pragma once

#include <cstddef>
#include <string>

namespace osu {

enum class Creation { create, allocate, dynamic };
enum class Sync { lock, flush, flush_local, lock_all, pscw, fence };
enum class Kind { put, get, acc };

// Timed and untimed iterations for one size.
struct Repeats {
    long iterations;
    long warm_ups;
};

// Trivially copyable: rank 0 reads them and broadcasts the bytes.
struct Options {
    Creation creation = Creation::allocate;
    Sync sync = Sync::flush;
    Kind kind = Kind::put;
    std::size_t smallest = 1;
    std::size_t largest = std::size_t{1} << 22;
    long apart = -1;  // negative: the origin's buffers start a page
    Repeats small{9000, 100};
    Repeats large{900, 10};
    long window = 64;
    double compute_ms = 10;
    long counters = 1;
    bool validate = false;
    bool json = false;

    Repeats repeats(std::size_t bytes) const {
        constexpr std::size_t kLargestSmall = 8192;
        return bytes <= kLargestSmall ? small : large;
    }
};

enum class Ranks { two, even, several };

struct Program {
    const char* name;
    const char* title;
    // The letters of the options that it takes besides those that every program has.
    const char* takes;
    Options defaults;
    Ranks ranks = Ranks::two;
    // Whether -s may name a synchronisation that needs the target's calls.
    bool passive_only = false;
};

// What became of the command line. `text` is the usage for help and the complaint for wrong.
struct Parsed {
    enum class Outcome { run, help, wrong };
    Outcome outcome = Outcome::run;
    Options options;
    std::string text;
};

Parsed parse(const Program& program, int argc, char** argv);

// The rule that a number of ranks breaks, or nothing.
std::string wrong_ranks(const Program& program, int ranks);

bool is_active(Sync sync);
const char* name_of(Creation creation);
const char* name_of(Sync sync);
const char* name_of(Kind kind);

}  // namespace osu
