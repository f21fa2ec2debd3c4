// Best fit over a list: with pieces of 2 MiB and more and a bound of some MiB the list is short.
#include "shm/kept.h"

namespace osc::shm {

std::optional<Mapping> KeptPieces::take(std::size_t bytes, std::size_t alignment, std::size_t least, std::size_t most) {
    auto best = pieces_.end();
    for (auto it = pieces_.begin(); it != pieces_.end(); ++it) {
        const bool fits = it->bytes >= bytes && reinterpret_cast<std::uintptr_t>(it->address) % alignment == 0;
        if (fits && (best == pieces_.end() || it->bytes < best->bytes)) best = it;
    }
    if (best == pieces_.end() || best->bytes > most) return std::nullopt;
    Mapping taken = *best;
    if (taken.bytes - bytes >= least) {
        taken.bytes = bytes;
        best->address += bytes;
        best->offset += bytes;
        best->bytes -= bytes;
    } else {
        pieces_.erase(best);
    }
    bytes_ -= taken.bytes;
    return taken;
}

void KeptPieces::keep(const Mapping& piece) {
    pieces_.push_back(piece);
    bytes_ += piece.bytes;
}

std::optional<Mapping> KeptPieces::oldest() {
    if (pieces_.empty()) return std::nullopt;
    const Mapping piece = pieces_.front();
    pieces_.pop_front();
    bytes_ -= piece.bytes;
    return piece;
}

}  // namespace osc::shm
