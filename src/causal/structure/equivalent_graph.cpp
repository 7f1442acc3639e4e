#include "causal/structure/equivalent_graph.h"

#include <Eigen/Cholesky>

#include <algorithm>

#include "causal/structure/regression.h"

namespace nsimplex::causal {
namespace {

constexpr double kRidge = 1e-6;
// R^2 that differ by less are equal but for rounding.
constexpr double kEqualExplained = 1e-9;

using Flags = Eigen::Matrix<bool, Eigen::Dynamic, Eigen::Dynamic>;

// A graph of which some edges have a direction and some may point either way; its last columns are
// taken off one by one.
class PartlyDirected {
 public:
  PartlyDirected(const AllowedEdges& edges, const std::vector<ParentSet>& parents)
      : adjacent_(Flags::Constant(edges.features(), edges.features(), false)),
        directed_(adjacent_),
        neighbours_(parents.size()) {
    for (int64_t effect = 0; effect < edges.features(); ++effect) {
      for (const int64_t cause : parents[static_cast<size_t>(effect)].parents) {
        adjacent_(cause, effect) = adjacent_(effect, cause) = true;
        neighbours(cause).push_back(effect);
        neighbours(effect).push_back(cause);
        directed_(cause, effect) = edges.required(cause, effect) || !edges.allowed(effect, cause);
      }
    }
    for (int64_t effect = 0; effect < edges.features(); ++effect) {
      const std::vector<int64_t>& causes = parents[static_cast<size_t>(effect)].parents;
      for (const int64_t one : causes) {
        for (const int64_t other : causes) {
          if (one != other && !adjacent_(one, other)) directed_(one, effect) = true;
        }
      }
    }
  }

  bool may_be_last(int64_t column) const {
    const std::vector<int64_t>& around = neighbours_[static_cast<size_t>(column)];
    return std::all_of(around.begin(), around.end(), [&](int64_t one) {
      if (directed_(column, one)) return false;
      return directed_(one, column) ||
             std::all_of(around.begin(), around.end(),
                         [&](int64_t other) { return one == other || adjacent_(one, other); });
    });
  }

  // Its neighbours, now its parents, ascending.
  std::vector<int64_t> take(int64_t column) {
    std::vector<int64_t> causes = std::move(neighbours(column));
    for (const int64_t each : causes) std::erase(neighbours(each), column);
    std::sort(causes.begin(), causes.end());
    return causes;
  }

 private:
  std::vector<int64_t>& neighbours(int64_t column) {
    return neighbours_[static_cast<size_t>(column)];
  }

  Flags adjacent_, directed_;
  std::vector<std::vector<int64_t>> neighbours_;
};

}  // namespace

Vector explained_parts(const Matrix& covariance) {
  const Vector scale = covariance.diagonal().cwiseSqrt().cwiseInverse();
  Matrix correlations = scale.asDiagonal() * covariance * scale.asDiagonal();
  correlations.diagonal().array() += kRidge;
  const Matrix inverse =
      correlations.llt().solve(Matrix::Identity(covariance.rows(), covariance.cols()));
  return 1 - inverse.diagonal().array().inverse();
}

std::vector<ParentSet> equivalent_graph(const Matrix& covariance, const AllowedEdges& edges,
                                        const GaussianCost& cost,
                                        const std::vector<ParentSet>& parents) {
  const Vector explained = explained_parts(covariance);
  PartlyDirected graph(edges, parents);
  std::vector<ParentSet> result(parents.size());
  std::vector<int64_t> left(parents.size());
  for (size_t k = 0; k < left.size(); ++k) left[k] = static_cast<int64_t>(k);
  while (!left.empty()) {
    // There is one: the given graph itself shows that directions can be chosen.
    int64_t last = -1;
    for (const int64_t column : left) {
      if (last >= 0 && explained[column] <= explained[last] + kEqualExplained) continue;
      if (graph.may_be_last(column)) last = column;
    }
    std::erase(left, last);
    std::vector<int64_t> causes = graph.take(last);
    const double variance = noise_of(covariance, last, regress(covariance, last, causes).variance);
    const double price = cost.of(variance, causes.size());
    result[static_cast<size_t>(last)] = {std::move(causes), variance, price};
  }
  return result;
}

}  // namespace nsimplex::causal
