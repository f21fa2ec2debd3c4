// The option table: defaults, values that parse, values that do not, and names that no option has. Options are read
// once per process, so each case runs in a child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "../fuzz/options_input.h"
#include "base/options.h"

namespace osc::test {
namespace {

// The exit status of `check` and libosc's messages on stderr, with these variables set.
struct Outcome {
    bool passed;
    std::string said;
};

Outcome with(const std::vector<std::pair<const char*, std::string>>& variables,
             const std::function<bool(const base::Values&)>& check) {
    int ends[2];
    if (::pipe(ends) != 0) return {false, "no pipe"};
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]);
        for (const auto& [name, value] : variables)
            ::setenv(name, value.c_str(), 1);
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
    for (const Outcome& outcome : {with({}, defaults), with({{"OSC_DEBUG", ""}, {"OSC_FALLBACK", ""}}, defaults),
                                   with({{"OSC_DEBUG", "spin=,pool_mib="}}, defaults)}) {
        EXPECT_TRUE(outcome.passed);
        EXPECT_EQ(outcome.said, "");
    }
}

TEST(Options, ValuesThatParseAreTaken) {
    const Outcome outcome =
        with({{"OSC_DEBUG", "spin=7,sleep_ms=0"}, {"OSC_FALLBACK", "error"}},
             [](const base::Values& v) { return v.spin == 7 && v.fallback == "error" && v.sleep_ms == 0; });
    EXPECT_TRUE(outcome.passed);
    EXPECT_EQ(outcome.said, "");
}

TEST(Options, TheLastValueOfAKeyCounts) {
    const Outcome outcome = with({{"OSC_DEBUG", "spin=7,cma=off,spin=8,cma"}},
                                 [](const base::Values& v) { return v.spin == 8 && v.cma == "auto"; });
    EXPECT_TRUE(outcome.passed);
    EXPECT_EQ(outcome.said, "");
}

TEST(Options, ValuesThatDoNotParseKeepTheDefaultAndAreReported) {
    for (const char* bad : {"abc", "7x", "0x10", "1.5", "99999999999999999999", "7 "}) {
        const Outcome outcome =
            with({{"OSC_DEBUG", std::string("spin=") + bad}}, [](const base::Values& v) { return v.spin == -1; });
        EXPECT_TRUE(outcome.passed) << bad;
        EXPECT_EQ(outcome.said,
                  std::string("libosc: OSC_DEBUG: spin=") + bad + " is not an integer from -1 on; using -1\n");
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
        {"OSC_DEBUG", "spin=-2"},   {"OSC_DEBUG", "sleep_ms=-1"},    {"OSC_DEBUG", "pool_mib=0"},
        {"OSC_DEBUG", "cma=cma"},   {"OSC_FALLBACK", "host|error"},  {"OSC_FALLBACK", "on"},
        {"OSC_FALLBACK", "errors"}, {"OSC_VERBOSE", "windows,,all"}, {"OSC_VERBOSE", "window"},
    };
    for (const auto& [name, value] : wrong) {
        const Outcome outcome = with({{name, value}}, defaults);
        EXPECT_TRUE(outcome.passed) << name << "=" << value;
        const std::string between = name == std::string("OSC_DEBUG") ? ": " : "=";
        EXPECT_NE(outcome.said.find(name + between + value), std::string::npos) << outcome.said;
    }
}

// Each word for on and for off means one value in every option that is a switch, and in no other.
TEST(Options, WordsForOnAndOffMeanOneThing) {
    const auto has = [](const char* name, const std::string& value,
                        const std::function<bool(const base::Values&)>& check) {
        const Outcome outcome = with({{name, value}}, check);
        EXPECT_TRUE(outcome.passed) << name << "=" << value;
        EXPECT_EQ(outcome.said, "");
    };
    for (const char* on : {"1", "true", "yes", "on", "True", "YES", "On"}) {
        has("OSC_DISABLE", on, [](const base::Values& v) { return v.disable; });
        has("OSC_DEBUG", std::string("host_progress_hook=") + on,
            [](const base::Values& v) { return v.host_progress_hook; });
        has("OSC_CHECK", on, [](const base::Values& v) { return v.check == "1"; });
        has("OSC_STATS", on, [](const base::Values& v) { return v.stats == "1"; });
        has("OSC_TRACE", on,
            [](const base::Values& v) { return v.trace == std::filesystem::absolute("osc_trace.json"); });
        has("OSC_VERBOSE", on, [](const base::Values&) { return base::verbose("job") && !base::verbose("windows"); });
        has("OSC_DEBUG", std::string("cma=") + on, [](const base::Values& v) { return v.cma == "auto"; });
        has("OSC_ADOPT", on, [](const base::Values& v) { return v.adopt == "auto"; });
    }
    for (const char* off : {"0", "false", "no", "off", "False", "NO", "Off"}) {
        has("OSC_DISABLE", off, [](const base::Values& v) { return !v.disable; });
        has("OSC_DEBUG", std::string("host_progress_hook=") + off,
            [](const base::Values& v) { return !v.host_progress_hook; });
        has("OSC_CHECK", off, [](const base::Values& v) { return v.check == "0"; });
        has("OSC_STATS", off, [](const base::Values& v) { return v.stats.empty(); });
        has("OSC_TRACE", off, [](const base::Values& v) { return v.trace.empty(); });
        has("OSC_VERBOSE", off, [](const base::Values&) { return !base::verbose("job"); });
        has("OSC_DEBUG", std::string("cma=") + off, [](const base::Values& v) { return v.cma == "off"; });
        has("OSC_ADOPT", off, [](const base::Values& v) { return v.adopt == "off"; });
        has("OSC_HANG_REPORT", off, [](const base::Values&) { return base::hang_limit() == 0; });
    }
    // Numbers and other words stay what they are.
    has("OSC_HANG_REPORT", "1", [](const base::Values&) { return base::hang_limit() == 1'000'000'000; });
    has("OSC_HANG_REPORT", "on", [](const base::Values&) { return base::hang_limit() == 60'000'000'000; });
    has("OSC_CHECK", "2", [](const base::Values& v) { return v.check == "2"; });
    has("OSC_STATS", "on.json", [](const base::Values& v) { return v.stats == std::filesystem::absolute("on.json"); });
    has("OSC_DEBUG", "spin=1", [](const base::Values& v) { return v.spin == 1; });
    EXPECT_EQ(base::spelled("OSC_ADOPT", "Yes"), "auto");
    EXPECT_EQ(base::spelled("OSC_FENCE", "on"), "on");
}

TEST(Options, AMessageListsTheWordsOfAnOption) {
    const Outcome outcome = with({{"OSC_FENCE", "x"}}, [](const base::Values& v) { return v.fence == "auto"; });
    EXPECT_EQ(outcome.said, "libosc: OSC_FENCE=x: the values are auto, immediate, deferred; using \"auto\"\n");
}

TEST(Options, NamesThatNoOptionHasAreReported) {
    const auto any = [](const base::Values&) { return true; };
    EXPECT_EQ(with({{"OSC_FENSE", "1"}}, any).said, "libosc: unknown option OSC_FENSE; did you mean OSC_FENCE?\n");
    EXPECT_EQ(with({{"OSC_QQQQQQ", "1"}}, any).said, "libosc: unknown option OSC_QQQQQQ; osc_info lists the options\n");
    EXPECT_EQ(with({{"OSC_TEST_FULL", "1"}}, any).said, "");
    EXPECT_EQ(with({{"OSC_FENSE", "1"}, {"OSC_DISABLE", "1"}}, any).said, "");
}

TEST(Options, KeysThatNoOptionHasAreReported) {
    const auto said = [](const char* name, const char* value) {
        return with({{name, value}}, [](const base::Values& v) { return v.spin == -1; }).said;
    };
    const std::string spin = "; did you mean OSC_DEBUG=spin=...?\n";
    EXPECT_EQ(said("OSC_SPIN", "1"), "libosc: unknown option OSC_SPIN" + spin);
    EXPECT_EQ(said("OSC_DEBUG", "spinn=1"), "libosc: unknown option OSC_DEBUG=spinn=1" + spin);
    EXPECT_EQ(said("OSC_DEBUG", "SPIN=1"), "libosc: unknown option OSC_DEBUG=SPIN=1" + spin);
    EXPECT_EQ(said("OSC_DEBUG", "spin"), "libosc: unknown option OSC_DEBUG=spin" + spin);
    EXPECT_EQ(said("OSC_DEBUG", "fense=auto"),
              "libosc: unknown option OSC_DEBUG=fense=auto; did you mean OSC_FENCE?\n");
    EXPECT_EQ(said("OSC_DEBUG", "qqqqqq=1"),
              "libosc: unknown option OSC_DEBUG=qqqqqq=1; osc_info --debug-options lists the keys\n");
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

// tests/fuzz has the same under libFuzzer.
TEST(Options, AnyEnvironmentGivesWhatTheTableSays) {
    const auto all = [](const base::Values&) {
        std::mt19937 random(61);
        int taken = 0, refused = 0, unknown = 0;
        for (int round = 0; round < 1000; ++round) {
            std::vector<std::uint8_t> input(1 + random() % 200);
            std::ranges::generate(input, [&] { return static_cast<std::uint8_t>(random()); });
            OptionsInput options;
            if (const char* wrong = options.run(input.data(), input.size()); wrong != nullptr) {
                std::printf("round %d: %s\n", round, wrong);
                return false;
            }
            taken += options.taken();
            refused += options.refused();
            unknown += options.unknown();
        }
        return taken > 500 && refused > 500 && unknown > 500;
    };
    EXPECT_TRUE(with({}, all).passed);
}

TEST(Options, EveryRowHasANameAndAShortMeaning) {
    std::size_t count = 0;
    const base::Option* rows = base::table(count);
    ASSERT_GT(count, 0u);
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_GT(std::string(rows[i].name).size(), 2u);
        // osc_info has room for a short meaning.
        const std::string help = rows[i].help;
        EXPECT_GT(help.substr(0, help.find_first_of(".;")).size(), 10u) << rows[i].name;
        EXPECT_LT(help.substr(0, help.find_first_of(".;")).size(), 95u) << rows[i].name;
    }
}

TEST(Nearest, Distances) {
    EXPECT_EQ(base::edit_distance("", ""), 0u);
    EXPECT_EQ(base::edit_distance("", "abc"), 3u);
    EXPECT_EQ(base::edit_distance("abc", ""), 3u);
    EXPECT_EQ(base::edit_distance("FENSE", "FENCE"), 1u);
    EXPECT_EQ(base::edit_distance("LCOK", "LOCK"), 1u);
    EXPECT_EQ(base::edit_distance("kitten", "sitting"), 3u);
    EXPECT_EQ(base::edit_distance("SPIN", "SPIN"), 0u);
    EXPECT_EQ(base::edit_distance("abcdef", "badcfe"), 3u);
}

TEST(Nearest, TheOptionThatWasMeant) {
    std::size_t count = 0;
    const base::Option* rows = base::table(count);
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < count; ++i)
        if (!rows[i].is_debug()) names.emplace_back(rows[i].name);
    const auto meant = [&](std::string_view word) { return std::string(base::nearest(word, names, "OSC_")); };
    EXPECT_EQ(meant("OSC_FENSE"), "OSC_FENCE");
    EXPECT_EQ(meant("OSC_PROVIDER"), "OSC_OFI_PROVIDER");
    EXPECT_EQ(meant("OSC_LOCKS"), "OSC_LOCK");
    EXPECT_EQ(meant("OSC_SHARED_HEAP"), "OSC_SHARE_HEAP");
    EXPECT_EQ(meant("OSC_DISABLED"), "OSC_DISABLE");
    EXPECT_EQ(meant("OSC_"), "");
    EXPECT_EQ(meant("OSC_X"), "");
    EXPECT_EQ(meant("OSC_SOUND_PORT"), "");
}

}  // namespace
}  // namespace osc::test
