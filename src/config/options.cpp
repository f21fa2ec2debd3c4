// Reads the option table from the environment, once; reports values that do not parse and OSC_ variables that no
// option has, because a misspelt option that is silently ignored costs its user a day.
#include "config/options.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

extern "C" char** environ;

namespace osc::config {
namespace {

const Option kTable[] = {
#define OSC_OPTION(id, variable, key, type, fallback, help) {variable, key, Type::type, fallback, help},
#include "config/options.def"
#undef OSC_OPTION
};

const char* text_of(const char* variable, const char* fallback) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0' ? value : fallback;
}

bool parse(const char* text, long& out) {
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') return false;
    out = value;
    return true;
}

void read_into(std::string& field, const Option& option) {
    field = text_of(option.variable, option.fallback);
}

void read_into(long& field, const Option& option) {
    const char* text = text_of(option.variable, option.fallback);
    if (parse(text, field)) return;
    std::fprintf(stderr, "libosc: %s=%s is not an integer; using %s\n", option.variable, text, option.fallback);
    parse(option.fallback, field);
}

void read_into(bool& field, const Option& option) {
    const char* text = text_of(option.variable, option.fallback);
    long value = 0;
    if (!parse(text, value) || value < 0 || value > 1) {
        std::fprintf(stderr, "libosc: %s=%s is neither 0 nor 1; using %s\n", option.variable, text, option.fallback);
        parse(option.fallback, value);
    }
    field = value != 0;
}

void report_unknown() {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        if (std::strncmp(*entry, "OSC_", 4) != 0) continue;
        const char* equals = std::strchr(*entry, '=');
        if (equals == nullptr) continue;
        const std::string_view name(*entry, static_cast<std::size_t>(equals - *entry));
        bool known = name.substr(0, 8) == "OSC_TEST";
        for (const Option& option : kTable)
            known = known || name == option.variable;
        if (!known)
            std::fprintf(stderr, "libosc: unknown option %.*s; osc_info lists the options\n",
                         static_cast<int>(name.size()), name.data());
    }
}

Values read() {
    Values values;
    std::size_t row = 0;
#define OSC_OPTION(id, variable, key, type, fallback, help) read_into(values.id, kTable[row++]);
#include "config/options.def"
#undef OSC_OPTION
    if (!values.disable) report_unknown();
    return values;
}

}  // namespace

const Values& values() {
    static const Values kValues = read();
    return kValues;
}

const Option* table(std::size_t& count) {
    count = std::size(kTable);
    return kTable;
}

bool verbose(std::string_view subject) {
    std::string_view rest = values().verbose;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string_view word = rest.substr(0, comma);
        if (word == subject || word == "all") return true;
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    return false;
}

}  // namespace osc::config
