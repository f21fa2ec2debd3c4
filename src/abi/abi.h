// The contract of a host ABI: what the ABI and the progress of a host MPI decide. A folder here implements it for the
// hosts of one ABI: handles.h has the inline functions, which fast paths call, and the source files have the others.
// Where all hosts agree on a name of mpi.h, the rooms above use that name.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "op/type_info.h"

namespace osc::abi {

using op::TypeInfo;

// Handles.

/// A handle as a number. No host has a handle with the number 0 or 1.
using HandleKey = std::conditional_t<std::is_pointer_v<MPI_Win>, std::uintptr_t, std::uint32_t>;

template <class Handle>
HandleKey handle_key(Handle handle) noexcept {
    if constexpr (std::is_pointer_v<Handle>)
        return reinterpret_cast<HandleKey>(handle);
    else
        return static_cast<HandleKey>(handle);
}

template <class Handle>
Handle handle_of(HandleKey key) noexcept {
    if constexpr (std::is_pointer_v<Handle>)
        return reinterpret_cast<Handle>(key);
    else
        return static_cast<Handle>(key);
}

/// The number in messages, for %#llx.
template <class Handle>
unsigned long long printable(Handle handle) noexcept {
    return handle_key(handle);
}

/// The window of a handle of Fortran: MPI_Win_f2c.
MPI_Win window_of(MPI_Fint handle);

/// The place of a window's handle in a cache of kWindowPlaces (a constant of the folder). Few instructions; handles
/// that a program uses at the same time get different places if possible, and 0 and 1 do.
constexpr std::size_t window_index(HandleKey key) noexcept;

/// The same for handles that are addresses: of 64 windows about two share a place with another.
inline constexpr std::size_t kAddressPlaces = 1024;
constexpr std::size_t place_of_address(HandleKey key) noexcept {
    return static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15u >> 54;
}

/// The operation of a handle: a predefined one, or Op::None.
inline Op op_of(MPI_Op op) noexcept;

/// Makes a window of no bytes, whose handle libosc gives to the program. `self`: a communicator of this process alone.
/// Local. Returns an error code of the host.
int make_window(MPI_Comm self, MPI_Win* window);

// Predefined datatypes. All functions but enter_type() are thread-safe, take a few instructions and call nothing.

struct PredefinedType {
    MPI_Datatype type;
    Basic basic;
};

/// The predefined types that only hosts of this ABI have.
std::span<const PredefinedType> own_types();

/// Makes the functions below know a predefined type. A type that they know stays as it is. One thread at a time.
void enter_type(MPI_Datatype type, Basic basic);

/// The description of a predefined type; null for other types.
inline const TypeInfo* predefined(MPI_Datatype type) noexcept;

/// The size in bytes of a predefined type without gaps, or -1.
inline std::int64_t plain_size(MPI_Datatype type) noexcept;

/// Whether plain_size() is 8; fewer instructions than that.
inline bool is_plain_of_8(MPI_Datatype type) noexcept;

/// The basic type of a predefined type without gaps, or Basic::None; as cheap as plain_size().
inline Basic plain_basic(MPI_Datatype type) noexcept;

/// Whether plain_basic() is a 64-bit integer.
inline bool plain_integer64(MPI_Datatype type) noexcept;

/// Whether the host survives a query of `type`: it may crash on a handle that is no datatype at all.
bool may_be_datatype(MPI_Datatype type) noexcept;

/// Whether `info` is MPI_INFO_NULL or the handle of an info object, live or freed.
bool may_be_info(MPI_Info info) noexcept;

/// The combiner whose constructor has the same arguments, for a combiner of MPI 1 that keeps addresses among the
/// integers; any other combiner itself.
int modern_combiner(int combiner) noexcept;

/// A constant among the integers of an array type's contents, as mpi.h has it.
enum class ArrayConstant { Order, Distribution, Argument };
std::int64_t array_constant(ArrayConstant kind, std::int64_t value) noexcept;

// Requests.

/// Whether `request`, of a send to MPI_PROC_NULL, is an object that the host never frees: then a program may get the
/// handle any number of times, and complete it each time.
bool is_constant_request(MPI_Request request);

/// The functions of a generalized request that the host polls. The host calls poll() in waits and tests of the
/// application; it may call wait(), which returns when all `count` operations have ended, in place of polls.
struct PolledRequest {
    MPI_Grequest_query_function* query;
    MPI_Grequest_free_function* free;
    MPI_Grequest_cancel_function* cancel;
    int (*poll)(void* state, MPI_Status* status);
    int (*wait)(int count, void** states, double timeout, MPI_Status* status);
};

// The host library.

/// The name of the ABI in messages.
extern const char* const kName;

/// What the file names of the libraries have that libosc has once for each ABI: "_ompi" of libosc_verify_ompi.so.
extern const char* const kSuffix;

/// What stands for function `name` of the host, of OSC_OF_HOST in api/exports.def, because the host's own function
/// reads its window itself. Null: that function serves libosc's windows too.
void* function_for(const char* name);

/// Whether the user has the host simulate nodes. libosc then uses the host's nodes without joining any.
bool simulates_nodes();

/// The progress of a host: requests that it polls, and what its own waits call. Hosts of one implementation have it in
/// common, whatever the ABI. Thread-safe.
struct Progress {
    /// Whether the host polls requests.
    bool (*polls_requests)();
    /// MPI_Grequest_start for a request that the host polls.
    int (*start_request)(const PolledRequest& functions, void* state, MPI_Request* request);
    /// Calls the host's MPI_Grequest_complete for such a request, while another thread may wait for it.
    int (*complete_request)(int (*complete)(MPI_Request), MPI_Request request);
    /// Makes each of the host's polls for messages call `called`, in any thread of the application and perhaps under
    /// locks of the host: `called` must not call MPI and must not wait; null: what an earlier call gave, if any. It
    /// returns how many of the next polls may pass without it: these loops poll every few dozen ns. Also counts the
    /// polls that call it in shm::Activity. False if this host has no function to hook. Without the hook, a process
    /// that waits inside the host shares its core with libosc's network thread, and each message costs two context
    /// switches.
    bool (*hook)(int (*called)());
    /// MPI_Init or MPI_Session_init is about to be called: prepares a host that reads at its start what a hook needs.
    void (*host_begins)();
    /// It has returned `error`: ends what host_begins() prepared, and hooks again what the host has forgotten at an
    /// earlier end.
    void (*host_began)(int error);
    /// Makes the calling thread's MPI_Finalize progress while it waits for other processes, on a host that would not.
    /// One thread calls it, before the host's MPI_Finalize.
    void (*hook_finalize)();
};
const Progress& progress();

// What the rooms above define for the implementations.

/// The value of a predefined attribute of a window that libosc serves: as MPI_Win_get_attr returns it in C, and as an
/// integer of Fortran (MPI 4.1 section 19.3.7).
struct Attribute {
    void* pointer;
    MPI_Aint integer;
};
/// Counts the call as served. False if the host must answer.
bool served_attribute(MPI_Win window, int keyval, Attribute& value);

}  // namespace osc::abi

namespace osc::host {
/// The host's definition of `symbol`, or int_form() of it, or null. Valid after find_host() has found a host.
void* host_symbol(const char* symbol);
}  // namespace osc::host

#if defined(OPEN_MPI)
#include "abi/openmpi/handles.h"
#elif defined(MPI_ABI_VERSION)
#include "abi/standard/handles.h"
#else
#include "abi/mpich/handles.h"
#endif
