#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace nsimplex {

/// Estimators of a causal graph from a table; docs/causal/structure.md compares them.
enum class StructureEstimator { order, logdet, paper, lowrank, notears, spectral, paper_lowrank };

/// What becomes of rows of a table that miss a value. refuse: an error that names the first one;
/// rows: they are left out; means: the mean of what the column has takes its place.
enum class MissingValues { refuse, rows, means };

/// cause -> effect, columns of the table by number.
struct CausalEdge {
  int64_t cause, effect;
  bool operator==(const CausalEdge&) const = default;
};

/// What is known of the graph before a table is seen.
struct EdgeConstraints {
  std::vector<CausalEdge> forbidden = {};
  std::vector<CausalEdge> required = {};
  /// One number a column, or none at all: nothing of a later tier causes anything of an earlier
  /// one.
  std::vector<int64_t> tiers = {};
};

struct CausalFitOptions {
  StructureEstimator estimator = StructureEstimator::order;
  bool nonlinear = false;                ///< order, logdet: regressions that are not linear
  bool standardise = false;              ///< columns divided by their standard deviation first
  std::optional<double> threshold = {};  ///< edges with a smaller |weight| go; 0.2, for order none
  std::optional<double> sparsity = {};  ///< weight of the l1 norm; each estimator's own where unset
  int64_t rank = 40;                    ///< lowrank, paper_lowrank: columns of U, V
  bool sample = false;                  ///< paper, paper_lowrank: Z drawn, not its mean
  int64_t seed = 0;
  EdgeConstraints constraints = {};
  /// Called between steps; what it throws ends the fit.
  std::function<void()> checkpoint = {};
};

}  // namespace nsimplex
