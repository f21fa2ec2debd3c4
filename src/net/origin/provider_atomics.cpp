// Rows of elements by the provider's atomics.
// Build: osc_core_cold
#include "net/origin/provider_atomics.h"

#include <algorithm>
#include <cstring>

namespace osc::net {

using fabric::RowForm;

AtomicsTable::AtomicsTable(const fabric::Endpoint& endpoint) {
    static_assert(static_cast<unsigned>(Op::Count) <= 16);
    for (std::size_t index = 0; index < ops_.size(); ++index) {
        const auto type = static_cast<Basic>(index);
        const auto has = [&](RowForm form, Op op) { return endpoint.longest_row(form, type, op) > 0; };
        if (!has(RowForm::Fetch, Op::NoOp) || !has(RowForm::Fetch, Op::Replace) || !has(RowForm::Update, Op::Replace) ||
            (op::admits_compare(type) && !has(RowForm::Swap, Op::None)))
            continue;
        ops_[index] = 1u << static_cast<unsigned>(Op::NoOp);
        for (unsigned op = 0; op < static_cast<unsigned>(Op::NoOp); ++op)
            if (has(RowForm::Fetch, static_cast<Op>(op)) && has(RowForm::Update, static_cast<Op>(op)))
                ops_[index] = static_cast<std::uint16_t>(ops_[index] | 1u << op);
    }
}

Mechanism AtomicsTable::mechanism(Basic type, Op op, bool promised) const {
    if (!has(type)) return Mechanism::Message;
    if (op == Op::None || has(type, op)) return Mechanism::Provider;
    return promised ? Mechanism::Message : Mechanism::Refused;
}

bool AtomicsTable::is_empty() const {
    return std::ranges::all_of(ops_, [](std::uint16_t ops) { return ops == 0; });
}

int AtomicsTable::sum() const {
    std::uint64_t sum = 1;
    for (const std::uint16_t ops : ops_)
        sum = (sum * 65539 + ops) % 0x7fffffff;
    return static_cast<int>(sum);
}

void ProviderAtomics::update(const Update& how, std::int64_t disp, const void* origin, void* result,
                             std::size_t count) {
    if (!is_aligned(how, disp)) {
        stream_.accumulate_by_message();
        return stream_.update(how, disp, origin, result, count);
    }
    const RowForm form = how.compare != nullptr ? RowForm::Swap : result != nullptr ? RowForm::Fetch : RowForm::Update;
    const std::size_t most = endpoint_.longest_row(form, how.basic, how.op);
    const auto* from = static_cast<const std::byte*>(origin);
    auto* to = static_cast<std::byte*>(result);
    for (std::size_t done = 0; done < count;) {
        const std::size_t n = std::min(count - done, most);
        auto row = std::make_unique<RowUpdate>(RowUpdate{{form, how.basic, how.op, n, how.width}, to});
        if (from != nullptr) std::memcpy(row->row.operands(), from, n * how.width);
        if (how.compare != nullptr) std::memcpy(row->row.expected(), how.compare, how.width);
        stream_.update_row(std::move(row), address(disp), key_);
        done += n;
        disp += static_cast<std::int64_t>(n * how.width);
        if (from != nullptr) from += n * how.width;
        if (to != nullptr) to += n * how.width;
    }
}

}  // namespace osc::net
