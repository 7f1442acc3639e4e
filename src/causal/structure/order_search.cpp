#include "causal/structure/order_search.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <limits>

#include "causal/structure/parent_search.h"

namespace nsimplex::causal {

Precedence::Precedence(const EdgeConstraints& constraints, int64_t features)
    : features_(features), before_(static_cast<size_t>(features * features), 0) {
  for (const CausalEdge& edge : constraints.required) {
    before_[static_cast<size_t>(edge.cause * features + edge.effect)] = 1;
  }
  const std::vector<int64_t>& tiers = constraints.tiers;
  for (size_t first = 0; first < tiers.size(); ++first) {
    for (size_t second = 0; second < tiers.size(); ++second) {
      if (tiers[first] < tiers[second]) before_[first * tiers.size() + second] = 1;
    }
  }
}

OpenColumns::OpenColumns(const Precedence& precedence)
    : precedence_(precedence), waits_for_(static_cast<size_t>(precedence.features()), 0) {
  for (int64_t column = 0; column < precedence.features(); ++column) {
    for (int64_t first = 0; first < precedence.features(); ++first) {
      if (precedence.before(first, column)) ++waits_for_[static_cast<size_t>(column)];
    }
  }
}

void OpenColumns::place(int64_t column) {
  waits_for_[static_cast<size_t>(column)] = -1;  // never open again
  for (int64_t second = 0; second < precedence_.features(); ++second) {
    if (precedence_.before(column, second)) --waits_for_[static_cast<size_t>(second)];
  }
}

namespace {

// Below this part of its variance, what is left of a column is rounding.
constexpr double kNothingNew = 1e-12;
// Variances that differ by less than this part are equal but for rounding, as those of all
// standardised columns: the first then comes first, on every machine.
constexpr double kEqual = 1e-9;

}  // namespace

Order equal_variance_order(const Matrix& covariance, const Precedence& precedence) {
  const int64_t features = covariance.rows();
  // Columns change places so that the rest always is one block at the end: order[k] is the column
  // that stands at k.
  Matrix rest = covariance;
  Order order(static_cast<size_t>(features));
  for (int64_t k = 0; k < features; ++k) order[static_cast<size_t>(k)] = k;
  OpenColumns columns(precedence);
  for (int64_t k = 0; k < features; ++k) {
    int64_t next = -1;
    for (int64_t i = k; i < features; ++i) {
      if (!columns.open(order[static_cast<size_t>(i)])) continue;
      if (next < 0 || rest(i, i) < (1 - kEqual) * rest(next, next)) next = i;
    }
    std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(next)]);
    rest.row(k).swap(rest.row(next));
    rest.col(k).swap(rest.col(next));
    const int64_t placed = order[static_cast<size_t>(k)];
    columns.place(placed);
    if (rest(k, k) <= kNothingNew * covariance(placed, placed)) continue;
    const int64_t left = features - k - 1;
    const Vector column = rest.col(k).tail(left);
    const double variance = rest(k, k);
    for (int64_t i = 0; i < left; ++i) {
      rest.row(k + 1 + i).tail(left).noalias() -= column[i] / variance * column.transpose();
    }
  }
  return order;
}

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

namespace {

constexpr double kCorrelationRidge = 1e-6;
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
  correlations.diagonal().array() += kCorrelationRidge;
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

namespace {

// An order without one of its columns, and what it costs to put that column somewhere.
class Insertion {
 public:
  Insertion(ParentSearch& search, const Order& order)
      : search_(search), place_(order.size()), suffix_(order.size()) {}

  // The cheapest place for `column` between `low` and `high` in `rest`, the order without it.
  // `place` is where it was; it stays there where nothing is cheaper.
  size_t best_place(const Order& rest, int64_t column, size_t low, size_t high, size_t place) {
    constexpr int64_t kFirst = -1, kLast = std::numeric_limits<int64_t>::max();
    for (size_t k = 0; k < rest.size(); ++k) {
      place_[static_cast<size_t>(rest[k])] = static_cast<int64_t>(k);
    }
    int64_t& where = place_[static_cast<size_t>(column)];
    // What the columns behind it cost.
    where = kFirst;
    suffix_[rest.size()] = 0;
    for (size_t k = rest.size(); k-- > low;) suffix_[k] = suffix_[k + 1] + cost(rest, k);
    where = kLast;
    totals_.resize(high + 1);
    double prefix = 0;
    for (size_t k = low; k <= high; ++k) {
      totals_[k] = prefix + search_.best(column, place_, static_cast<int64_t>(k)).cost + suffix_[k];
      if (k < high) prefix += cost(rest, k);
    }
    size_t best = place;
    for (size_t k = low; k <= high; ++k) {
      if (is_less(totals_[k], totals_[best])) best = k;
    }
    return best;
  }

 private:
  double cost(const Order& rest, size_t k) {
    return search_.best(rest[k], place_, static_cast<int64_t>(k)).cost;
  }

  ParentSearch& search_;
  std::vector<int64_t> place_;
  std::vector<double> suffix_, totals_;
};

// Moves one column to its best place; says whether it moved.
bool improve_column(Insertion& insertion, const Precedence& precedence, Order& order,
                    int64_t column) {
  const auto at = std::find(order.begin(), order.end(), column);
  const auto place = static_cast<size_t>(at - order.begin());
  order.erase(at);
  size_t low = 0, high = order.size();
  for (size_t k = 0; k < order.size(); ++k) {
    if (precedence.before(order[k], column)) low = k + 1;
    if (precedence.before(column, order[k])) high = std::min(high, k);
  }
  const size_t best = insertion.best_place(order, column, low, high, place);
  order.insert(order.begin() + static_cast<int64_t>(best), column);
  return best != place;
}

}  // namespace

bool is_less(double cost, double other) {
  constexpr double kRounding = 1e-10;
  return cost < other - kRounding * (1 + std::abs(other));
}

OrderedGraph graph_of_order(ParentSearch& search, const Order& order) {
  std::vector<int64_t> place(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    place[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
  }
  OrderedGraph result{order, {}, 0};
  for (int64_t column = 0; column < search.features(); ++column) {
    result.parents.push_back(search.best(column, place, place[static_cast<size_t>(column)]));
    result.cost += result.parents.back().cost;
  }
  return result;
}

Order selected_variance_order(ParentSearch& search, const Precedence& precedence,
                              const std::function<void()>& checkpoint) {
  const int64_t features = search.features();
  // A column that is not placed stands behind every end.
  std::vector<int64_t> place(static_cast<size_t>(features), features);
  OpenColumns columns(precedence);
  Order order;
  while (std::ssize(order) < features) {
    if (checkpoint) checkpoint();
    int64_t next = -1;
    double least = 0;
    for (int64_t column = 0; column < features; ++column) {
      if (!columns.open(column)) continue;
      const double variance = search.best(column, place, std::ssize(order)).variance;
      if (next >= 0 && !(variance < least && is_less(variance, least))) continue;
      next = column;
      least = variance;
    }
    place[static_cast<size_t>(next)] = std::ssize(order);
    columns.place(next);
    order.push_back(next);
  }
  return order;
}

OrderedGraph improve_order(ParentSearch& search, const Precedence& precedence, Order order,
                           const std::function<void()>& checkpoint) {
  Insertion insertion(search, order);
  for (bool moved = true; moved;) {
    moved = false;
    // The columns in the order that the sweep starts with, causes first.
    for (const int64_t column : Order(order)) {
      if (checkpoint) checkpoint();
      moved = improve_column(insertion, precedence, order, column) || moved;
    }
  }
  return graph_of_order(search, order);
}

}  // namespace nsimplex::causal
