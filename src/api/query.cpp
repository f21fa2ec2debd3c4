// Queries of windows: attributes, in C and for the host's Fortran layer, groups, info, shared_query.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "api/serve.h"
#include "core/epoch.h"
#include "host/real.h"
#include "window/request.h"

namespace osc {
namespace {

using base::fail;

// The member whose memory a query for MPI_PROC_NULL returns: the lowest rank with memory (MPI 4.1 section 12.2.3).
std::uint32_t first_with_memory(Window& window) {
    for (std::uint32_t rank = 0; rank < window.core.size; ++rank)
        if (window.core.is_local(rank) && window.core.controls.block(rank).size > 0) return rank;
    return window.core.size;
}

Fault find_memory(Window& window, int rank, MPI_Aint& size, MPI_Aint& unit, void*& base) {
    if (rank != MPI_PROC_NULL && (rank < 0 || static_cast<std::uint32_t>(rank) >= window.core.size))
        return fail(Fault::Rank, "rank %d is not in [0, %u)", rank, window.core.size);
    const std::uint32_t asked = rank == MPI_PROC_NULL ? first_with_memory(window) : static_cast<std::uint32_t>(rank);
    size = 0;
    unit = 1;
    base = nullptr;
    if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return fail(Fault::Flavor, "a dynamic window has no memory of its own to ask for");
    if (asked == window.core.size) return Fault::None;
    Target& target = window.core.target(asked);
    // This call treats memory that this process cannot load and store as absent, in windows of every flavour.
    if (!is_mapped(target.way)) return Fault::None;
    // Nor has it memory that XPMEM attaches: the system's calls, and so the host's, refuse pointers to that.
    if (asked != window.core.me && target.control().memory == shm::Memory::Private) return Fault::None;
    size = static_cast<MPI_Aint>(target.control().size);
    unit = static_cast<MPI_Aint>(target.unit);
    base = asked == window.core.me && window.program_view != nullptr ? window.program_view : target.base;
    return asked == window.core.me ? Fault::None : epoch::pointers_given(window.core);
}

template <class Unit>
int shared_query(Window& window, const char* function, int rank, MPI_Aint* size, Unit* disp_unit, void* baseptr) {
    void* base = nullptr;
    MPI_Aint unit = 1;
    const bool has_results = size != nullptr && disp_unit != nullptr && baseptr != nullptr;
    Fault fault =
        has_results ? base::attempt([&] { return find_memory(window, rank, *size, unit, base); }) : no_result();
    if (fault == Fault::None && !std::in_range<Unit>(unit))
        fault = fail(Fault::Disp, "the displacement unit does not fit an int; use MPI_Win_shared_query_c");
    if (fault == Fault::None) {
        *disp_unit = static_cast<Unit>(unit);
        std::memcpy(baseptr, &base, sizeof base);
    }
    return finish(window, function, fault);
}

// A predefined attribute of a window; false for other keys. In C (MPI 4.1 section 12.2.6) all but the base are
// addresses of the value.
bool predefined_attribute(Window& window, int keyval, abi::Attribute& value) {
    const std::pair<int, abi::Attribute> all[] = {
        {MPI_WIN_BASE, {window.shown_base(), reinterpret_cast<MPI_Aint>(window.shown_base())}},
        {MPI_WIN_SIZE, {&window.bytes, window.bytes}},
        {MPI_WIN_DISP_UNIT, {&window.shown_unit, window.unit}},
        {MPI_WIN_CREATE_FLAVOR, {&window.flavor, window.flavor}},
        {MPI_WIN_MODEL, {&window.model, window.model}}};
    const auto* const found = std::ranges::find(all, keyval, &std::pair<int, abi::Attribute>::first);
    if (found == std::end(all)) return false;
    value = found->second;
    return true;
}

// A copy, because the host MPI, which reads and writes info objects, is never called under the window's state lock.
Fault info_in_use(Window& window, InfoInUse& info) {
    return base::attempt([&] {
        const StateGuard guard(window.core);
        info = window.info;
        return Fault::None;
    });
}

// A status call of MPI 4.1 on several requests, which an older host lacks. A host need not look at libosc's requests by
// itself in these calls.
template <class... Results>
int get_status(const char* name, int (*call)(int, const MPI_Request*, Results...), int count,
               const MPI_Request* requests, Results... results) {
    if (call == nullptr)
        return raise(name, fail(Fault::Other, "the MPI library (%s) does not have it", host::describe_host().c_str()));
    for (int i = 0; i < count; ++i)
        request::look(requests[i]);
    return call(count, requests, results...);
}

}  // namespace

// The host's Fortran layer does not call MPI_Win_get_attr.
bool abi::served_attribute(MPI_Win handle, int keyval, Attribute& value) {
    Window* const window = find_window(handle);
    if (window == nullptr || !predefined_attribute(*window, keyval, value)) return false;
    count_served(Entry::Win_get_attr);
    return true;
}

namespace entry {

int Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit, void* baseptr) {
    OSC_ON_WINDOW(win, Win_shared_query, (win, rank, size, disp_unit, baseptr));
    return shared_query(*window, "MPI_Win_shared_query", rank, size, disp_unit, baseptr);
}

int Win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* baseptr) {
    OSC_ON_WINDOW(win, Win_shared_query_c, (win, rank, size, disp_unit, baseptr));
    return shared_query(*window, "MPI_Win_shared_query_c", rank, size, disp_unit, baseptr);
}

int Win_get_group(MPI_Win win, MPI_Group* group) {
    OSC_ON_WINDOW(win, Win_get_group, (win, group));
    return host::real().Group_excl(window->team.group(), 0, nullptr, group);
}

int Win_get_info(MPI_Win win, MPI_Info* info_used) {
    OSC_ON_WINDOW(win, Win_get_info, (win, info_used));
    InfoInUse info;
    if (const Fault fault = info_in_use(*window, info); fault != Fault::None)
        return finish(*window, "MPI_Win_get_info", fault);
    if (const int error = host::real().Info_create(info_used); error != MPI_SUCCESS) return error;
    for (const auto& [key, value] : info)
        host::real().Info_set(*info_used, key.c_str(), value.c_str());
    return MPI_SUCCESS;
}

int Win_set_info(MPI_Win win, MPI_Info info) {
    OSC_ON_WINDOW(win, Win_set_info, (win, info));
    if (info == MPI_INFO_NULL || !abi::may_be_info(info))
        return finish(*window, "MPI_Win_set_info", fail(Fault::Info, "the info is null, or no info object"));
    return finish(*window, "MPI_Win_set_info", base::attempt([&] {
        for (InfoInUse before;;) {
            if (const Fault fault = info_in_use(*window, before); fault != Fault::None) return fault;
            InfoInUse now = read_info(info, window->flavor, before);
            const StateGuard guard(window->core);
            if (window->info != before) continue;  // another thread has set keys meanwhile
            window->info = std::move(now);
            return Fault::None;
        }
    }));
}

int Win_get_attr(MPI_Win win, int win_keyval, void* attribute_val, int* flag) {
    Window* const window = find_window(win);
    abi::Attribute value{};
    if (window == nullptr && was_freed(win)) return raise_freed("MPI_Win_get_attr");
    if (window == nullptr || !predefined_attribute(*window, win_keyval, value))
        return host::real().Win_get_attr(win, win_keyval, attribute_val, flag);
    count_served(Entry::Win_get_attr);
    if (attribute_val == nullptr || flag == nullptr) return raise(*window, "MPI_Win_get_attr", no_result());
    std::memcpy(attribute_val, &value.pointer, sizeof value.pointer);
    *flag = 1;
    return MPI_SUCCESS;
}

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
    request::look(request);
    return host::real().Request_get_status(request, flag, status);
}

#define OSC_GET_STATUS(name, parameters, ...)                                             \
    int name parameters {                                                                 \
        return get_status("MPI_" #name, host::real().name, count, requests, __VA_ARGS__); \
    }
OSC_GET_STATUS(Request_get_status_all, (int count, const MPI_Request* requests, int* flag, MPI_Status* statuses), flag,
               statuses)
OSC_GET_STATUS(Request_get_status_any,
               (int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status), index, flag, status)
OSC_GET_STATUS(Request_get_status_some,
               (int count, const MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses), completed,
               indices, statuses)

}  // namespace entry
}  // namespace osc
