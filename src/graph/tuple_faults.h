#pragma once

#include <nsimplex/symmetry.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "graph/rows.h"

namespace nsimplex::graph {

/// A TupleBatch (nsimplex/graph.h) without Torch.
struct TupleView {
  Rows tuples;
  std::span<const int64_t> tuple_offsets, node_offsets;
  Symmetry symmetry = Symmetry::ordered;

  int64_t graphs() const { return static_cast<int64_t>(tuple_offsets.size()) - 1; }
};

/// The first thing that is wrong with a batch, worded as "argument: expected .., got ..", or none.
std::optional<std::string> find_tuple_fault(const TupleView& batch);

/// "(1, 4)"
std::string to_string(std::span<const int64_t> tuple);

}  // namespace nsimplex::graph
