// oscrun starts a command whose MPI processes load libosc. It knows the launchers of launchers.def, and gives variables
// to the processes that they start, not to the launcher itself.
#include <getopt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "tools/check.h"

namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

constexpr int kRefused = 1;
constexpr int kWrongArguments = 2;
constexpr int kNoCommand = 127;

const char* const kUsage =
    "usage: oscrun [OPTION...] COMMAND [ARGUMENT...]\n"
    "  COMMAND: a launcher with the program (mpiexec and mpirun of MPICH, Intel MPI and Open MPI, srun), or a program. "
    "Behind\n"
    "    another launcher, oscrun stands before the program: LAUNCHER oscrun ./program\n"
    "  -v, --verbose: one line a job, which proves that libosc is active (OSC_VERBOSE=1)\n"
    "  --stats[=FILE]: statistics of each window with advice, at MPI_Finalize (OSC_STATS)\n"
    "  --trace FILE: a timeline of all processes (OSC_TRACE)\n"
    "  --check[=2]: reports the program's mistakes (OSC_CHECK)\n"
    "  --off: libosc passes every call on (OSC_DISABLE=1), for comparison\n"
    "  --print: prints the command that oscrun would start, for a shell\n"
    "  --version, --help\n"
    "  Variables OSC_... of the environment, which osc(7) lists, reach the processes too.\n"
    "  Exit status: the command's; 1: libosc could not take effect, 2: wrong arguments, 127: no such command\n";

[[noreturn]] void refuse(const std::string& text, int status = kRefused) {
    std::fprintf(stderr, "oscrun: %s\n", text.c_str());
    std::exit(status);
}

enum class Family {
#define OSC_LAUNCHER(family, names, says, pairs, values) family,
#include "tools/launchers.def"
};

struct Launcher {
    Family family;
    std::string_view names, says, pairs, values;
};
constexpr Launcher kLaunchers[] = {
#define OSC_LAUNCHER(family, names, says, pairs, values) {Family::family, names, says, pairs, values},
#include "tools/launchers.def"
};

template <class Predicate>
bool any_word(std::string_view words, Predicate&& fits) {
    while (!words.empty())
        if (fits(osc::base::next_word(words, '|'))) return true;
    return false;
}

// The launcher that a word of the command names; null if it names none.
const Launcher* launcher_of(const std::string& word) {
    const std::string name = std::filesystem::path(word).filename();
    const bool is_mpiexec = name.starts_with("mpiexec") || name.starts_with("mpirun");
    if (!is_mpiexec && name != "srun" && name != "orterun" && name != "prterun") return nullptr;
    std::error_code error;
    const std::string file = std::filesystem::canonical(osc::tools::in_path(word), error).filename();
    if (error) refuse("there is no command " + word, kNoCommand);
    const std::string version = is_mpiexec ? osc::tools::output_of(word, "--version") : "";
    for (const Launcher& launcher : kLaunchers)
        if (any_word(launcher.names, [&](auto part) { return file.find(part) != file.npos; }) ||
            any_word(launcher.says, [&](auto part) { return version.find(part) != version.npos; }))
            return &launcher;
    refuse(word + " is a launcher that oscrun does not know: write " + word + " ... oscrun PROGRAM");
}

bool is_program(const std::string& word) {
    const std::string path = osc::tools::in_path(word);
    struct stat about {};
    return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// The words that an option takes behind its own; -1: unknown.
int words_behind(const Launcher& launcher, const std::string& option, const std::string& next) {
    if (option.find('=') != std::string::npos) return 0;
    const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
    // srun's -n4
    if (launcher.family == Family::Slurm && option[1] != '-' && name.size() > 1) return 0;
    const auto is_name = [&](std::string_view word) { return word == name; };
    if (any_word(launcher.pairs, is_name))
        return next.find('=') == std::string::npos ? 2 : 1;  // Hydra: -genv NAME=VALUE
    return any_word(launcher.values, is_name) ? 1 : -1;
}

// The index of the program in command[from, end); `end` if only its options are there.
std::size_t find_program(const Launcher& launcher, const Words& command, std::size_t from, std::size_t end) {
    bool behind_unknown = false;
    for (std::size_t i = from; i < end; ++i) {
        const std::string& word = command[i];
        if (word.starts_with("-") && word.size() > 1) {
            const int words = words_behind(launcher, word, i + 1 < end ? command[i + 1] : "");
            behind_unknown = words < 0;
            i += static_cast<std::size_t>(std::max(words, 0));
        } else if (is_program(word) || !behind_unknown) {
            return i;
        } else {
            behind_unknown = false;
        }
    }
    return end;
}

// Ends oscrun if libosc cannot take effect in the program. Another host may have programs and libraries that this one
// lacks.
void require_effect(const std::string& program, const std::string& preload) {
    if (!is_program(program)) return;
    osc::tools::Findings findings;
    osc::tools::check_program(findings, program, preload);
    for (const osc::tools::Finding& finding : findings)
        if (finding.state == osc::tools::State::Problem && !finding.data.contains("missing"))
            refuse(finding.text + ": " + finding.advice);
}

// The libraries to preload: those that the environment names, then libosc's.
std::string preload_list() {
    const char* const own = std::getenv("LD_PRELOAD");
    std::string list = own != nullptr ? own : "";
    const std::filesystem::path folder = osc::tools::library_folder();
    const auto append = [&](const char* name) {
        std::error_code error;
        if (!std::filesystem::exists(folder / name, error)) refuse("there is no " + (folder / name).string());
        if (list.find(std::string("/") + name) == std::string::npos)
            list += (list.empty() ? "" : ":") + (folder / name).string();
    };
    append("libosc.so");
    if (osc::base::values().share_heap > 0) append("libosc_heap.so");
    return list;
}

// srun's list of variables with `names` and LD_PRELOAD, which has no comma; the others srun takes from its environment.
std::string export_list(std::string list, const Variables& variables) {
    if (list == "NONE" || list == "NIL") list.clear();
    for (const auto& [name, value] : variables)
        list += (list.empty() ? "" : ",") + name + (name == "LD_PRELOAD" ? "=" + value : "");
    return "--export=" + list;
}

// The words that give the variables to the processes of command[from, program).
Words passing(const Launcher& launcher, const Variables& variables, Words& command, std::size_t from,
              std::size_t program) {
    for (std::size_t i = from; i < program; ++i)
        if (command[i].find("LD_PRELOAD") != std::string::npos)
            refuse("the launcher's options set LD_PRELOAD too: set it in oscrun's environment instead");
    Words words;
    switch (launcher.family) {
        case Family::Hydra:
            for (const auto& [name, value] : variables)
                words.insert(words.end(), {"-genv", name, value});
            break;
        case Family::OpenMpi:
            for (const auto& [name, value] : variables)
                words.insert(words.end(), {"-x", name + "=" + value});
            break;
        case Family::Slurm:
            const char* const fallback = std::getenv("SLURM_EXPORT_ENV");
            std::string list = fallback != nullptr ? fallback : "ALL";
            for (std::size_t i = from; i < program; ++i) {
                if (command[i].starts_with("--export=")) {
                    list = command[i].substr(std::strlen("--export="));
                } else if (command[i] == "--export" && i + 1 < program) {
                    list = command[i + 1];
                    command[i + 1] = export_list(list, variables).substr(std::strlen("--export="));
                    return {};
                } else {
                    continue;
                }
                command[i] = export_list(list, variables);
                return {};
            }
            words = {export_list(list, variables)};
            break;
    }
    return words;
}

// Writes the variables into a launcher's command, before the options of its programs.
void write_into(const Launcher& launcher, Words& command, std::size_t at, const Variables& variables) {
    for (std::size_t from = at + 1, end = 0; from <= command.size(); from = end + 1) {
        const auto place = command.begin() + static_cast<std::ptrdiff_t>(from);
        end = static_cast<std::size_t>(std::find(place, command.end(), ":") - command.begin());
        const std::size_t program = find_program(launcher, command, from, end);
        if (program < end) require_effect(command[program], variables.at("LD_PRELOAD"));
        // Hydra's -genv is for all programs.
        if (launcher.family == Family::Hydra && from > at + 1) continue;
        const Words words = passing(launcher, variables, command, from, program);
        command.insert(place, words.begin(), words.end());
        end += words.size();
    }
}

std::string quoted(const std::string& word) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
    std::string text = "'";
    for (const char c : word)
        text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

void print(const Variables& own, const Words& command) {
    std::string line = own.empty() ? "" : "env ";
    for (const auto& [name, value] : own)
        line += quoted(name + "=" + value) + " ";
    for (const std::string& word : command)
        line += quoted(word) + " ";
    line.pop_back();
    std::puts(line.c_str());
}

struct Request {
    Variables variables;
    bool print = false;
    Words command;
};

Request read(int argc, char** argv) {
    enum { Stats = 256, Trace, Check, Off, Print, Version, Help };
    const option options[] = {{"verbose", no_argument, nullptr, 'v'},
                              {"stats", optional_argument, nullptr, Stats},
                              {"trace", required_argument, nullptr, Trace},
                              {"check", optional_argument, nullptr, Check},
                              {"off", no_argument, nullptr, Off},
                              {"print", no_argument, nullptr, Print},
                              {"version", no_argument, nullptr, Version},
                              {"help", no_argument, nullptr, Help},
                              {nullptr, 0, nullptr, 0}};
    Request request;
    for (char** variable = environ; *variable != nullptr; ++variable)
        if (std::strncmp(*variable, "OSC_", 4) == 0)
            if (const char* const equals = std::strchr(*variable, '='); equals != nullptr)
                request.variables.emplace(std::string(*variable, static_cast<std::size_t>(equals - *variable)),
                                          equals + 1);
    const auto value = [](const char* fallback) { return ::optarg != nullptr ? ::optarg : fallback; };
    for (int found = 0; (found = ::getopt_long(argc, argv, "+v", options, nullptr)) != -1;) {
        switch (found) {
            case 'v':
                request.variables.emplace("OSC_VERBOSE", "1");
                break;
            case Stats:
                request.variables["OSC_STATS"] = value("1");
                break;
            case Trace:
                request.variables["OSC_TRACE"] = ::optarg;
                break;
            case Check:
                request.variables["OSC_CHECK"] = value("1");
                break;
            case Off:
                request.variables["OSC_DISABLE"] = "1";
                break;
            case Print:
                request.print = true;
                break;
            case Version:
                std::puts(OSC_VERSION_TEXT);
                std::exit(0);
            case Help:
                std::fputs(kUsage, stdout);
                std::exit(0);
            default:
                std::fputs(kUsage, stderr);
                std::exit(kWrongArguments);
        }
    }
    request.command.assign(argv + ::optind, argv + argc);
    if (!request.command.empty()) return request;
    std::fputs(kUsage, stderr);
    std::exit(kWrongArguments);
}

}  // namespace

int main(int argc, char** argv) {
    Request request = read(argc, argv);
    Words& command = request.command;
    const std::string preload = preload_list();
    request.variables["LD_PRELOAD"] = preload;

    // `timeout 60 mpiexec ...`: the launcher is not the first word.
    const Launcher* launcher = nullptr;
    std::size_t at = 0;
    for (; at < command.size() && launcher == nullptr; ++at)
        launcher = launcher_of(command[at]);
    Variables own = request.variables;
    if (launcher != nullptr) {
        write_into(*launcher, command, at - 1, request.variables);
        // srun passes what its environment has.
        if (launcher->family == Family::Slurm)
            own.erase("LD_PRELOAD");
        else
            own.clear();
    } else {
        require_effect(command.front(), preload);
    }
    if (request.print) {
        print(own, command);
        return 0;
    }
    for (const auto& [name, value] : own)
        ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> words;
    for (std::string& word : command)
        words.push_back(word.data());
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    refuse(command[0] + ": " + std::strerror(errno), kNoCommand);
}
