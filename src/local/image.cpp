// The array of a thread. It has no room on the thread's stack, which a program may have made as small as the host
// needs.
#include "local/image.h"

#include <new>
#include <utility>

namespace osc::cma {
namespace {

struct alignas(64) Room {
    std::byte bytes[Image::kRoom];
};

constinit thread_local Room* t_room = nullptr;

// The thread may use windows after this, in destructors of the program: then the next array stays.
struct End {
    ~End() { delete std::exchange(t_room, nullptr); }
};

}  // namespace

std::span<std::byte> Image::room() {
    static thread_local const End end;
    if (t_room == nullptr) t_room = new (std::nothrow) Room;
    return t_room != nullptr ? std::span<std::byte>(t_room->bytes) : std::span<std::byte>();
}

}  // namespace osc::cma
