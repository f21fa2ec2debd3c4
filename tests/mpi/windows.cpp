// How a window of each kind of memory is made and taken down.
#include "windows.h"

#include <cstdlib>
#include <cstring>

namespace osct {

bool shares_memory(MPI_Comm comm) {
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int here = 0;
    int all = 0;
    MPI_Comm_size(node, &here);
    MPI_Comm_size(comm, &all);
    MPI_Comm_free(&node);
    int least = 0;
    MPI_Allreduce(&here, &least, 1, MPI_INT, MPI_MIN, comm);
    return least == all;
}

Window::Window(WindowKind kind, std::size_t bytes, MPI_Comm comm, MPI_Info info) : kind_(kind) {
    // Between hosts there is no such window; the programs go on with the nearest that there is.
    if (kind == WindowKind::Shared && !shares_memory(comm)) kind = kind_ = WindowKind::Allocate;
    // Whole cache lines: the host alone mis-addresses allocated windows whose size is no multiple of 16 (alignment.cpp
    // tests those).
    bytes = (bytes / 64 + 1) * 64;
    const auto length = static_cast<MPI_Aint>(bytes);
    switch (kind) {
        case WindowKind::Allocate:
            MPI_Win_allocate(length, 1, info, comm, &base_, &win_);
            break;
        case WindowKind::Shared:
            MPI_Win_allocate_shared(length, 1, info, comm, &base_, &win_);
            break;
        case WindowKind::Create:
            base_ = std::aligned_alloc(64, bytes);
            MPI_Win_create(base_, length, 1, info, comm, &win_);
            break;
        case WindowKind::CreateAllocMem:
            MPI_Alloc_mem(length, MPI_INFO_NULL, &base_);
            MPI_Win_create(base_, length, 1, info, comm, &win_);
            break;
        case WindowKind::Dynamic: {
            base_ = std::aligned_alloc(64, bytes);
            MPI_Win_create_dynamic(info, comm, &win_);
            MPI_Win_attach(win_, base_, length);
            int ranks = 0;
            MPI_Comm_size(comm, &ranks);
            addresses_.resize(static_cast<std::size_t>(ranks));
            MPI_Aint here = 0;
            MPI_Get_address(base_, &here);
            MPI_Allgather(&here, 1, MPI_AINT, addresses_.data(), 1, MPI_AINT, comm);
            break;
        }
    }
    std::memset(base_, 0, bytes);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win_);
    MPI_Win_sync(win_);
    MPI_Barrier(comm);
    MPI_Win_unlock_all(win_);
}

Window::~Window() {
    // No process may free its memory while a peer still accesses it.
    if (kind_ == WindowKind::Dynamic) {
        MPI_Win_fence(0, win_);
        MPI_Win_detach(win_, base_);
    }
    MPI_Win_free(&win_);
    if (kind_ == WindowKind::CreateAllocMem) MPI_Free_mem(base_);
    if (kind_ == WindowKind::Create || kind_ == WindowKind::Dynamic) std::free(base_);
}

}  // namespace osct
