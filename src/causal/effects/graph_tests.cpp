// Tests of the edges of a graph and of the independences that it implies, by partial correlations.

#include "causal/effects/graph_tests.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "causal/effects/total_effects.h"
#include "causal/graph/acyclic.h"
#include "causal/structure/parent_search.h"

namespace nsimplex::causal {
namespace {

TestedPair tested(const Covariance& covariance, int64_t first, int64_t second,
                  std::vector<int64_t> given) {
  std::vector<int64_t> columns = given;
  columns.push_back(first);
  const Estimate found = coefficient_of(covariance, second, columns, first);
  const double t = found.value / found.error;
  const double correlation = std::isinf(found.error) ? 0 : t / std::sqrt(found.free + t * t);
  return {first, second, std::move(given), correlation, p_value_of(found)};
}

}  // namespace

TestedGraph tested_graph(const Covariance& covariance, const Matrix& graph) {
  TestedGraph result{{}, {}, 0};
  const std::vector<int64_t> order = causal_order(graph).value_or(std::vector<int64_t>());
  const AdjacencyLists causes = causes_of(graph);
  const auto rows = static_cast<double>(covariance.observations);
  for (size_t place = 0; place < order.size(); ++place) {
    const int64_t column = order[place];
    const std::vector<int64_t>& own = causes[static_cast<size_t>(column)];
    const double variance = regress(covariance.matrix, column, own).variance;
    result.bic += rows * std::log(noise_of(covariance.matrix, column, variance)) +
                  std::log(rows) * static_cast<double>(own.size());
    for (size_t before = 0; before < place; ++before) {
      const int64_t other = order[before];
      std::vector<int64_t> given = own;
      const bool edge = std::erase(given, other) > 0;
      auto& tests = edge ? result.edges : result.independences;
      tests.push_back(tested(covariance, other, column, std::move(given)));
    }
  }
  return result;
}

std::vector<double> holm_adjusted(std::span<const TestedPair> tests) {
  std::vector<size_t> order(tests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t test) { return std::pair(tests[test].p_value, test); });
  std::vector<double> adjusted(tests.size());
  double largest = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    const auto left = static_cast<double>(order.size() - place);
    largest = std::max(largest, std::min(left * tests[order[place]].p_value, 1.0));
    adjusted[order[place]] = largest;
  }
  return adjusted;
}

Matrix renamed(const Matrix& graph, std::span<const int64_t> names) {
  Matrix result(graph.rows(), graph.cols());
  for (int64_t i = 0; i < graph.rows(); ++i) {
    for (int64_t j = 0; j < graph.cols(); ++j) {
      result(i, j) = graph(names[static_cast<size_t>(i)], names[static_cast<size_t>(j)]);
    }
  }
  return result;
}

}  // namespace nsimplex::causal
