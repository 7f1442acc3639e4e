#include "causal/embedding/pagerank.h"

namespace nsimplex::causal {

Eigen::ArrayXd causal_pagerank(const SparseGraph& graph, double restart, DanglingRule rule) {
  constexpr int kMostSteps = 10'000;
  constexpr double kClose = 1e-12;
  const SparseGraph magnitudes = graph.cwiseAbs();
  const auto nodes = static_cast<double>(graph.rows());
  const Vector in_strength = magnitudes.transpose() * Vector::Ones(graph.rows());
  const Eigen::ArrayXd caused = (in_strength.array() > 0).cast<double>();
  const Eigen::ArrayXd share = caused / (in_strength.array() + (1 - caused));

  Eigen::ArrayXd rank = Eigen::ArrayXd::Constant(graph.rows(), 1 / nodes);
  for (int step = 0; step < kMostSteps; ++step) {
    Eigen::ArrayXd next = (magnitudes * (rank * share).matrix()).array();
    if (rule == DanglingRule::uniform) next += (rank * (1 - caused)).sum() / nodes;
    next = (1 - restart) * next + restart / nodes;
    next /= next.sum();
    const double change = (next - rank).abs().sum();
    rank = std::move(next);
    if (change < kClose) break;
  }
  return rank;
}

}  // namespace nsimplex::causal
