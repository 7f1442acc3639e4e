#include <array>
#include <cmath>

#include "causal/structure/acyclicity.h"
#include "causal/structure/covariance.h"
#include "causal/structure/equal_variance_graph.h"
#include "causal/structure/estimators.h"
#include "causal/structure/least_squares.h"
#include "causal/structure/quasi_newton.h"

namespace nsimplex::causal {
namespace {

constexpr double kSparsity = 0.03;

struct Stage {
  double mu, s;
  int64_t iterations;
  double tolerance;
};

// mu and s as in the source, but for a stage less; the first ones only have to lead the way.
constexpr std::array<Stage, 4> kStages = {
    {{1, 1, 60, 1e-4}, {0.1, 0.9, 60, 1e-4}, {0.01, 0.8, 60, 1e-4}, {0.001, 0.7, 100, 1e-5}}};

class CentralPath {
 public:
  CentralPath(const Matrix& covariance, const CandidateEdges& edges, double sparsity,
              const CausalFitOptions& options)
      : edges_(edges),
        loss_(covariance, edges),
        l1_(edges.penalties(sparsity)),
        checkpoint_(options.checkpoint) {}

  // Moves the weights to a minimum of a stage's objective and returns it.
  double descend(const Stage& stage, Vector& weights) {
    Matrix slope;
    const auto objective = [&](const Vector& point, Vector& gradient) {
      const double acyclicity = log_det_acyclicity(edges_.matrix(point), stage.s, slope);
      if (std::isinf(acyclicity)) return acyclicity;
      const double loss = loss_(point, gradient);
      gradient = stage.mu * gradient + edges_.weights(slope);
      return stage.mu * loss + acyclicity;
    };
    return minimise(
        objective, stage.mu * l1_, weights,
        {.iterations = stage.iterations, .tolerance = stage.tolerance, .checkpoint = checkpoint_});
  }

 private:
  const CandidateEdges& edges_;
  LeastSquares loss_;
  Vector l1_;
  std::function<void()> checkpoint_;
};

}  // namespace

Structure fit_logdet(TableView table, const CausalFitOptions& options) {
  const Covariance covariance = covariance_of(table);
  const CandidateEdges edges(options.constraints, table.cols());
  const double sparsity = options.sparsity.value_or(kSparsity);
  CentralPath path(covariance.matrix, edges, sparsity, options);

  Vector weights = Vector::Zero(edges.size());
  double value = 0;
  for (const Stage& stage : kStages) value = path.descend(stage, weights);

  Vector ordered = edges.weights(equal_variance_graph(covariance, options.constraints));
  const double ordered_value = path.descend(kStages.back(), ordered);
  const bool from_order = ordered_value < value;
  const Matrix found = edges.matrix(from_order ? ordered : weights);
  return {found, found.cwiseAbs(), from_order ? "logdet from order" : "logdet"};
}

}  // namespace nsimplex::causal
