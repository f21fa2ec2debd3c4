// The options of libosc, from the one table options.def: their values, set once from the environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace osc::base {

enum class Type { Bool, Int, Word, List, Text };

/// One row of the option table.
struct Option {
    const char* name;      // environment variable, or a key of OSC_DEBUG in small letters
    const char* info_key;  // info key of the same meaning, or ""
    Type type;
    const char* limits;    // Int: the least value; Word, List: the words, separated by bars; Text: a description
    const char* on_off;    // the values of "on" and "off", separated by a bar, or ""
    const char* fallback;  // default, as text
    const char* help;

    bool is_debug() const { return !std::string_view(name).starts_with("OSC_"); }
};

/// The values in use. An invalid value leaves the default and is reported once on stderr.
struct Values {
#define OSC_FIELD_Bool bool
#define OSC_FIELD_Int long
#define OSC_FIELD_Word std::string
#define OSC_FIELD_List std::string
#define OSC_FIELD_Text std::string
#define OSC_OPTION(id, name, key, type, limits, on_off, fallback, help) OSC_FIELD_##type id{};
#include "base/options.def"
#undef OSC_FIELD_Bool
#undef OSC_FIELD_Int
#undef OSC_FIELD_Word
#undef OSC_FIELD_List
#undef OSC_FIELD_Text
};

/// The process's options, read from the environment on first use. Thread-safe.
const Values& values();

/// What the environment says now, for values() and for tests. Thread-safe while no thread changes the environment.
Values read_values();

/// The table itself, for osc_info and docs; `count` receives its length.
const Option* table(std::size_t& count);

/// `value` of an option as the table spells it: the value that a word for on or off stands for, if the option is a
/// switch; else `value`. Thread-safe.
std::string_view spelled(std::string_view name, std::string_view value);

/// The value of OSC_HANG_REPORT in ns; 0: off. Thread-safe.
std::int64_t hang_limit();

/// A variable of the environment that begins with OSC_ and is no option, or a setting of OSC_DEBUG that no key takes.
/// `remedy`: the option that was probably meant, or the command that lists all.
struct UnknownOption {
    std::string name;
    std::string remedy;
};
std::vector<UnknownOption> unknown_options();

/// The number of characters to insert, remove, replace or exchange with their neighbour to turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word of `known` nearest to `word`, the first of several; "" if none is near: more than a third of the characters
/// behind `prefix`, which all words have, differ, and neither of the two contains the other there.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known, std::string_view prefix);

/// Splits the first word, up to `separator`, off `rest`.
std::string_view next_word(std::string_view& rest, char separator);

/// True if `subject` is among the comma-separated subjects of OSC_VERBOSE (or "all" is).
bool verbose(std::string_view subject);

}  // namespace osc::base
