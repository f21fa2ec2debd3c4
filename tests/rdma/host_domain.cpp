// A host MPI over libfabric, as far as libosc meets it: the process's libfabric is initialised and has an open domain
// of the verbs provider, with a registration in its cache, before the program's first window. MPICH over UCX does not
// load libfabric, and MPICH over libfabric does not run in the emulated machine. Preloaded below libosc, for processes
// that call MPI_Init or MPI_Init_thread.
#include <mpi.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

[[noreturn]] void give_up(const char* step, int error) {
    std::fprintf(stderr, "host_domain: %s gave %d\n", step, error);
    std::exit(1);
}

// The domain stays open until the process ends.
void open_domain() {
    fi_info* const hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = ::strdup("verbs");
    fi_info* info = nullptr;
    if (const int error = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info); error != 0)
        give_up("fi_getinfo", error);
    fid_fabric* fabric = nullptr;
    if (const int error = fi_fabric(info->fabric_attr, &fabric, nullptr); error != 0) give_up("fi_fabric", error);
    fid_domain* domain = nullptr;
    if (const int error = fi_domain(fabric, info, &domain, nullptr); error != 0) give_up("fi_domain", error);
    std::vector<char> memory(1 << 16);
    fid_mr* registration = nullptr;
    const int error =
        fi_mr_reg(domain, memory.data(), memory.size(), FI_READ | FI_WRITE, 0, 1, 0, &registration, nullptr);
    if (error != 0) give_up("fi_mr_reg", error);
    fi_close(&registration->fid);
}

}  // namespace

extern "C" int MPI_Init(int* argc, char*** argv) {
    const int error = PMPI_Init(argc, argv);
    if (error == MPI_SUCCESS) open_domain();
    return error;
}

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const int error = PMPI_Init_thread(argc, argv, required, provided);
    if (error == MPI_SUCCESS) open_domain();
    return error;
}
