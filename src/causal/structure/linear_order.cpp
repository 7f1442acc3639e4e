// Learns a linear causal graph by orders, scores its edges, and computes baselines of orders.

#include "causal/structure/linear_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "causal/graph/acyclic.h"
#include "causal/graph/graph_metrics.h"
#include "causal/structure/mixed_costs.h"
#include "causal/structure/order_search.h"
#include "causal/structure/parent_search.h"
#include "causal/structure/row_statistics.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

Matrix shares(const ParentCosts& costs, const AllowedEdges& edges) {
  const int64_t features = costs.features();
  Matrix result = costs.alone();
  for (int64_t i = 0; i < features; ++i) {
    for (int64_t j = 0; j < features; ++j) {
      if (!edges.allowed(i, j)) result(i, j) = 0;
    }
  }
  for (int64_t j = 0; j < features; ++j) {
    const double all = result.col(j).sum();
    if (all > 0) result.col(j) *= costs.price(j) / all;
  }
  return result;
}

// What one more column would lower a column's cost by.
double gain_of(const ParentCosts& costs, const ParentSet& set, int64_t column, int64_t more) {
  std::vector<int64_t> parents = set.parents;
  parents.insert(std::ranges::upper_bound(parents, more), more);
  return set.cost - costs.of(column, std::move(parents)).cost;
}

}  // namespace

Matrix order_scores(const ParentCosts& costs, const AllowedEdges& edges,
                    const std::vector<ParentSet>& parents) {
  const int64_t features = costs.features();
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

  Matrix scores = shares(costs, edges);
  for (int64_t effect = 0; effect < features; ++effect) {
    const ParentSet& set = set_of(effect);
    Vector without;
    costs.of(effect, set.parents, &without);
    for (size_t k = 0; k < set.parents.size(); ++k) {
      const int64_t cause = set.parents[k];
      const double gain = without[static_cast<int64_t>(k)] - set.cost;
      double turned = 0, preference = 1;
      if (may_turn(cause, effect)) {
        turned = gain_of(costs, set_of(cause), cause, effect);
        preference = 1 / (1 + std::exp((turned - gain) / 2));
      }
      scores(cause, effect) += preference * std::max(gain, 0.0);
      scores(effect, cause) += (1 - preference) * std::max(turned, 0.0);
    }
  }
  return scores;
}

namespace {

// Number of random orders to start from. With more than a hundred columns each costs seconds, and
// more than one improves almost nothing.
constexpr int kRandomStarts = 4;
constexpr int64_t kManyColumns = 500;

// The noise that all columns share, from the parents that each would have by itself.
double shared_variance(const OrderedGraph& graph, const Covariances& covariances) {
  double sum = 0;
  for (size_t column = 0; column < graph.parents.size(); ++column) {
    const ParentSet& each = graph.parents[column];
    const auto observations =
        static_cast<double>(covariances.observations(static_cast<int64_t>(column)));
    const double free = observations - static_cast<double>(each.parents.size()) - 1;
    sum += each.variance * observations / std::max(free, 1.0);
  }
  return sum / static_cast<double>(graph.parents.size());
}

// Builds an order column by column. `choose` takes the next one among those that may come.
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

// Sorts columns by how much the others explain, the least first.
Order explained_order(const Vector& explained, const Precedence& precedence) {
  return order_by(precedence, [&](auto first, auto last) {
    return std::min_element(first, last,
                            [&](int64_t a, int64_t b) { return explained[a] < explained[b]; });
  });
}

// The best of the starts that do not depend on units, unless what was found is better.
OrderedGraph search_further(ParentSearch& search, const Precedence& precedence,
                            const Vector& explained, const CausalFitOptions& options, int starts,
                            std::optional<OrderedGraph> found) {
  const GoOn go_on = going(options);
  const auto improved = [&](const Order& order) {
    return improve_order(search, precedence, order, go_on);
  };
  if (found && !go_on()) return std::move(*found);
  OrderedGraph best = improved(explained_order(explained, precedence));
  RandomStream random(static_cast<uint64_t>(options.seed));
  for (int start = 0; start < starts && go_on(); ++start) {
    OrderedGraph other = improved(random_order(precedence, random));
    if (is_less(other.cost, best.cost)) best = std::move(other);
  }
  if (found && is_less(found->cost, best.cost)) return std::move(*found);
  return best;
}

Structure structure_of(const OrderedGraph& graph, const ParentCosts& costs,
                       const AllowedEdges& edges, const char* model) {
  const int64_t features = costs.features();
  Structure result{Matrix::Zero(features, features), order_scores(costs, edges, graph.parents),
                   model};
  for (int64_t column = 0; column < features; ++column) {
    const std::vector<int64_t>& parents = graph.parents[static_cast<size_t>(column)].parents;
    result.weights.col(column)(parents) = costs.coefficients(column, parents);
  }
  return result;
}

class OrderFit {
 public:
  OrderFit(const Covariances& covariances, const CausalFitOptions& options)
      : options_(options),
        covariances_(covariances),
        start_(covariances.start()),
        edges_(options.constraints, start_.matrix.rows()),
        precedence_(options.constraints, start_.matrix.rows()),
        costs_(covariances_),
        free_(costs_, edges_) {}

  Structure fit() {
    const Order order = shared_variance_order(start_, free_, precedence_, going(options_));
    const double shared = shared_variance(graph_of_order(free_, order), covariances_);
    const GaussianCosts shared_costs = costs_.with_shared(shared);
    ParentSearch equal(shared_costs, edges_);
    const OrderedGraph one = few_rows(start_) && improvable()
                                 ? improve_order(equal, precedence_, order, going(options_))
                                 : graph_of_order(equal, order);
    OrderedGraph many = improve_order(free_, precedence_, order, going(options_));
    if (equal_bic(one) <= free_bic(many)) {
      return structure_of(one, shared_costs, edges_, "equal variances");
    }
    const int starts = precedence_.features() <= kManyColumns ? kRandomStarts : 1;
    const Vector explained = explained_parts(start_.matrix);
    many = search_further(free_, precedence_, explained, options_, starts, std::move(many));
    many.parents = equivalent_graph(explained, edges_, costs_, many.parents);
    return structure_of(many, costs_, edges_, "free variances");
  }

 private:
  // Whether the search with one noise variance ends within seconds. It tries longer parent sets
  // than the other search.
  bool improvable() const {
    constexpr int64_t kMostWork = 15'000;
    return precedence_.features() * costs_.prices(0).most() <= kMostWork;
  }

  double equal_bic(const OrderedGraph& graph) const {
    double sum = 0, price = 0, count = 0;
    for (int64_t column = 0; column < precedence_.features(); ++column) {
      const ParentSet& each = graph.parents[static_cast<size_t>(column)];
      const auto observations = static_cast<double>(covariances_.observations(column));
      sum += observations * each.variance;
      count += observations;
      price += costs_.prices(column).of(std::ssize(each.parents));
    }
    return count * std::log(sum / count) + price;
  }

  double free_bic(const OrderedGraph& graph) const {
    const auto more = static_cast<double>(graph.parents.size()) - 1;
    return graph.cost + more * std::log(static_cast<double>(covariances_.all.observations));
  }

  const CausalFitOptions& options_;
  const Covariances& covariances_;
  const Covariance& start_;
  AllowedEdges edges_;
  Precedence precedence_;
  GaussianCosts costs_;
  ParentSearch free_;
};

// Regressions of columns of other kinds have no covariance and take longer: fewer starts.
Structure fit_mixed(TableView table, const CausalFitOptions& options) {
  constexpr int kStarts = 1;
  const MixedCosts costs(table, options);
  const Vector explained = explained_parts(costs.correlations());
  const AllowedEdges edges(options.constraints, table.cols());
  const Precedence precedence(options.constraints, table.cols());
  ParentSearch search(costs, edges);
  OrderedGraph graph = search_further(search, precedence, explained, options, kStarts, {});
  graph.parents = equivalent_graph(explained, edges, costs, graph.parents);
  return structure_of(graph, costs, edges, "mixed");
}

}  // namespace

Structure fit_order(TableView table, const CausalFitOptions& options) {
  if (!options.kinds.empty()) return fit_mixed(table, options);
  RowStatistics statistics(table, options);
  Structure result = OrderFit(statistics.covariances(), options).fit();
  // Noise variances of rows with soft interventions come from the graph, and the graph from them.
  constexpr int kRounds = 2;
  for (int round = 0; round < kRounds && statistics.soft() && going(options)(); ++round) {
    statistics.weigh(result.weights);
    result = OrderFit(statistics.covariances(), options).fit();
  }
  return result;
}

namespace {

// Numbers that differ by rounding only are equal, for example variances of standardised columns.
constexpr double kEqualNumbers = 1e-9;

Order rising(const Vector& numbers) {
  const double step = kEqualNumbers * std::max(numbers.cwiseAbs().maxCoeff(), 1e-300);
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
Structure regressions(const ParentCosts& costs, const OrderedGraph& graph, const char* name) {
  const int64_t features = costs.features();
  Structure result{Matrix::Zero(features, features), Matrix::Zero(features, features), name};
  for (int64_t column = 0; column < features; ++column) {
    const ParentSet& set = graph.parents[static_cast<size_t>(column)];
    Vector without;
    costs.of(column, set.parents, &without);
    result.weights.col(column)(set.parents) = costs.coefficients(column, set.parents);
    result.scores.col(column)(set.parents) = (without.array() - set.cost).max(0.0);
  }
  return result;
}

}  // namespace

std::vector<Baseline> baselines(TableView table) {
  const Eigen::Index features = table.cols();
  const Matrix none = Matrix::Zero(features, features);
  std::vector<Baseline> all{{"empty", {none, none, "empty"}}};
  const Covariances covariances{covariance_of(table)};
  const AllowedEdges edges({}, features);
  const GaussianCosts costs(covariances);
  ParentSearch search(costs, edges);
  const auto add = [&](const char* name, const Vector& numbers) {
    const OrderedGraph graph = graph_of_order(search, rising(numbers));
    all.push_back({name, regressions(costs, graph, name)});
  };
  add("variance_sort", column_variances(table));
  add("r2_sort", column_r2(table));
  return all;
}

}  // namespace nsimplex::causal
