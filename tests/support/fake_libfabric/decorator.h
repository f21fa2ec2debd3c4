// What the files of libosc_fake_libfabric.so share: its settings, and how it replaces functions of libfabric's objects.
// decorator.cpp says what the library is for.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace osc::fake_libfabric {

/// The value of an environment variable; "" if it is unset.
std::string setting(const char* name);
/// Whether this process is the one that FAKE_FI_RANK names.
bool is_here();
/// Whether this call of `step` fails. Counts the call.
bool fails(const char* step);
/// The registration modes that the provider is to show.
int wanted_modes();
inline bool has_mode(int mode) {
    return (wanted_modes() & mode) != 0;
}
/// Ends the process with a line.
[[noreturn]] void stop(const char* what);

// Set inside a call of the real libfabric, which may call these functions again.
inline thread_local bool t_inside = false;

template <class Call>
auto inside(Call&& call) {
    t_inside = true;
    const auto result = call();
    t_inside = false;
    return result;
}

// A copy of an object's table of functions, with some replaced, and the original one.
template <class Ops>
struct Patched {
    Ops ops;  // first: the object points to it
    const Ops* original;
};

template <class Ops>
const Ops& original(const Ops* table) {
    return *reinterpret_cast<const Patched<Ops>*>(table)->original;
}

template <class Ops, class Change>
void patch(Ops*& table, Change&& change) {
    auto* const patched = new Patched<Ops>{*table, table};  // as long as the process lives, like the original
    change(patched->ops);
    table = &patched->ops;
}

/// fi_mr_reg: makes a registration with the wanted modes.
int make_registration(fid* domain, const void* base, std::size_t bytes, std::uint64_t access, std::uint64_t offset,
                      std::uint64_t key, std::uint64_t flags, fid_mr** made, void* context);
/// Ends the process unless `memory` is the descriptor of a live registration of these bytes with this access.
void check_local(const void* bytes, std::size_t count, const void* memory, std::uint64_t access);

}  // namespace osc::fake_libfabric
