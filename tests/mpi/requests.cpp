// Request-based operations in every completion call: the request completes in each, and the data is there.
#include <algorithm>

#include "completion.h"
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Rput", "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate")

using osct::complete;
using osct::kRequests;
using osct::kVariants;

namespace {

constexpr int kInts = 5000;

}  // namespace

CASE_BY_KIND(every_completion_call) {
    Window win(kind, kInts * sizeof(int) * kRequests);
    const int target = right();
    MPI_Win_lock_all(0, win);
    for (int variant = 0; variant < kVariants; ++variant) {
        for (int count : {1, kInts}) {
            std::vector<std::vector<int>> out, in(kRequests, std::vector<int>(kInts, -1));
            MPI_Request requests[kRequests];
            const auto at = [&](int i) { return win.at(target, static_cast<std::size_t>(i) * kInts * 4); };
            for (int i = 0; i < kRequests; ++i) {
                out.emplace_back(kInts, rank() * 1000 + variant * 10 + i);
                CHECK_OK(MPI_Rput(out.back().data(), count, MPI_INT, target, at(i), count, MPI_INT, win, &requests[i]));
            }
            complete(variant, requests);
            // A completed put may be reused at the origin, but is at the target only after a flush.
            for (auto& buffer : out)
                std::fill(buffer.begin(), buffer.end(), 1);
            MPI_Win_flush(target, win);
            for (int i = 0; i < kRequests; ++i)
                CHECK_OK(MPI_Raccumulate(out[static_cast<std::size_t>(i)].data(), count, MPI_INT, target, at(i), count,
                                         MPI_INT, MPI_SUM, win, &requests[i]));
            complete(variant, requests);
            MPI_Win_flush(target, win);
            for (int i = 0; i < kRequests; ++i) {
                int* into = in[static_cast<std::size_t>(i)].data();
                if (i % 2)
                    CHECK_OK(MPI_Rget(into, count, MPI_INT, target, at(i), count, MPI_INT, win, &requests[i]));
                else
                    CHECK_OK(MPI_Rget_accumulate(nullptr, 0, MPI_INT, into, count, MPI_INT, target, at(i), count,
                                                 MPI_INT, MPI_NO_OP, win, &requests[i]));
            }
            complete(variant, requests);
            for (int i = 0; i < kRequests; ++i)
                CHECK_ALL(in[static_cast<std::size_t>(i)].data(), static_cast<std::size_t>(count),
                          [&](std::size_t) { return rank() * 1000 + variant * 10 + i + 1; });
            MPI_Win_flush_all(win);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE(freed_before_completion) {
    HOST_CANNOT("MPI_Request_free is refused on requests of one-sided operations");
    Window win(WindowKind::Allocate, 64);
    const int target = right(), source = left();
    const int out = rank() + 7;
    MPI_Request request;
    MPI_Win_lock_all(0, win);
    CHECK_OK(MPI_Rput(&out, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, win, &request));
    CHECK_OK(MPI_Request_free(&request));
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(win.base<int>()[0], source + 7);
}

namespace {

// One operation of each kind with a request, in an open epoch of any kind. Row i of a target, kInts ints, belongs to
// operation i.
class Requested {
  public:
    Requested(const Window& win, int target) : win_(win), target_(target) {}

    static constexpr std::size_t kBytes = kRequests * kInts * sizeof(int);
    static void fill(const Window& win) {
        for (int i = 0; i < kRequests * kInts; ++i)
            win.base<int>()[i] = 100 * rank() + i / kInts;
    }

    void issue(int count) {
        count_ = count;
        for (auto& buffer : {&put_, &added_})
            std::fill(buffer->begin(), buffer->end(), 1000 + rank());
        const MPI_Win w = win_.handle();
        CHECK_OK(MPI_Rput(put_.data(), count, MPI_INT, target_, at(0), count, MPI_INT, w, &requests_[0]));
        CHECK_OK(MPI_Rget(got_.data(), count, MPI_INT, target_, at(1), count, MPI_INT, w, &requests_[1]));
        CHECK_OK(
            MPI_Raccumulate(added_.data(), count, MPI_INT, target_, at(2), count, MPI_INT, MPI_SUM, w, &requests_[2]));
        CHECK_OK(MPI_Rget_accumulate(added_.data(), count, MPI_INT, fetched_.data(), count, MPI_INT, target_, at(3),
                                     count, MPI_INT, MPI_REPLACE, w, &requests_[3]));
    }
    void finish(int variant) {
        complete(variant, requests_);
        const auto of = [&](int row) { return [=, this](std::size_t) { return 100 * target_ + row; }; };
        CHECK_ALL(got_.data(), static_cast<std::size_t>(count_), of(1));
        CHECK_ALL(fetched_.data(), static_cast<std::size_t>(count_), of(3));
    }
    /// What `origin` has done to this process.
    void check_target(int origin) const {
        const auto wanted = [&](std::size_t i) {
            const int row = static_cast<int>(i) / kInts, old = 100 * rank() + row;
            if (static_cast<int>(i) % kInts >= count_ || row == 1) return old;
            return row == 2 ? old + 1000 + origin : 1000 + origin;
        };
        CHECK_ALL(win_.base<int>(), static_cast<std::size_t>(kRequests) * kInts, wanted);
    }

  private:
    MPI_Aint at(int row) const { return win_.at(target_, static_cast<std::size_t>(row) * kInts * sizeof(int)); }

    const Window& win_;
    const int target_;
    int count_ = 0;
    std::vector<int> put_ = std::vector<int>(kInts), added_ = put_, got_ = put_, fetched_ = put_;
    MPI_Request requests_[kRequests];
};

}  // namespace

// The standard has requests for lock and lock_all epochs only (MPI 4.1 section 12.3.5); MPICH and Open MPI give them in
// all epochs. A request completes before the epoch's end or after it.
CASE(requests_in_fence_and_start_epochs) {
    const int target = right(), origin = left();
    const osct::Group exposed(origin), accessed(target);
    int variant = 0;
    for (WindowKind kind : kAllWindowKinds) {
        Window win(kind, Requested::kBytes);
        Requested requested(win, target);
        for (const int count : {1, kInts}) {
            for (const bool inside : {true, false}) {
                Requested::fill(win);
                MPI_Win_fence(0, win);
                requested.issue(count);
                if (inside) requested.finish(variant % kVariants);
                MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
                if (!inside) requested.finish(variant % kVariants);
                requested.check_target(origin);

                Requested::fill(win);
                MPI_Win_post(exposed, 0, win);
                MPI_Win_start(accessed, 0, win);
                requested.issue(count);
                if (inside) requested.finish(variant % kVariants);
                MPI_Win_complete(win);
                if (!inside) requested.finish(variant % kVariants);
                MPI_Win_wait(win);
                requested.check_target(origin);
                ++variant;
            }
        }
    }
}

// On a target that an earlier operation of the epoch has opened, and on one that it has not.
CASE(requests_on_an_open_target_of_a_fence) {
    Window win(WindowKind::Allocate, 64);
    const int target = right();
    const std::int64_t one = 1, more = 41;
    std::int64_t result = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, win.at(target, 0), 1, MPI_INT64_T, MPI_SUM, win));
    CHECK_OK(MPI_Raccumulate(&more, 1, MPI_INT64_T, target, win.at(target, 0), 1, MPI_INT64_T, MPI_SUM, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Rget_accumulate(&more, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, target, win.at(target, 0), 1,
                                 MPI_INT64_T, MPI_NO_OP, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(result, 42);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_EQ(win.base<std::int64_t>()[0], 42);
}

CASE(proc_null_is_a_target) {
    Window win(WindowKind::Allocate, 64);
    int value = 3;
    MPI_Request requests[kRequests];
    MPI_Win_lock_all(0, win);
    MPI_Rput(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &requests[0]);
    MPI_Rget(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &requests[1]);
    MPI_Raccumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win, &requests[2]);
    MPI_Rget_accumulate(&value, 1, MPI_INT, &value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win,
                        &requests[3]);
    complete(1, requests);
    CHECK_EQ(value, 3);
    MPI_Win_unlock_all(win);
}

// Requests of one-sided and of two-sided operations in one call.
CASE(mixed_with_messages) {
    Window win(WindowKind::Allocate, 64);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 100; ++i) {
        const int out = i;
        int in = -1, got = -1;
        MPI_Request requests[kRequests];
        MPI_Irecv(&in, 1, MPI_INT, left(), 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, right(), 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Rput(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win, &requests[2]);
        MPI_Rget(&got, 1, MPI_INT, right(), win.at(right(), 32), 1, MPI_INT, win, &requests[3]);
        complete(i % 8, requests);
        CHECK_EQ(in, i);
        CHECK_EQ(got, 0);
    }
    MPI_Win_unlock_all(win);
}
