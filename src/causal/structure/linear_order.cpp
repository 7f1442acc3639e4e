#include "causal/structure/linear_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "causal/graph/acyclic.h"
#include "causal/graph/graph_metrics.h"
#include "causal/structure/order_search.h"
#include "causal/structure/parent_search.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

// A correlation of 1 says no more than this one.
constexpr double kLeastIndependent = 1e-10;

Matrix shares(const Matrix& covariance, const AllowedEdges& edges, double price) {
  const int64_t features = covariance.rows();
  Matrix result = Matrix::Zero(features, features);
  for (int64_t i = 0; i < features; ++i) {
    for (int64_t j = 0; j < features; ++j) {
      if (!edges.allowed(i, j)) continue;
      const double squared =
          covariance(i, j) * covariance(i, j) / (covariance(i, i) * covariance(j, j));
      result(i, j) = -std::log(std::max(1 - squared, kLeastIndependent));
    }
  }
  for (int64_t j = 0; j < features; ++j) {
    const double all = result.col(j).sum();
    if (all > 0) result.col(j) *= price / all;
  }
  return result;
}

// What one more column would lower a column's cost by.
double gain_of(const Covariance& covariance, const GaussianCost& cost, const ParentSet& set,
               int64_t column, int64_t more) {
  std::vector<int64_t> parents = set.parents;
  parents.push_back(more);
  const double variance = regress(covariance.matrix, column, parents).variance;
  return set.cost - cost.of(noise_of(covariance.matrix, column, variance), parents.size());
}

}  // namespace

Matrix order_scores(const Covariance& covariance, const AllowedEdges& edges,
                    const GaussianCost& cost, const std::vector<ParentSet>& parents) {
  const int64_t features = covariance.matrix.rows();
  const auto set_of = [&](int64_t column) -> const ParentSet& {
    return parents[static_cast<size_t>(column)];
  };
  Paths paths(features);
  std::vector<std::vector<int64_t>> effects(parents.size());
  for (int64_t effect = 0; effect < features; ++effect) {
    for (const int64_t cause : set_of(effect).parents) {
      paths.add({cause, effect});
      effects[static_cast<size_t>(cause)].push_back(effect);
    }
  }
  const auto may_turn = [&](int64_t cause, int64_t effect) {
    if (!edges.allowed(effect, cause) || edges.required(cause, effect)) return false;
    const std::vector<int64_t>& others = effects[static_cast<size_t>(cause)];
    return std::none_of(others.begin(), others.end(), [&](int64_t other) {
      return other != effect && paths.leads(other, effect);
    });
  };

  Matrix scores = shares(covariance.matrix, edges, cost.prices.next(0));
  for (int64_t effect = 0; effect < features; ++effect) {
    const ParentSet& set = set_of(effect);
    const Regression fit = regress(covariance.matrix, effect, set.parents);
    for (size_t k = 0; k < set.parents.size(); ++k) {
      const int64_t cause = set.parents[k];
      const double without = fit.variance + fit.increase[static_cast<int64_t>(k)];
      const double gain =
          cost.of(noise_of(covariance.matrix, effect, without), set.parents.size() - 1) - set.cost;
      double turned = 0, preference = 1;
      if (may_turn(cause, effect)) {
        turned = gain_of(covariance, cost, set_of(cause), cause, effect);
        preference = 1 / (1 + std::exp((turned - gain) / 2));
      }
      scores(cause, effect) += preference * std::max(gain, 0.0);
      scores(effect, cause) += (1 - preference) * std::max(turned, 0.0);
    }
  }
  return scores;
}

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
    if (is_less(found.cost, best.cost)) return found;
    return best;
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
