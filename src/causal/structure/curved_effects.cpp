// The test whether effects of a graph are curves.

#include "causal/structure/curved_effects.h"

#include <Eigen/QR>
#include <algorithm>
#include <utility>
#include <vector>

#include "causal/graph/acyclic.h"
#include "causal/structure/noise_input.h"
#include "causal/structure/parent_search.h"

namespace nsimplex::causal {
namespace {

// The squared residuals of a regression on columns, and the rank of these.
std::pair<double, int64_t> residuals_of(const Eigen::MatrixXd& columns, const Vector& effect) {
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> solver(columns);
  const Vector residuals = effect - columns * solver.solve(effect);
  return {residuals.squaredNorm(), solver.rank()};
}

double curvature_of(const Eigen::MatrixXd& units, int64_t column,
                    const std::vector<int64_t>& causes) {
  const int64_t rows = units.rows(), count = std::ssize(causes);
  Eigen::MatrixXd columns = Eigen::MatrixXd::Ones(rows, 1 + 3 * count);
  for (int64_t k = 0; k < count; ++k) {
    const auto z = units.col(causes[static_cast<size_t>(k)]).array();
    columns.col(1 + k) = z;
    columns.col(1 + count + k) = (-z.square() / 2).exp();
    columns.col(1 + 2 * count + k) = (2 * z).tanh();
  }
  const Vector effect = units.col(column);
  const auto [lines, lines_rank] = residuals_of(columns.leftCols(1 + count), effect);
  const auto [curves, curves_rank] = residuals_of(columns, effect);
  const int64_t free = rows - curves_rank, more = curves_rank - lines_rank;
  constexpr int64_t kLeastFree = 5;
  if (free < kLeastFree || more < 1 || !(lines > 0)) return 1;
  return f_test_level(static_cast<double>(free), static_cast<double>(more),
                      std::clamp(curves / lines, 0.0, 1.0));
}

}  // namespace

double curvature_p_value(TableView table, TableView graph) {
  const Eigen::MatrixXd units = unit_columns(table).columns;
  const AdjacencyLists causes = causes_of(Matrix(graph));
  double least = 1;
  for (int64_t column = 0; column < table.cols(); ++column) {
    const std::vector<int64_t>& own = causes[static_cast<size_t>(column)];
    if (!own.empty()) least = std::min(least, curvature_of(units, column, own));
  }
  return std::min(1.0, least * static_cast<double>(table.cols()));
}

}  // namespace nsimplex::causal
