// MPI 4.1, 6.9.2 and 12.3.4: MPI_SUM of complex numbers adds both parts.
// case: sums of MPI_C_FLOAT_COMPLEX
#include <complex>

#include "case.h"

int main() {
    begin();
    using Complex = std::complex<float>;
    alignas(64) Complex memory[2] = {{1, 2}, {3, 4}};
    Complex seen = 0;
    const Complex mine(0.5, 10);
    MPI_Win win = create(memory, sizeof memory);
    MPI_Win_fence(0, win);
    SUCCEED(MPI_Accumulate(&mine, 1, MPI_C_FLOAT_COMPLEX, next, 0, 1, MPI_C_FLOAT_COMPLEX, MPI_SUM, win));
    SUCCEED(MPI_Fetch_and_op(&mine, &seen, MPI_C_FLOAT_COMPLEX, next, sizeof mine, MPI_SUM, win));
    MPI_Win_fence(0, win);
    expect(seen == Complex(3, 4) && memory[0] == Complex(1.5, 12) && memory[1] == Complex(3.5, 14), "a sum is another");
    MPI_Win_free(&win);
    return end();
}
