// Declares the checks of the input of orient_by_noise().

#pragma once

#include <Eigen/Core>

#include <optional>
#include <string>

#include "causal/graph/acyclic.h"
#include "causal/graph/edge_constraints.h"
#include "causal/matrix.h"

// What orient_by_noise() takes, checked and scaled. Errors are InputError "ARGUMENT: ..".

namespace nsimplex::causal {

/// What a fit uses beside its estimator.
struct FitUses {
  bool nonlinear, groups, targets;
  bool kinds;       ///< of columns that are not continuous
  bool likelihood;  ///< MissingValues::likelihood
};

/// An argument that is refused, as messages say it: "expected EXPECTED, got ARGUMENT VALUE".
struct RefusedArgument {
  std::string expected, argument;
  std::string value;  ///< of the argument; empty if every one is refused
};

/// The first thing that a fit uses and orient_by_noise() does not take into account.
std::optional<RefusedArgument> refused_by_noise(const FitUses& uses);

/// Checks the shapes, that the table is finite and has at least 4 rows, and that the level is in (0,
/// 1).
void check_noise_arguments(TableView table, TableView graph, double level);

/// The causes of every column of a graph, which must be acyclic and satisfy the constraints.
AdjacencyLists checked_causes(TableView graph, const AllowedEdges& allowed);

/// Columns [n, M] of mean 0 and variance 1, and the deviations [M] that they had.
struct UnitColumns {
  Eigen::MatrixXd columns;
  Vector deviations;
};

/// The table must have no constant column.
UnitColumns unit_columns(TableView table);

}  // namespace nsimplex::causal
