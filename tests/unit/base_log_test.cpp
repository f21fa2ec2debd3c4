// libosc's messages have the process's rank in the user's largest communicator.
#include <gtest/gtest.h>

#include <string>

#include "base/log.h"

namespace osc::base {
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
}  // namespace osc::base
