// The known word that a misspelt one was probably meant to be.
#pragma once

#include <string_view>
#include <vector>

namespace osc::base {

/// The number of characters to insert, remove, replace or exchange with their neighbour to turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word of `known` nearest to `word`, the first of several; "" if none is near: more than a third of the characters
/// behind `prefix`, which all words have, differ, and neither of the two contains the other there.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known, std::string_view prefix);

}  // namespace osc::base
