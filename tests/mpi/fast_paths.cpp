// A fast path and the general path of one call give the same result, the same memory and the same error class. The _c
// forms always take the general path; the int forms take the fast one where it applies. Calls are generated: operands,
// datatypes, operations, displacements inside and outside the window, epochs that allow the call and epochs that do
// not.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

#include "harness.h"
#include "windows.h"

// Below MPI_THREAD_MULTIPLE the fast paths apply in more epochs: the program runs at both levels.
OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Get_accumulate", "MPI_Rput", "MPI_Rget", "MPI_Raccumulate",
             "MPI_Rget_accumulate", "MPI_Accumulate")

namespace {

constexpr std::size_t kBytes = 24576;  // three stripes
constexpr int kMost = 300;             // elements
constexpr int kCalls = 2000;
constexpr int kFences = 200;

enum class Form { Accumulate, GetAccumulate, Rput, Rget, Raccumulate, RgetAccumulate, kForms };

struct Call {
    Form form;
    MPI_Datatype type, origin_type;
    int count, origin_count, width;
    MPI_Op op;
    MPI_Aint disp;
    int target;
};

struct Type {
    MPI_Datatype type;
    int width;
};

// Data whose sums are exact in every type.
struct Buffers {
    alignas(16) std::byte origin[kMost * 16] = {};
    alignas(16) std::byte result[kMost * 16] = {};
};

template <class Random>
Call draw(Random& random, int target) {
    static const Type types[] = {{MPI_INT64_T, 8}, {MPI_UINT64_T, 8}, {MPI_INT, 4},        {MPI_UINT32_T, 4},
                                 {MPI_DOUBLE, 8},  {MPI_FLOAT, 4},    {MPI_INT16_T, 2},    {MPI_BYTE, 1},
                                 {MPI_LONG, 8},    {MPI_CHAR, 1},     {MPI_DOUBLE_INT, 16}};
    static const MPI_Op ops[] = {MPI_SUM, MPI_SUM, MPI_REPLACE, MPI_NO_OP, MPI_PROD, MPI_MAX, MPI_BXOR, MPI_MINLOC};
    const auto upto = [&](int last) { return static_cast<int>(random() % static_cast<unsigned>(last + 1)); };
    const Type& type = types[upto(std::size(types) - 1)];
    Call call{};
    call.form = static_cast<Form>(upto(static_cast<int>(Form::kForms) - 1));
    call.type = call.origin_type = type.type;
    call.width = type.width;
    call.count = upto(2) == 0 ? upto(kMost) : upto(2);
    call.origin_count = call.count;
    call.op = ops[upto(std::size(ops) - 1)];
    call.target = target;
    const auto last = static_cast<MPI_Aint>(kBytes) - call.count * type.width;
    // In the middle, across the border of a stripe, at the end, just outside, far outside, negative.
    const MPI_Aint displacements[] = {
        upto(100) * 16, 8192 - 16 * upto(20), last, last + 1, static_cast<MPI_Aint>(kBytes) + 64, -8};
    call.disp = displacements[upto(19) < 17 ? upto(2) : 3 + upto(2)];
    switch (upto(19)) {
        case 0:
            call.origin_count = upto(kMost);
            break;
        case 1:
            call.origin_type = types[upto(std::size(types) - 1)].type;
            break;
        case 2:
            call.target = size();
            break;
        case 3:
            call.target = MPI_PROC_NULL;
            break;
        case 4:
            call.count = call.origin_count = -1;
            break;
        case 5:
            call.type = call.origin_type = MPI_DATATYPE_NULL;
            break;
        default:
            break;
    }
    return call;
}

// The call in its int form, or in its _c form, with a completion call where it has given a request.
template <bool kGeneral>
int make(const Call& c, Buffers& b, MPI_Win win, int completion) {
    const auto by = [](auto plain, auto general) {
        if constexpr (kGeneral)
            return general;
        else
            return plain;
    };
    MPI_Request request = MPI_REQUEST_NULL;
    int error = MPI_SUCCESS;
    switch (c.form) {
        case Form::Accumulate:
            return by(MPI_Accumulate, MPI_Accumulate_c)(b.origin, c.origin_count, c.origin_type, c.target, c.disp,
                                                        c.count, c.type, c.op, win);
        case Form::GetAccumulate:
            return by(MPI_Get_accumulate, MPI_Get_accumulate_c)(b.origin, c.origin_count, c.origin_type, b.result,
                                                                c.count, c.type, c.target, c.disp, c.count, c.type,
                                                                c.op, win);
        case Form::Rput:
            error = by(MPI_Rput, MPI_Rput_c)(b.origin, c.origin_count, c.origin_type, c.target, c.disp, c.count, c.type,
                                             win, &request);
            break;
        case Form::Rget:
            error = by(MPI_Rget, MPI_Rget_c)(b.result, c.origin_count, c.origin_type, c.target, c.disp, c.count, c.type,
                                             win, &request);
            break;
        case Form::Raccumulate:
            error = by(MPI_Raccumulate, MPI_Raccumulate_c)(b.origin, c.origin_count, c.origin_type, c.target, c.disp,
                                                           c.count, c.type, c.op, win, &request);
            break;
        default:
            error = by(MPI_Rget_accumulate, MPI_Rget_accumulate_c)(b.origin, c.origin_count, c.origin_type, b.result,
                                                                   c.count, c.type, c.target, c.disp, c.count, c.type,
                                                                   c.op, win, &request);
    }
    if (error != MPI_SUCCESS) {
        CHECK(request == MPI_REQUEST_NULL);
        return error;
    }
    CHECK(request != MPI_REQUEST_NULL);
    MPI_Status status;
    int flag = 0, cancelled = 1;
    switch (completion) {
        case 0:
            CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            break;
        case 1:
            while (!flag)
                CHECK_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
            break;
        case 2:
            CHECK_OK(MPI_Wait(&request, &status));
            MPI_Test_cancelled(&status, &cancelled);
            CHECK_EQ(cancelled, 0);
            break;
        default:
            CHECK_OK(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
    }
    CHECK(request == MPI_REQUEST_NULL);
    return MPI_SUCCESS;
}

enum class Epoch { LockAll, Lock, Fence, None };

void open(Epoch epoch, int target, MPI_Win win) {
    if (epoch == Epoch::LockAll) CHECK_OK(MPI_Win_lock_all(0, win));
    if (epoch == Epoch::Lock) CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    if (epoch == Epoch::Fence) CHECK_OK(MPI_Win_fence(0, win));
}

// The buffers of a call are free afterwards.
void end_call(Epoch epoch, int target, MPI_Win win) {
    if (epoch == Epoch::LockAll || epoch == Epoch::Lock) CHECK_OK(MPI_Win_flush(target, win));
    if (epoch == Epoch::Fence) CHECK_OK(MPI_Win_fence(0, win));
}

void close(Epoch epoch, int target, MPI_Win win) {
    if (epoch == Epoch::LockAll) CHECK_OK(MPI_Win_unlock_all(win));
    if (epoch == Epoch::Lock) CHECK_OK(MPI_Win_unlock(target, win));
    if (epoch == Epoch::Fence) CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

// Every process updates its own window's memory: the other's is compared there.
void compare(WindowKind kind, Epoch epoch, unsigned seed) {
    Window fast(kind, kBytes), general(kind, kBytes);
    for (Window* window : {&fast, &general}) {
        MPI_Win_set_errhandler(window->handle(), MPI_ERRORS_RETURN);
        for (std::size_t i = 0; i < kBytes; ++i)
            window->base<unsigned char>()[i] = static_cast<unsigned char>(i % 8 == 0 ? i / 8 % 50 : 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::mt19937 random(seed);
    const int target = right();
    open(epoch, target, fast.handle());
    open(epoch, target, general.handle());
    Buffers one, other;
    for (int i = 0; i < (epoch == Epoch::Fence ? kFences : kCalls); ++i) {
        const Call call = draw(random, target);
        for (std::size_t at = 0; at < sizeof one.origin; ++at)
            one.origin[at] = static_cast<std::byte>(at % 8 == 0 ? random() % 4 : 0);
        std::memset(one.result, 0x5a, sizeof one.result);
        other = one;
        const int completion = static_cast<int>(random() % 4);
        const int error = make<false>(call, one, fast.handle(), completion);
        const int wanted = make<true>(call, other, general.handle(), completion);
        CHECK_EQ(osct::error_class(error), osct::error_class(wanted));
        end_call(epoch, target, fast.handle());
        end_call(epoch, target, general.handle());
        CHECK(std::memcmp(one.result, other.result, sizeof one.result) == 0);
    }
    close(epoch, target, fast.handle());
    close(epoch, target, general.handle());
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_ALL(fast.base<unsigned char>(), kBytes, [&](std::size_t i) { return general.base<unsigned char>()[i]; });
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

CASE(generated_calls_in_every_epoch) {
    HOST_CANNOT("the host alone checks less, and crashes on some of these arguments");
    unsigned seed = 7u + static_cast<unsigned>(rank());
    for (const WindowKind kind : {WindowKind::Allocate, WindowKind::Create, WindowKind::Shared})
        for (const Epoch epoch : {Epoch::LockAll, Epoch::Lock, Epoch::Fence, Epoch::None})
            compare(kind, epoch, seed += 16);
}

// One handle may represent many requests at a time.
CASE(many_requests_at_a_time) {
    Window win(WindowKind::Allocate, 4096);
    constexpr int kRequests = 64;
    const int target = right();
    std::int64_t out[kRequests], in[kRequests];
    MPI_Request requests[2 * kRequests];
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < kRequests; ++i) {
        out[i] = 100 * rank() + i;
        in[i] = -1;
        CHECK_OK(MPI_Rput(&out[i], 1, MPI_INT64_T, target, 8 * i, 1, MPI_INT64_T, win, &requests[i]));
    }
    // Copies of a handle, completed in another order and by several calls.
    CHECK_OK(MPI_Wait(&requests[3], MPI_STATUS_IGNORE));
    int flag = 0, index = 0;
    while (!flag)
        CHECK_OK(MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Waitany(2, requests + 4, &index, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE));
    // A null request completes at once.
    CHECK_OK(MPI_Wait(&requests[3], MPI_STATUS_IGNORE));
    flag = 0;
    CHECK_OK(MPI_Test(&requests[3], &flag, MPI_STATUS_IGNORE));
    CHECK_EQ(flag, 1);
    MPI_Win_flush_all(win);
    for (int i = 0; i < kRequests; ++i)
        CHECK_OK(MPI_Rget(&in[i], 1, MPI_INT64_T, target, 8 * i, 1, MPI_INT64_T, win, &requests[i]));
    for (MPI_Request* request = requests; request < requests + kRequests; ++request)
        CHECK_OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    CHECK_ALL(in, kRequests, [&](std::size_t i) { return 100 * rank() + static_cast<int>(i); });
    MPI_Win_unlock_all(win);
}

// A program polls with a get and its request until another process stores a value. That process first receives a
// message whose transfer the polling process must drive.
CASE(polling_with_requests_drives_the_host) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the host alone may complete a request without progress");
    Window win(WindowKind::Allocate, 64);
    std::vector<char> message(1 << 20, 1);
    MPI_Request sending = MPI_REQUEST_NULL, request;
    if (rank() == 0) {
        std::int64_t seen = 0;
        MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_CHAR, 1, 0, MPI_COMM_WORLD, &sending);
        MPI_Win_lock_all(0, win);
        while (seen == 0) {
            MPI_Rget(&seen, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Win_unlock_all(win);
        CHECK_OK(MPI_Wait(&sending, MPI_STATUS_IGNORE));
        CHECK_EQ(seen, 1);
    } else if (rank() == 1) {
        MPI_Recv(message.data(), static_cast<int>(message.size()), MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const std::int64_t one = 1;
        MPI_Win_lock_all(0, win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, MPI_REPLACE, win);
        MPI_Win_unlock_all(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// libosc's MPI_Wait and MPI_Test change nothing for requests of other operations: null, persistent, generalized,
// incomplete and invalid ones.
CASE(requests_of_the_host) {
    Window win(WindowKind::Allocate, 64);  // libosc knows the constant request from the first window on
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int flag = 0, in = 0, count = 1;
    const int out = 7;
    status.MPI_SOURCE = status.MPI_TAG = 0;
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 1 && request == MPI_REQUEST_NULL);

    // A persistent request stays allocated, inactive and active.
    CHECK_OK(MPI_Send_init(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request));
    const MPI_Request persistent = request;
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(request == persistent);
    for (int i = 0; i < 2; ++i) {
        CHECK_OK(MPI_Start(&request));
        CHECK_OK(i == 0 ? MPI_Wait(&request, MPI_STATUS_IGNORE) : MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        CHECK(request == persistent);
    }
    CHECK_OK(MPI_Request_free(&request));

    CHECK_OK(MPI_Grequest_start([](void*, MPI_Status*) { return 0; }, [](void*) { return 0; },
                                [](void*, int) { return 0; }, nullptr, &request));
    CHECK_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 0 && request != MPI_REQUEST_NULL);
    CHECK_OK(MPI_Grequest_complete(request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(request == MPI_REQUEST_NULL);

    // A receive: incomplete, then complete with its status.
    CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request));
    CHECK_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 0 && request != MPI_REQUEST_NULL);
    CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(in == out && status.MPI_TAG == 5 && count == 1);

    // A completed one-sided request in the calls that libosc leaves to the host.
    MPI_Win_lock_all(0, win);
    for (int call = 0; call < 7; ++call) {
        MPI_Status statuses[2];
        MPI_Request made[2];
        int indices[2], index = -1;
        for (MPI_Request& each : made)
            CHECK_OK(MPI_Rput(&out, 1, MPI_INT, rank(), 0, 1, MPI_INT, win, &each));
        if (call == 0) CHECK_OK(MPI_Waitall(2, made, statuses));
        if (call == 1) CHECK_OK(MPI_Testall(2, made, &flag, statuses));
        if (call == 2) CHECK_OK(MPI_Waitsome(2, made, &count, indices, statuses));
        if (call == 3) CHECK_OK(MPI_Testsome(2, made, &count, indices, MPI_STATUSES_IGNORE));
        if (call == 4) CHECK_OK(MPI_Waitany(2, made, &index, &status));
        if (call == 5) CHECK_OK(MPI_Testany(2, made, &index, &flag, &status));
        if (call == 6) CHECK_OK(MPI_Request_get_status(made[0], &flag, &status));
        CHECK(call == 2 || call == 3 ? count == 2 : call == 0 || call == 4 || flag == 1);
        for (MPI_Request& each : made)
            CHECK_OK(MPI_Wait(&each, MPI_STATUS_IGNORE));
    }
    MPI_Win_unlock_all(win);
}

CASE(invalid_requests_are_errors) {
    // Hosts may crash on pointers.
    SKIP_IF(std::is_pointer_v<MPI_Request>);
    Window win(WindowKind::Allocate, 64);
    const osct::WithoutObject without_object;
    MPI_Request request = osct::no_handle<MPI_Request>();
    int flag = 0;
    CHECK_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
}
