#include "causal/graphs/baselines.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "causal/graphs/sortability.h"
#include "causal/structure/order_search.h"
#include "causal/structure/regression.h"

namespace nsimplex::causal {
namespace {

// Numbers that differ by rounding alone, as variances of standardised columns, are equal.
constexpr double kEqual = 1e-9;

Order rising(const Vector& numbers) {
  const double step = kEqual * std::max(numbers.cwiseAbs().maxCoeff(), 1e-300);
  const auto rounded = [&](int64_t column) { return std::round(numbers(column) / step); };
  Order order(static_cast<size_t>(numbers.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const double left = rounded(a), right = rounded(b);
    return left != right ? left < right : a < b;
  });
  return order;
}

// The regressions of an order; an edge scores what its column's cost rises without it.
Structure regressions(const Covariance& covariance, const OrderedGraph& graph,
                      const GaussianCost& cost, const char* name) {
  const int64_t features = covariance.matrix.rows();
  Structure result{Matrix::Zero(features, features), Matrix::Zero(features, features), name};
  for (int64_t column = 0; column < features; ++column) {
    const ParentSet& set = graph.parents[static_cast<size_t>(column)];
    const Regression fit = regress(covariance.matrix, column, set.parents);
    for (size_t k = 0; k < set.parents.size(); ++k) {
      const auto at = static_cast<int64_t>(k);
      const double variance = set.variance + fit.increase[at];
      const double without =
          cost.of(noise_of(covariance.matrix, column, variance), set.parents.size() - 1);
      result.weights(set.parents[k], column) = fit.coefficients[at];
      result.scores(set.parents[k], column) = std::max(without - set.cost, 0.0);
    }
  }
  return result;
}

}  // namespace

std::vector<Baseline> baselines(TableView table) {
  const Eigen::Index features = table.cols();
  const Matrix none = Matrix::Zero(features, features);
  std::vector<Baseline> all{{"empty", {none, none, "empty"}}};
  const Covariance covariance = covariance_of(table);
  const AllowedEdges edges({}, features);
  const GaussianCost cost{EdgePrices(table.rows(), features)};
  ParentSearch search(covariance, edges, cost);
  const auto add = [&](const char* name, const Vector& numbers) {
    const OrderedGraph graph = graph_of_order(search, rising(numbers));
    all.push_back({name, regressions(covariance, graph, cost, name)});
  };
  add("variance_sort", column_variances(table));
  add("r2_sort", column_r2(table));
  return all;
}

}  // namespace nsimplex::causal
