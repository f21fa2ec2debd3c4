// main() of the unit tests' programs. A program holds several sources; ctest runs each source in a process of its own:
//   PROGRAM [--sources=NAME,NAME...] [GoogleTest's options]
// --sources chooses the cases of these sources, NAME without folder and ending. A filter -CASE leaves out some of them;
// a filter that names cases replaces --sources, as GoogleTest's death tests need it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kOption = "--sources=";

// A path's name without folder and ending.
std::string_view stem(std::string_view path) {
    path.remove_prefix(path.rfind('/') + 1);
    return path.substr(0, path.rfind('.'));
}

// GoogleTest's pattern for the cases that these sources define; empty if one of them defines none.
std::string cases_of(std::string_view sources) {
    std::string pattern;
    const ::testing::UnitTest& program = *::testing::UnitTest::GetInstance();
    for (std::size_t from = 0; from <= sources.size();) {
        const std::size_t end = std::min(sources.find(',', from), sources.size());
        const std::string_view source = sources.substr(from, end - from);
        const std::size_t before = pattern.size();
        for (int i = 0; i < program.total_test_suite_count(); ++i) {
            const ::testing::TestSuite& suite = *program.GetTestSuite(i);
            for (int k = 0; k < suite.total_test_count(); ++k) {
                const ::testing::TestInfo& one = *suite.GetTestInfo(k);
                if (stem(one.file()) == source)
                    pattern.append(suite.name()).append(1, '.').append(one.name()).append(1, ':');
            }
        }
        if (pattern.size() == before) {
            std::fprintf(stderr, "%.*s defines no test case of this program\n", static_cast<int>(source.size()),
                         source.data());
            return {};
        }
        from = end + 1;
    }
    return pattern;
}

}  // namespace

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    if (argc == 1) return RUN_ALL_TESTS();
    const std::string_view option = argv[1];
    if (argc != 2 || !option.starts_with(kOption)) {
        std::fprintf(stderr, "usage: %s [--sources=NAME,NAME...] [GoogleTest's options]\n", argv[0]);
        return 2;
    }
    const std::string chosen = cases_of(option.substr(kOption.size()));
    if (chosen.empty()) return 1;
    const std::string given = GTEST_FLAG_GET(filter);
    if (given == "*") {
        GTEST_FLAG_SET(filter, chosen);
    } else if (given.starts_with('-')) {
        GTEST_FLAG_SET(filter, chosen + given);
    }
    return RUN_ALL_TESTS();
}
