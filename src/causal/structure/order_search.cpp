// Searches for causal orders of a linear model and improves them column by column.

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
  waits_for_[static_cast<size_t>(column)] = -1;  // closed from now on
  for (int64_t second = 0; second < precedence_.features(); ++second) {
    if (precedence_.before(column, second)) --waits_for_[static_cast<size_t>(second)];
  }
}

namespace {

// Variances whose relative difference is smaller are equal up to rounding, as for standardised
// columns. Then the first one is chosen, on every machine.
constexpr double kEqual = 1e-9;

}  // namespace

Order equal_variance_order(const Matrix& covariance, const Precedence& precedence) {
  const int64_t features = covariance.rows();
  Order order(static_cast<size_t>(features));
  for (int64_t k = 0; k < features; ++k) order[static_cast<size_t>(k)] = k;
  OpenColumns columns(precedence);
  ConditionedColumns given(covariance);
  for (size_t k = 0; k < order.size(); ++k) {
    size_t next = order.size();
    for (size_t i = k; i < order.size(); ++i) {
      if (!columns.open(order[i])) continue;
      if (next == order.size() ||
          given.variance(order[i]) < (1 - kEqual) * given.variance(order[next])) {
        next = i;
      }
    }
    std::swap(order[k], order[next]);
    columns.place(order[k]);
    given.condition_on(order[k]);
  }
  return order;
}

namespace {

constexpr double kCorrelationRidge = 1e-6;
// R^2 that differ by less are equal up to rounding.
constexpr double kEqualExplained = 1e-9;

using Flags = Eigen::Matrix<bool, Eigen::Dynamic, Eigen::Dynamic>;

// A graph in which some edges have a direction and others may point either way. Its last columns
// are removed one by one.
class PartlyDirected {
 public:
  PartlyDirected(const AllowedEdges& edges, const ParentCosts& costs,
                 const std::vector<ParentSet>& parents)
      : adjacent_(Flags::Constant(edges.features(), edges.features(), false)),
        directed_(adjacent_),
        neighbours_(parents.size()) {
    for (int64_t effect = 0; effect < edges.features(); ++effect) {
      for (const int64_t cause : parents[static_cast<size_t>(effect)].parents) {
        adjacent_(cause, effect) = adjacent_(effect, cause) = true;
        neighbours(cause).push_back(effect);
        neighbours(effect).push_back(cause);
        directed_(cause, effect) = edges.required(cause, effect) || !edges.allowed(effect, cause) ||
                                   costs.tells(cause, effect);
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

  // Removes a column and returns its remaining neighbours, now its parents, ascending.
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

namespace {

using LowerBlock = Eigen::Ref<Matrix, 0, Eigen::OuterStride<>>;

// Replaces a lower triangular matrix by its inverse. A third of the work of solving for the
// identity.
void invert_lower(LowerBlock lower) {
  constexpr Eigen::Index kSmall = 64;
  const Eigen::Index size = lower.rows(), half = size / 2;
  if (size <= kSmall) {
    Matrix inverse = Matrix::Identity(size, size);
    lower.triangularView<Eigen::Lower>().solveInPlace(inverse);
    lower.triangularView<Eigen::Lower>() = inverse;
    return;
  }
  invert_lower(lower.topLeftCorner(half, half));
  invert_lower(lower.bottomRightCorner(size - half, size - half));
  const Matrix below = lower.bottomLeftCorner(size - half, half) *
                       lower.topLeftCorner(half, half).triangularView<Eigen::Lower>();
  lower.bottomLeftCorner(size - half, half).noalias() =
      -(lower.bottomRightCorner(size - half, size - half).triangularView<Eigen::Lower>() * below);
}

}  // namespace

Vector explained_parts(const Matrix& covariance) {
  const Vector scale = covariance.diagonal().cwiseSqrt().cwiseInverse();
  Matrix correlations = scale.asDiagonal() * covariance * scale.asDiagonal();
  correlations.diagonal().array() += kCorrelationRidge;
  // With the Cholesky factor L, the diagonal of the inverse is that of L^-T L^-1.
  const Eigen::LLT<Eigen::Ref<Matrix>> in_place(correlations);
  correlations.triangularView<Eigen::StrictlyUpper>().setZero();
  invert_lower(correlations);
  return 1 - correlations.colwise().squaredNorm().transpose().array().inverse();
}

std::vector<ParentSet> equivalent_graph(const Vector& explained, const AllowedEdges& edges,
                                        const ParentCosts& costs,
                                        const std::vector<ParentSet>& parents) {
  PartlyDirected graph(edges, costs, parents);
  std::vector<ParentSet> result(parents.size());
  std::vector<int64_t> left(parents.size());
  for (size_t k = 0; k < left.size(); ++k) left[k] = static_cast<int64_t>(k);
  while (!left.empty()) {
    // Such a column exists, because the given graph is one choice of directions.
    int64_t last = -1;
    for (const int64_t column : left) {
      if (last >= 0 && explained[column] <= explained[last] + kEqualExplained) continue;
      if (graph.may_be_last(column)) last = column;
    }
    std::erase(left, last);
    result[static_cast<size_t>(last)] = costs.of(last, graph.take(last));
  }
  return result;
}

namespace {

// An order, the cost of each column in it, and moves of single columns. A column has the same cost
// after a move unless it looks at the column that moved, and most do not.
class MovableOrder {
 public:
  MovableOrder(ParentSearch& search, Order order)
      : search_(search),
        order_(std::move(order)),
        place_(order_.size()),
        cost_(order_.size()),
        suffix_(order_.size()),
        looked_at_(std::ssize(order_)) {
    place_all(order_);
    for (size_t k = 0; k < order_.size(); ++k) renew(order_[k], static_cast<int64_t>(k));
  }

  const Order& order() const { return order_; }

  // Moves one column to the place where the whole order costs least, within `precedence`. It stays
  // if no other place is cheaper. Returns whether it moved.
  bool improve(const Precedence& precedence, int64_t column) {
    const auto place = static_cast<size_t>(std::ranges::find(order_, column) - order_.begin());
    order_.erase(order_.begin() + static_cast<int64_t>(place));
    size_t low = 0, high = order_.size();
    for (size_t k = 0; k < order_.size(); ++k) {
      if (precedence.before(order_[k], column)) low = k + 1;
      if (precedence.before(column, order_[k])) high = std::min(high, k);
    }
    const size_t best = best_place(column, low, high, place);
    order_.insert(order_.begin() + static_cast<int64_t>(best), column);
    if (best == place) return false;
    place_all(order_);
    const auto [first, last] = std::minmax(best, place);
    for (size_t k = first; k <= last; ++k) {
      if (order_[k] == column || looked_at_.at(order_[k], column)) {
        renew(order_[k], static_cast<int64_t>(k));
      }
    }
    return true;
  }

 private:
  // The cheapest place for `column` between `low` and `high` in the order, which is without it.
  // `place` was its place.
  size_t best_place(int64_t column, size_t low, size_t high, size_t place) {
    constexpr int64_t kFirst = -1, kLast = std::numeric_limits<int64_t>::max();
    place_all(order_);
    int64_t& where = place_[static_cast<size_t>(column)];
    // The costs of the columns behind it.
    where = kFirst;
    suffix_.back() = 0;
    for (size_t k = order_.size(); k-- > low;) {
      suffix_[k] = suffix_[k + 1] + cost(k, column, /*known=*/k >= place);
    }
    where = kLast;
    totals_.resize(high + 1);
    double prefix = 0, own = 0;
    for (size_t k = low; k <= high; ++k) {
      if (k == low || looked_at_.at(column, order_[k - 1])) {
        own = looked_at_.best(search_, column, place_, static_cast<int64_t>(k)).cost;
      }
      totals_[k] = prefix + own + suffix_[k];
      if (k < high) prefix += cost(k, column, /*known=*/k < place);
    }
    size_t best = place;
    for (size_t k = low; k <= high; ++k) {
      if (is_less(totals_[k], totals_[best])) best = k;
    }
    if (best == place) renew(column, static_cast<int64_t>(place));
    return best;
  }

  // The cost of the column at k while `column` is first or last. `known`: that is where it was.
  double cost(size_t k, int64_t column, bool known) {
    const int64_t own = order_[k];
    if (known || !looked_at_.at(own, column)) return cost_[static_cast<size_t>(own)];
    return search_.best(own, place_, static_cast<int64_t>(k)).cost;
  }

  void place_all(const Order& order) {
    for (size_t k = 0; k < order.size(); ++k) {
      place_[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
    }
  }

  void renew(int64_t column, int64_t end) {
    cost_[static_cast<size_t>(column)] = looked_at_.best(search_, column, place_, end).cost;
  }

  ParentSearch& search_;
  Order order_;
  std::vector<int64_t> place_;
  std::vector<double> cost_;
  std::vector<double> suffix_, totals_;
  LookedAt looked_at_;
};

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
                              const GoOn& go_on) {
  const int64_t features = search.features();
  // A column that is not placed yet is behind every end.
  std::vector<int64_t> place(static_cast<size_t>(features), features);
  OpenColumns columns(precedence);
  LookedAt looked_at(features);
  std::vector<double> variances(static_cast<size_t>(features), -1);
  Order order;
  bool searches = true;
  while (std::ssize(order) < features) {
    searches = searches && (!go_on || go_on());
    int64_t next = -1;
    double least = 0;
    for (int64_t column = 0; column < features; ++column) {
      if (!columns.open(column)) continue;
      if (!searches) {
        next = column;
        break;
      }
      double& variance = variances[static_cast<size_t>(column)];
      if (variance < 0 || looked_at.at(column, order.back())) {
        variance = looked_at.best(search, column, place, std::ssize(order)).variance;
      }
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

GoOn going(const CausalFitOptions& options) {
  return [&options] {
    if (options.checkpoint) options.checkpoint();
    return !options.stop || !options.stop();
  };
}

bool few_rows(const Covariance& covariance) {
  return covariance.observations < 2 * covariance.matrix.rows();
}

Order shared_variance_order(const Covariance& covariance, ParentSearch& search,
                            const Precedence& precedence, const GoOn& go_on) {
  return few_rows(covariance) ? selected_variance_order(search, precedence, go_on)
                              : equal_variance_order(covariance.matrix, precedence);
}

Matrix shared_variance_graph(const Covariance& covariance, const EdgeConstraints& constraints,
                             const GoOn& go_on) {
  const int64_t features = covariance.matrix.rows();
  const AllowedEdges allowed(constraints, features);
  const Covariances covariances{covariance};
  const GaussianCosts costs(covariances);
  ParentSearch search(costs, allowed);
  const Precedence precedence(constraints, features);
  const OrderedGraph graph =
      graph_of_order(search, shared_variance_order(covariance, search, precedence, go_on));
  Matrix weights = Matrix::Zero(features, features);
  for (int64_t effect = 0; effect < features; ++effect) {
    const std::vector<int64_t>& parents = graph.parents[static_cast<size_t>(effect)].parents;
    weights(parents, effect) = regress(covariance.matrix, effect, parents).coefficients;
  }
  return weights;
}

OrderedGraph improve_order(ParentSearch& search, const Precedence& precedence, Order order,
                           const GoOn& go_on) {
  MovableOrder movable(search, std::move(order));
  for (bool moved = true; moved;) {
    moved = false;
    // The columns in the order in which the sweep starts, causes first.
    for (const int64_t column : Order(movable.order())) {
      if (go_on && !go_on()) return graph_of_order(search, movable.order());
      moved = movable.improve(precedence, column) || moved;
    }
  }
  return graph_of_order(search, movable.order());
}

}  // namespace nsimplex::causal
