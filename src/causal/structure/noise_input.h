#pragma once

#include <Eigen/Core>

#include "causal/graph/acyclic.h"
#include "causal/graph/edge_constraints.h"
#include "causal/matrix.h"

// What orient_by_noise() takes, checked and scaled. Errors are InputError "ARGUMENT: ..".

namespace nsimplex::causal {

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
