// Datatypes at the edges of what a window, a buffer or a number can have: holes in the target's memory, blocks and
// counts of nothing, absolute addresses, gigabytes between pieces, buffers used again, threads with types of their own,
// and a small stack.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "notified.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Rput", "MPI_Rget")

namespace {

using Type = MPI_Datatype;

Type committed(Type type) {
    MPI_Type_commit(&type);
    return type;
}
Type at_bytes(const std::vector<MPI_Aint>& places, Type element) {
    Type type = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed_block(static_cast<int>(places.size()), 1, places.data(), element, &type);
    return committed(type);
}
Type strided(int count, MPI_Aint bytes, Type element) {
    Type type = MPI_DATATYPE_NULL;
    MPI_Type_create_hvector(count, 1, bytes, element, &type);
    return committed(type);
}

// Memory of the program's own, without storage where nothing has been stored.
class Mapping {
  public:
    explicit Mapping(std::size_t bytes)
        : bytes_(bytes),
          base_(static_cast<char*>(
              ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
    ~Mapping() { ::munmap(base_, bytes_); }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    char* base() const { return base_; }
    std::size_t bytes() const { return bytes_; }

  private:
    std::size_t bytes_;
    char* base_;
};

// A window over it, in a lock_all epoch, by MPI_Win_create or attached.
class Over {
  public:
    Over(const Mapping& memory, bool dynamic) {
        if (dynamic) {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
            MPI_Win_attach(win_, memory.base(), static_cast<MPI_Aint>(memory.bytes()));
        } else {
            MPI_Win_create(memory.base(), static_cast<MPI_Aint>(memory.bytes()), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                           &win_);
        }
        MPI_Aint start = 0;
        if (dynamic) MPI_Get_address(memory.base(), &start);
        MPI_Sendrecv(&start, 1, MPI_AINT, left(), 0, &there_, 1, MPI_AINT, right(), 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN);
        MPI_Win_lock_all(0, win_);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~Over() {
        MPI_Win_unlock_all(win_);
        MPI_Win_free(&win_);
    }
    Over(const Over&) = delete;
    Over& operator=(const Over&) = delete;
    operator MPI_Win() const { return win_; }
    /// Of the first byte at right().
    MPI_Aint there() const { return there_; }

  private:
    MPI_Win win_ = MPI_WIN_NULL;
    MPI_Aint there_ = 0;
};

// Gets as many longs as `in` has.
void get(std::vector<long>& in, int target, MPI_Aint disp, Type there, MPI_Win win) {
    CHECK_OK(MPI_Get(in.data(), static_cast<int>(in.size()), MPI_LONG, target, disp, 1, there, win));
    CHECK_OK(MPI_Win_flush(target, win));
}

// Put, get, accumulate and get_accumulate of longs numbered from `first` on to `there` of right(), whose longs are 0.
void all_operations(MPI_Win win, MPI_Aint disp, int count, Type there, long first) {
    const auto n = static_cast<std::size_t>(count);
    std::vector<long> out(n), in(n, -1), old(n, -1);
    for (std::size_t i = 0; i < n; ++i)
        out[i] = first + static_cast<long>(i);
    const int target = right();
    CHECK_OK(MPI_Put(out.data(), count, MPI_LONG, target, disp, 1, there, win));
    CHECK_OK(MPI_Win_flush(target, win));
    get(in, target, disp, there, win);
    CHECK(in == out);
    CHECK_OK(MPI_Accumulate(out.data(), count, MPI_LONG, target, disp, 1, there, MPI_SUM, win));
    CHECK_OK(MPI_Get_accumulate(out.data(), count, MPI_LONG, old.data(), count, MPI_LONG, target, disp, 1, there,
                                MPI_REPLACE, win));
    CHECK_OK(MPI_Win_flush(target, win));
    CHECK_ALL(old.data(), n, [&](std::size_t i) { return 2 * out[i]; });
    get(in, target, disp, there, win);
    CHECK(in == out);
}

// Whether an access to a page that right() protects is an error: where process_vm_* reach it. By agents alone, and
// between nodes, the target gets a signal, and a handler of its own may open the page. Collective.
bool errs_in_holes() {
    struct {
        ::pid_t pid;
        char* byte;
    } mine{}, there{};
    static char byte;
    mine = {::getpid(), &byte};
    MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, left(), 0, &there, sizeof there, MPI_BYTE, right(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    char read = 0;
    const ::iovec to{&read, 1}, from{there.byte, 1};
    return size() > 1 && osct::same_node(right()) && osct::debug_setting("cma") != "off" &&
           ::process_vm_readv(there.pid, &to, 1, &from, 1, 0) == 1;
}

}  // namespace

// Every other page of the target cannot be touched; pieces lie in the others, and gaps run over the holes. A piece in a
// hole is the origin's error, and the target lives. Where only agents reach memory, the target gets a signal, as it
// does from another node: a handler of its own may open the page.
CASE(holes_in_the_targets_memory) {
    constexpr std::size_t kPage = 4096, kPages = 32, kEach = 16;
    for (const bool dynamic : {false, true}) {
        const Mapping memory(kPages * kPage);
        const Over win(memory, dynamic);
        for (std::size_t page = 1; page < kPages; page += 2)
            ::mprotect(memory.base() + page * kPage, kPage, PROT_NONE);
        MPI_Barrier(MPI_COMM_WORLD);
        std::vector<MPI_Aint> places;
        for (std::size_t page = 0; page < kPages; page += 2)
            for (std::size_t i = 0; i < kEach; ++i)
                places.push_back(static_cast<MPI_Aint>(page * kPage + 256 * i + i % 3 * 16));
        for (const std::size_t pieces : {std::size_t{3}, std::size_t{40}, places.size()}) {
            Type type = at_bytes({places.begin(), places.begin() + static_cast<std::ptrdiff_t>(pieces)}, MPI_LONG);
            all_operations(win, win.there(), static_cast<int>(pieces), type, 1000 * rank());
            MPI_Type_free(&type);
        }
        if (errs_in_holes()) {
            places[places.size() / 2] += kPage;
            Type type = at_bytes(places, MPI_LONG);
            std::vector<long> data(places.size(), 5);
            const int n = static_cast<int>(data.size());
            int error = MPI_Put(data.data(), n, MPI_LONG, right(), win.there(), 1, type, win);
            if (error == MPI_SUCCESS) error = MPI_Win_flush(right(), win);
            CHECK(error != MPI_SUCCESS);
            CHECK(MPI_Get_accumulate(data.data(), n, MPI_LONG, data.data(), n, MPI_LONG, right(), win.there(), 1, type,
                                     MPI_NO_OP, win) != MPI_SUCCESS ||
                  MPI_Win_flush(right(), win) != MPI_SUCCESS);
            MPI_Type_free(&type);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Gets of pages that the target may only read, then a put to the same pages, which is an error.
CASE(memory_to_be_read_only) {
    constexpr MPI_Aint kApart = 4104;
    for (const bool dynamic : {false, true}) {
        const Mapping memory(400 * kApart);
        for (long i = 0; i < 400; ++i)
            *reinterpret_cast<long*>(memory.base() + i * kApart) = i + 1;
        const Over win(memory, dynamic);
        ::mprotect(memory.base(), memory.bytes(), PROT_READ);
        MPI_Barrier(MPI_COMM_WORLD);
        for (const int pieces : {4, 100, 400}) {
            Type type = strided(pieces, kApart, MPI_LONG);
            std::vector<long> in(static_cast<std::size_t>(pieces)), old(in.size());
            CHECK_OK(MPI_Get(in.data(), pieces, MPI_LONG, right(), win.there(), 1, type, win));
            CHECK_OK(MPI_Get_accumulate(nullptr, 0, MPI_LONG, old.data(), pieces, MPI_LONG, right(), win.there(), 1,
                                        type, MPI_NO_OP, win));
            CHECK_OK(MPI_Win_flush(right(), win));
            CHECK_ALL(in.data(), in.size(), [](std::size_t i) { return static_cast<long>(i) + 1; });
            CHECK(old == in);
            if (errs_in_holes())
                CHECK(MPI_Put(in.data(), pieces, MPI_LONG, right(), win.there(), 1, type, win) != MPI_SUCCESS ||
                      MPI_Win_flush(right(), win) != MPI_SUCCESS);
            MPI_Type_free(&type);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// The owner changes what lies between the pieces while others put, get and accumulate these.
CASE_BY_KIND(gaps_belong_to_others) {
    constexpr int kPieces = 200, kRounds = 60;
    const Window win(kind, kPieces * 16);
    MPI_Win_lock_all(0, win);
    Type type = strided(kPieces, 16, MPI_LONG);
    const std::vector<long> ones(kPieces, 1);
    std::vector<long> in(kPieces);
    auto* const own = win.base<volatile long>();
    for (long round = 1; round <= kRounds; ++round) {
        MPI_Accumulate(ones.data(), kPieces, MPI_LONG, right(), win.at(right(), 0), 1, type, MPI_SUM, win);
        MPI_Win_flush(right(), win);
        for (int i = 0; i < kPieces; ++i) {
            CHECK_EQ(own[2 * i + 1], round - 1);
            own[2 * i + 1] = round;
        }
        get(in, right(), win.at(right(), 0), type, win);
        CHECK_ALL(in.data(), in.size(), [&](std::size_t) { return round; });
        MPI_Put(in.data(), kPieces, MPI_LONG, right(), win.at(right(), 0), 1, type, win);
        MPI_Win_flush(right(), win);
    }
    MPI_Type_free(&type);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Blocks of nothing a gigabyte away, types and counts of nothing: no byte moves, requests end, notifications count.
CASE_BY_KIND(nothing) {
    const osct::Notified win(kind, 1024, 1);
    const int lengths[] = {0, 2, 0, 3, 0}, none[] = {0, 0};
    const MPI_Aint places[] = {-(MPI_Aint{1} << 30), 16, MPI_Aint{1} << 40, 64, 5000},
                   far[] = {-5000, MPI_Aint{1} << 33};
    Type some = MPI_DATATYPE_NULL, empty = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed(5, lengths, places, MPI_LONG, &some);
    MPI_Type_create_hindexed(2, none, far, MPI_LONG, &empty);
    some = committed(some);
    empty = committed(empty);
    const int next = right();
    const MPI_Aint at = win.at(next, 128);
    const std::vector<long> out{1, 2, 3, 4, 5};
    std::vector<long> in(5, 7);
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_OK(MPI_Put(out.data(), 5, MPI_LONG, next, at, 1, some, win));
    CHECK_OK(MPI_Put(out.data(), 3, empty, next, at, 2, empty, win));
    CHECK_OK(MPI_Accumulate(out.data(), 0, some, next, at, 0, some, MPI_SUM, win));
    CHECK_OK(MPI_Accumulate(out.data(), 0, MPI_LONG, next, at, 4, empty, MPI_SUM, win));
    CHECK_OK(MPI_Get(in.data(), 9, empty, next, at, 0, some, win));
    CHECK_OK(MPI_Get_accumulate(out.data(), 1, empty, in.data(), 0, MPI_LONG, next, at, 0, some, MPI_SUM, win));
    CHECK_OK(MPI_Rput(nullptr, 0, some, next, at, 7, empty, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Rget(in.data(), 1, empty, next, at, 0, MPI_LONG, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_OK(OSC_Put_notify(out.data(), 2, empty, next, at, 0, some, 0, win));
    CHECK_OK(MPI_Win_flush(next, win));
    CHECK_ALL(in.data(), in.size(), [](std::size_t) { return 7; });
    std::vector<long> back(1024 / 8, -1);
    CHECK_OK(MPI_Get(back.data(), 1024, MPI_BYTE, next, win.at(next, 0), 1024, MPI_BYTE, win));
    CHECK_OK(MPI_Win_flush(next, win));
    const std::size_t wanted[] = {18, 19, 24, 25, 26};
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK_EQ(back[wanted[i]], out[i]);
        back[wanted[i]] = 0;
    }
    CHECK_ALL(back.data(), back.size(), [](std::size_t) { return 0; });
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(win.value(0), 1);
    MPI_Type_free(&some);
    MPI_Type_free(&empty);
}

// Buffers by MPI_BOTTOM and absolute addresses; in dynamic windows the target's data, too, at displacement 0.
CASE_BY_KIND(absolute_addresses) {
    constexpr int kEach = 70, kAll = 2 * kEach;
    const Window win(kind, 4096);
    MPI_Win_lock_all(0, win);
    std::vector<long> low(kEach), high(kEach), low_in(kEach, -1), high_in(kEach, -1);
    const auto both = [](std::vector<long>& a, std::vector<long>& b) {
        std::vector<MPI_Aint> places(kAll);
        for (std::size_t i = 0; i < kAll; ++i)
            MPI_Get_address(i % 2 == 0 ? &a[i / 2] : &b[kEach - 1 - i / 2], &places[i]);
        return at_bytes(places, MPI_LONG);
    };
    for (std::size_t i = 0; i < kEach; ++i) {
        low[i] = static_cast<long>(i) + rank();
        high[i] = -low[i];
    }
    Type out = both(low, high), in = both(low_in, high_in);
    const bool absolute = kind == WindowKind::Dynamic;
    std::vector<MPI_Aint> places;
    for (MPI_Aint i = kAll; i > 0; --i)
        places.push_back((absolute ? win.at(right(), 0) : -1000) + i * 24);
    Type there = at_bytes(places, MPI_LONG);
    const MPI_Aint disp = absolute ? 0 : 1000;
    CHECK_OK(MPI_Put(MPI_BOTTOM, 1, out, right(), disp, 1, there, win));
    MPI_Win_flush(right(), win);
    CHECK_OK(MPI_Accumulate(MPI_BOTTOM, 1, out, right(), disp, 1, there, MPI_SUM, win));
    CHECK_OK(MPI_Get_accumulate(MPI_BOTTOM, 1, out, MPI_BOTTOM, 1, in, right(), disp, 1, there, MPI_REPLACE, win));
    MPI_Win_flush(right(), win);
    CHECK_ALL(low_in.data(), low_in.size(), [&](std::size_t i) { return 2 * low[i]; });
    CHECK_ALL(high_in.data(), high_in.size(), [&](std::size_t i) { return 2 * high[i]; });
    CHECK_OK(MPI_Get(MPI_BOTTOM, 1, in, right(), disp, 1, there, win));
    MPI_Win_flush(right(), win);
    CHECK(low_in == low && high_in == high);
    for (Type* type : {&out, &in, &there})
        MPI_Type_free(type);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Five gigabytes between the first piece and the last one, at the target and at the origin.
CASE(pieces_gigabytes_apart) {
    constexpr int kPieces = 120;
    constexpr MPI_Aint kApart = 42'000'008;
    for (const bool dynamic : {false, true}) {
        const Mapping memory(static_cast<std::size_t>((kPieces + 1) * kApart)), mine(memory.bytes());
        const Over win(memory, dynamic);
        std::vector<MPI_Aint> places;
        for (MPI_Aint i = 0; i < kPieces; ++i)
            places.push_back((i * 7 % kPieces) * kApart + i % 3 * 1000);
        Type regular = strided(kPieces, kApart, MPI_LONG), lists = at_bytes(places, MPI_LONG);
        Type backward = strided(kPieces, -kApart, MPI_LONG);
        all_operations(win, win.there() + 8000, kPieces, regular, 10 + rank());
        all_operations(win, win.there() + 80000, kPieces, lists, 20 + rank());
        all_operations(win, win.there() + (kPieces - 1) * kApart + 800'000, kPieces, backward, 30 + rank());
        // From shape to shape.
        std::vector<long> in(kPieces, -1);
        for (MPI_Aint i = 0; i < kPieces; ++i)
            *reinterpret_cast<long*>(mine.base() + i * kApart) = 40 + rank() + i;
        CHECK_OK(MPI_Put(mine.base(), 1, regular, right(), win.there() + 160'000, 1, lists, win));
        CHECK_OK(MPI_Win_flush(right(), win));
        get(in, right(), win.there() + 160'000, lists, win);
        CHECK_ALL(in.data(), in.size(), [](std::size_t i) { return 40 + rank() + static_cast<long>(i); });
        for (Type* type : {&regular, &lists, &backward})
            MPI_Type_free(type);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// The origin's buffer changes as soon as it may: after the flush_local, and after the wait for the request.
CASE_BY_KIND(buffers_are_used_again) {
    constexpr int kPieces = 3000, kRounds = 8;
    const Window win(kind, kPieces * 24);
    MPI_Win_lock_all(0, win);
    Type type = strided(kPieces, 24, MPI_LONG);
    std::vector<long> out(kPieces), sums(kPieces, -1), last(kPieces, -1);
    const int next = right();
    for (long round = 1; round <= kRounds; ++round) {
        std::fill(out.begin(), out.end(), round);
        CHECK_OK(MPI_Accumulate(out.data(), kPieces, MPI_LONG, next, win.at(next, 8), 1, type, MPI_SUM, win));
        MPI_Win_flush_local(next, win);
        std::fill(out.begin(), out.end(), -round);
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_OK(MPI_Rput(out.data(), kPieces, MPI_LONG, next, win.at(next, 0), 1, type, win, &request));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        std::fill(out.begin(), out.end(), 1000);
        MPI_Win_flush(next, win);
    }
    MPI_Get(sums.data(), kPieces, MPI_LONG, next, win.at(next, 8), 1, type, win);
    get(last, next, win.at(next, 0), type, win);
    CHECK_ALL(sums.data(), sums.size(), [](std::size_t) { return kRounds * (kRounds + 1) / 2; });
    CHECK_ALL(last.data(), last.size(), [](std::size_t) { return -kRounds; });
    MPI_Type_free(&type);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Threads make, use and free types of many structures at once, on elements of their own and on common ones.
CASE_BY_KIND(threads_with_types_of_their_own) {
    SKIP_IF(osct::thread_level() != MPI_THREAD_MULTIPLE);
    constexpr int kThreads = 3, kRounds = 40, kCommon = 150;
    constexpr std::size_t kOwn = 16384;
    const Window win(kind, kCommon * 16 + kThreads * kOwn);
    MPI_Win_lock_all(0, win);
    const int next = right();
    std::vector<int> wrong(kThreads, 0);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            const std::size_t place = kCommon * 16 + static_cast<std::size_t>(thread) * kOwn;
            for (int round = 0; round < kRounds; ++round) {
                const int pieces = 1 + (round * 37 + thread * 11) % 200;
                std::vector<MPI_Aint> places;
                for (MPI_Aint i = 0; i < pieces; ++i)
                    places.push_back(i * 40 + i % (2 + thread) * 16);
                Type list = at_bytes(places, MPI_LONG), common = strided(kCommon, 16, MPI_LONG);
                std::vector<long> out(static_cast<std::size_t>(pieces), round * 10 + thread), in(out.size(), -1);
                const std::vector<long> ones(kCommon, 1);
                MPI_Put(out.data(), pieces, MPI_LONG, next, win.at(next, place), 1, list, win);
                MPI_Accumulate(ones.data(), kCommon, MPI_LONG, next, win.at(next, 0), 1, common, MPI_SUM, win);
                MPI_Type_free(&common);
                MPI_Win_flush(next, win);
                MPI_Get(in.data(), pieces, MPI_LONG, next, win.at(next, place), 1, list, win);
                MPI_Type_free(&list);
                MPI_Win_flush(next, win);
                if (in != out) ++wrong[static_cast<std::size_t>(thread)];
            }
        });
    }
    for (std::thread& each : threads)
        each.join();
    CHECK_ALL(wrong.data(), wrong.size(), [](std::size_t) { return 0; });
    Type common = strided(kCommon, 16, MPI_LONG);
    std::vector<long> sums(kCommon, -1);
    get(sums, next, win.at(next, 0), common, win);
    CHECK_ALL(sums.data(), sums.size(), [](std::size_t) { return kThreads * kRounds; });
    MPI_Type_free(&common);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A stack of 64 KiB.
CASE_BY_KIND(a_thread_with_a_small_stack) {
    constexpr int kLongs = 8;
    Window win(kind, 64 * sizeof(long));
    win.base<long>()[0] = 7;
    win.base<long>()[9] = 8;
    MPI_Barrier(MPI_COMM_WORLD);
    const auto use = [](void* argument) -> void* {
        Window& window = *static_cast<Window*>(argument);
        const auto at = [&](std::size_t word) { return window.at(right(), word * sizeof(long)); };
        Type apart = strided(2, 9 * sizeof(long), MPI_LONG);
        const long ones[kLongs] = {1, 1, 1, 1, 1, 1, 1, 1};
        long got[2] = {};
        MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window);
        CHECK_OK(MPI_Get(got, 2, MPI_LONG, right(), at(0), 1, apart, window));
        CHECK_OK(MPI_Put(ones, kLongs, MPI_LONG, right(), at(16), kLongs, MPI_LONG, window));
        CHECK_OK(MPI_Accumulate(ones, kLongs, MPI_LONG, right(), at(32), kLongs, MPI_LONG, MPI_SUM, window));
        CHECK_OK(MPI_Accumulate(ones, 2, MPI_LONG, right(), at(40), 1, apart, MPI_SUM, window));
        CHECK_OK(MPI_Win_unlock(right(), window));
        MPI_Type_free(&apart);
        CHECK(got[0] == 7 && got[1] == 8);
        return nullptr;
    };
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, std::size_t{64} << 10);
    pthread_t thread{};
    CHECK_EQ(pthread_create(&thread, &small, use, &win), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&small);
    MPI_Barrier(MPI_COMM_WORLD);
    for (const std::size_t word : {16, 23, 32, 39, 40, 49})
        CHECK_EQ(win.base<long>()[word], 1);
    MPI_Barrier(MPI_COMM_WORLD);
}
#endif
