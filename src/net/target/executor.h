// The executor: does the operations of a message on this process's memory, under the stripe locks of every other path
// (I1). Both channels use it: AgentService for processes of the node, TargetService for those of other nodes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "net/target/exposed_window.h"
#include "net/wire.h"
#include "op/transport.h"

namespace osc::net {

/// An operation of a message: the executor's own copy of the record, and the data in the message.
struct CheckedRecord {
    Record record;
    const std::byte* data = nullptr;
    Update how{};  // by execute(); for all but put and get
};

/// Executes the operations in order. Checks all of them before the first one touches memory (I7): defined for the type,
/// whole elements, inside the window or attached memory. `out` receives what they return, each padded.
Status execute(const ExposedWindow& window, std::span<CheckedRecord> operations, std::byte* out);

/// Whether execute_alike() takes the record: an operation on one element, a put or a get, in a window with memory of
/// its own.
bool is_small(const ExposedWindow& window, const Record& record);

/// Executes a record for which is_small() holds and those behind it that equal it in all but their displacements and
/// data, as execute() does one by one: a program that updates many elements of a window sends such rows. `records` has
/// returned `record`, and stands behind the last executed one on return. Appends what they return to `out`, up to
/// `most` bytes in all. The first failure; a record that fails returns zeros.
Status execute_alike(const ExposedWindow& window, Records& records, Record record, const std::byte* data,
                     std::vector<std::byte>& out, std::size_t most);

}  // namespace osc::net
