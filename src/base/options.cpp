// Reads the options from the environment, once. Reports invalid values, unknown OSC_ variables and unknown keys of
// OSC_DEBUG, because a misspelt option that is silently ignored costs its user a day.
#include "base/options.h"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "base/warn.h"

extern "C" char** environ;

namespace osc::base {
namespace {

// The names and the help of each kind of strategy. The names are separated by bars.
#define OSC_STRATEGY_FENCE(name, maker, help) name "|"
constexpr char kFenceNames[] =
#include "core/strategies/strategies.def"
    ;
#define OSC_STRATEGY_FENCE(name, maker, help) "; " name ": " help
constexpr char kFenceHelp[] = "when operations between fences are done"
#include "core/strategies/strategies.def"
    ;
#define OSC_STRATEGY_PSCW(name, maker, help) name "|"
constexpr char kPscwNames[] =
#include "core/strategies/strategies.def"
    ;
#define OSC_STRATEGY_PSCW(name, maker, help) "; " name ": " help
constexpr char kPscwHelp[] = "when posts are awaited"
#include "core/strategies/strategies.def"
    ;
#define OSC_STRATEGY_LOCK(name, maker, help) name "|"
constexpr char kLockNames[] =
#include "core/strategies/strategies.def"
    ;
#define OSC_STRATEGY_LOCK(name, maker, help) "; " name ": " help
constexpr char kLockHelp[] = "when locks are acquired"
#include "core/strategies/strategies.def"
    ;

const Option kTable[] = {
#define OSC_OPTION(id, name, key, type, limits, on_off, fallback, help) \
    {name, key, Type::type, limits, on_off, fallback, help},
#include "base/options.def"
};

// A setting of OSC_DEBUG. A key of a switch without a value is on; `option` is null if no key takes the setting.
struct Setting {
    std::string_view text;
    std::string_view key;
    std::string_view value;
    const Option* option;
};

// The value of a variable; null if it is not set. The caller of a set-uid program has other rights than the program,
// and must not choose the files that it writes.
const char* variable(const char* name) {
    const char* const value = ::secure_getenv(name);
    if (value == nullptr && std::getenv(name) != nullptr)
        warn_for_job("%s is ignored: the program has rights that its caller lacks (AT_SECURE)", name);
    return value;
}

std::vector<Setting> debug_settings() {
    const char* const text = variable("OSC_DEBUG");
    std::string_view rest = text != nullptr ? text : "";
    std::vector<Setting> all;
    while (!rest.empty()) {
        const std::string_view setting = next_word(rest, ',');
        std::string_view value = setting;
        const std::string_view key = next_word(value, '=');
        const bool has_value = key.size() < setting.size();
        const auto takes = [&](const Option& option) {
            return option.is_debug() && option.name == key && (has_value || *option.on_off != '\0');
        };
        const auto* const option = std::find_if(std::begin(kTable), std::end(kTable), takes);
        if (!setting.empty())
            all.push_back({setting, key, has_value ? value : "on", option != std::end(kTable) ? option : nullptr});
    }
    return all;
}

// The value that the environment gives an option, the last one of a repeated key; "" if none.
std::string_view given(const Option& option) {
    const char* const text = option.is_debug() ? nullptr : variable(option.name);
    std::string_view value = text != nullptr ? text : "";
    for (const Setting& setting : debug_settings())
        if (setting.option == &option) value = setting.value;
    return value;
}

// An option's name in messages.
std::string name_of(const Option& option) {
    return std::string(option.is_debug() ? "OSC_DEBUG: " : "").append(option.name);
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
    const std::string_view value = given(option);
    return std::string(!value.empty() ? spelled(option, value) : option.fallback);
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
    warn_for_job("%s=%s: the values are %s; using \"%s\"", name_of(option).c_str(), field.c_str(),
                 list_of(option.limits).c_str(), option.fallback);
    field = option.fallback;
}

void read_into(long& field, const Option& option) {
    const std::string text = text_of(option);
    long least = 0;
    parse(option.limits, least);
    if (parse(text.c_str(), field) && field >= least) return;
    warn_for_job("%s=%s is not an integer from %s on; using %s", name_of(option).c_str(), text.c_str(), option.limits,
                 option.fallback);
    parse(option.fallback, field);
}

void read_into(bool& field, const Option& option) {
    const std::string text = text_of(option);
    field = (text == "1" || text == "0" ? text : option.fallback) == "1";
    if (text != "1" && text != "0")
        warn_for_job("%s=%s is neither on (1, true, yes) nor off (0, false, no); using %s", name_of(option).c_str(),
                     text.c_str(), option.fallback);
}

std::string upper(std::string text) {
    for (char& letter : text)
        letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    return text;
}

// Asks whether the option nearest to a variable was meant; a debug key counts as the variable OSC_KEY. "" if none is
// near.
std::string meant(const std::string& variable) {
    std::vector<std::string> variables;
    for (const Option& option : kTable)
        variables.push_back(upper(std::string(option.is_debug() ? "OSC_" : "") + option.name));
    const auto near = nearest(upper(variable), {variables.begin(), variables.end()}, "OSC_");
    const auto row = std::find(variables.begin(), variables.end(), near) - variables.begin();
    if (near.empty()) return "";
    const Option& option = kTable[row];
    const std::string name = option.name;
    return "did you mean " + (option.is_debug() ? "OSC_DEBUG=" + name + "=..." : name) + "?";
}

}  // namespace

Values read_values() {
    Values values;
    std::size_t row = 0;
#define OSC_OPTION(id, name, key, type, limits, on_off, fallback, help) read_into(values.id, kTable[row++]);
#include "base/options.def"
    if (values.disable) return values;
    // The program may change its folder before it ends.
    for (std::string* const file : {&values.stats, &values.trace}) {
        std::error_code none;
        if (!file->empty() && *file != "1") *file = std::filesystem::absolute(*file, none).string();
    }
    for (const UnknownOption& unknown : unknown_options())
        warn_for_job("unknown option %s; %s", unknown.name.c_str(), unknown.remedy.c_str());
    return values;
}

// Optimal string alignment distance, three rows of the table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> older;
    std::vector<std::size_t> old(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(old.begin(), old.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({old[j] + 1, row[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], older[j - 2] + 1);
        }
        older = std::exchange(old, row);
    }
    return old[b.size()];
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known, std::string_view prefix) {
    const std::string_view wrong = word.substr(std::min(prefix.size(), word.size()));
    std::string_view best;
    std::size_t least = ~std::size_t{0};
    for (const std::string_view candidate : known) {
        const std::string_view right = candidate.substr(std::min(prefix.size(), candidate.size()));
        const std::size_t distance = edit_distance(wrong, right);
        const bool contains = wrong.size() >= 3 && right.size() >= 3 &&
                              (right.find(wrong) != right.npos || wrong.find(right) != wrong.npos);
        if (distance >= least || (distance > std::max(wrong.size(), right.size()) / 3 && !contains)) continue;
        best = candidate;
        least = distance;
    }
    return best;
}

const Values& values() {
    static const Values& known = *new Values(read_values());  // never destroyed: MPI may be finalized at exit
    return known;
}

std::vector<UnknownOption> unknown_options() {
    std::vector<UnknownOption> unknown;
    const auto add = [&](std::string_view name, const std::string& variable, const char* list) {
        const std::string question = meant(variable);
        unknown.push_back({std::string(name), question.empty() ? list : question});
    };
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::string_view name = text.substr(0, text.find('='));
        if (!name.starts_with("OSC_") || name.size() == text.size() || name.starts_with("OSC_TEST")) continue;
        const auto has_name = [&](const Option& option) { return name == option.name; };
        if (std::none_of(std::begin(kTable), std::end(kTable), has_name))
            add(name, std::string(name), "osc_info lists the options");
    }
    for (const Setting& setting : debug_settings())
        if (setting.option == nullptr)
            add(std::string("OSC_DEBUG=").append(setting.text), std::string("OSC_").append(setting.key),
                "osc_info --debug-options lists the keys");
    return unknown;
}

std::string_view spelled(std::string_view name, std::string_view value) {
    for (const Option& option : kTable)
        if (option.name == name) return spelled(option, value);
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
