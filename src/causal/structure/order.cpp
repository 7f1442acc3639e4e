#include "causal/structure/order.h"

#include <algorithm>
#include <cmath>

#include "causal/structure/equal_variance_order.h"
#include "causal/structure/equivalent_graph.h"
#include "causal/structure/order_scores.h"
#include "causal/structure/order_search.h"
#include "causal/structure/regression.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

// Random orders to start from. Beyond some hundred columns each costs seconds, and more than one
// improves almost nothing.
constexpr int kRandomStarts = 4;
constexpr int64_t kManyColumns = 500;

// The noise that all columns share, from the parents that each would have by itself.
double shared_variance(const OrderedGraph& graph, double observations) {
  double sum = 0;
  for (const ParentSet& each : graph.parents) {
    const double free = observations - static_cast<double>(each.parents.size()) - 1;
    sum += each.variance * observations / std::max(free, 1.0);
  }
  return sum / static_cast<double>(graph.parents.size());
}

// Columns one after the other; `choose` takes the next out of those that may come.
template <class Choose>
Order order_by(const Precedence& precedence, Choose&& choose) {
  OpenColumns columns(precedence);
  Order rest(static_cast<size_t>(precedence.features())), order;
  for (size_t k = 0; k < rest.size(); ++k) rest[k] = static_cast<int64_t>(k);
  while (!rest.empty()) {
    const auto behind = std::partition(rest.begin(), rest.end(),
                                       [&](int64_t column) { return columns.open(column); });
    const auto next = choose(rest.begin(), behind);
    order.push_back(*next);
    columns.place(*next);
    rest.erase(next);
  }
  return order;
}

Order random_order(const Precedence& precedence, RandomStream& random) {
  return order_by(precedence,
                  [&](auto first, auto last) { return first + random.below(last - first); });
}

// Columns that the others explain less first.
Order explained_order(const Matrix& covariance, const Precedence& precedence) {
  const Vector explained = explained_parts(covariance);
  return order_by(precedence, [&](auto first, auto last) {
    return std::min_element(first, last,
                            [&](int64_t a, int64_t b) { return explained[a] < explained[b]; });
  });
}

class OrderFit {
 public:
  OrderFit(TableView table, const CausalFitOptions& options)
      : options_(options),
        covariance_(covariance_of(table)),
        observations_(static_cast<double>(table.rows())),
        prices_(table.rows(), table.cols()),
        edges_(options.constraints, table.cols()),
        precedence_(options.constraints, table.cols()),
        free_(covariance_, edges_, {prices_}) {}

  Structure fit() {
    const Order order = first_order();
    const double shared = shared_variance(graph_of_order(free_, order), observations_);
    const GaussianCost shared_cost{prices_, shared};
    ParentSearch equal(covariance_, edges_, shared_cost);
    const OrderedGraph one = few_rows() && improvable()
                                 ? improve_order(equal, precedence_, order, options_.checkpoint)
                                 : graph_of_order(equal, order);
    OrderedGraph many = improve_order(free_, precedence_, order, options_.checkpoint);
    if (equal_bic(one) <= free_bic(many)) return structure(one, shared_cost, "equal variances");
    many = search_further(std::move(many));
    many.parents = equivalent_graph(covariance_.matrix, edges_, free_.cost(), many.parents);
    return structure(many, free_.cost(), "free variances");
  }

 private:
  // Given all placed columns, variances are those of few degrees of freedom once the rows are not
  // many more than the columns.
  Order first_order() {
    return few_rows() ? selected_variance_order(free_, precedence_, options_.checkpoint)
                      : equal_variance_order(covariance_.matrix, precedence_);
  }

  // Whether the search under one noise variance, which tries longer parent sets than the other, ends
  // within seconds.
  bool improvable() const {
    constexpr int64_t kMostWork = 15'000;
    return precedence_.features() * prices_.most() <= kMostWork;
  }

  bool few_rows() const { return observations_ < 2 * static_cast<double>(precedence_.features()); }

  double equal_bic(const OrderedGraph& graph) const {
    double sum = 0, price = 0;
    for (const ParentSet& each : graph.parents) {
      sum += each.variance;
      price += prices_.of(std::ssize(each.parents));
    }
    const auto features = static_cast<double>(graph.parents.size());
    return observations_ * features * std::log(sum / features) + price;
  }

  double free_bic(const OrderedGraph& graph) const {
    const auto more = static_cast<double>(graph.parents.size()) - 1;
    return graph.cost + more * std::log(observations_);
  }

  // The best of the starts that do not depend on units, unless what was found is better.
  OrderedGraph search_further(OrderedGraph found) {
    const auto improved = [&](const Order& order) {
      return improve_order(free_, precedence_, order, options_.checkpoint);
    };
    OrderedGraph best = improved(explained_order(covariance_.matrix, precedence_));
    RandomStream random(static_cast<uint64_t>(options_.seed));
    const int starts = precedence_.features() <= kManyColumns ? kRandomStarts : 1;
    for (int start = 0; start < starts; ++start) {
      OrderedGraph other = improved(random_order(precedence_, random));
      if (is_less(other.cost, best.cost)) best = std::move(other);
    }
    return is_less(found.cost, best.cost) ? found : best;
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
  double observations_;
  EdgePrices prices_;
  AllowedEdges edges_;
  Precedence precedence_;
  ParentSearch free_;
};

}  // namespace

Structure fit_order(TableView table, const CausalFitOptions& options) {
  return OrderFit(table, options).fit();
}

}  // namespace nsimplex::causal
