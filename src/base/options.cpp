// Reads the options from the environment, once. Reports invalid values and unknown OSC_ variables, because a misspelt
// option that is silently ignored costs its user a day.
#include "base/options.h"

#include <strings.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "base/nearest.h"
#include "base/warn.h"

extern "C" char** environ;

namespace osc::base {
namespace {

// The names and the help of each kind of strategy. The names are separated by bars.
#define OSC_STRATEGY_FENCE(name, maker, help) name "|"
constexpr char kFenceNames[] =
#include "strategy/strategies.def"
    ;
#define OSC_STRATEGY_FENCE(name, maker, help) "; " name ": " help
constexpr char kFenceHelp[] = "when operations between fences are done"
#include "strategy/strategies.def"
    ;
#define OSC_STRATEGY_PSCW(name, maker, help) name "|"
constexpr char kPscwNames[] =
#include "strategy/strategies.def"
    ;
#define OSC_STRATEGY_PSCW(name, maker, help) "; " name ": " help
constexpr char kPscwHelp[] = "when posts are awaited"
#include "strategy/strategies.def"
    ;
#define OSC_STRATEGY_LOCK(name, maker, help) name "|"
constexpr char kLockNames[] =
#include "strategy/strategies.def"
    ;
#define OSC_STRATEGY_LOCK(name, maker, help) "; " name ": " help
constexpr char kLockHelp[] = "when locks are acquired"
#include "strategy/strategies.def"
    ;

const Option kTable[] = {
#define OSC_OPTION(id, variable, key, type, limits, on_off, fallback, help) \
    {variable, key, Type::type, limits, on_off, fallback, help},
#include "base/options.def"
#undef OSC_OPTION
};

// Options with a new name. Version 2 will not accept the old one.
struct Renamed {
    const char* before;
    const char* now;
};
constexpr Renamed kRenamed[] = {
    {"OSC_HOST_POLLS", "OSC_HOST_PROGRESS_HOOK"},
    {"OSC_NODES", "OSC_FAKE_NODES"},
    {"OSC_TIMEOUT", "OSC_PEER_TIMEOUT"},
};

// The value of an environment variable; null if it is unset or empty.
const char* value_of(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

bool is_same(std::string_view word, std::string_view other) {
    return word.size() == other.size() && ::strncasecmp(word.data(), other.data(), word.size()) == 0;
}

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return is_same(value, word); });
}

// A number that an option takes is no word for on: OSC_HANG_REPORT=1 is one second.
std::string_view spelled(const Option& option, std::string_view value) {
    std::string_view off = option.on_off;
    if (off.empty()) return value;
    const std::string_view on = next_word(off, '|');
    const bool counts = on != "1" && !on.empty() && on.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_one_of(value, {"true", "yes", "on"}) || (value == "1" && !counts)) return on;
    return is_one_of(value, {"false", "no", "off", "0"}) ? off : value;
}

std::string text_of(const Option& option) {
    const char* value = value_of(option.variable);
    for (const Renamed& renamed : kRenamed)
        if (value == nullptr && std::strcmp(renamed.now, option.variable) == 0) value = value_of(renamed.before);
    return std::string(value != nullptr ? spelled(option, value) : option.fallback);
}

void report_renamed() {
    for (const auto& [before, now] : kRenamed)
        if (value_of(before) != nullptr)
            warn_for_job("%s is called %s now%s; version 2 will not know the old name", before, now,
                         value_of(now) != nullptr ? ", whose value counts" : "");
}

bool parse(const char* text, long& out) {
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') return false;
    out = value;
    return true;
}

bool is_among(std::string_view word, std::string_view words) {
    while (!words.empty())
        if (next_word(words, '|') == word) return true;
    return false;
}

bool is_taken(std::string_view value, const Option& option) {
    if (option.type == Type::Text) return true;
    if (option.type == Type::Word) return is_among(value, option.limits);
    while (!value.empty())
        if (!is_among(next_word(value, ','), option.limits)) return false;
    return true;
}

// "auto, host": the words of the limits.
std::string list_of(std::string_view words) {
    std::string list;
    while (!words.empty())
        list.append(list.empty() ? "" : ", ").append(next_word(words, '|'));
    return list;
}

void read_into(std::string& field, const Option& option) {
    field = text_of(option);
    if (is_taken(field, option)) return;
    warn_for_job("%s=%s: the values are %s; using \"%s\"", option.variable, field.c_str(),
                 list_of(option.limits).c_str(), option.fallback);
    field = option.fallback;
}

void read_into(long& field, const Option& option) {
    const std::string text = text_of(option);
    long least = 0;
    parse(option.limits, least);
    if (parse(text.c_str(), field) && field >= least) return;
    warn_for_job("%s=%s is not an integer from %s on; using %s", option.variable, text.c_str(), option.limits,
                 option.fallback);
    parse(option.fallback, field);
}

void read_into(bool& field, const Option& option) {
    const std::string text = text_of(option);
    field = (text == "1" || text == "0" ? text : option.fallback) == "1";
    if (text != "1" && text != "0")
        warn_for_job("%s=%s is neither on (1, true, yes) nor off (0, false, no); using %s", option.variable,
                     text.c_str(), option.fallback);
}

void report_unknown() {
    for (const UnknownOption& unknown : unknown_options()) {
        if (unknown.nearest.empty())
            warn_for_job("unknown option %s; osc_info lists the options", unknown.name.c_str());
        else
            warn_for_job("unknown option %s; did you mean %s?", unknown.name.c_str(), unknown.nearest.c_str());
    }
}

Values read() {
    Values values;
    std::size_t row = 0;
#define OSC_OPTION(id, variable, key, type, limits, on_off, fallback, help) read_into(values.id, kTable[row++]);
#include "base/options.def"
#undef OSC_OPTION
    if (!values.disable) {
        report_renamed();
        report_unknown();
    }
    return values;
}

}  // namespace

const Values& values() {
    static const Values& known = *new Values(read());  // never destroyed: MPI may be finalized at exit
    return known;
}

std::vector<UnknownOption> unknown_options() {
    std::vector<std::string_view> names;
    for (const Option& option : kTable)
        names.emplace_back(option.variable);
    std::vector<UnknownOption> unknown;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::string_view name = text.substr(0, text.find('='));
        if (!name.starts_with("OSC_") || name.size() == text.size() || name.starts_with("OSC_TEST")) continue;
        const auto is_old = [&](const Renamed& option) { return name == option.before; };
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        if (std::find_if(std::begin(kRenamed), std::end(kRenamed), is_old) != std::end(kRenamed)) continue;
        unknown.push_back({std::string(name), std::string(nearest(name, names, "OSC_"))});
    }
    return unknown;
}

std::string_view spelled(std::string_view variable, std::string_view value) {
    for (const Option& option : kTable)
        if (option.variable == variable) return spelled(option, value);
    return value;
}

std::int64_t hang_limit() {
    constexpr std::int64_t kDefault = 60;
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::string& text = values().hang_report;
    if (text == "off") return 0;
    long seconds = 0;
    if (parse(text.c_str(), seconds) && seconds > 0 && seconds < kSecond) return seconds * kSecond;
    warn_for_job("OSC_HANG_REPORT=%s is neither a number of seconds above 0 nor \"off\"; using 60", text.c_str());
    return kDefault * kSecond;
}

const Option* table(std::size_t& count) {
    count = std::size(kTable);
    return kTable;
}

std::string_view next_word(std::string_view& rest, char separator) {
    const std::size_t end = rest.find(separator);
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return word;
}

bool verbose(std::string_view subject) {
    std::string_view rest = values().verbose;
    while (!rest.empty()) {
        const std::string_view word = next_word(rest, ',');
        if (word == subject || word == "all") return true;
    }
    return false;
}

}  // namespace osc::base
