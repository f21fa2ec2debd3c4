// Request-based operations in every completion call: the request completes in each, and the data is there.
#include <algorithm>

#include "completion.h"
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Rput", "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate")

using osct::complete;
using osct::kRequests;
using osct::kVariants;
using osct::rank;
using osct::size;
using osct::Window;

namespace {

constexpr int kInts = 5000;

}  // namespace

CASE(every_completion_call) {
    for (osct::WindowKind kind : osct::kAllWindowKinds) {
        Window win(kind, kInts * sizeof(int) * kRequests);
        const int target = (rank() + 1) % size();
        MPI_Win_lock_all(0, win.handle());
        for (int variant = 0; variant < kVariants; ++variant) {
            for (int count : {1, kInts}) {
                std::vector<std::vector<int>> out, in(kRequests, std::vector<int>(kInts, -1));
                MPI_Request requests[kRequests];
                const auto at = [&](int i) { return win.at(target, static_cast<std::size_t>(i) * kInts * 4); };
                for (int i = 0; i < kRequests; ++i) {
                    out.emplace_back(kInts, rank() * 1000 + variant * 10 + i);
                    CHECK_OK(MPI_Rput(out.back().data(), count, MPI_INT, target, at(i), count, MPI_INT, win.handle(),
                                      &requests[i]));
                }
                complete(variant, requests);
                // A completed put may be reused at the origin, but is at the target only after a flush.
                for (auto& buffer : out)
                    std::fill(buffer.begin(), buffer.end(), 1);
                MPI_Win_flush(target, win.handle());
                for (int i = 0; i < kRequests; ++i)
                    CHECK_OK(MPI_Raccumulate(out[static_cast<std::size_t>(i)].data(), count, MPI_INT, target, at(i),
                                             count, MPI_INT, MPI_SUM, win.handle(), &requests[i]));
                complete(variant, requests);
                MPI_Win_flush(target, win.handle());
                for (int i = 0; i < kRequests; ++i) {
                    int* into = in[static_cast<std::size_t>(i)].data();
                    if (i % 2)
                        CHECK_OK(
                            MPI_Rget(into, count, MPI_INT, target, at(i), count, MPI_INT, win.handle(), &requests[i]));
                    else
                        CHECK_OK(MPI_Rget_accumulate(nullptr, 0, MPI_INT, into, count, MPI_INT, target, at(i), count,
                                                     MPI_INT, MPI_NO_OP, win.handle(), &requests[i]));
                }
                complete(variant, requests);
                for (int i = 0; i < kRequests; ++i)
                    CHECK_ALL(in[static_cast<std::size_t>(i)].data(), static_cast<std::size_t>(count),
                              [&](std::size_t) { return rank() * 1000 + variant * 10 + i + 1; });
                MPI_Win_flush_all(win.handle());
            }
        }
        MPI_Win_unlock_all(win.handle());
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

CASE(freed_before_completion) {
    HOST_CANNOT("MPI_Request_free is refused on requests of one-sided operations");
    Window win(osct::WindowKind::Allocate, 64);
    const int target = (rank() + 1) % size(), source = (rank() + size() - 1) % size();
    const int out = rank() + 7;
    MPI_Request request;
    MPI_Win_lock_all(0, win.handle());
    CHECK_OK(MPI_Rput(&out, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, win.handle(), &request));
    CHECK_OK(MPI_Request_free(&request));
    MPI_Win_unlock_all(win.handle());
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(win.base<int>()[0], source + 7);
}

// In a fence or start epoch an operation with a request is an error (MPI 4.1 section 12.3.5), also on a target that an
// earlier operation of the epoch has opened.
CASE(requests_need_a_lock_even_on_an_open_target) {
    HOST_CANNOT("the host alone gives the request");
    Window win(osct::WindowKind::Allocate, 4096);
    MPI_Win_set_errhandler(win.handle(), MPI_ERRORS_RETURN);
    const int target = (rank() + 1) % size(), origin = (rank() + size() - 1) % size();
    const std::int64_t one = 1, more = 41;
    std::int64_t result = -1;
    const auto all_are_refused = [&] {
        CHECK_OK(
            MPI_Accumulate(&one, 1, MPI_INT64_T, target, win.at(target, 0), 1, MPI_INT64_T, MPI_SUM, win.handle()));
        CHECK_OK(MPI_Put(&one, 1, MPI_INT64_T, target, win.at(target, 8), 1, MPI_INT64_T, win.handle()));
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_CLASS(MPI_Rput(&more, 1, MPI_INT64_T, target, win.at(target, 8), 1, MPI_INT64_T, win.handle(), &request),
                    MPI_ERR_RMA_SYNC);
        CHECK_CLASS(
            MPI_Rget(&result, 1, MPI_INT64_T, target, win.at(target, 8), 1, MPI_INT64_T, win.handle(), &request),
            MPI_ERR_RMA_SYNC);
        CHECK_CLASS(MPI_Raccumulate(&more, 1, MPI_INT64_T, target, win.at(target, 0), 1, MPI_INT64_T, MPI_SUM,
                                    win.handle(), &request),
                    MPI_ERR_RMA_SYNC);
        CHECK_CLASS(MPI_Rget_accumulate(&more, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, target, win.at(target, 0), 1,
                                        MPI_INT64_T, MPI_SUM, win.handle(), &request),
                    MPI_ERR_RMA_SYNC);
        CHECK(request == MPI_REQUEST_NULL);
    };
    win.base<std::int64_t>()[0] = 0;
    MPI_Win_fence(0, win.handle());
    all_are_refused();
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win.handle());
    MPI_Group world, exposed, accessed;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &origin, &exposed);
    MPI_Group_incl(world, 1, &target, &accessed);
    MPI_Win_post(exposed, 0, win.handle());
    MPI_Win_start(accessed, 0, win.handle());
    all_are_refused();
    MPI_Win_complete(win.handle());
    MPI_Win_wait(win.handle());
    CHECK_EQ(win.base<std::int64_t>()[0], 2);
    CHECK_EQ(win.base<std::int64_t>()[1], 1);
    CHECK_EQ(result, -1);
    for (MPI_Group* group : {&world, &exposed, &accessed})
        MPI_Group_free(group);
}

CASE(proc_null_is_a_target) {
    Window win(osct::WindowKind::Allocate, 64);
    int value = 3;
    MPI_Request requests[kRequests];
    MPI_Win_lock_all(0, win.handle());
    MPI_Rput(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win.handle(), &requests[0]);
    MPI_Rget(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win.handle(), &requests[1]);
    MPI_Raccumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win.handle(), &requests[2]);
    MPI_Rget_accumulate(&value, 1, MPI_INT, &value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win.handle(),
                        &requests[3]);
    complete(1, requests);
    CHECK_EQ(value, 3);
    MPI_Win_unlock_all(win.handle());
}

// Requests of one-sided and of two-sided operations in one call.
CASE(mixed_with_messages) {
    Window win(osct::WindowKind::Allocate, 64);
    const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
    MPI_Win_lock_all(0, win.handle());
    for (int i = 0; i < 100; ++i) {
        const int out = i;
        int in = -1, got = -1;
        MPI_Request requests[kRequests];
        MPI_Irecv(&in, 1, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Rput(&out, 1, MPI_INT, right, win.at(right, 0), 1, MPI_INT, win.handle(), &requests[2]);
        MPI_Rget(&got, 1, MPI_INT, right, win.at(right, 32), 1, MPI_INT, win.handle(), &requests[3]);
        complete(i % 8, requests);
        CHECK_EQ(in, i);
        CHECK_EQ(got, 0);
    }
    MPI_Win_unlock_all(win.handle());
}
