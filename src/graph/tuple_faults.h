#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "graph/tuple_view.h"

namespace nsimplex::graph {

/// The first thing that is wrong with an unchecked batch, worded as "argument: expected .., got
/// ..", or none. `tuples` is what the list of tuples is called there.
std::optional<std::string> find_tuple_fault(const TupleView& batch, const char* tuples = "tuples");

/// The first thing that is wrong with offsets, which rise from 0.
std::optional<std::string> find_offset_fault(const char* name, std::span<const int64_t> offsets);

/// "(1, 4)"
std::string to_string(std::span<const int64_t> tuple);

}  // namespace nsimplex::graph
