#include <array>
#include <cmath>

#include "causal/structure/acyclicity.h"
#include "causal/structure/candidate_edges.h"
#include "causal/structure/column_networks.h"
#include "causal/structure/estimators.h"
#include "causal/structure/quasi_newton.h"

namespace nsimplex::causal {
namespace {

constexpr double kNetworkSparsity = 0.02, kDecay = 0.005;  // as in the source's code
constexpr int64_t kHidden = 10;
constexpr double kScale = 1;                                                  // s
constexpr std::array<double, 4> kNetworkStages = {0.1, 0.01, 0.001, 0.0001};  // mu
constexpr int64_t kNetworkIterations = 150;                                   // of each stage

}  // namespace

Structure fit_logdet_networks(TableView table, const CausalFitOptions& options) {
  const int64_t features = table.cols();
  const CandidateEdges edges(options.constraints, features);
  const double sparsity = options.sparsity.value_or(kNetworkSparsity);
  ColumnNetworks networks(table, kHidden, edges.matrix(Vector::Ones(edges.size())));
  const Vector l1 = networks.first_layer(edges.matrix(edges.penalties(sparsity)));

  Vector point = networks.start(static_cast<uint64_t>(options.seed));
  Matrix slope;
  for (const double mu : kNetworkStages) {
    const auto objective = [&](const Vector& at, Vector& gradient) {
      const Matrix strengths = networks.strengths(at);
      const double acyclicity = log_det_acyclicity(strengths, kScale, slope);
      if (std::isinf(acyclicity)) return acyclicity;
      const double loss = networks.loss(at, gradient) + kDecay / 2 * at.squaredNorm();
      gradient = mu * (gradient + kDecay * at);
      // A_ij is a norm: dA_ij / dtheta = theta / A_ij, and dh / dA_ij is a multiple of A_ij.
      const Matrix share = (strengths.array() > 0).select(slope.array() / strengths.array(), 0);
      gradient += networks.first_layer(share).cwiseProduct(at);
      return mu * loss + acyclicity;
    };
    minimise(
        objective, mu * l1, point,
        {.iterations = kNetworkIterations, .tolerance = 1e-5, .checkpoint = options.checkpoint});
  }
  const Matrix found = networks.strengths(point);
  return {found, found, "logdet networks"};
}

}  // namespace nsimplex::causal
