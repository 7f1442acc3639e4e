#include <array>
#include <cmath>

#include "causal/structure/covariance.h"
#include "causal/structure/equal_variance_graph.h"
#include "causal/structure/estimators.h"
#include "causal/structure/least_squares.h"
#include "causal/structure/neighbourhoods.h"
#include "causal/structure/quasi_newton.h"
#include "causal/structure/sparse_cycles.h"

namespace nsimplex::causal {
namespace {

constexpr double kSparsity = 0.03;
constexpr std::array<double, 6> kPenalties = {0.01, 0.1, 1, 10, 100, 1000};
constexpr int64_t kIterations = 60;  // with each penalty

}  // namespace

Structure fit_spectral(TableView table, const CausalFitOptions& options) {
  const int64_t features = table.cols();
  const Covariance covariance = covariance_of(table);
  const std::vector<char> near = neighbourhoods(covariance, options.checkpoint);
  const Matrix graph = equal_variance_graph(covariance, options.constraints);
  const CandidateEdges edges(options.constraints, features, [&](int64_t cause, int64_t effect) {
    return near[static_cast<size_t>(cause * features + effect)] != 0 || graph(cause, effect) != 0;
  });
  const Vector l1 = edges.penalties(options.sparsity.value_or(kSparsity));
  LeastSquares loss(covariance.matrix, edges);
  SpectralAcyclicity acyclicity(edges);

  Vector slope;
  const auto descend = [&](double penalty, Vector& weights) {
    const auto objective = [&](const Vector& point, Vector& gradient) {
      const double value = loss(point, gradient);
      const double radius = acyclicity(point, slope);
      gradient += penalty * slope;
      return value + penalty * radius;
    };
    return minimise(
        objective, l1, weights,
        {.iterations = kIterations, .tolerance = 1e-6, .checkpoint = options.checkpoint});
  };
  Vector weights = Vector::Zero(edges.size());
  double value = 0;
  for (const double penalty : kPenalties) value = descend(penalty, weights);

  Vector ordered = edges.weights(graph);
  const bool from_order = descend(kPenalties.back(), ordered) < value;
  const Matrix found = edges.matrix(from_order ? ordered : weights);
  return {found, found.cwiseAbs(), from_order ? "spectral from order" : "spectral"};
}

}  // namespace nsimplex::causal
