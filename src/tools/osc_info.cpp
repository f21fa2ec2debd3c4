// osc_info prints the properties and options of this build of libosc, from the tables that the library itself is built
// from, and checks the machine (check.h). It works without MPI and without a launcher, so that it runs wherever the
// library is installed.
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/options.h"
#include "tools/check.h"
#include "trace/merge.h"

namespace {

using osc::base::Option;
using osc::base::Type;

constexpr int kWrongArguments = 2;

const char* const kUsage =
    "usage: osc_info [--check [--json] [PROGRAM] | --merge FILE | --counters | --debug-options | --markdown | "
    "--providers |\n"
    "                 --version | --help]\n"
    "  without arguments: the version, and the options with the values in use\n"
    "  --check: checks this machine and advises; under mpiexec all nodes of the job and the ways between them; with\n"
    "    --json as JSON. Exit status 0: no problem, 1: problems\n"
    "  --check PROGRAM: whether libosc takes effect in the program that this environment starts, and why not\n"
    "  --merge FILE: writes the timeline of a job with OSC_TRACE=FILE that has not written it itself, because it "
    "crashed,\n"
    "    from the files FILE.rank-* of its processes\n"
    "  --counters: the names that osc_counter(), osc_served() and osc_forwarded() take\n"
    "  --debug-options: the keys of OSC_DEBUG=key=value,... with the values in use\n"
    "  --markdown: values, default and meaning of each option and key, as in docs/GUIDE.md\n"
    "  --providers: what libfabric offers on this machine, and what libosc makes of it, as tables\n";

// The statistics of api/public_api.cpp.
struct Counter {
    const char* name;
    const char* help;
};
const Counter kCounters[] = {
#define OSC_COUNTER(name, value, help) {name, help},
#include "tools/counters.def"
};

const char* const kEntries[] = {
#define OSC_ENTRY(kind, name, parameters, arguments) "MPI_" #name,
#include "api/entries.def"
};

std::string joined(std::string_view words, const char* between) {
    std::string all;
    while (!words.empty())
        all.append(all.empty() ? "" : between).append(osc::base::next_word(words, '|'));
    return all;
}

std::string values_of(const Option& option) {
    switch (option.type) {
        case Type::Bool:
            return "0 or 1";
        case Type::Int:
            return std::string("integer from ") + option.limits + " on";
        case Type::Word:
            return joined(option.limits, " or ");
        case Type::List:
            return "some of " + joined(option.limits, ",");
        case Type::Text:
            return option.limits;
    }
    return "";
}

std::string text_of(bool value) {
    return value ? "1" : "0";
}
std::string text_of(long value) {
    return std::to_string(value);
}
std::string text_of(const std::string& value) {
    return value;
}

// One line for each option, or for each key of OSC_DEBUG. Those that the environment changes come first.
void print_options(bool debug) {
    const osc::base::Values& values = osc::base::values();
    const std::string in_use[] = {
#define OSC_OPTION(id, name, key, type, limits, on_off, fallback, help) text_of(values.id),
#include "base/options.def"
    };
    std::printf("libosc %s\n\n%s; * where the environment changes the value; osc_info --markdown has all values:\n",
                OSC_VERSION_TEXT, debug ? "keys of OSC_DEBUG=key=value,..." : "options (environment variables)");
    std::size_t count = 0;
    const Option* const table = osc::base::table(count);
    for (const bool changed : {true, false})
        for (std::size_t i = 0; i < count; ++i) {
            const Option& option = table[i];
            if (option.is_debug() != debug || (in_use[i] != option.fallback) != changed) continue;
            const std::string setting = option.name + ("=" + in_use[i]);
            const std::string_view help = option.help;
            const std::string_view meaning = help.substr(0, help.find_first_of(".;"));
            std::printf("%c %-22s %.*s\n", changed ? '*' : ' ', setting.c_str(), static_cast<int>(meaning.size()),
                        meaning.data());
        }
}

void print_counters() {
    std::puts("statistics, for osc_counter():");
    for (const Counter& counter : kCounters)
        std::printf("    %-24s %s\n", counter.name, counter.help);
    std::puts("MPI functions, for osc_served() and osc_forwarded():");
    for (const char* entry : kEntries)
        std::printf("    %s\n", entry);
}

// A bar would end the table's cell.
std::string cell(const char* text) {
    std::string result;
    for (; *text != '\0'; ++text) {
        if (*text == '|') result += '\\';
        result += *text;
    }
    return result;
}

void print_markdown(bool debug) {
    std::printf("| %s | value | default | meaning |\n|---|---|---|---|\n", debug ? "key of `OSC_DEBUG`" : "variable");
    std::size_t count = 0;
    const Option* table = osc::base::table(count);
    for (const Option* option = table; option != table + count; ++option) {
        if (option->is_debug() != debug) continue;
        std::string fallback = cell(option->fallback);
        if (!fallback.empty()) fallback.insert(0, 1, '`').append(1, '`');
        std::string meaning = cell(option->help);
        if (*option->info_key != '\0') meaning.append("; info key `").append(option->info_key).append(1, '`');
        std::printf("| `%s` | %s | %s | %s |\n", option->name, values_of(*option).c_str(), fallback.c_str(),
                    meaning.c_str());
    }
}

// Keeps the processes' files, which a reader may want to merge again.
int merge(const char* path) {
    osc::trace::Merged merged;
    std::string why;
    const bool written = osc::trace::merge(path, merged, why);
    for (const std::string& file : merged.left_out)
        std::fprintf(stderr, "osc_info: left out %s\n", file.c_str());
    if (!written) {
        std::fprintf(stderr, "osc_info: cannot write the timeline %s: %s\n", path, why.c_str());
        return 1;
    }
    std::printf("%s: %u of %u processes, %llu records, %llu dropped, %llu messages with both ends\n", path,
                merged.found, merged.processes, static_cast<unsigned long long>(merged.records),
                static_cast<unsigned long long>(merged.dropped), static_cast<unsigned long long>(merged.arrows));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const char* const what = argc > 1 ? argv[1] : "";
    if (std::strcmp(what, "--check") == 0) {
        const bool as_json = argc > 2 && std::strcmp(argv[2], "--json") == 0;
        const char* const* const rest = argv + (as_json ? 3 : 2);
        const bool has_program = *rest != nullptr && **rest != '-' && **rest != '\0';
        if (*rest == nullptr) return osc::tools::check_main(as_json);
        if (has_program && rest[1] == nullptr) return osc::tools::check_program_main(*rest, as_json);
    }
    if (std::strcmp(what, "--merge") == 0 && argc == 3) return merge(argv[2]);
    if (argc > 2 || (argc == 2 && *what == '\0')) {
        std::fputs(kUsage, stderr);
        return kWrongArguments;
    }
    if (*what == '\0') {
        print_options(false);
    } else if (std::strcmp(what, "--debug-options") == 0) {
        print_options(true);
    } else if (std::strcmp(what, "--counters") == 0) {
        print_counters();
    } else if (std::strcmp(what, "--markdown") == 0) {
        print_markdown(false);
        std::puts("");
        print_markdown(true);
    } else if (std::strcmp(what, "--providers") == 0) {
        return osc::tools::print_providers();
    } else if (std::strcmp(what, "--version") == 0) {
        std::puts(OSC_VERSION_TEXT);
    } else if (std::strcmp(what, "--help") == 0) {
        std::fputs(kUsage, stdout);
    } else {
        std::fprintf(stderr, "osc_info: no argument '%s'\n%s", what, kUsage);
        return kWrongArguments;
    }
    return 0;
}
