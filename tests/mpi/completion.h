// Completing requests through each of the host's calls.
#pragma once

#include "harness.h"

namespace osct {

inline constexpr int kRequests = 4;
inline constexpr int kVariants = 10;

// Completes all requests through one of the completion calls.
inline void complete(int variant, MPI_Request* requests) {
    int flag = 0, index = -1, count = 0, indices[kRequests];
    MPI_Status status, statuses[kRequests];
    int done = 0;
    switch (variant) {
        case 0:
            for (int i = 0; i < kRequests; ++i)
                CHECK_OK(MPI_Wait(&requests[i], &status));
            break;
        case 1:
            CHECK_OK(MPI_Waitall(kRequests, requests, statuses));
            break;
        case 2:
            for (int i = 0; i < kRequests; ++i)
                CHECK_OK(MPI_Waitany(kRequests, requests, &index, MPI_STATUS_IGNORE));
            break;
        case 3:
            for (; done < kRequests; done += count)
                CHECK_OK(MPI_Waitsome(kRequests, requests, &count, indices, statuses));
            break;
        case 4:
            for (int i = 0; i < kRequests; ++i) {
                for (flag = 0; !flag;)
                    CHECK_OK(MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE));
            }
            break;
        case 5:
            while (!flag)
                CHECK_OK(MPI_Testall(kRequests, requests, &flag, MPI_STATUSES_IGNORE));
            break;
        case 6:
            while (done < kRequests) {
                CHECK_OK(MPI_Testany(kRequests, requests, &index, &flag, &status));
                done += flag && index != MPI_UNDEFINED ? 1 : 0;
            }
            break;
        case 7:
            for (; done < kRequests; done += count)
                CHECK_OK(MPI_Testsome(kRequests, requests, &count, indices, MPI_STATUSES_IGNORE));
            break;
        case 8:
            // The status call does not free the request.
            for (int i = 0; i < kRequests; ++i) {
                for (flag = 0; !flag;)
                    CHECK_OK(MPI_Request_get_status(requests[i], &flag, &status));
                CHECK(requests[i] != MPI_REQUEST_NULL);
                CHECK_OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
            }
            break;
        default:
            CHECK_OK(MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < kRequests; ++i)
        CHECK(requests[i] == MPI_REQUEST_NULL);
}

}  // namespace osct
