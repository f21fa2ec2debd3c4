// What plugins (src/plugins) may call of libosc.so. They are not linked to libosc.so, whose C++ functions are hidden:
// libosc hands them this table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/route_table.h"
#include "base/function_ref.h"
#include "base/imports.h"
#include "base/options.h"
#include "host/real.h"
#include "host/signature.h"
#include "op/kernels.h"
#include "shm/arena.h"
#include "shm/other_threads.h"
#include "stats/record.h"
#include "trace/recorder.h"
#include "window/adopter.h"
#include "window/window.h"

namespace osc::plugin {

struct Table {
    const char* version;  // of libosc; the plugin's is the same
    std::size_t bytes;    // kBytes, as libosc.so was compiled: a plugin of another build has other layouts
    const host::Real* host;
    Routes* called;    // routes of MPI_X
    Routes* profiled;  // routes of PMPI_X
    Routes* behind;    // what the checker's entry points call

    const base::Values& (*values)();
    const char* (*fault_text)();
    void (*say)(const char* format, ...);
    void (*say_text)(const std::string& text);
    void (*warn_for_group)(const char* format, ...);
    void (*warn_for_job)(const char* format, ...);
    bool (*claim_for_job)(std::uint64_t key);

    std::size_t (*element_size)(Basic basic) noexcept;
    std::size_t (*significant_size)(Basic basic) noexcept;
    bool (op::Layout::*bounds)(std::size_t count, op::Bounds& out) const noexcept;

    shm::Arena& (*arena)();
    std::byte* (*map_view)(std::uint64_t offset, std::size_t bytes);
    void (*unmap_view)(std::byte* view);
    int (shm::Arena::*adoption_file)(std::size_t bytes);
    bool (shm::Arena::*has_for_each)(std::uint64_t processes, std::uint64_t bytes);
    void* (*called_function)(const char* name);
    void (*replace_all_imports)(std::span<const base::Replacement> replacements);
    std::uint64_t (*machine_number)();
    bool (*has_other_threads)();
    void (*stop_handlers)(shm::StoppedHandlers& state);
    void (*release_handlers)(shm::StoppedHandlers& state);

    std::uint64_t (*fences)(Core& core, std::uint64_t if_failed);  // that this process has made
    Fault (*may_free)(Core& core);
    Fault (*must_not_flush)(Core& core, std::uint32_t target);
    Fault (*need_passive)(Core& core, const char* kind);
    Target& (*target)(Core& core, std::uint32_t rank);
    bool (*meet)(Window& window);  // a barrier, with a report of what it waits for should a process not come
    int (*largest)(Team& team, MPI_Comm comm, std::span<int> values);

    bool (*threads)();
    const op::TypeInfo* (*type_info)(MPI_Datatype type);
    std::optional<std::string> (*find_mismatch)(const char* which, const host::TypedCount& origin,
                                                const host::TypedCount& target);
    int (*give_own_handle)(MPI_Request* request);
    MPI_Errhandler (*errors_return)();
    void (*free_handler)(MPI_Errhandler& handler);
    Window* (*find_window)(MPI_Win handle);
    std::vector<Window*> (*live_windows)();
    void (*visit_windows)(base::FunctionRef<void(Window&)> visit);
    bool (*await_all)(MPI_Request& request, const std::vector<Window*>& windows);

    std::string (*difference_in_job)();
    void (Window::*describe_statistics)();
    void (*visit_records)(base::FunctionRef<void(const stats::Record&)> visit);
    std::span<const char* const> (*counter_names)();
    std::vector<std::uint64_t> (*counter_values)();
    trace::Facts (*trace_facts)();
    std::span<const std::byte> (*trace_contents)();
    void (*trace_close)();
    void (*note_clock_message)(trace::Kind kind, std::uint64_t flow);
};

/// Of what libosc.so and a plugin both know the layout of.
inline constexpr std::size_t kBytes =
    sizeof(Table) + (sizeof(Adopter) << 12) + (sizeof(Window) << 24) + (sizeof(shm::Arena) << 40);

}  // namespace osc::plugin
