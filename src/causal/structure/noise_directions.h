// Declares the search that turns edges by noise that is not Gaussian.

#pragma once

#include <nsimplex/causal_options.h>

#include <functional>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The answer of turned_by_noise(); nsimplex::NoiseDirections explains the fields.
struct TurnedGraph {
  Matrix adjacency;
  std::vector<CausalEdge> turned;
  double gain, p_value;
  int64_t few_valued;  ///< columns of so few values that their edges keep their directions
  bool interrupted;
};

/// orient_by_noise() for plain numbers: a table [n, M] and a graph [M, M]. `go_on` is asked between
/// steps; once it is false, the search ends with the best graph so far. Throws InputError
/// "ARGUMENT: ..".
TurnedGraph turned_by_noise(TableView table, TableView graph, double level,
                            const EdgeConstraints& constraints, const std::function<bool()>& go_on);

}  // namespace nsimplex::causal
