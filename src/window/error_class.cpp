// Which MPI error class stands for a fault.
#include "window/create.h"

namespace osc {

int error_class(Fault fault) {
    switch (fault) {
        case Fault::None:
            return MPI_SUCCESS;
        case Fault::Arg:
            return MPI_ERR_ARG;
        case Fault::Assert:
            return MPI_ERR_ASSERT;
        case Fault::Attach:
        case Fault::AttachRefused:
            return MPI_ERR_RMA_ATTACH;
        case Fault::Base:
            return MPI_ERR_BASE;
        case Fault::Buffer:
            return MPI_ERR_BUFFER;
        case Fault::Count:
            return MPI_ERR_COUNT;
        case Fault::Dead:
            return MPI_ERR_OTHER;
        case Fault::Disp:
            return MPI_ERR_DISP;
        case Fault::Flavor:
            return MPI_ERR_RMA_FLAVOR;
        case Fault::Group:
            return MPI_ERR_GROUP;
        case Fault::Info:
            return MPI_ERR_INFO;
        case Fault::LockType:
            return MPI_ERR_LOCKTYPE;
        case Fault::NoMem:
            return MPI_ERR_NO_MEM;
        case Fault::Op:
            return MPI_ERR_OP;
        case Fault::Other:
            return MPI_ERR_OTHER;
        case Fault::Range:
            return MPI_ERR_RMA_RANGE;
        case Fault::Rank:
            return MPI_ERR_RANK;
        case Fault::Shared:
            return MPI_ERR_RMA_SHARED;
        case Fault::Size:
            return MPI_ERR_SIZE;
        case Fault::Sync:
            return MPI_ERR_RMA_SYNC;
        case Fault::Truncate:
            return MPI_ERR_TRUNCATE;
        case Fault::Type:
            return MPI_ERR_TYPE;
        case Fault::Win:
            return MPI_ERR_WIN;
    }
    return MPI_ERR_OTHER;
}

}  // namespace osc
