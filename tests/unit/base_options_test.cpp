// The option table: defaults, values that parse, values that do not, and names that no option has. Options are read
// once per process, so each case runs in a child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/options.h"

namespace osc::test {
namespace {

// The exit status of `check` and libosc's messages on stderr, with these variables set.
struct Outcome {
    bool passed;
    std::string said;
};

Outcome with(const std::vector<std::pair<const char*, const char*>>& variables,
             const std::function<bool(const base::Values&)>& check) {
    int ends[2];
    if (::pipe(ends) != 0) return {false, "no pipe"};
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]);
        for (const auto& [name, value] : variables)
            ::setenv(name, value, 1);
        ::_exit(check(base::values()) ? 0 : 1);
    }
    ::close(ends[1]);
    Outcome outcome{false, ""};
    char buffer[512];
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        outcome.said.append(buffer, static_cast<std::size_t>(got));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    outcome.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return outcome;
}

TEST(Options, DefaultsWhereNothingOrNothingButAnEmptyTextIsSet) {
    const auto defaults = [](const base::Values& v) {
        return !v.disable && v.fallback == "host" && v.spin == -1 && v.sleep_ms == 10 && v.pool_mib == 1024;
    };
    for (const Outcome& outcome : {with({}, defaults), with({{"OSC_SPIN", ""}, {"OSC_FALLBACK", ""}}, defaults)}) {
        EXPECT_TRUE(outcome.passed);
        EXPECT_EQ(outcome.said, "");
    }
}

TEST(Options, ValuesThatParseAreTaken) {
    const Outcome outcome =
        with({{"OSC_SPIN", "7"}, {"OSC_FALLBACK", "error"}, {"OSC_SLEEP_MS", "0"}},
             [](const base::Values& v) { return v.spin == 7 && v.fallback == "error" && v.sleep_ms == 0; });
    EXPECT_TRUE(outcome.passed);
    EXPECT_EQ(outcome.said, "");
}

TEST(Options, AnOldNameIsAcceptedWithOneLine) {
    const Outcome old_name =
        with({{"OSC_NODES", "3"}, {"OSC_TIMEOUT", "7"}, {"OSC_HOST_POLLS", "0"}},
             [](const base::Values& v) { return v.fake_nodes == 3 && v.peer_timeout == 7 && !v.host_progress_hook; });
    EXPECT_TRUE(old_name.passed);
    for (const char* now : {"OSC_FAKE_NODES", "OSC_PEER_TIMEOUT", "OSC_HOST_PROGRESS_HOOK"})
        EXPECT_NE(old_name.said.find(now), std::string::npos) << now;
    EXPECT_EQ(std::count(old_name.said.begin(), old_name.said.end(), '\n'), 3) << old_name.said;

    const Outcome both =
        with({{"OSC_NODES", "3"}, {"OSC_FAKE_NODES", "2"}}, [](const base::Values& v) { return v.fake_nodes == 2; });
    EXPECT_TRUE(both.passed);
    EXPECT_NE(both.said.find("whose value counts"), std::string::npos) << both.said;
}

TEST(Options, ValuesThatDoNotParseKeepTheDefaultAndAreReported) {
    for (const char* bad : {"abc", "7x", "0x10", "1.5", "99999999999999999999", "7 "}) {
        const Outcome outcome = with({{"OSC_SPIN", bad}}, [](const base::Values& v) { return v.spin == -1; });
        EXPECT_TRUE(outcome.passed) << bad;
        EXPECT_NE(outcome.said.find("OSC_SPIN"), std::string::npos) << bad;
        EXPECT_NE(outcome.said.find(bad), std::string::npos) << bad;
    }
    for (const char* bad : {"yess", "2", "-1", "o"}) {
        const Outcome outcome = with({{"OSC_DISABLE", bad}}, [](const base::Values& v) { return !v.disable; });
        EXPECT_TRUE(outcome.passed) << bad;
        EXPECT_NE(outcome.said.find("OSC_DISABLE"), std::string::npos) << bad;
    }
}

TEST(Options, ValuesOutsideTheLimitsKeepTheDefaultAndAreReported) {
    const auto defaults = [](const base::Values& v) {
        return v.spin == -1 && v.sleep_ms == 10 && v.pool_mib == 1024 && v.fallback == "host" && v.cma == "auto" &&
               v.verbose.empty();
    };
    const std::pair<const char*, const char*> wrong[] = {
        {"OSC_SPIN", "-2"},         {"OSC_SLEEP_MS", "-1"},          {"OSC_POOL_MIB", "0"},
        {"OSC_FALLBACK", "errors"}, {"OSC_FALLBACK", "host|error"},  {"OSC_FALLBACK", "on"},
        {"OSC_VERBOSE", "window"},  {"OSC_VERBOSE", "windows,,all"},
    };
    for (const auto& [name, value] : wrong) {
        const Outcome outcome = with({{name, value}}, defaults);
        EXPECT_TRUE(outcome.passed) << name << "=" << value;
        EXPECT_NE(outcome.said.find(std::string(name) + "=" + value), std::string::npos) << outcome.said;
    }
}

// Each word for on and for off means one value in every option that is a switch, and in no other.
TEST(Options, WordsForOnAndOffMeanOneThing) {
    const auto has = [](const char* name, const char* value, const std::function<bool(const base::Values&)>& check) {
        const Outcome outcome = with({{name, value}}, check);
        EXPECT_TRUE(outcome.passed) << name << "=" << value;
        EXPECT_EQ(outcome.said, "");
    };
    for (const char* on : {"1", "true", "yes", "on", "True", "YES", "On"}) {
        has("OSC_DISABLE", on, [](const base::Values& v) { return v.disable; });
        has("OSC_HOST_PROGRESS_HOOK", on, [](const base::Values& v) { return v.host_progress_hook; });
        has("OSC_CHECK", on, [](const base::Values& v) { return v.check == "1"; });
        has("OSC_STATS", on, [](const base::Values& v) { return v.stats == "1"; });
        has("OSC_TRACE", on, [](const base::Values& v) { return v.trace == "osc_trace.json"; });
        has("OSC_VERBOSE", on, [](const base::Values&) { return base::verbose("job") && !base::verbose("windows"); });
        has("OSC_CMA", on, [](const base::Values& v) { return v.cma == "auto"; });
        has("OSC_ADOPT", on, [](const base::Values& v) { return v.adopt == "auto"; });
    }
    for (const char* off : {"0", "false", "no", "off", "False", "NO", "Off"}) {
        has("OSC_DISABLE", off, [](const base::Values& v) { return !v.disable; });
        has("OSC_HOST_PROGRESS_HOOK", off, [](const base::Values& v) { return !v.host_progress_hook; });
        has("OSC_CHECK", off, [](const base::Values& v) { return v.check == "0"; });
        has("OSC_STATS", off, [](const base::Values& v) { return v.stats.empty(); });
        has("OSC_TRACE", off, [](const base::Values& v) { return v.trace.empty(); });
        has("OSC_VERBOSE", off, [](const base::Values&) { return !base::verbose("job"); });
        has("OSC_CMA", off, [](const base::Values& v) { return v.cma == "off"; });
        has("OSC_ADOPT", off, [](const base::Values& v) { return v.adopt == "off"; });
        has("OSC_HANG_REPORT", off, [](const base::Values&) { return base::hang_limit() == 0; });
    }
    // Numbers and other words stay what they are.
    has("OSC_HANG_REPORT", "1", [](const base::Values&) { return base::hang_limit() == 1'000'000'000; });
    has("OSC_HANG_REPORT", "on", [](const base::Values&) { return base::hang_limit() == 60'000'000'000; });
    has("OSC_CHECK", "2", [](const base::Values& v) { return v.check == "2"; });
    has("OSC_STATS", "on.json", [](const base::Values& v) { return v.stats == "on.json"; });
    has("OSC_SPIN", "1", [](const base::Values& v) { return v.spin == 1; });
    EXPECT_EQ(base::spelled("OSC_ADOPT", "Yes"), "auto");
    EXPECT_EQ(base::spelled("OSC_FENCE", "on"), "on");
}

TEST(Options, AMessageListsTheWordsOfAnOption) {
    const Outcome outcome = with({{"OSC_FENCE", "x"}}, [](const base::Values& v) { return v.fence == "auto"; });
    EXPECT_EQ(outcome.said, "libosc: OSC_FENCE=x: the values are auto, immediate, deferred; using \"auto\"\n");
}

TEST(Options, NamesThatNoOptionHasAreReported) {
    const auto any = [](const base::Values&) { return true; };
    EXPECT_EQ(with({{"OSC_SPINN", "1"}}, any).said, "libosc: unknown option OSC_SPINN; did you mean OSC_SPIN?\n");
    EXPECT_EQ(with({{"OSC_QQQQQQ", "1"}}, any).said, "libosc: unknown option OSC_QQQQQQ; osc_info lists the options\n");
    EXPECT_EQ(with({{"OSC_TEST_FULL", "1"}}, any).said, "");
    EXPECT_EQ(with({{"OSC_SPINN", "1"}, {"OSC_DISABLE", "1"}}, any).said, "");
}

TEST(Options, VerboseTakesSubjectsAndAll) {
    const auto says = [](const char* value, const char* subject) {
        return with({{"OSC_VERBOSE", value}}, [&](const base::Values&) { return base::verbose(subject); }).passed;
    };
    EXPECT_TRUE(says("windows,counters", "counters"));
    EXPECT_TRUE(says("all", "counters"));
    EXPECT_FALSE(says("windows,counters", "counter"));
    EXPECT_FALSE(says("", "counters"));
}

TEST(Options, EveryRowHasAName) {
    std::size_t count = 0;
    const base::Option* rows = base::table(count);
    ASSERT_GT(count, 0u);
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(std::string(rows[i].variable).substr(0, 4), "OSC_");
        EXPECT_GT(std::string(rows[i].help).size(), 10u);
    }
}

}  // namespace
}  // namespace osc::test
