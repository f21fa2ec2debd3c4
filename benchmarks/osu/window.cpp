// Makes and frees windows (see window.h).
#include "window.h"

namespace osu {

Window::Window(Creation creation, std::size_t bytes, MPI_Comm comm)
    : creation_(creation), plain_(creation == Creation::allocate ? 0 : bytes), mine_(plain_.at()) {
    const auto size = static_cast<MPI_Aint>(bytes);
    switch (creation) {
        case Creation::create:
            MPI_Win_create(mine_, size, 1, MPI_INFO_NULL, comm, &win_);
            break;
        case Creation::allocate:
            MPI_Win_allocate(size, 1, MPI_INFO_NULL, comm, static_cast<void*>(&mine_), &win_);
            std::memset(mine_, 0, bytes);
            break;
        case Creation::dynamic: {
            MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win_);
            MPI_Win_attach(win_, mine_, size);
            MPI_Aint address = 0;
            MPI_Get_address(mine_, &address);
            int ranks = 0;
            MPI_Comm_size(comm, &ranks);
            addresses_.resize(static_cast<std::size_t>(ranks));
            MPI_Allgather(&address, 1, MPI_AINT, addresses_.data(), 1, MPI_AINT, comm);
            break;
        }
    }
    // Nobody may reach memory that its owner has not zeroed or attached yet.
    MPI_Barrier(comm);
}

Window::~Window() {
    if (creation_ == Creation::dynamic) MPI_Win_detach(win_, mine_);
    MPI_Win_free(&win_);
}

}  // namespace osu
