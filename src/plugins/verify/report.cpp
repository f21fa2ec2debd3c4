// Prints findings.
// Build: osc_verify_core
#include "plugins/verify/report.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/hash.h"
#include "base/log.h"
#include "base/warn.h"

namespace osc::check {
namespace {

struct RuleText {
    const char* name;
    const char* section;
};
constexpr RuleText kTexts[] = {
#define OSC_RULE(id, name, section) {name, section},
#include "plugins/verify/rules.def"
};

// Equal for findings that are one report: the same rule at the same sites. Findings without any site differ by text.
std::uint64_t key_of(const Finding& finding) {
    std::uint64_t key = base::hash_with(base::kHashOfNothing, static_cast<std::uint64_t>(finding.rule) + 1);
    std::vector<Site> sites;
    for (const Line& line : finding.lines)
        if (line.site != Site{}) sites.push_back(line.site);
    std::sort(sites.begin(), sites.end());  // two processes may find the same conflict from both sides
    for (const Site site : sites)
        key = base::hash_with(key, site.value);
    return sites.empty() ? base::hash_of(finding.window + finding.lines.front().text, key) : key;
}

// Never destroyed: exit handlers may report.
struct State {
    std::mutex mutex;
    std::set<std::uint64_t> printed;
    std::map<Rule, std::uint64_t> counts;
};
State& state() {
    static auto* made = new State;
    return *made;
}

}  // namespace

void report(const Finding& finding) {
    const std::uint64_t key = key_of(finding);
    {
        const std::lock_guard lock(state().mutex);
        if (!state().printed.insert(key).second || !base::claim_for_job(key)) return;
        ++state().counts[finding.rule];
    }
    const RuleText& rule = kTexts[static_cast<std::size_t>(finding.rule)];
    std::string text = std::string("OSC_CHECK: ") + rule.name + " (MPI 4.1, " + rule.section + ")";
    if (!finding.window.empty()) text += ", " + finding.window;
    for (const Line& line : finding.lines) {
        text += "\n  " + line.text;
        if (line.site != Site{}) text += "\n    called by " + text_of(line.site);
    }
    base::say_text(text);
}

void summarise() {
    const std::lock_guard lock(state().mutex);
    std::uint64_t reports = 0;
    for (const auto& [rule, count] : state().counts)
        reports += count;
    const std::size_t kinds = state().counts.size();
    if (reports > 0)
        base::say("OSC_CHECK: %llu report%s of %zu kind%s", static_cast<unsigned long long>(reports),
                  reports == 1 ? "" : "s", kinds, kinds == 1 ? "" : "s");
}

}  // namespace osc::check
