#include "causal/structure/order_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsimplex::causal {
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
