// Accesses by their bytes, in classes of which either all conflict with an access or none.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "plugins/verify/access.h"
#include "plugins/verify/piece_index.h"

namespace osc::check {

/// Entries stay where they are, and keep their bytes but by replace(). One thread at a time.
class AccessIndex {
  public:
    explicit AccessIndex(Promises promises) : promises_(promises) {}

    void insert(const Entry& entry) {
        Class& members = classes_[key_of(entry)];
        if (members.count++ == 0) members.example = entry.access;
        for (const Piece& piece : entry.pieces)
            members.pieces.insert(piece, &entry);
    }
    /// Replaces the only piece of an entry by one that begins at the same byte, with its elements.
    void replace(Entry& entry, const Piece& by) {
        if (const auto members = classes_.find(key_of(entry)); members != classes_.end())
            members->second.pieces.replace(entry.pieces.front(), by, &entry);
        entry.pieces.front() = by;
    }
    void erase(const Entry& entry) {
        const auto members = classes_.find(key_of(entry));
        if (--members->second.count == 0) return void(classes_.erase(members));
        for (const Piece& piece : entry.pieces)
            members->second.pieces.erase(piece, &entry);
    }

    /// Calls visit(entry) until it returns false. The accesses that conflict with `one` are visited, some of them
    /// several times, and few others; none of a call site that skip(site) names.
    template <class Skip, class Visit>
    void visit(const Entry& one, bool same_origin, Skip&& skip, Visit&& visit) const {
        const std::int64_t phase = phase_of(one);
        for (const auto& [key, members] : classes_) {
            const Clash kind = clash(members.example, one.access, same_origin, promises_);
            if (kind == Clash::None || skip(members.example.site)) continue;
            if (kind == Clash::Elements && phase >= 0 && phase == std::get<std::int64_t>(key)) continue;
            for (const Piece& piece : one.pieces)
                if (!members.pieces.visit(piece, [&](const Piece&, const Entry* entry) { return visit(*entry); }))
                    return;
        }
    }
    /// The same for accesses of one call site and kind that have the first block of `one`.
    template <class Visit>
    void visit_alike(const Entry& one, Visit&& visit) const {
        const auto members = classes_.find(key_of(one));
        if (members == classes_.end()) return;
        const Piece& first = one.pieces.front();
        members->second.pieces.visit({first.lo, first.bytes, 0, 1},
                                     [&](const Piece&, const Entry* entry) { return visit(*entry); });
    }

  private:
    using Key = std::tuple<std::uint64_t, op::OpKind, Op, Basic, std::int64_t>;
    struct Class {
        Access example;
        std::size_t count = 0;
        PieceIndex<const Entry*> pieces;
    };
    // Where elements of an accumulate begin, modulo their size; -1 if in several ways.
    static std::int64_t phase_of(const Entry& entry);
    static Key key_of(const Entry& entry) {
        const Access& access = entry.access;
        return access.atomic() ? Key{access.site, access.kind, access.op, access.basic, phase_of(entry)}
                               : Key{access.site, access.kind, Op::None, Basic::None, 0};
    }

    const Promises promises_;
    std::map<Key, Class> classes_;
};

}  // namespace osc::check
