// Checks and scales the table and the graph whose edges are turned by noise.

#include "causal/structure/noise_input.h"

#include <cmath>
#include <string>

#include "causal/tables/column_error.h"
#include "causal/tables/table_arguments.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

std::string shape_text(TableView matrix) {
  return "[" + std::to_string(matrix.rows()) + ", " + std::to_string(matrix.cols()) + "]";
}

}  // namespace

std::optional<RefusedArgument> refused_by_noise(const FitUses& uses) {
  using Refused = RefusedArgument;
  if (uses.nonlinear) return Refused{"linear effects", "nonlinear", ""};
  if (uses.groups) return Refused{"rows of one group", "groups", ""};
  if (uses.targets) return Refused{"rows without interventions", "targets", ""};
  if (uses.kinds) return Refused{"continuous columns", "kinds", ""};
  if (uses.likelihood) return Refused{"a table without gaps", "missing", "likelihood"};
  return std::nullopt;
}

void check_noise_arguments(TableView table, TableView graph, double level) {
  if (graph.rows() != table.cols() || graph.cols() != table.cols()) {
    throw InputError("graph: expected [M, M] for a table [n, M], got " + shape_text(graph) +
                     " and " + shape_text(table));
  }
  if (table.rows() < 4 || table.cols() < 1) {
    const bool rows = table.rows() < 4;
    throw InputError(rows ? "table: expected at least 4 rows, got " + std::to_string(table.rows())
                          : std::string("table: expected at least one column, got none"));
  }
  require_finite("table", table);
  require_finite("graph", graph);
  if (!(level > 0 && level < 1)) {
    throw InputError("level: expected a number in (0, 1), got " + std::to_string(level));
  }
}

AdjacencyLists checked_causes(TableView graph, const AllowedEdges& allowed) {
  Matrix edges = (graph.array() != 0).cast<double>();
  edges.diagonal().setZero();
  if (!causal_order(edges)) throw InputError("graph: expected no cycle");
  for (int64_t cause = 0; cause < edges.rows(); ++cause) {
    for (int64_t effect = 0; effect < edges.cols(); ++effect) {
      const bool edge = edges(cause, effect) != 0;
      const std::string pair = std::to_string(cause) + " -> " + std::to_string(effect);
      if (edge && !allowed.allowed(cause, effect)) {
        throw InputError("graph: expected no forbidden edge, got " + pair);
      }
      if (!edge && allowed.required(cause, effect)) {
        throw InputError("graph: expected the required edge " + pair + ", got none");
      }
    }
  }
  return causes_of(edges);
}

UnitColumns unit_columns(TableView table) {
  UnitColumns result{table, Vector(table.cols())};
  for (Eigen::Index k = 0; k < table.cols(); ++k) {
    auto column = result.columns.col(k);
    const bool constant = (column.array() == column[0]).all();
    const double unit = constant ? 1 : column.cwiseAbs().maxCoeff();
    column /= unit;  // squares of large numbers would be infinite
    column.array() -= column.mean();
    const double deviation = std::sqrt(column.squaredNorm() / static_cast<double>(table.rows()));
    if (constant || !(deviation > 0)) {
      throw ColumnError("table: column {} is constant", {k});
    }
    column /= deviation;
    result.deviations[k] = deviation * unit;
  }
  return result;
}

}  // namespace nsimplex::causal
