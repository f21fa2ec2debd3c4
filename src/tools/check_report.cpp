// The report of the health check: by node, for a person or as JSON.
#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "tools/check.h"

namespace osc::tools {
namespace {

using nlohmann::json;

// A finding, and the ranks of the node that have it.
struct Shared {
    const Finding* finding;
    std::vector<int> ranks;
};

struct Node {
    std::string name;
    std::vector<int> ranks;
    std::vector<Shared> findings;
};

// Findings that say the same are one, with the ranks that have it.
std::vector<Node> nodes_of(const JobResult& job) {
    std::map<int, Node> by_first;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessResult& process = job.processes[i];
        Node& node = by_first[process.node];
        node.name = process.machine;
        node.ranks.push_back(static_cast<int>(i));
        for (const Finding& finding : process.findings) {
            const auto same = [&](const Shared& other) {
                const Finding& had = *other.finding;
                return std::tie(had.check, had.state, had.text, had.advice) ==
                       std::tie(finding.check, finding.state, finding.text, finding.advice);
            };
            const auto found = std::find_if(node.findings.begin(), node.findings.end(), same);
            if (found == node.findings.end())
                node.findings.push_back({&finding, {static_cast<int>(i)}});
            else
                found->ranks.push_back(static_cast<int>(i));
        }
    }
    std::vector<Node> nodes;
    nodes.reserve(by_first.size());
    for (auto& [first, node] : by_first)
        nodes.push_back(std::move(node));
    return nodes;
}

void print(const Finding& finding, const std::string& ranks) {
    std::printf("  %-8s %-17s %s%s\n", json(finding.state).get<std::string>().c_str(), finding.check.c_str(),
                finding.text.c_str(), ranks.c_str());
    if (!finding.advice.empty()) std::printf("  %-8s %-17s -> %s\n", "", "", finding.advice.c_str());
}

void print_text(const std::vector<Node>& nodes, const JobResult& job, int problems, int notes) {
    std::printf("libosc %s: health check\n", OSC_VERSION_TEXT);
    for (const Node& node : nodes) {
        std::printf("\n%s", node.name.c_str());
        if (job.processes.size() > 1) std::printf(", %s", base::text_of_ranks(node.ranks).c_str());
        std::puts("");
        for (const Shared& shared : node.findings) {
            const bool all = shared.ranks.size() == node.ranks.size();
            print(*shared.finding, all ? "" : " [" + base::text_of_ranks(shared.ranks) + "]");
        }
    }
    if (!job.ways.empty()) std::puts("\nbetween nodes, a put of 8 bytes with its flush");
    for (const Way& way : job.ways) {
        if (way.ns >= 0) std::printf("  ok       rank %d -> rank %d: %.1f us\n", way.from, way.to, way.ns / 1000);
    }
    if (!job.findings.empty()) std::puts("\nthe job");
    for (const Finding& finding : job.findings)
        print(finding, "");
    std::printf("\n%d problem%s, %d note%s\n", problems, problems == 1 ? "" : "s", notes, notes == 1 ? "" : "s");
}

void print_json(const std::vector<Node>& nodes, const JobResult& job, int problems, int notes) {
    json report = {{"libosc", OSC_VERSION_TEXT}, {"problems", problems}, {"notes", notes}};
    report["nodes"] = json::array();
    for (const Node& node : nodes) {
        json found = {{"machine", node.name}, {"ranks", node.ranks}, {"findings", json::array()}};
        for (const Shared& shared : node.findings) {
            json one = *shared.finding;
            one["ranks"] = shared.ranks;
            found["findings"].push_back(one);
        }
        report["nodes"].push_back(found);
    }
    report["ways"] = json::array();
    for (const Way& way : job.ways)
        report["ways"].push_back(
            {{"from", way.from}, {"to", way.to}, {"arrives", way.ns >= 0}, {"put_flush_ns", way.ns}});
    report["job"] = job.findings;
    // Texts of the system may have bytes that are not UTF-8.
    std::puts(report.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

}  // namespace

int print_report(const JobResult& job, bool as_json) {
    const std::vector<Node> nodes = nodes_of(job);
    int counts[3] = {};
    for (const Node& node : nodes)
        for (const Shared& shared : node.findings)
            ++counts[static_cast<int>(shared.finding->state)];
    for (const Finding& finding : job.findings)
        ++counts[static_cast<int>(finding.state)];
    const int problems = counts[static_cast<int>(State::Problem)];
    (as_json ? print_json : print_text)(nodes, job, problems, counts[static_cast<int>(State::Note)]);
    return problems;
}

}  // namespace osc::tools
