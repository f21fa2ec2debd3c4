// What libosc says carries the rank by which the user knows the process.
#include "diag/log.h"

#include <gtest/gtest.h>

#include <string>

namespace osc::diag {
namespace {

std::string said() {
    ::testing::internal::CaptureStderr();
    say("window %d", 7);
    return ::testing::internal::GetCapturedStderr();
}

// Windows on MPI_COMM_SELF, or on a part of the job, change nothing.
TEST(Log, TheRankIsThatInTheLargestCommunicator) {
    EXPECT_EQ(said(), "libosc: window 7\n");
    set_rank(0, 1);
    EXPECT_EQ(said(), "libosc: rank 0: window 7\n");
    set_rank(3, 4);
    set_rank(0, 1);
    set_rank(1, 4);
    EXPECT_EQ(said(), "libosc: rank 3: window 7\n");
    set_rank(5, 8);
    EXPECT_EQ(said(), "libosc: rank 5: window 7\n");
}

}  // namespace
}  // namespace osc::diag
