// `osc_info --providers`: the generated tables of docs/NETWORK.md.
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/endpoint.h"
#include "tools/check.h"

namespace osc::tools {
namespace {

using fabric::RowForm;

// Providers that libosc does not choose by itself.
constexpr const char* kOthers[] = {"sockets", "udp;ofi_rxd", "shm"};

/// One provider of this machine.
struct Row {
    std::string name;
    bool chosen;  // in providers.def
    std::map<std::string, std::string> facts;
    std::unique_ptr<fabric::Endpoint> endpoint;  // null: libosc refuses it
    std::string refusal;
};

std::string fact(const Row& row, const char* name) {
    const auto found = row.facts.find(name);
    return found != row.facts.end() ? found->second : "";
}

// "FI_A, FI_B" without the prefix that all have in common.
std::string without(const std::string& prefix, std::string words) {
    for (std::size_t at = words.find(prefix); at != std::string::npos; at = words.find(prefix, at))
        words.erase(at, prefix.size());
    return words;
}

// The types with a sum in all the forms that accumulates need, of those that MPI's programs use most.
std::string rows_of(const fabric::Endpoint& endpoint) {
    constexpr struct {
        Basic type;
        const char* name;
    } kTypes[] = {{Basic::I8, "int8"},   {Basic::I16, "int16"}, {Basic::I32, "int32"},
                  {Basic::I64, "int64"}, {Basic::F32, "float"}, {Basic::F64, "double"}};
    std::string names;
    for (const auto& [type, name] : kTypes)
        if (endpoint.longest_row(RowForm::Update, type, Op::Sum) > 0 &&
            endpoint.longest_row(RowForm::Fetch, type, Op::Sum) > 0)
            names += (names.empty() ? "" : ", ") + std::string(name);
    return names.empty() ? "none" : names;
}

std::string verdict(const Row& row) {
    if (row.endpoint == nullptr) return "refuses it: " + row.refusal;
    const std::string flaw = row.endpoint->flaw();
    const std::string how = flaw.empty() ? "takes it" : "takes it, messages carry all data: " + flaw;
    return row.chosen ? how : how + ", if `OSC_OFI_PROVIDER` names it";
}

void print(const std::vector<Row>& rows) {
    std::puts("| provider | registration | send order | writes in order | copied | progress |");
    std::puts("|---|---|---|---|---|---|");
    for (const Row& row : rows)
        std::printf("| `%s` | %s | %s | %s | %s | %s |\n", row.name.c_str(),
                    without("FI_MR_", fact(row, "registration")).c_str(),
                    without("FI_ORDER_", fact(row, "order")).c_str(), fact(row, "ordered_writes").c_str(),
                    fact(row, "copied").c_str(), without("FI_PROGRESS_", fact(row, "progress")).c_str());
    std::puts("");
    std::puts("| provider | libosc | 64-bit atomics | sums of rows |");
    std::puts("|---|---|---|---|");
    for (const Row& row : rows) {
        const std::string flaw = row.endpoint != nullptr ? row.endpoint->atomics_flaw() : "";
        std::printf("| `%s` | %s | %s | %s |\n", row.name.c_str(), verdict(row).c_str(),
                    row.endpoint == nullptr ? ""
                    : flaw.empty()          ? "yes"
                                            : flaw.c_str(),
                    row.endpoint != nullptr ? rows_of(*row.endpoint).c_str() : "");
    }
}

}  // namespace

int print_providers() {
    const std::string folder = library_folder().string();
    std::vector<Row> rows;
    std::string missing;
    std::string version;
    const auto look = [&](const char* name, bool chosen) {
        Row row{name, chosen, {}, nullptr, {}};
        row.facts = fabric::describe(name, row.refusal, folder.c_str());
        if (row.facts.empty()) {
            std::fprintf(stderr, "osc_info: %s\n", row.refusal.c_str());
            return false;
        }
        version = fact(row, "version");
        // libfabric answers to a part of a layered provider's name too.
        if (row.facts.count("missing") > 0 || fact(row, "provider") != name) {
            missing += (missing.empty() ? "`" : ", `") + std::string(name) + "`";
            return true;
        }
        const fabric::Wishes wishes{name, "", true, true};
        row.endpoint.reset(fabric::open(wishes, row.refusal, folder.c_str()));
        if (const std::string begin = row.name + ": "; row.refusal.starts_with(begin))
            row.refusal.erase(0, begin.size());
        rows.push_back(std::move(row));
        return true;
    };
    for (const char* name : kProviders)
        if (!look(name, true)) return 1;
    for (const char* name : kOthers)
        if (!look(name, false)) return 1;
    std::printf("libfabric %s:\n\n", version.c_str());
    print(rows);
    std::printf("\nWithout an endpoint here: %s.\n", missing.c_str());
    return 0;
}

}  // namespace osc::tools
