// scale_sim: what a call of libosc would take with so many processes, by the protocols' own rules and the constants of
// a machine. benchmarks/scale runs it.
//   scale_sim SCENARIO... [NAME=VALUE...]
// Of each scenario it prints one line of JSON: ns and messages of one epoch, acquisition or window. Values: processes,
// per_node, neighbours, repeats, and the machine's in ns (see kNames).
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "protocols.h"

namespace {

using simulation::Job;
using simulation::Machine;
using simulation::Outcome;

struct Settings {
    Machine machine;
    Job job;
};

const std::map<std::string_view, double& (*)(Machine&)> kNames = {
    {"send", [](Machine& m) -> double& { return m.libosc.send; }},
    {"receive", [](Machine& m) -> double& { return m.libosc.receive; }},
    {"way", [](Machine& m) -> double& { return m.libosc.way; }},
    {"byte", [](Machine& m) -> double& { return m.libosc.byte; }},
    {"host_send", [](Machine& m) -> double& { return m.host.send; }},
    {"host_receive", [](Machine& m) -> double& { return m.host.receive; }},
    {"host_way", [](Machine& m) -> double& { return m.host.way; }},
    {"host_byte", [](Machine& m) -> double& { return m.host.byte; }},
    {"near_way", [](Machine& m) -> double& { return m.near.way; }},
    {"meet", [](Machine& m) -> double& { return m.meet; }},
    {"meet_more", [](Machine& m) -> double& { return m.meet_more; }},
    {"window_ns", [](Machine& m) -> double& { return m.window; }},
    {"creates", [](Machine& m) -> double& { return m.creates; }},
    {"entry_ns", [](Machine& m) -> double& { return m.entry; }},
};

const std::map<std::string_view, std::uint32_t Job::*> kCounts = {{"processes", &Job::processes},
                                                                  {"per_node", &Job::per_node},
                                                                  {"neighbours", &Job::neighbours},
                                                                  {"repeats", &Job::repeats}};

const std::map<std::string_view, Outcome (*)(const Machine&, const Job&)> kScenarios = {
    {"fence", [](const Machine& m, const Job& j) { return simulation::fences(m, j, false); }},
    {"fence_put", [](const Machine& m, const Job& j) { return simulation::fences(m, j, true); }},
    {"pscw", simulation::pscw},
    {"lock_all", simulation::lock_all},
    {"contended_lock", simulation::contended_lock},
    {"window", simulation::window},
    {"first_window", simulation::first_window},
    {"entry",
     [](const Machine&, const Job& j) {
         return Outcome{simulation::entry_ns(j), 0};
     }},
};

template <class T>
bool read(std::string_view text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && value >= 0;
}

bool set(Settings& settings, std::string_view word) {
    const std::size_t at = word.find('=');
    const std::string_view name = word.substr(0, at);
    const std::string_view value = word.substr(at + 1);
    if (const auto found = kNames.find(name); found != kNames.end())
        return read(value, found->second(settings.machine));
    const auto found = kCounts.find(name);
    return found != kCounts.end() && read(value, settings.job.*found->second);
}

const char* flaw(const Job& job) {
    if (job.processes < 2 || job.processes > 1u << 24) return "processes: 2 to 2^24";
    if (job.per_node < 1 || job.repeats < 1) return "per_node and repeats: 1 or more";
    if (job.processes % job.per_node != 0) return "processes: a multiple of per_node";
    if (job.nodes() > 1 && job.neighbours >= job.nodes()) return "neighbours: fewer than the other nodes";
    return nullptr;
}

void print_memory(const Job& job) {
    const simulation::Memory of = simulation::memory(job);
    std::printf(
        "{\"scenario\": \"memory\", \"processes\": %u, \"per_node\": %u, \"window\": %.0f, \"target\": %.0f, "
        "\"peer\": %.0f, \"communicator\": %.0f}\n",
        job.processes, job.per_node, of.window, of.target, of.peer, of.communicator);
}

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    std::vector<std::string> wanted;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (kScenarios.contains(word) || word == "memory") {
            wanted.push_back(word);
        } else if (word.find('=') == std::string::npos || !set(settings, word)) {
            std::fprintf(stderr, "scale_sim: neither a scenario nor a value: '%s'\n", argv[i]);
            return 2;
        }
    }
    const char* wrong = wanted.empty() ? "no scenario" : flaw(settings.job);
    if (wrong != nullptr) {
        std::fprintf(stderr, "scale_sim: %s\n", wrong);
        return 2;
    }
    for (const std::string& name : wanted) {
        if (name == "memory") {
            print_memory(settings.job);
            continue;
        }
        const Outcome of = kScenarios.find(name)->second(settings.machine, settings.job);
        std::printf("{\"scenario\": \"%s\", \"processes\": %u, \"per_node\": %u, \"ns\": %.1f, \"messages\": %.4f}\n",
                    name.c_str(), settings.job.processes, settings.job.per_node, of.ns, of.messages);
        std::fflush(stdout);
    }
    return 0;
}
