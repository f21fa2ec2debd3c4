// Makes and frees the sets of windows that the measures run on (see windows.h).
#include "windows.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace bench {

namespace {

std::byte* plain_memory(std::size_t bytes) {
    void* p = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(p);
}

}  // namespace

const char* name_of(Flavour flavour) {
    switch (flavour) {
        case Flavour::allocate:
            return "allocate";
        case Flavour::alloc_mem:
            return "alloc_mem";
        case Flavour::malloc:
            return "malloc";
        case Flavour::dynamic:
            return "dynamic";
    }
    return "?";
}

WindowSet::WindowSet(Flavour flavour, int count, std::size_t bytes, MPI_Comm comm) : flavour_(flavour), bytes_(bytes) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
    for (int i = 0; i < count; ++i)
        make_one(comm);
    own_begin();
    for (std::byte* p : memory_)
        std::memset(p, 0, bytes_);
    own_end();
    MPI_Barrier(comm);
}

void WindowSet::make_one(MPI_Comm comm) {
    MPI_Win win = MPI_WIN_NULL;
    void* base = nullptr;
    const auto size = static_cast<MPI_Aint>(bytes_);
    switch (flavour_) {
        case Flavour::allocate:
            MPI_Win_allocate(size, 1, MPI_INFO_NULL, comm, static_cast<void*>(&base), &win);
            break;
        case Flavour::alloc_mem:
            MPI_Alloc_mem(size, MPI_INFO_NULL, static_cast<void*>(&base));
            MPI_Win_create(base, size, 1, MPI_INFO_NULL, comm, &win);
            break;
        case Flavour::malloc:
            base = plain_memory(bytes_);
            MPI_Win_create(base, size, 1, MPI_INFO_NULL, comm, &win);
            break;
        case Flavour::dynamic: {
            base = plain_memory(bytes_);
            MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
            MPI_Win_attach(win, base, size);
            MPI_Aint mine = 0;
            MPI_Get_address(base, &mine);
            const std::size_t at = bases_.size();
            bases_.resize(at + static_cast<std::size_t>(ranks_));
            MPI_Allgather(&mine, 1, MPI_AINT, &bases_[at], 1, MPI_AINT, comm);
            break;
        }
    }
    windows_.push_back(win);
    memory_.push_back(static_cast<std::byte*>(base));
}

WindowSet::~WindowSet() {
    for (std::size_t i = 0; i < windows_.size(); ++i) {
        if (flavour_ == Flavour::dynamic) MPI_Win_detach(windows_[i], memory_[i]);
        MPI_Win_free(&windows_[i]);
        if (flavour_ == Flavour::alloc_mem) MPI_Free_mem(memory_[i]);
        if (flavour_ == Flavour::malloc || flavour_ == Flavour::dynamic) std::free(memory_[i]);
    }
}

void WindowSet::lock_all() {
    for (MPI_Win win : windows_)
        MPI_Win_lock_all(0, win);
}

void WindowSet::unlock_all() {
    for (MPI_Win win : windows_)
        MPI_Win_unlock_all(win);
}

void WindowSet::own_begin() {
    for (MPI_Win win : windows_)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank_, 0, win);
}

void WindowSet::own_end() {
    for (MPI_Win win : windows_)
        MPI_Win_unlock(rank_, win);
}

}  // namespace bench
