// Device memory, reported by fake device libraries: the host serves a window over it on all processes, even if only one
// of them has device memory. It is really the processor's memory, so that the host can serve it here.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "device/fake.h"
#include "harness.h"
#include "osc/osc.h"

#pragma weak osc_forwarded

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_create", "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach",
             "MPI_Win_fence", "MPI_Put", "MPI_Win_free", "MPI_Win_allocate", "MPI_Win_lock_all", "MPI_Win_unlock_all",
             "MPI_Win_flush", "MPI_Get", "MPI_Rput", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Fetch_and_op",
             "MPI_Compare_and_swap")

namespace {

using Claim = void (*)(const void*, std::size_t, bool);
constexpr Claim kDevices[] = {
#ifdef FAKE_cuda
    fake_cuda_claims,
#endif
#ifdef FAKE_hip
    fake_hip_claims,
    fake_old_hip_claims,
#endif
#ifdef FAKE_ze
    fake_ze_claims,
#endif
};

// Memory that a device library claims for a while.
class Claimed {
  public:
    Claimed(Claim claim, bool managed, bool here = true) : claim_(claim), memory_(64) {
        if (here) claim_(memory_.data() + 8, 48 * sizeof(long), managed);
    }
    ~Claimed() { claim_(nullptr, 0, false); }
    Claimed(const Claimed&) = delete;
    Claimed& operator=(const Claimed&) = delete;
    long* base() { return memory_.data() + 16; }

  private:
    Claim claim_;
    std::vector<long> memory_;
};

constexpr MPI_Aint kBytes = 32 * sizeof(long);

int create(void* base, MPI_Win* win) {
    return MPI_Win_create(base, kBytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, win);
}

void use(MPI_Win win, const long* base) {
    const long value = 100 + rank();
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, right(), 3, 1, MPI_LONG, win));
    MPI_Win_fence(0, win);
    CHECK_EQ(base[3], 100 + left());
}

bool may_fall_back() {
    const char* fallback = std::getenv("OSC_FALLBACK");
    return fallback == nullptr || std::strcmp(fallback, "error") != 0;
}

}  // namespace

CASE(a_base_on_one_rank_is_refused_to_all) {
    HOST_CANNOT("it refuses nothing");
    SKIP_IF(may_fall_back());
    const osct::WithoutObject without_object;
    for (const Claim claim : kDevices) {
        for (int owner = 0; owner < size(); ++owner) {
            Claimed memory(claim, false, rank() == owner);
            MPI_Win win = MPI_WIN_NULL;
            CHECK_CLASS(create(memory.base(), &win), MPI_ERR_OTHER);
        }
    }
}

CASE(a_base_on_one_rank_leaves_the_window_to_the_host) {
    SKIP_IF(!may_fall_back());
    const unsigned long long before = osc_forwarded != nullptr ? osc_forwarded("MPI_Put") : 0;
    for (const Claim claim : kDevices) {
        Claimed memory(claim, false, rank() == size() - 1);
        MPI_Win win = MPI_WIN_NULL;
        CHECK_OK(create(memory.base(), &win));
        use(win, memory.base());
        CHECK_OK(MPI_Win_free(&win));
    }
    if (osc_forwarded != nullptr) CHECK_EQ(osc_forwarded("MPI_Put") - before, std::size(kDevices));
}

CASE(memory_that_is_managed_or_not_the_devices_is_served) {
    for (const Claim claim : kDevices) {
        for (const bool managed : {true, false}) {
            Claimed memory(claim, managed, managed);
            MPI_Win win = MPI_WIN_NULL;
            CHECK_OK(create(memory.base(), &win));
            use(win, memory.base());
            CHECK_OK(MPI_Win_free(&win));
        }
    }
}

CASE(operations_refuse_it_as_a_buffer) {
    HOST_CANNOT("it would crash");
    const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const page = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    long* const device = static_cast<long*>(page) + 8;
    long* part = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_allocate(kBytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    std::fill_n(part, 32, 7);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock_all(0, win));
    const int to = right();
    long host = 1;
    long other = 2;
    MPI_Request request = MPI_REQUEST_NULL;
    for (const Claim claim : kDevices) {
        claim(page, bytes, false);
        CHECK_CLASS(MPI_Put(device, 1, MPI_LONG, to, 0, 1, MPI_LONG, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Get(device, 4, MPI_LONG, to, 0, 4, MPI_LONG, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Rput(device, 1, MPI_LONG, to, 0, 1, MPI_LONG, win, &request), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Accumulate(device, 1, MPI_LONG, to, 0, 1, MPI_LONG, MPI_SUM, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Get_accumulate(device, 1, MPI_LONG, &host, 1, MPI_LONG, to, 0, 1, MPI_LONG, MPI_SUM, win),
                    MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Get_accumulate(&host, 1, MPI_LONG, device, 1, MPI_LONG, to, 0, 1, MPI_LONG, MPI_SUM, win),
                    MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Fetch_and_op(device, &host, MPI_LONG, to, 0, MPI_SUM, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Fetch_and_op(&host, device, MPI_LONG, to, 0, MPI_SUM, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Compare_and_swap(device, &host, &other, MPI_LONG, to, 0, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Compare_and_swap(&host, device, &other, MPI_LONG, to, 0, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Compare_and_swap(&host, &other, device, MPI_LONG, to, 0, win), MPI_ERR_BUFFER);
        // What has no data there, and memory of the host.
        CHECK_OK(MPI_Put(device, 0, MPI_LONG, to, 0, 0, MPI_LONG, win));
        CHECK_OK(MPI_Put(device, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
        CHECK_OK(MPI_Fetch_and_op(device, &other, MPI_LONG, to, 0, MPI_NO_OP, win));
        CHECK_OK(MPI_Get(&host, 1, MPI_LONG, to, 1, 1, MPI_LONG, win));
        CHECK_OK(MPI_Win_flush(to, win));
        CHECK_EQ(host, 7);
        CHECK_EQ(other, 7);
        claim(nullptr, 0, false);
    }
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_OK(MPI_Win_free(&win));
    ::munmap(page, bytes);
}

CASE(memory_without_bytes_is_no_devices) {
    Claimed memory(kDevices[0], false);
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_create(memory.base(), 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK_OK(MPI_Win_free(&win));
}

CASE(attaching_it_is_refused_here_alone) {
    HOST_CANNOT("it attaches anything");
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (const Claim claim : kDevices) {
        Claimed memory(claim, false, rank() == 0);
        if (rank() == 0) CHECK_CLASS(MPI_Win_attach(win, memory.base(), kBytes), MPI_ERR_RMA_ATTACH);
        Claimed other(claim, false, false);
        CHECK_OK(MPI_Win_attach(win, other.base(), kBytes));
        CHECK_OK(MPI_Win_detach(win, other.base()));
    }
    CHECK_OK(MPI_Win_free(&win));
}
