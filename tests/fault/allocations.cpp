// Each allocation of libosc fails once, on one rank after the other: calls that make or use a window return
// MPI_ERR_NO_MEM, creations on all ranks alike, and the program goes on.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "../mpi/harness.h"
#include "../mpi/windows.h"
#include "debug_setting.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate", "MPI_Win_allocate_shared", "MPI_Win_create",
             "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach", "MPI_Win_free", "MPI_Win_fence",
             "MPI_Win_lock", "MPI_Win_flush", "MPI_Win_unlock", "MPI_Win_lock_all", "MPI_Win_unlock_all",
             "MPI_Win_post", "MPI_Win_start", "MPI_Win_complete", "MPI_Win_wait", "MPI_Put", "MPI_Rput",
             "MPI_Alloc_mem", "MPI_Win_get_info", "MPI_Win_set_info")

namespace {

thread_local long t_fails_in = 0;  // the allocation of this thread that fails, counted down; 0: none
thread_local const pthread_mutex_t* t_tried = nullptr;

using OnMutex = int (*)(pthread_mutex_t*);

void* allocated(void* piece) {
    const bool counts = t_fails_in > 0 && t_tried == nullptr;
    if (piece == nullptr || (counts && --t_fails_in == 0)) {
        std::free(piece);
        throw std::bad_alloc();
    }
    return piece;
}

}  // namespace

// A thread polls the network under a mutex that it has taken by trylock, and serves other processes meanwhile: without
// memory for that the process ends. So no allocation fails there.
extern "C" int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
    static const auto real = reinterpret_cast<OnMutex>(::dlsym(RTLD_NEXT, "pthread_mutex_trylock"));
    const int error = real(mutex);
    if (error == 0 && t_tried == nullptr) t_tried = mutex;
    return error;
}
extern "C" int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    static const auto real = reinterpret_cast<OnMutex>(::dlsym(RTLD_NEXT, "pthread_mutex_unlock"));
    if (t_tried == mutex) t_tried = nullptr;
    return real(mutex);
}

// All of the process, libosc's too, which the loader binds to the program's.
void* operator new(std::size_t bytes) {
    return allocated(std::malloc(bytes > 0 ? bytes : 1));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const auto align = static_cast<std::size_t>(alignment);
    return allocated(std::aligned_alloc(align, (bytes + align - 1) / align * align));
}
void operator delete(void* piece) noexcept {
    std::free(piece);
}
void operator delete(void* piece, std::size_t) noexcept {
    std::free(piece);
}
void operator delete(void* piece, std::align_val_t) noexcept {
    std::free(piece);
}
void operator delete(void* piece, std::size_t, std::align_val_t) noexcept {
    std::free(piece);
}

namespace {

// Calls call() on all ranks, with the N-th allocation of rank `failing` refused, for N = 1 and so on until none is;
// after() follows each of them with the class of the call's error.
template <class Call, class After>
void refuse_each(int failing, Call&& call, After&& after) {
    int refused = 1;
    for (long number = 1; refused != 0; ++number) {
        t_fails_in = rank() == failing ? number : 0;
        const int error = call();
        refused = rank() == failing && t_fails_in == 0 ? 1 : 0;
        t_fails_in = 0;
        const int error_class = osct::error_class(error);
        CHECK(error_class == MPI_SUCCESS || error_class == MPI_ERR_NO_MEM);
        CHECK(refused != 0 || rank() != failing || error_class == MPI_SUCCESS);
        after(error_class);
        MPI_Bcast(&refused, 1, MPI_INT, failing, MPI_COMM_WORLD);
    }
}

enum Flavor { kAllocate, kCreate, kShared, kDynamic, kFlavors };

int create(Flavor flavor, MPI_Comm comm, long* memory, long** base, MPI_Win* win) {
    *base = memory;
    switch (flavor) {
        case kAllocate:
            return MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, comm, base, win);
        case kCreate:
            return MPI_Win_create(memory, 64, sizeof(long), MPI_INFO_NULL, comm, win);
        case kShared:
            return MPI_Win_allocate_shared(64, sizeof(long), MPI_INFO_NULL, comm, base, win);
        default:
            return MPI_Win_create_dynamic(MPI_INFO_NULL, comm, win);
    }
}

// A put to the next rank, between two fences.
void use(MPI_Win win, const long* base, long value) {
    const long out = value + rank();
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(&out, 1, MPI_LONG, right(), 0, 1, MPI_LONG, win));
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(base[0], value + left());
}

void check_alike(int error_class) {
    int bounds[] = {error_class, -error_class};
    MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK_EQ(bounds[0], -bounds[1]);
}

// On a communicator that has a team and, with `fresh`, on a new one each time.
void create_each(Flavor flavor, bool with_fresh) {
    long memory[8] = {};
    for (int failing = 0; failing < size(); failing += osct::full() ? 1 : size() - 1) {
        const ReturningComm known;
        for (const bool fresh : {true, false}) {
            if (fresh && !with_fresh && !osct::full()) continue;
            MPI_Comm comm = known;
            MPI_Win win = MPI_WIN_NULL;
            long* base = nullptr;
            if (fresh) comm = MPI_COMM_NULL;
            refuse_each(
                failing,
                [&] {
                    const long armed = std::exchange(t_fails_in, 0);
                    if (fresh) {
                        MPI_Comm_dup(known, &comm);
                        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
                    }
                    t_fails_in = armed;
                    return create(flavor, comm, memory, &base, &win);
                },
                [&](int error) {
                    check_alike(error);
                    if (error != MPI_SUCCESS) CHECK_OK(create(flavor, comm, memory, &base, &win));
                    if (flavor != kDynamic) use(win, base, failing + 1);
                    CHECK_OK(MPI_Win_free(&win));
                    if (fresh) MPI_Comm_free(&comm);
                });
        }
    }
}

// The first error of several calls; a call that has failed for want of memory is made once more.
class FirstError {
  public:
    template <class Call>
    void operator()(Call&& call) {
        int error = call();
        if (error_ == MPI_SUCCESS) error_ = error;
        if (osct::error_class(error) == MPI_ERR_NO_MEM) CHECK_OK(call());
    }
    int first() const { return error_; }

  private:
    int error_ = MPI_SUCCESS;
};

// The calls of one epoch: an error of one of them must not keep the others, nor another rank, from going on.
template <class Epoch>
void use_each(Epoch&& epoch) {
    const ReturningComm comm;
    for (int failing = 0; failing < size(); failing += osct::full() ? 1 : size() - 1) {
        MPI_Win win = MPI_WIN_NULL;
        long* base = nullptr;
        refuse_each(
            failing,
            [&] {
                const long armed = std::exchange(t_fails_in, 0);
                CHECK_OK(MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, comm, &base, &win));
                MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
                t_fails_in = armed;
                FirstError error;
                epoch(win, error);
                return error.first();
            },
            [&](int) {
                MPI_Barrier(comm);
                use(win, base, failing + 1);
                CHECK_OK(MPI_Win_free(&win));
            });
    }
}

}  // namespace

CASE(creation_of_allocated_windows) {
    create_each(kAllocate, true);
}

CASE(creation_of_created_windows) {
    create_each(kCreate, false);
}

CASE(creation_of_shared_windows) {
    SKIP_IF(!osct::on_one_node());
    create_each(kShared, false);
}

CASE(creation_of_dynamic_windows) {
    create_each(kDynamic, false);
}

CASE(attached_memory) {
    long memory[8] = {};
    for (int failing = 0; failing < size(); ++failing) {
        const Returning win(WindowKind::Dynamic);
        refuse_each(
            failing, [&] { return MPI_Win_attach(win, memory, sizeof memory); },
            [&](int error) {
                if (error != MPI_SUCCESS) CHECK_OK(MPI_Win_attach(win, memory, sizeof memory));
                CHECK_OK(MPI_Win_detach(win, memory));
            });
    }
}

CASE(a_lock_epoch) {
    use_each([](MPI_Win win, FirstError& error) {
        const long out = 5;
        MPI_Request request = MPI_REQUEST_NULL;
        error([&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win); });
        error([&] { return MPI_Put(&out, 1, MPI_LONG, right(), 1, 1, MPI_LONG, win); });
        error([&] { return MPI_Rput(&out, 1, MPI_LONG, right(), 2, 1, MPI_LONG, win, &request); });
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        error([&] { return MPI_Win_flush(right(), win); });
        error([&] { return MPI_Win_unlock(right(), win); });
    });
}

CASE(a_lock_all_epoch) {
    use_each([](MPI_Win win, FirstError& error) {
        const long out = 5;
        error([&] { return MPI_Win_lock_all(0, win); });
        for (int target = 0; target < size(); ++target)
            error([&] { return MPI_Put(&out, 1, MPI_LONG, target, 1 + rank(), 1, MPI_LONG, win); });
        error([&] { return MPI_Win_unlock_all(win); });
    });
}

CASE(fences) {
    use_each([](MPI_Win win, FirstError& error) {
        const long out = 5;
        error([&] { return MPI_Win_fence(0, win); });
        error([&] { return MPI_Put(&out, 1, MPI_LONG, right(), 1, 1, MPI_LONG, win); });
        error([&] { return MPI_Win_fence(0, win); });
    });
}

CASE(posts_and_starts) {
    const osct::Group after(right()), before(left());
    use_each([&](MPI_Win win, FirstError& error) {
        const long out = 5;
        error([&] { return MPI_Win_post(before, 0, win); });
        error([&] { return MPI_Win_start(after, 0, win); });
        error([&] { return MPI_Put(&out, 1, MPI_LONG, right(), 1, 1, MPI_LONG, win); });
        error([&] { return MPI_Win_complete(win); });
        error([&] { return MPI_Win_wait(win); });
    });
}

CASE(queries) {
    const ReturningComm comm;
    const Returning win;
    for (int failing = 0; failing < size(); ++failing) {
        MPI_Info info = MPI_INFO_NULL;
        MPI_Comm node = MPI_COMM_NULL;
        refuse_each(
            failing,
            [&] {
                FirstError error;
                error([&] { return MPI_Win_get_info(win, &info); });
                error([&] { return MPI_Win_set_info(win, info); });
                error([&] { return MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node); });
                return error.first();
            },
            [&](int) {
                MPI_Info_free(&info);
                MPI_Comm_free(&node);
            });
    }
}

// An accumulate that no thread of the target takes (OSC_DEBUG=attend=0), the first of this thread on private memory.
CASE(private_memory) {
    SKIP_IF(osct::debug_setting("attend") != "0");
    long memory[8] = {};
    const long ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
    CHECK_OK(create(kCreate, MPI_COMM_WORLD, memory, &base, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Win_lock_all(0, win));
    long performed = 0, refused = 0, of_left = 0;
    for (int failing = 0; failing < size(); ++failing)
        refuse_each(
            failing,
            [&] {
                if (rank() != failing) return MPI_SUCCESS;
                return MPI_Accumulate(ones, 8, MPI_LONG, right(), 0, 8, MPI_LONG, MPI_SUM, win);
            },
            [&](int error) {
                if (rank() == failing) ++(error == MPI_SUCCESS ? performed : refused);
            });
    CHECK_OK(MPI_Win_unlock_all(win));
    MPI_Sendrecv(&performed, 1, MPI_LONG, right(), 0, &of_left, 1, MPI_LONG, left(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK(refused > 0);
    CHECK_EQ(memory[7], of_left);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_free(&win));
}

CASE(the_memory_of_a_window) {
    const osct::WithoutObject without_object;
    void* block = nullptr;
    for (int failing = 0; failing < size(); ++failing)
        refuse_each(
            failing, [&] { return MPI_Alloc_mem(64, MPI_INFO_NULL, &block); },
            [&](int error) {
                if (error == MPI_SUCCESS) CHECK_OK(MPI_Free_mem(block));
            });
}
