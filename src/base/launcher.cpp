// The variables of the launchers. Those of the launcher that started this process come first, because Slurm's are also
// in the environment of a batch script, and so of all launchers in it.
#include "base/launcher.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "base/process_state.h"

namespace osc::base::launcher {
namespace {

const char* first_of(std::initializer_list<const char*> variables) {
    for (const char* variable : variables)
        if (const char* value = std::getenv(variable); value != nullptr) return value;
    return nullptr;
}

int number_of(std::initializer_list<const char*> variables, int fallback) {
    const char* value = first_of(variables);
    return value != nullptr ? std::atoi(value) : fallback;
}

}  // namespace

int rank() {
    return number_of({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, -1);
}

int size() {
    return number_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 0);
}

int rank_on_node() {
    return number_of({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, -1);
}

int size_on_node() {
    return number_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 0);
}

bool is_on_one_node() {
    const int here = size_on_node();
    if (here > 0 && size() > 0) return here == size();
    return number_of({"SLURM_STEP_NUM_NODES"}, 0) == 1;
}

bool is_hydra() {
    return first_of({"MPI_LOCALRANKID"}) != nullptr;
}

bool is_open_mpi() {
    return first_of({"OMPI_COMM_WORLD_SIZE"}) != nullptr;
}

std::string job_on_node() {
    if (const char* name = first_of({"PMIX_NAMESPACE"}); name != nullptr) return std::string("x") + name;
    if (is_hydra()) {
        // Hydra's proxy starts each rank in a session of its own, so a shell around the program does not matter.
        const pid_t proxy = process_state(::getsid(0)).parent;
        return proxy > 0 ? std::string("h").append(std::to_string(proxy)) : std::string();
    }
    const char* id = first_of({"SLURM_JOB_ID"});
    const char* step = first_of({"SLURM_STEP_ID"});
    return id != nullptr && step != nullptr ? std::string("s") + id + "." + step : std::string();
}

long process_of(int rank) {
    if (!is_hydra()) return 0;
    const std::string proxy = std::to_string(process_state(::getsid(0)).parent);
    std::FILE* const children = std::fopen(("/proc/" + proxy + "/task/" + proxy + "/children").c_str(), "re");
    if (children == nullptr) return 0;
    const std::string wanted = "PMI_RANK=" + std::to_string(rank);
    long found = 0;
    for (long child = 0; found == 0 && std::fscanf(children, "%ld", &child) == 1;) {
        std::FILE* const environment = std::fopen(("/proc/" + std::to_string(child) + "/environ").c_str(), "re");
        if (environment == nullptr) continue;
        char* variable = nullptr;
        std::size_t room = 0;
        while (found == 0 && ::getdelim(&variable, &room, '\0', environment) > 0)
            if (wanted == variable) found = child;
        std::free(variable);
        std::fclose(environment);
    }
    std::fclose(children);
    return found;
}

}  // namespace osc::base::launcher
