// Memory that becomes shared at MPI_Win_create and MPI_Win_attach (window/adopter.h), or that XPMEM attaches
// (shm/attachment.h): what its control block or its region then says.
#include <pthread.h>

#include <cstddef>
#include <string>

#include "window/adopter.h"
#include "window/checker.h"
#include "window/create.h"

namespace osc {
namespace {

template <void (*Adopter::*kHandler)()>
void at_fork() {
    if (const Adopter* const adopter = g_adopter.load(std::memory_order_acquire); adopter != nullptr)
        (adopter->*kHandler)();
}

// A window that asks for nothing may lie in the shared heap.
shm::SharedPart share(Window& window, const void* base, std::size_t bytes, std::string& kept_private) {
    const bool is_off = window.adoption == "off";
    if ((is_off && g_adopter.load(std::memory_order_acquire) == nullptr) ||
        window.core.controls.local_count(window.core.size) < 2)
        return {};
    if (const Adopter* const adopter = load_adopter(); adopter != nullptr)
        return adopter->adopt(window, base, bytes, kept_private);
    if (!is_off) kept_private = "libosc_adopt.so cannot be loaded";
    return {};
}

// The place of memory that the node's other processes attach; kNoOffset if they cannot. What the checker protects is
// for the system's calls.
std::uint64_t attached_place(const Window& window, const void* base, std::size_t bytes) {
    const bool alone = window.core.controls.local_count(window.core.size) < 2;
    if (alone || bytes == 0 || g_checker != nullptr || !shm::offer_memory(base, bytes)) return shm::kNoOffset;
    return shm::kAttachedOffset + reinterpret_cast<std::uintptr_t>(base);
}

}  // namespace

void register_fork_handlers() {
    ::pthread_atfork(at_fork<&Adopter::before_fork>, at_fork<&Adopter::after_fork_in_parent>,
                     at_fork<&Adopter::after_fork_in_child>);
}

void adopt_memory(Window& window, const Request& request, shm::ControlBlock& block) {
    const auto bytes = static_cast<std::size_t>(request.size);
    const std::uint64_t place = attached_place(window, request.base, bytes);
    const shm::SharedPart part = share(window, request.base, bytes, window.kept_private);
    if (!part) {
        block.offset = place;
        return;
    }
    block.memory = part.bytes() == bytes ? shm::Memory::Shared : shm::Memory::Mixed;
    block.offset = part.offset;
    block.shared_first = part.first - reinterpret_cast<std::uintptr_t>(request.base);
    block.shared_end = block.shared_first + part.bytes();
}

Fault attach_memory(Window& window, const void* base, std::size_t bytes, shm::SharedPart& shared,
                    std::string& kept_private) {
    const auto first = reinterpret_cast<std::uintptr_t>(base);
    const std::uint64_t offset = bytes > 0 ? shm::Arena::mine().offset_of(base, bytes) : shm::kNoOffset;
    if (offset != shm::kNoOffset) {
        shared = {first, first + bytes, offset};
    } else if (bytes > 0) {
        const std::uint64_t place = attached_place(window, base, bytes);
        shared = share(window, base, bytes, kept_private);
        if (!shared && place != shm::kNoOffset) shared = {first, first + bytes, place};
    }
    return window.regions->attach(base, bytes, shared);
}

}  // namespace osc
