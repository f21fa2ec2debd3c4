// Edit distances and the option that a misspelt variable meant.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "base/options.h"

namespace osc::base {
namespace {

TEST(Nearest, Distances) {
    EXPECT_EQ(edit_distance("", ""), 0u);
    EXPECT_EQ(edit_distance("", "abc"), 3u);
    EXPECT_EQ(edit_distance("abc", ""), 3u);
    EXPECT_EQ(edit_distance("FENSE", "FENCE"), 1u);
    EXPECT_EQ(edit_distance("LCOK", "LOCK"), 1u);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
    EXPECT_EQ(edit_distance("SPIN", "SPIN"), 0u);
    EXPECT_EQ(edit_distance("abcdef", "badcfe"), 3u);
}

TEST(Nearest, TheOptionThatWasMeant) {
    std::size_t count = 0;
    const Option* rows = table(count);
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < count; ++i)
        if (!rows[i].is_debug()) names.emplace_back(rows[i].name);
    const auto meant = [&](std::string_view word) { return std::string(nearest(word, names, "OSC_")); };
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
}  // namespace osc::base
