// The array of a thread: on the thread's stack, which a program may have made as small as the host needs, it has no
// room.
#include "local/image.h"

#include <memory>
#include <new>

namespace osc::cma {
namespace {

struct alignas(64) Room {
    std::byte bytes[Image::kRoom];
};

}  // namespace

std::span<std::byte> Image::room() {
    static thread_local std::unique_ptr<Room> room;
    if (room == nullptr) room.reset(new (std::nothrow) Room);
    return room != nullptr ? std::span<std::byte>(room->bytes) : std::span<std::byte>();
}

}  // namespace osc::cma
