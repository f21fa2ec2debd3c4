// Threads record into a file that is too small, and the merge finds each record or counts it as dropped. Files that are
// damaged are refused, or read as far as they go.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "trace/epochs.h"
#include "trace/merge.h"
#include "trace/reader.h"
#include "trace/recorder.h"

namespace osc::trace {
namespace {

std::string g_path;

class TraceFile : public testing::Test {
  protected:
    // A process reads the options once; the other cases of this source read none.
    static void SetUpTestSuite() {
        const auto folder = std::filesystem::temp_directory_path() / ("osc_trace_" + std::to_string(::getpid()));
        std::filesystem::create_directory(folder);
        g_path = folder / "job.json";
        ::setenv("OSC_TRACE", g_path.c_str(), 1);
        ::setenv("OSC_DEBUG", "trace_mib=1", 1);
    }
    static void TearDownTestSuite() { std::filesystem::remove_all(std::filesystem::path(g_path).parent_path()); }
};

std::string whole(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

std::size_t times(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

constexpr std::uint32_t kThreads = 4;
constexpr std::uint32_t kEach = 20000;

TEST_F(TraceFile, EveryRecordIsFoundOrCounted) {
    EXPECT_FALSE(recording());  // not yet open
    open(0, 1, true);
    ASSERT_TRUE(is_open());
    const std::uint16_t window = add_window(77, "MPI_Win_create");
    name_window(window, "a \"name\"\n");
    // Windows beyond the places share the last one, which has the name of none of them.
    std::uint16_t further = window;
    for (std::size_t count = 1; count <= kWindows; ++count)
        further = add_window(100 + count, "MPI_Win_create");
    ASSERT_EQ(further, kWindows);
    name_window(further, "one of many");
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t)
        threads.emplace_back([=] {
            for (std::uint32_t i = 0; i < kEach; ++i)
                if (recording()) {
                    const std::uint64_t begin = base::stamp();
                    write(begin, base::stamp(), pack(Call::Accumulate, 0, window, t), 8);
                }
        });
    threads.clear();
    close();
    EXPECT_FALSE(recording());
    Merged merged;
    std::string why;
    ASSERT_TRUE(merge(g_path, merged, why)) << why;
    EXPECT_EQ(merged.records + merged.dropped, std::uint64_t{kThreads} * kEach);
    EXPECT_GT(merged.dropped, 0u);
    EXPECT_GT(merged.records, 0u);
    const std::string text = whole(g_path);
    EXPECT_EQ(times(text, "\"name\":\"MPI_Accumulate\""), merged.records);
    EXPECT_NE(text.find("a \\\"name\\\"\\n"), std::string::npos);
    const auto file = File::open(file_of(g_path, 0), why);
    ASSERT_NE(file, nullptr) << why;
    EXPECT_EQ(file->window(kWindows).made_by, "further windows");
    EXPECT_EQ(file->window(kWindows).name, "");
}

TEST_F(TraceFile, DamagedFilesDoNoHarm) {
    const std::string good = whole(file_of(g_path, 0));
    ASSERT_GE(good.size(), kFirstChunk);
    const std::string path = g_path + ".damaged";
    const auto open_with = [&](const std::string& bytes) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
        std::string why;
        auto file = File::open(path, why);
        EXPECT_TRUE(file != nullptr || !why.empty());
        std::size_t count = 0;
        if (file != nullptr) file->visit([&](std::uint32_t, const Event&) { ++count; });
        return std::pair(file != nullptr, count);
    };
    EXPECT_TRUE(open_with(good).first);
    EXPECT_FALSE(open_with("").first);
    EXPECT_FALSE(open_with(good.substr(0, kFirstChunk - 1)).first);
    EXPECT_FALSE(open_with(std::string(good.size(), 'x')).first);
    EXPECT_FALSE(open_with(std::string(good).replace(8, 4, std::string(4, '\7'))).first);  // another format
    // One chunk and half of the next.
    EXPECT_EQ(open_with(good.substr(0, kFirstChunk + sizeof(Chunk) * 3 / 2)).second, kRecords);
    // More chunks than there are.
    std::string more = good.substr(0, kFirstChunk + sizeof(Chunk));
    more.replace(offsetof(Header, used), 4, std::string(4, '\x7f'));
    EXPECT_EQ(open_with(more).second, kRecords);
    // Any bytes as records.
    std::string noise = good;
    for (std::size_t at = kFirstChunk; at < noise.size(); ++at)
        noise[at] = static_cast<char>(at * 2654435761u >> 13);
    open_with(noise);
    std::ofstream(file_of(g_path, 0), std::ios::binary | std::ios::trunc) << noise;
    Merged merged;
    std::string why;
    EXPECT_TRUE(merge(g_path, merged, why)) << why;
}

TEST_F(TraceFile, FilesOfOtherRunsAreLeftOut) {
    Merged merged;
    std::string why;
    EXPECT_FALSE(merge(g_path + ".none", merged, why));
    EXPECT_NE(why.find("rank-0"), std::string::npos);
    std::ofstream(file_of(g_path, 3), std::ios::binary) << whole(file_of(g_path, 0));  // says that it is rank 0's
    EXPECT_EQ(ranks_beside(g_path), (std::vector<std::uint32_t>{0, 3}));
    EXPECT_TRUE(merge(g_path, merged, why)) << why;
    EXPECT_EQ(merged.left_out.size(), 1u);
    EXPECT_EQ(merged.found, 1u);
}

Event call(Call what, std::uint64_t begin, std::uint64_t end, std::uint32_t target = kNoTarget,
           std::uint8_t detail = 0) {
    Event event;
    event.begin = begin, event.end = end, event.number = target, event.detail = detail, event.window = 1;
    event.kind = static_cast<std::uint8_t>(what);
    return event;
}

TEST(TraceEpochs, FencesMeetAndEndBeforeOtherEpochs) {
    Epochs epochs;
    epochs.add(call(Call::Win_fence, 10, 20));
    epochs.add(call(Call::Win_fence, 30, 40));
    epochs.add(call(Call::Win_lock, 50, 60, 2, kExclusive));
    epochs.add(call(Call::Win_lock, 61, 62, 3));
    epochs.add(call(Call::Win_unlock, 70, 80, 3));
    epochs.add(call(Call::Win_unlock, 90, 99, 2, kFailed));  // changes nothing
    epochs.add(call(Call::Win_test, 100, 101));
    const std::vector<Epoch> all = epochs.finish(1000);
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ((std::pair(all[0].begin, all[0].end)), (std::pair<std::uint64_t, std::uint64_t>(10, 40)));
    EXPECT_EQ((std::pair(all[1].begin, all[1].end)), (std::pair<std::uint64_t, std::uint64_t>(40, 50)));
    EXPECT_EQ(name_of(all[2]), "shared lock epoch at 3");
    EXPECT_EQ(all[2].end, 80u);
    EXPECT_EQ(name_of(all[3]), "exclusive lock epoch at 2");
    EXPECT_FALSE(all[3].closed);
    EXPECT_EQ(all[3].end, 1000u);
}

TEST(TraceEpochs, ExposureEndsWithASuccessfulTest) {
    Epochs epochs;
    epochs.add(call(Call::Win_wait, 1, 2));  // its post was dropped
    epochs.add(call(Call::Win_post, 10, 20));
    epochs.add(call(Call::Win_start, 21, 22));
    epochs.add(call(Call::Win_test, 30, 40));
    epochs.add(call(Call::Win_complete, 41, 45));
    epochs.add(call(Call::Win_test, 50, 60, kNoTarget, kExposureOver));
    const std::vector<Epoch> all = epochs.finish(1000);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(name_of(all[0]), "access epoch");
    EXPECT_EQ((std::pair(all[1].begin, all[1].end)), (std::pair<std::uint64_t, std::uint64_t>(10, 60)));
}

}  // namespace
}  // namespace osc::trace
