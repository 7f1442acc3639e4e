#include "causal/structure/order.h"

#include <algorithm>
#include <cmath>

#include "causal/structure/covered_edges.h"
#include "causal/structure/equal_variance_order.h"
#include "causal/structure/order_scores.h"
#include "causal/structure/order_search.h"
#include "causal/structure/regression.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

constexpr int kRandomStarts = 4;

// The noise that all columns share, from the parents that each would have by itself.
double shared_variance(const OrderedGraph& graph, double observations) {
  double sum = 0;
  for (const ParentSet& each : graph.parents) {
    const double free = observations - static_cast<double>(each.parents.size()) - 1;
    sum += each.variance * observations / std::max(free, 1.0);
  }
  return sum / static_cast<double>(graph.parents.size());
}

Order random_order(const Precedence& precedence, RandomStream& random) {
  OpenColumns columns(precedence);
  Order rest(static_cast<size_t>(precedence.features())), order;
  for (size_t k = 0; k < rest.size(); ++k) rest[k] = static_cast<int64_t>(k);
  while (!rest.empty()) {
    const auto behind = std::partition(rest.begin(), rest.end(),
                                       [&](int64_t column) { return columns.open(column); });
    const auto next = rest.begin() + random.below(behind - rest.begin());
    order.push_back(*next);
    columns.place(*next);
    rest.erase(next);
  }
  return order;
}

class OrderFit {
 public:
  OrderFit(TableView table, const CausalFitOptions& options)
      : options_(options),
        covariance_(covariance_of(table)),
        observations_(static_cast<double>(table.rows())),
        price_(2 * std::log(observations_)),
        edges_(options.constraints, table.cols()),
        precedence_(options.constraints, table.cols()),
        free_(covariance_, edges_, {observations_, price_}) {}

  Structure fit() {
    const Order order = equal_variance_order(covariance_.matrix, precedence_);
    const double shared = shared_variance(graph_of_order(free_, order), observations_);
    const GaussianCost shared_cost{observations_, price_, shared};
    ParentSearch equal(covariance_, edges_, shared_cost);
    const OrderedGraph one = graph_of_order(equal, order);
    OrderedGraph many = improve_order(free_, precedence_, order, options_.checkpoint);
    if (equal_bic(one) <= free_bic(many)) return structure(one, shared_cost, "equal variances");
    start_at_random(many);
    turn_covered_edges(covariance_.matrix, edges_, free_.cost(), many.parents);
    return structure(many, free_.cost(), "free variances");
  }

 private:
  double equal_bic(const OrderedGraph& graph) const {
    double sum = 0;
    for (const ParentSet& each : graph.parents) sum += each.variance;
    const auto features = static_cast<double>(graph.parents.size());
    return observations_ * features * std::log(sum / features) + price_ * graph.edges();
  }

  double free_bic(const OrderedGraph& graph) const {
    const auto more = static_cast<double>(graph.parents.size()) - 1;
    return graph.cost + more * std::log(observations_);
  }

  void start_at_random(OrderedGraph& best) {
    RandomStream random(static_cast<uint64_t>(options_.seed));
    for (int start = 0; start < kRandomStarts; ++start) {
      OrderedGraph other =
          improve_order(free_, precedence_, random_order(precedence_, random), options_.checkpoint);
      if (is_less(other.cost, best.cost)) best = std::move(other);
    }
  }

  Structure structure(const OrderedGraph& graph, const GaussianCost& cost, const char* model) {
    const int64_t features = covariance_.matrix.rows();
    Structure result{Matrix::Zero(features, features),
                     order_scores(covariance_, edges_, cost, graph.parents), model};
    for (int64_t column = 0; column < features; ++column) {
      const std::vector<int64_t>& parents = graph.parents[static_cast<size_t>(column)].parents;
      result.weights.col(column)(parents) =
          regress(covariance_.matrix, column, parents).coefficients;
    }
    return result;
  }

  const CausalFitOptions& options_;
  Covariance covariance_;
  double observations_, price_;
  AllowedEdges edges_;
  Precedence precedence_;
  ParentSearch free_;
};

}  // namespace

Structure fit_order(TableView table, const CausalFitOptions& options) {
  return OrderFit(table, options).fit();
}

}  // namespace nsimplex::causal
