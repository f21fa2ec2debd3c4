// Private memory that XPMEM attaches (src/shm/attachment.h): over the kernel's module, or over the stand-in of
// tests/support/xpmem, which attaches memory of shared files. Where this process gets no permit, or there is no XPMEM,
// the results are the same.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "dynamic_window.h"
#include "osc/osc.h"
#include "window_number.h"

#pragma weak osc_window_stat
#pragma weak xpmem_stand_in_attached
extern "C" long xpmem_stand_in_attached();

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_create", "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach",
             "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op")

using osct::address;
using osct::address_at;
using osct::Dynamic;

namespace {

const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

// Whether this process attaches memory of others: OSC_TEST_XPMEM says that the machine has XPMEM (1), or that odd ranks
// get no permit (even).
bool attaches() {
    const char* const has = std::getenv("OSC_TEST_XPMEM");
    return has != nullptr && size() > 1 && (std::strcmp(has, "even") != 0 || rank() % 2 == 0);
}

long attached() {
    return xpmem_stand_in_attached != nullptr ? xpmem_stand_in_attached() : 0;
}

// Pages of a file in memory, at an address of the kernel's choice or at a given one.
class Pages {
  public:
    explicit Pages(std::size_t count, void* at = nullptr) : bytes_(count * kPage) {
        const int fd = fd_ = ::memfd_create("pages", MFD_CLOEXEC);
        CHECK(::ftruncate(fd, static_cast<off_t>(bytes_)) == 0);
        base_ = ::mmap(at, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | (at != nullptr ? MAP_FIXED : 0), fd, 0);
        CHECK(base_ != MAP_FAILED);
    }
    ~Pages() {
        ::munmap(base_, bytes_);
        ::close(fd_);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    char* at(std::size_t byte) const { return static_cast<char*>(base_) + byte; }
    long* longs() const { return static_cast<long*>(base_); }
    std::size_t bytes() const { return bytes_; }

  private:
    std::size_t bytes_;
    int fd_ = -1;
    void* base_ = nullptr;
};

// Collective, as is its end. Errors are returned.
struct Created {
    MPI_Win win = MPI_WIN_NULL;
    Created(void* base, std::size_t bytes) {
        CHECK_OK(MPI_Win_create(base, static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    }
    ~Created() { CHECK_OK(MPI_Win_free(&win)); }
    Created(const Created&) = delete;
    Created& operator=(const Created&) = delete;
};

void check_path(MPI_Win win, const char* call, bool mapped) {
    unsigned long long direct = 0;
    if (osc_window_stat == nullptr) return;
    const std::string name = std::string(call) + ".load_store.operations";
    if (osc_window_stat(number_of(win), name.c_str(), &direct) != 0) return;  // no OSC_STATS
    CHECK_EQ(direct != 0, mapped);
}

// Every rank adds to and writes into its right neighbour's memory, and reads it.
void exercise(long* memory, std::size_t count, bool mapped) {
    const long before = attached();
    {
        std::fill(memory, memory + count, 0L);
        const Created window(memory, count * sizeof(long));
        MPI_Win_lock_all(0, window.win);
        const int length = static_cast<int>(count) - 1;
        const std::vector<long> numbers(count, rank() + 1);
        const long one = 1;
        long seen = -1;
        CHECK_OK(MPI_Put(numbers.data(), length, MPI_LONG, right(), 0, length, MPI_LONG, window.win));
        MPI_Win_flush(right(), window.win);
        CHECK_OK(MPI_Accumulate(numbers.data(), length, MPI_LONG, right(), 0, length, MPI_LONG, MPI_SUM, window.win));
        const auto last = static_cast<MPI_Aint>((count - 1) * sizeof(long));
        for (int target = 0; target < size(); ++target)
            CHECK_OK(MPI_Fetch_and_op(&one, &seen, MPI_LONG, target, last, MPI_SUM, window.win));
        std::vector<long> back(count, -1);
        CHECK_OK(MPI_Get(back.data(), length, MPI_LONG, right(), 0, length, MPI_LONG, window.win));
        MPI_Win_flush_all(window.win);
        CHECK_ALL(back.data(), count - 1, [](std::size_t) { return 2 * (rank() + 1); });
        MPI_Win_unlock_all(window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_ALL(memory, count - 1, [](std::size_t) { return 2 * (left() + 1); });
        CHECK_EQ(memory[count - 1], size());
        check_path(window.win, "put", mapped);
        if (xpmem_stand_in_attached != nullptr) CHECK_EQ(attached() > before, mapped);
    }
    CHECK_EQ(attached(), before);
}

// A put to the second page of right(), in a lock epoch that ends here, fails. The target's threads may carry it out, so
// its error comes from MPI_Put or from the end of the epoch.
void check_refused_put(const long& number, MPI_Win win) {
    const int of_put = MPI_Put(&number, 1, MPI_LONG, right(), static_cast<MPI_Aint>(kPage), 1, MPI_LONG, win);
    const int of_unlock = MPI_Win_unlock(right(), win);
    CHECK_CLASS(of_put != MPI_SUCCESS ? of_put : of_unlock, MPI_ERR_RMA_RANGE);
    CHECK(of_put == MPI_SUCCESS || of_unlock == MPI_SUCCESS);
}

}  // namespace

CASE(memory_of_malloc) {
    SKIP_IF(size() < 2);
    for (const std::size_t count : {2, 1000, 1000000}) {
        std::vector<long> memory(count);
        exercise(memory.data(), count, attaches());
    }
}

CASE(a_part_of_a_page_and_the_edges_of_pages) {
    SKIP_IF(size() < 2);
    const Pages pages(4);
    std::memset(pages.at(0), 7, pages.bytes());
    exercise(reinterpret_cast<long*>(pages.at(24)), 3, attaches());
    exercise(reinterpret_cast<long*>(pages.at(kPage - 8)), 2 + kPage / 8, attaches());
    CHECK_ALL(pages.at(0), 24, [](std::size_t) { return 7; });
    CHECK_ALL(pages.at(2 * kPage + 8), 2 * kPage - 8, [](std::size_t) { return 7; });
}

CASE(a_variable_of_the_program) {
    SKIP_IF(size() < 2);
    // The module attaches it; the stand-in attaches files in memory only.
    static long memory[100];
    exercise(memory, 100, attaches() && xpmem_stand_in_attached == nullptr);
}

// Nothing is attached, because a store would pass the protection.
CASE(memory_that_its_owner_may_not_write) {
    SKIP_IF(size() < 2);
    const Pages pages(3);
    std::fill(pages.longs(), pages.longs() + pages.bytes() / sizeof(long), 5L);
    ::mprotect(pages.at(kPage), 2 * kPage, PROT_READ);
    {
        const Created window(pages.at(0), pages.bytes());
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, window.win);
        const long number = rank();
        long seen[2] = {-1, -1};
        CHECK_OK(MPI_Put(&number, 1, MPI_LONG, right(), 0, 1, MPI_LONG, window.win));
        CHECK_OK(MPI_Get(&seen[0], 1, MPI_LONG, right(), 0, 1, MPI_LONG, window.win));
        CHECK_OK(MPI_Get(&seen[1], 1, MPI_LONG, right(), static_cast<MPI_Aint>(kPage), 1, MPI_LONG, window.win));
        CHECK_OK(MPI_Win_flush(right(), window.win));
        CHECK_EQ(seen[0], rank());
        CHECK_EQ(seen[1], 5);
        check_refused_put(number, window.win);
        CHECK_EQ(attached(), 0);
        check_path(window.win, "put", false);
    }
    ::mprotect(pages.at(kPage), 2 * kPage, PROT_READ | PROT_WRITE);
}

CASE(memory_with_a_hole) {
    SKIP_IF(size() < 2);
    const Pages pages(3);
    ::munmap(pages.at(kPage), kPage);
    {
        const Created window(pages.at(0), pages.bytes());
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, window.win);
        const long number = rank();
        CHECK_OK(MPI_Put(&number, 1, MPI_LONG, right(), 0, 1, MPI_LONG, window.win));
        check_refused_put(number, window.win);
        CHECK_EQ(attached(), 0);
    }
    CHECK_EQ(pages.longs()[0], left());
}

// Each time the memory of the last region is gone, and the new one's has other pages at the same address.
CASE(regions_of_other_pages_at_the_same_address) {
    SKIP_IF(size() < 2);
    constexpr int kOften = 10;  // an origin attaches a region after a few operations
    const Pages place(2);
    Dynamic dynamic;
    for (int turn = 0; turn < 4; ++turn) {
        const Pages pages(2, place.at(0));
        std::fill(pages.longs(), pages.longs() + pages.bytes() / sizeof(long), 100L * turn + rank());
        CHECK_OK(MPI_Win_attach(dynamic.win, pages.at(0), static_cast<MPI_Aint>(pages.bytes())));
        const MPI_Aint there = address_at(right(), pages.at(0));
        MPI_Win_lock_all(0, dynamic.win);
        for (int again = 0; again < kOften; ++again) {
            long seen = -1;
            const long number = turn + again;
            CHECK_OK(MPI_Get(&seen, 1, MPI_LONG, right(), MPI_Aint_add(there, 64), 1, MPI_LONG, dynamic.win));
            CHECK_OK(MPI_Put(&number, 1, MPI_LONG, right(), there, 1, MPI_LONG, dynamic.win));
            CHECK_OK(MPI_Win_flush(right(), dynamic.win));
            CHECK_EQ(seen, 100 * turn + right());
        }
        MPI_Win_unlock_all(dynamic.win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(pages.longs()[0], turn + kOften - 1);
        if (xpmem_stand_in_attached != nullptr) CHECK_EQ(attached(), attaches() ? 1 : 0);
        CHECK_OK(MPI_Win_detach(dynamic.win, pages.at(0)));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&dynamic.win);
    CHECK_EQ(attached(), 0);
}

CASE(a_pointer_to_attached_memory_is_not_given) {
    SKIP_IF(size() < 2);
    std::vector<long> memory(100);
    const Created window(memory.data(), 100 * sizeof(long));
    MPI_Aint bytes = -1;
    int unit = 0;
    void* base = &bytes;
    CHECK_OK(MPI_Win_shared_query(window.win, right(), &bytes, &unit, static_cast<void*>(&base)));
    CHECK_EQ(bytes, 0);
    CHECK(base == nullptr);
}
