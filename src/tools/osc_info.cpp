// osc_info prints the properties and options of this build of libosc, from the tables that the library itself is built
// from, and checks the machine (check.h). It works without MPI and without a launcher, so that it runs wherever the
// library is installed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/options.h"
#include "tools/check_main.h"
#include "trace/merge.h"

namespace {

using osc::base::Option;
using osc::base::Type;

constexpr int kWrongArguments = 2;

const char* const kUsage =
    "usage: osc_info [--check [--json] [PROGRAM] | --merge FILE | --counters | --markdown | --providers | --version | "
    "--help]\n"
    "  without arguments: the version and the options with default, value in use and meaning\n"
    "  --check: checks this machine and advises; under mpiexec all nodes of the job and the ways between them; with\n"
    "    --json as JSON. Exit status 0: no problem, 1: problems\n"
    "  --check PROGRAM: whether libosc takes effect in the program that this environment starts, and why not\n"
    "  --merge FILE: writes the timeline of a job with OSC_TRACE=FILE that has not written it itself, because it "
    "crashed,\n"
    "    from the files FILE.rank-* of its processes\n"
    "  --counters: the names that osc_counter(), osc_served() and osc_forwarded() take\n"
    "  --markdown: the table of options as it stands in docs/GUIDE.md\n"
    "  --providers: what libfabric offers on this machine, and what libosc makes of it, as tables\n";

// The statistics of interpose/public_api.cpp.
struct Counter {
    const char* name;
    const char* help;
};
const Counter kCounters[] = {
#define OSC_COUNTER(name, value, help) {name, help},
#include "tools/counters.def"
#undef OSC_COUNTER
};

const char* const kEntries[] = {
#define OSC_ENTRY(kind, name, parameters, arguments) "MPI_" #name,
#include "interpose/entries.def"
#undef OSC_ENTRY
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

void print_options() {
    std::printf(
        "libosc %s\n\noptions (environment variables); where a value is a switch, 1, true, yes and on are one value, "
        "and\n"
        "0, false, no and off are another:\n",
        OSC_VERSION_TEXT);
    std::size_t count = 0;
    const Option* table = osc::base::table(count);
    for (const Option* option = table; option != table + count; ++option) {
        const char* set = std::getenv(option->variable);
        const bool given = set != nullptr && *set != '\0';
        std::printf("\n%s=%s%s\n", option->variable, given ? set : option->fallback, given ? "  (set)" : "");
        std::printf("    %s; default \"%s\"", values_of(*option).c_str(), option->fallback);
        if (*option->info_key != '\0') std::printf("; info key %s", option->info_key);
        std::printf("\n    %s\n", option->help);
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

void print_markdown() {
    std::puts("| variable | value | default | meaning |");
    std::puts("|---|---|---|---|");
    std::size_t count = 0;
    const Option* table = osc::base::table(count);
    for (const Option* option = table; option != table + count; ++option) {
        std::string fallback = cell(option->fallback);
        if (!fallback.empty()) fallback.insert(0, 1, '`').append(1, '`');
        std::string meaning = cell(option->help);
        if (*option->info_key != '\0') meaning.append("; info key `").append(option->info_key).append(1, '`');
        std::printf("| `%s` | %s | %s | %s |\n", option->variable, values_of(*option).c_str(), fallback.c_str(),
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
        print_options();
    } else if (std::strcmp(what, "--counters") == 0) {
        print_counters();
    } else if (std::strcmp(what, "--markdown") == 0) {
        print_markdown();
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
