// Signatures as lists of runs. All constructors but struct repeat one type, so only structs are taken apart.
#include "host/signature.h"

#include <stdexcept>
#include <vector>

#include "host/datatype.h"
#include "host/datatype_contents.h"
#include "op/kernels.h"

namespace osc::host {
namespace {

constexpr std::size_t kMostRuns = 65536;

struct SignatureRun {
    Basic basic;
    std::uint64_t count;
};
using Signature = std::vector<SignatureRun>;

void append(Signature& to, const SignatureRun& run) {
    if (run.count == 0) return;
    if (!to.empty() && to.back().basic == run.basic)
        to.back().count += run.count;
    else
        to.push_back(run);
    if (to.size() > kMostRuns) throw std::length_error("signature");
}

void append(Signature& to, const Signature& part, std::uint64_t times) {
    if (part.size() == 1) return append(to, {part.front().basic, part.front().count * times});
    for (std::uint64_t i = 0; i < times && !part.empty(); ++i)
        for (const SignatureRun& run : part)
            append(to, run);
}

Signature signature_of(MPI_Datatype type) {
    op::Layout layout = detail::flatten(type);
    if (layout.size() == 0) return {};
    if (layout.basic() != Basic::None) return {{layout.basic(), layout.size() / op::significant_size(layout.basic())}};
    detail::Contents contents(type);
    Signature signature;
    if (contents.combiner() != MPI_COMBINER_STRUCT) {
        const Signature part = signature_of(contents.type());
        append(signature, part, layout.size() / detail::flatten(contents.type()).size());
        return signature;
    }
    const auto members = static_cast<std::size_t>(contents.count());
    const std::vector<std::int64_t> lengths = contents.counts(members);
    for (std::size_t i = 0; i < members; ++i)
        append(signature, signature_of(contents.types()[i]), static_cast<std::uint64_t>(lengths[i]));
    return signature;
}

// The runs of `count` elements, one after the other.
class Cursor {
  public:
    Cursor(const Signature& signature, std::uint64_t count) : signature_(signature), left_(count) { settle(); }
    bool done() const { return left_ == 0; }
    Basic basic() const { return signature_[at_].basic; }
    std::uint64_t elements() const { return signature_[at_].count - used_; }
    void take(std::uint64_t elements) {
        used_ += elements;
        settle();
    }

  private:
    void settle() {
        if (signature_.empty()) left_ = 0;
        if (left_ == 0 || used_ < signature_[at_].count) return;
        used_ = 0;
        if (++at_ < signature_.size()) return;
        at_ = 0;
        --left_;
    }
    const Signature& signature_;
    std::uint64_t left_;
    std::size_t at_ = 0;
    std::uint64_t used_ = 0;
};

std::string text_of_mismatch(std::uint64_t element, Basic here, const char* which, Basic target) {
    return "element " + std::to_string(element) + " of the data is a " + op::name(here) + " in the " + which +
           " datatype and a " + op::name(target) + " in the target's";
}

}  // namespace

std::optional<std::string> find_mismatch(const char* which, const TypedCount& origin, const TypedCount& target) {
    if (origin.type == target.type || origin.type == MPI_PACKED || target.type == MPI_PACKED) return std::nullopt;
    const op::TypeInfo* const here = type_info(origin.type);
    const op::TypeInfo* const there = type_info(target.type);
    if (here == nullptr || there == nullptr || origin.count <= 0 || target.count <= 0) return std::nullopt;
    if (here->size == 0 || there->size == 0) return std::nullopt;
    if (here->basic != Basic::None && there->basic != Basic::None) {
        if (here->basic == there->basic) return std::nullopt;
        return text_of_mismatch(0, here->basic, which, there->basic);
    }
    try {
        const Signature first = signature_of(origin.type);
        const Signature second = signature_of(target.type);
        Cursor mine(first, static_cast<std::uint64_t>(origin.count));
        Cursor theirs(second, static_cast<std::uint64_t>(target.count));
        std::uint64_t element = 0;
        for (std::size_t steps = 0; steps < 16 * kMostRuns && !mine.done() && !theirs.done(); ++steps) {
            if (mine.basic() != theirs.basic()) return text_of_mismatch(element, mine.basic(), which, theirs.basic());
            const std::uint64_t common = std::min(mine.elements(), theirs.elements());
            mine.take(common);
            theirs.take(common);
            element += common;
        }
    } catch (const std::exception&) {
        return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace osc::host
