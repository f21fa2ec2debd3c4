// Memory that becomes shared at MPI_Win_create and MPI_Win_attach (window/adopter.h): what its control block or its
// region then says.
#include <pthread.h>

#include <cstddef>
#include <string>

#include "window/adopter.h"
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

}  // namespace

void register_fork_handlers() {
    ::pthread_atfork(at_fork<&Adopter::before_fork>, at_fork<&Adopter::after_fork_in_parent>,
                     at_fork<&Adopter::after_fork_in_child>);
}

void adopt_memory(Window& window, const Request& request, shm::ControlBlock& block) {
    const auto bytes = static_cast<std::size_t>(request.size);
    const shm::SharedPart part = share(window, request.base, bytes, window.kept_private);
    if (!part) return;
    block.memory = part.bytes() == bytes ? shm::Memory::Shared : shm::Memory::Mixed;
    block.offset = part.offset;
    block.shared_first = part.first - reinterpret_cast<std::uintptr_t>(request.base);
    block.shared_end = block.shared_first + part.bytes();
}

Fault attach_memory(Window& window, const void* base, std::size_t bytes, shm::SharedPart& shared,
                    std::string& kept_private) {
    const auto first = reinterpret_cast<std::uintptr_t>(base);
    const std::uint64_t offset = bytes > 0 ? shm::Arena::mine().offset_of(base, bytes) : shm::kNoOffset;
    if (offset != shm::kNoOffset)
        shared = {first, first + bytes, offset};
    else if (bytes > 0)
        shared = share(window, base, bytes, kept_private);
    return window.regions->attach(base, bytes, shared);
}

}  // namespace osc
