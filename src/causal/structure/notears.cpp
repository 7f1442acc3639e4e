#include <cmath>
#include <limits>

#include "causal/structure/acyclicity.h"
#include "causal/structure/covariance.h"
#include "causal/structure/estimators.h"
#include "causal/structure/least_squares.h"
#include "causal/structure/quasi_newton.h"

namespace nsimplex::causal {
namespace {

// As in the authors' code.
constexpr double kSparsity = 0.1;
constexpr double kAcyclic = 1e-8;     // h at which a graph counts as acyclic
constexpr double kLargestRho = 1e16;  // penalty at which it is given up
constexpr double kProgress = 0.25;    // part of h that one round may leave
constexpr int kNotearsRounds = 100;

}  // namespace

Structure fit_notears(TableView table, const CausalFitOptions& options) {
  const Matrix covariance = covariance_of(table).matrix;
  const CandidateEdges edges(options.constraints, table.cols());
  const Vector l1 = edges.penalties(options.sparsity.value_or(kSparsity));
  LeastSquares loss(covariance, edges);

  Vector weights = Vector::Zero(edges.size());
  double rho = 1, alpha = 0, h = std::numeric_limits<double>::infinity();
  Matrix slope;
  const auto objective = [&](const Vector& point, Vector& gradient) {
    const double acyclicity = trace_exponential_acyclicity(edges.matrix(point), slope);
    if (!std::isfinite(acyclicity)) return std::numeric_limits<double>::infinity();
    const double value = loss(point, gradient);
    gradient += (rho * acyclicity + alpha) * edges.weights(slope);
    return value + rho / 2 * acyclicity * acyclicity + alpha * acyclicity;
  };
  for (int round = 0; round < kNotearsRounds && h > kAcyclic && rho < kLargestRho; ++round) {
    Vector next;
    double next_h = 0;
    for (;;) {
      next = weights;
      minimise(objective, l1, next, {.checkpoint = options.checkpoint});
      next_h = trace_exponential_acyclicity(edges.matrix(next), slope);
      if (next_h <= kProgress * h || rho >= kLargestRho) break;
      rho *= 10;
    }
    weights = next;
    h = next_h;
    alpha += rho * h;
  }
  const Matrix found = edges.matrix(weights);
  return {found, found.cwiseAbs(), "notears"};
}

}  // namespace nsimplex::causal
