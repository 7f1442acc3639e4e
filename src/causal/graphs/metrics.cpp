#include "causal/graphs/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/binary_metrics.h"

namespace nsimplex::causal {

EdgeErrors edge_errors(const Matrix& graph, const Matrix& truth) {
  EdgeErrors errors;
  BinaryCounts counts;
  for (Eigen::Index i = 0; i < graph.rows(); ++i) {
    for (Eigen::Index j = i + 1; j < graph.cols(); ++j) {
      const bool there = graph(i, j) != 0.0, back = graph(j, i) != 0.0;
      const bool true_there = truth(i, j) != 0.0, true_back = truth(j, i) != 0.0;
      counts.add(there, true_there);
      counts.add(back, true_back);
      errors.edges += there + back;
      errors.true_edges += true_there + true_back;
      errors.shd += there != true_there || back != true_back;
      if (!true_there && !true_back) {
        errors.extra += there + back;
      } else if (!there && !back) {
        errors.missing += true_there + true_back;
      } else {
        errors.reversed += there != back && true_there != true_back && there != true_there;
      }
    }
  }
  errors.precision = counts.precision();
  errors.recall = counts.recall();
  errors.f1 = counts.f1();
  errors.false_discovery_rate = errors.edges == 0 ? 0.0 : 1.0 - errors.precision;
  return errors;
}

EdgeRanking edge_ranking(const Matrix& scores, const Matrix& truth) {
  std::vector<double> values;
  std::vector<uint8_t> positive;
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    for (Eigen::Index j = 0; j < scores.cols(); ++j) {
      if (i == j) continue;
      values.push_back(scores(i, j));
      positive.push_back(truth(i, j) != 0.0);
    }
  }
  return {area_under_roc(values, positive), average_precision(values, positive)};
}

BestThreshold best_threshold(const Matrix& weights, const Matrix& truth) {
  struct Candidate {
    double size;
    Eigen::Index cause, effect;
  };
  std::vector<Candidate> candidates;
  for (Eigen::Index cause = 0; cause < weights.rows(); ++cause) {
    for (Eigen::Index effect = 0; effect < weights.cols(); ++effect) {
      const double size = std::abs(weights(cause, effect));
      if (cause != effect && size > 0.0) candidates.push_back({size, cause, effect});
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.size > b.size; });
  Matrix graph = Matrix::Zero(weights.rows(), weights.cols());
  int64_t shd = edge_errors(graph, truth).shd;
  BestThreshold best{std::numeric_limits<double>::infinity(), shd};
  const auto differs = [&](Eigen::Index i, Eigen::Index j) {
    return (graph(i, j) != 0.0) != (truth(i, j) != 0.0) ||
           (graph(j, i) != 0.0) != (truth(j, i) != 0.0);
  };
  for (size_t next = 0; next < candidates.size(); ++next) {
    const auto& [size, cause, effect] = candidates[next];
    shd -= differs(cause, effect);
    graph(cause, effect) = 1.0;
    shd += differs(cause, effect);
    const bool whole = next + 1 == candidates.size() || candidates[next + 1].size < size;
    if (whole && shd < best.shd) best = {size, shd};
  }
  return best;
}

}  // namespace nsimplex::causal
