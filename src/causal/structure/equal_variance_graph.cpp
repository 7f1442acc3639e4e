#include "causal/structure/equal_variance_graph.h"

#include "causal/structure/equal_variance_order.h"
#include "causal/structure/order_search.h"
#include "causal/structure/regression.h"

namespace nsimplex::causal {

Matrix equal_variance_graph(const Covariance& covariance, const EdgeConstraints& constraints) {
  const int64_t features = covariance.matrix.rows();
  const AllowedEdges allowed(constraints, features);
  ParentSearch search(covariance, allowed, {EdgePrices(covariance.observations, features)});
  const OrderedGraph graph = graph_of_order(
      search, equal_variance_order(covariance.matrix, Precedence(constraints, features)));
  Matrix weights = Matrix::Zero(features, features);
  for (int64_t effect = 0; effect < features; ++effect) {
    const std::vector<int64_t>& parents = graph.parents[static_cast<size_t>(effect)].parents;
    weights(parents, effect) = regress(covariance.matrix, effect, parents).coefficients;
  }
  return weights;
}

}  // namespace nsimplex::causal
