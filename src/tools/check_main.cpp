// `osc_info --check`: the process's own checks, then those of its job if a launcher started it.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/launcher.h"
#include "base/options.h"
#include "tools/check.h"

namespace osc::tools {
namespace {

// The host MPI; null with a finding if it cannot be loaded.
HostMpi* load_host(const std::filesystem::path& folder, Findings& findings) {
    struct Face {
        const char* file;
        const char* abi;
    };
    std::array faces{Face{"libosc_check.so", "MPICH"}, Face{"libosc_check_ompi.so", "Open MPI"}};
    // A job is of the library whose launcher has started it.
    if (base::launcher::is_open_mpi()) std::swap(faces[0], faces[1]);
    OpenHostMpi* open = nullptr;
    const char* abi = nullptr;
    std::string errors;
    for (const Face& face : faces) {
        void* const library = ::dlopen((folder / face.file).c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) open = reinterpret_cast<OpenHostMpi*>(::dlsym(library, "osc_check_open"));
        abi = face.abi;
        if (open != nullptr) break;
        const char* const why = ::dlerror();
        errors += (errors.empty() ? "" : "; ") +
                  (why != nullptr ? std::string(why) : face.file + std::string(" is not libosc's"));
    }
    if (open == nullptr) {
        add(findings, "host_mpi", State::Problem, errors,
            "osc_info finds neither an MPI library of MPICH's ABI nor Open MPI: add its folder to LD_LIBRARY_PATH");
        return nullptr;
    }
    HostMpi* const host = open();
    const std::string version = host->version();
    const std::string path = host->path();
    std::string others;
    std::error_code error;
    constexpr Face kLibraries[] = {
        {"libosc.so", "MPICH"}, {"libosc_ompi.so", "Open MPI"}, {"libosc_abi.so", "the MPI standard"}};
    for (const Face& library : kLibraries)
        if (std::strcmp(library.abi, abi) != 0 && std::filesystem::exists(folder / library.file, error))
            others += (others.empty() ? "; for other hosts " : ", ") + std::string(library.file);
    const nlohmann::json data = {{"version", version}, {"path", path}, {"abi", abi}};
    add(findings, "host_mpi", State::Ok, version + ", ABI of " + abi + ", " + path + others, "", data);
    return host;
}

}  // namespace

int check_main(bool as_json) {
    const int rank = base::launcher::rank();
    const std::filesystem::path folder = library_folder();
    Findings mine;
    check_options(mine);
    check_memory(mine);
    check_limits(mine);
    check_container(mine);
    check_cores(mine);
    // The host before the network: its memory hooks decide whether registrations are cached.
    HostMpi* const host = load_host(folder, mine);
    // One process of a machine suffices; it takes some 300 MB for a moment.
    if (rank < 0 || base::launcher::rank_on_node() <= 0) check_network(mine, folder);

    JobResult job;
    std::string why;
    const bool launched = rank >= 0 && host != nullptr;
    if (launched && !host->start(why)) {
        std::fprintf(stderr, "osc_info: MPI_Init failed: %s\n", why.c_str());
        return 1;
    }
    int me = rank < 0 ? 0 : rank;
    if (launched) {
        // Each process a job of its own: the launcher's rank 0 reports.
        const bool apart = host->size() == 1 && base::launcher::size() > 1;
        if (!apart) me = host->rank();
        job = check_job(*host, std::move(mine));
        host->finish();
        if (apart)
            add(job.findings, "launcher", State::Problem,
                "the launcher started " + std::to_string(base::launcher::size()) +
                    " processes, and each is rank 0 of 1 to the MPI library",
                "use the mpiexec of the same MPI library, or the srun --mpi=... that it was built for");
    } else {
        job.processes.push_back({0, host_name(), std::move(mine)});
    }
    if (me != 0) return 0;  // the launcher's status is that of rank 0
    return print_report(job, as_json) > 0 ? 1 : 0;
}

int check_program_main(const char* program, bool as_json) {
    // The first process of each node looks, for a node may lack files that others have.
    const bool reports = base::launcher::rank() <= 0;
    if (!reports && base::launcher::rank_on_node() != 0) return 0;
    JobResult job;
    job.processes.push_back({0, host_name(), {}});
    Findings& findings = job.processes.front().findings;
    check_program(findings, program);
    if (base::values().disable)
        add(findings, "program", State::Problem, "OSC_DISABLE turns libosc off", "unset OSC_DISABLE");
    const auto is_problem = [](const Finding& finding) { return finding.state == State::Problem; };
    if (!reports && std::none_of(findings.begin(), findings.end(), is_problem)) return 0;
    return print_report(job, as_json) > 0 ? 1 : 0;
}

}  // namespace osc::tools
