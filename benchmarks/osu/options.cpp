// Reads the command line (see options.h): one table of options, from which getopt_long's tables and the usage are made.
#include "options.h"

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

namespace osu {
namespace {

constexpr std::string_view kEveryProgramTakes = "ixcjh";
constexpr std::size_t kLargestSize = std::size_t{1} << 30;
constexpr long kLargestDistance = 4095;
constexpr long kMostIterations = 1000000000;
constexpr long kLargestWindow = 65536;
constexpr long kLongestComputing = 60000;
constexpr long kMostCounters = 1000000;

struct Entry {
    char letter;  // 'j' is known by its long name only
    const char* word;
    const char* value;
    const char* help;
};

constexpr Entry kEntries[] = {
    {'w', "win-option", "KIND", "window made by create, allocate or dynamic"},
    {'s', "sync-option", "SYNC", "lock, flush, flush_local, lock_all, pscw or fence"},
    {'m', "message-size", "[MIN:]MAX", "sizes in bytes, each twice the one before"},
    {'a', "apart", "BYTES", "how far the origin's buffers are from the window's start, modulo a page"},
    {'W', "window-size", "N", "operations per synchronisation, fewer where they would move more than 64 MiB"},
    {'o', "operation", "OP", "put, get or acc"},
    {'t', "compute", "MS", "milliseconds for which the target computes at a time"},
    {'n', "counters", "N", "counters that take turns"},
    {'i', "iterations", "N", "timed iterations per size, in 9 batches"},
    {'x', "warmup", "N", "iterations before them that are not timed"},
    {'c', "validation", nullptr, "validate the data of every timed iteration"},
    {'j', "json", nullptr, "one JSON object instead of the table"},
    {'h', "help", nullptr, "this text"},
};

template <class Value>
struct Named {
    const char* name;
    Value value;
};

constexpr Named<Creation> kCreations[] = {
    {"create", Creation::create}, {"allocate", Creation::allocate}, {"dynamic", Creation::dynamic}};
constexpr Named<Sync> kSyncs[] = {
    {"lock", Sync::lock},         {"flush", Sync::flush}, {"flush_local", Sync::flush_local},
    {"lock_all", Sync::lock_all}, {"pscw", Sync::pscw},   {"fence", Sync::fence}};
constexpr Named<Kind> kKinds[] = {{"put", Kind::put}, {"get", Kind::get}, {"acc", Kind::acc}};

template <class Value, std::size_t count>
bool choose(const Named<Value> (&names)[count], std::string_view text, Value& value) {
    for (const Named<Value>& one : names) {
        if (text != one.name) continue;
        value = one.value;
        return true;
    }
    return false;
}

template <class Value, std::size_t count>
const char* name_in(const Named<Value> (&names)[count], Value value) {
    for (const Named<Value>& one : names)
        if (one.value == value) return one.name;
    return "?";
}

template <class Number>
bool number(std::string_view text, Number least, Number most, Number& value) {
    Number read{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc() || end != text.data() + text.size() || read < least || read > most) return false;
    value = read;
    return true;
}

bool sizes(std::string_view text, Options& options) {
    const std::size_t colon = text.find(':');
    std::size_t least = 1;
    std::size_t most = 0;
    if (colon != std::string_view::npos && !number<std::size_t>(text.substr(0, colon), 1, kLargestSize, least))
        return false;
    const std::string_view last = colon == std::string_view::npos ? text : text.substr(colon + 1);
    if (!number(last, least, kLargestSize, most)) return false;
    options.smallest = least;
    options.largest = most;
    return true;
}

bool apply(char letter, const char* value, Options& options) {
    switch (letter) {
        case 'w':
            return choose(kCreations, value, options.creation);
        case 's':
            return choose(kSyncs, value, options.sync);
        case 'o':
            return choose(kKinds, value, options.kind);
        case 'm':
            return sizes(value, options);
        case 'a':
            return number(value, 0L, kLargestDistance, options.apart);
        case 'W':
            return number(value, 1L, kLargestWindow, options.window);
        case 't': {
            long ms = 0;
            if (!number(value, 1L, kLongestComputing, ms)) return false;
            options.compute_ms = static_cast<double>(ms);
            return true;
        }
        case 'n':
            return number(value, 1L, kMostCounters, options.counters);
        case 'i':
            if (!number(value, 1L, kMostIterations, options.small.iterations)) return false;
            options.large.iterations = options.small.iterations;
            return true;
        case 'x':
            if (!number(value, 0L, kMostIterations, options.small.warm_ups)) return false;
            options.large.warm_ups = options.small.warm_ups;
            return true;
        case 'c':
            options.validate = true;
            return true;
        case 'j':
            options.json = true;
            return true;
    }
    return false;
}

std::vector<Entry> entries_of(const Program& program) {
    std::vector<Entry> mine;
    for (const Entry& entry : kEntries) {
        if (kEveryProgramTakes.find(entry.letter) != std::string_view::npos ||
            std::strchr(program.takes, entry.letter) != nullptr)
            mine.push_back(entry);
    }
    return mine;
}

std::string default_of(char letter, const Options& defaults) {
    const auto by_size = [](long small, long large) {
        return std::to_string(small) + (small == large ? "" : ", beyond 8 KiB " + std::to_string(large));
    };
    switch (letter) {
        case 'w':
            return name_of(defaults.creation);
        case 's':
            return name_of(defaults.sync);
        case 'o':
            return name_of(defaults.kind);
        case 'm':
            return std::to_string(defaults.smallest) + ":" + std::to_string(defaults.largest);
        case 'W':
            return std::to_string(defaults.window);
        case 't':
            return std::to_string(static_cast<long>(defaults.compute_ms));
        case 'n':
            return std::to_string(defaults.counters);
        case 'i':
            return by_size(defaults.small.iterations, defaults.large.iterations);
        case 'x':
            return by_size(defaults.small.warm_ups, defaults.large.warm_ups);
        default:
            return {};
    }
}

std::string usage(const Program& program, const std::vector<Entry>& entries) {
    const char* const ranks = program.ranks == Ranks::two    ? "2"
                              : program.ranks == Ranks::even ? "2, 4, 6, ..."
                                                             : "2 or more";
    std::string text = std::string("usage: ") + program.name + " [option]...    on " + ranks + " ranks\n";
    for (const Entry& entry : entries) {
        std::string left = entry.letter == 'j' ? "      " : std::string("  -") + entry.letter + ", ";
        left += std::string("--") + entry.word;
        if (entry.value != nullptr) left += std::string(" ") + entry.value;
        constexpr std::size_t kColumn = 32;
        left.resize(std::max(left.size() + 2, kColumn), ' ');
        const bool narrowed = entry.letter == 's' && program.passive_only;
        text += left + (narrowed ? "lock, flush, flush_local or lock_all" : entry.help);
        const std::string fallback = default_of(entry.letter, program.defaults);
        text += fallback.empty() ? "\n" : " (default: " + fallback + ")\n";
    }
    return text;
}

struct LongNames {
    // Stop at the first operand (none is allowed), and distinguish a missing value from an unknown option.
    std::string letters = "+:";
    std::vector<option> words;

    explicit LongNames(const std::vector<Entry>& entries) {
        for (const Entry& entry : entries) {
            const int argument = entry.value != nullptr ? required_argument : no_argument;
            words.push_back({entry.word, argument, nullptr, entry.letter});
            if (entry.letter == 'j') continue;
            letters += entry.letter;
            if (entry.value != nullptr) letters += ':';
        }
        words.push_back({nullptr, 0, nullptr, 0});
    }
};

Parsed wrong(const Program& program, const std::string& what) {
    return {Parsed::Outcome::wrong, {}, std::string(program.name) + ": " + what + " (--help lists the options)"};
}

}  // namespace

Parsed parse(const Program& program, int argc, char** argv) {
    const std::vector<Entry> entries = entries_of(program);
    const LongNames names(entries);
    Parsed parsed{Parsed::Outcome::run, program.defaults, {}};
    opterr = 0;
    for (;;) {
        const int word = optind;
        const int letter = getopt_long(argc, argv, names.letters.c_str(), names.words.data(), nullptr);
        if (letter == -1) break;
        if (letter == 'h') return {Parsed::Outcome::help, {}, usage(program, entries)};
        // A letter may stand in the middle of a word; a long name is the word.
        const bool is_word = std::strncmp(argv[word], "--", 2) == 0;
        const std::string given = is_word ? argv[word] : std::string("-") + static_cast<char>(optopt);
        if (letter == '?') return wrong(program, "unknown or wrong option '" + given + "'");
        if (letter == ':') return wrong(program, "option '" + given + "' needs a value");
        if (!apply(static_cast<char>(letter), optarg, parsed.options))
            return wrong(program,
                         "option -" + std::string(1, static_cast<char>(letter)) + " does not take '" + optarg + "'");
    }
    if (optind < argc) return wrong(program, std::string("unexpected argument '") + argv[optind] + "'");
    if (program.passive_only && is_active(parsed.options.sync))
        return wrong(program, std::string("option -s does not take '") + name_of(parsed.options.sync) +
                                  "' here, which needs calls of the target");
    return parsed;
}

std::string wrong_ranks(const Program& program, int ranks) {
    const std::string start = std::string(program.name) + ": needs ";
    const std::string end = ", not " + std::to_string(ranks);
    if (program.ranks == Ranks::two && ranks != 2) return start + "exactly 2 ranks" + end;
    if (program.ranks == Ranks::even && (ranks < 2 || ranks % 2 != 0)) return start + "an even number of ranks" + end;
    if (program.ranks == Ranks::several && ranks < 2) return start + "at least 2 ranks" + end;
    return {};
}

bool is_active(Sync sync) {
    return sync == Sync::pscw || sync == Sync::fence;
}

const char* name_of(Creation creation) {
    return name_in(kCreations, creation);
}
const char* name_of(Sync sync) {
    return name_in(kSyncs, sync);
}
const char* name_of(Kind kind) {
    return name_in(kKinds, kind);
}

}  // namespace osu
