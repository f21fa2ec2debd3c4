// Makes and frees windows (see target_window.h).
#include "target_window.h"

namespace osu {
namespace {

// Whole pages: some libraries lay the ranks' parts of an allocated window end to end, and MPICH 4.0 mis-addresses a
// part that does not start at a multiple of 16.
std::size_t whole_pages(std::size_t bytes) {
    constexpr std::size_t kPage = 4096;
    return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

MPI_Win make_window(Creation creation, std::byte*& memory, std::size_t bytes, MPI_Comm comm) {
    const auto size = static_cast<MPI_Aint>(bytes);
    MPI_Win win = MPI_WIN_NULL;
    switch (creation) {
        case Creation::create:
            MPI_Win_create(memory, size, 1, MPI_INFO_NULL, comm, &win);
            break;
        case Creation::allocate:
            MPI_Win_allocate(size, 1, MPI_INFO_NULL, comm, static_cast<void*>(&memory), &win);
            break;
        case Creation::dynamic:
            MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
            MPI_Win_attach(win, memory, size);
            break;
    }
    return win;
}

void free_window(Creation creation, const std::byte* memory, MPI_Win& win) {
    if (creation == Creation::dynamic) MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
}

std::vector<MPI_Aint> exchanged_addresses(Creation creation, const std::byte* memory, MPI_Comm comm) {
    if (creation != Creation::dynamic) return {};
    MPI_Aint address = 0;
    MPI_Get_address(memory, &address);
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    std::vector<MPI_Aint> all(static_cast<std::size_t>(ranks));
    MPI_Allgather(&address, 1, MPI_AINT, all.data(), 1, MPI_AINT, comm);
    return all;
}

Window::Window(Creation creation, std::size_t bytes, MPI_Comm comm)
    : creation_(creation),
      plain_(creation == Creation::allocate ? 0 : whole_pages(bytes)),
      mine_(plain_.at()),
      win_(make_window(creation, mine_, whole_pages(bytes), comm)),
      addresses_(exchanged_addresses(creation, mine_, comm)) {
    std::memset(mine_, 0, whole_pages(bytes));
    // No process may access memory that its owner has not zeroed or attached yet.
    MPI_Barrier(comm);
}

Window::~Window() {
    free_window(creation_, mine_, win_);
}

}  // namespace osu
