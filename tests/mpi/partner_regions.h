// Transfers to attached regions of a partner, a rank of another node if there is one.
#pragma once

#include <vector>

#include "dynamic_window.h"

namespace osct {

inline constexpr std::size_t kLarge = 64 * 1024;
/// A rank of another node, if there is one. The partner's partner is this rank.
inline int partner() {
    const int half = size() / 2;
    return half == 0 ? rank() : rank() < half ? rank() + half : rank() - half < half ? rank() - half : rank();
}

/// The partner's address of the same object.
inline MPI_Aint of_the_partner(const void* mine) {
    const MPI_Aint here = address(mine);
    MPI_Aint there = 0;
    MPI_Sendrecv(&here, 1, MPI_AINT, partner(), 0, &there, 1, MPI_AINT, partner(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return there;
}

inline std::vector<char> pattern(std::size_t bytes, int seed) {
    std::vector<char> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<char>(static_cast<std::size_t>(seed) * 31 + i * 7 + i / 251);
    return data;
}

inline int put(const std::vector<char>& data, MPI_Aint there, MPI_Win win, int target = partner()) {
    const int n = static_cast<int>(data.size());
    return MPI_Put(data.data(), n, MPI_CHAR, target, there, n, MPI_CHAR, win);
}

/// The same, complete on return, so `data` may be a temporary.
inline int put_and_flush(const std::vector<char>& data, MPI_Aint there, MPI_Win win, int target = partner()) {
    const int error = put(data, there, win, target);
    return error == MPI_SUCCESS ? MPI_Win_flush(target, win) : error;
}

inline std::vector<char> get(std::size_t bytes, MPI_Aint there, MPI_Win win, int target = partner()) {
    std::vector<char> data(bytes, 'x');
    const int n = static_cast<int>(bytes);
    CHECK_OK(MPI_Get(data.data(), n, MPI_CHAR, target, there, n, MPI_CHAR, win));
    CHECK_OK(MPI_Win_flush(target, win));
    return data;
}

/// A window whose memory's first kLarge bytes are attached; `there` is the address of the partner's memory.
struct Attached {
    std::vector<char> memory;
    Dynamic dynamic;
    MPI_Aint there = 0;
    explicit Attached(std::size_t bytes) : memory(bytes) {
        CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), kLarge));
        there = of_the_partner(memory.data());
    }
};

}  // namespace osct
