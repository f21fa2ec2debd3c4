// Outcomes that depend on the order in which ranks came: the results of all of them together must be a possible order.
#include <algorithm>
#include <cstring>
#include <map>

#include "report.h"
#include "runner.h"

namespace diff {
namespace {

using Results = std::map<const Operation*, std::vector<unsigned char>>;

// The fetched elements of every operation of that kind, at every rank.
Results gather(const Phase& phase, const std::vector<std::unique_ptr<Live>>& mine) {
    std::map<const Operation*, const Live*> own;
    for (const std::unique_ptr<Live>& live : mine)
        own[&live->operation()] = live.get();
    std::vector<unsigned char> all;
    std::vector<const Operation*> order;
    for (const Operation& op : phase.operations) {
        if ((op.check != Check::Counter && op.check != Check::Race) || !op.fetches()) continue;
        order.push_back(&op);
        const auto live = own.find(&op);
        const std::vector<unsigned char> flat = live != own.end()
                                                    ? live->second->fetched()
                                                    : std::vector<unsigned char>(op.elements() * op.basic->width, 0);
        all.insert(all.end(), flat.begin(), flat.end());
    }
    Results results;
    if (order.empty()) return results;
    MPI_Allreduce(MPI_IN_PLACE, all.data(), static_cast<int>(all.size()), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    const unsigned char* next = all.data();
    for (const Operation* op : order) {
        const std::size_t bytes = op->elements() * op->basic->width;
        results[op].assign(next, next + bytes);
        next += bytes;
    }
    return results;
}

std::uint64_t number(const unsigned char* from, std::size_t width) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, width);
    return value;
}

// Each fetch returned the sum of all earlier additions: counted back from the final value, the results are 1, 2, 3, ...
void check_counters(const Phase& phase, const Results& results, const Model& model) {
    struct Place {
        const Operation* any;
        std::vector<std::uint64_t> back;
    };
    std::map<std::pair<int, std::ptrdiff_t>, Place> places;
    for (const Operation& op : phase.operations) {
        if (op.check != Check::Counter) continue;
        const std::size_t width = op.basic->width;
        const std::uint64_t mask = width == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * width)) - 1;
        for (std::size_t i = 0; i < op.elements(); ++i) {
            const std::ptrdiff_t byte = op.start + op.there.at[i];
            Place& place = places[{op.target, byte}];
            place.any = &op;
            const Bytes& memory = model[static_cast<std::size_t>(op.target)];
            place.back.push_back(
                (number(memory.value.data() + byte, width) - number(results.at(&op).data() + i * width, width)) & mask);
        }
    }
    for (auto& [where, place] : places) {
        std::sort(place.back.begin(), place.back.end());
        for (std::size_t i = 0; i < place.back.size(); ++i)
            if (place.back[i] != i + 1)
                fail(
                    "%zu ranks added 1 at byte %td of rank %d and the values that they fetched are in no order: "
                    "%llu steps before the end come after %zu; one of them is %s",
                    place.back.size(), where.second, where.first, static_cast<unsigned long long>(place.back[i]), i,
                    place.any->describe().c_str());
    }
}

void check_races(const Phase& phase, const Results& results, Model& model) {
    std::map<std::pair<int, std::ptrdiff_t>, std::vector<const Operation*>> races;
    for (const Operation& op : phase.operations)
        if (op.check == Check::Race) races[{op.target, op.cell}].push_back(&op);
    for (const auto& [where, calls] : races) {
        const Operation* winner = nullptr;
        for (const Operation* op : calls) {
            if (results.at(op) != op->compare) continue;
            if (winner != nullptr)
                fail("two compare-and-swaps from one value succeeded: %s, and that of rank %d", op->describe().c_str(),
                     winner->origin);
            winner = op;
        }
        if (winner == nullptr) fail("no compare-and-swap succeeded, one had to: %s", calls.front()->describe().c_str());
        for (const Operation* op : calls)
            if (op != winner && results.at(op) != winner->data)
                fail("rank %d won a compare-and-swap, but another fetched neither its value nor the old one: %s",
                     winner->origin, op->describe().c_str());
        Bytes& memory = model[static_cast<std::size_t>(where.first)];
        for (std::size_t i = 0; i < winner->data.size(); ++i) {
            memory.value[static_cast<std::size_t>(where.second) + i] = winner->data[i];
            memory.known[static_cast<std::size_t>(where.second) + i] = 1;
        }
    }
}

}  // namespace

void Runner::resolve(Phase& phase) {
    const Results results = gather(phase, live_);
    check_counters(phase, results, model_);
    check_races(phase, results, model_);
}

}  // namespace diff
