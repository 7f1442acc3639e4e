// Total effects in linear models by adjustment, and intervals of Student's distribution.

#include "causal/effects/total_effects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "causal/graph/acyclic.h"
#include "causal/structure/parent_search.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The number that |t| exceeds with the probability 1 - level.
double student_limit(double free, double level) {
  const double ratio = f_test_ratio(free, 1, 1 - level);
  return std::sqrt(free * (1 - ratio) / ratio);
}

// The probability of a larger |t|.
double student_tails(double free, double t) {
  if (std::isinf(t)) return 0;
  return f_test_level(free, 1, free / (free + t * t));
}

// The probability that an estimated number is at most x.
double probability_below(const Estimate& estimate, double x) {
  if (estimate.error == 0) return x >= estimate.value ? 1 : 0;
  if (std::isinf(estimate.error)) return 0.5;
  const double t = (x - estimate.value) / estimate.error;
  const double tail = student_tails(estimate.free, t) / 2;
  return t < 0 ? tail : 1 - tail;
}

// The columns that paths from a column lead to, itself included.
std::vector<char> reached_from(const AdjacencyLists& next, int64_t column) {
  std::vector<char> reached(next.size(), 0);
  std::vector<int64_t> open{column};
  reached[static_cast<size_t>(column)] = 1;
  while (!open.empty()) {
    const int64_t at = open.back();
    open.pop_back();
    for (const int64_t other : next[static_cast<size_t>(at)]) {
      if (std::exchange(reached[static_cast<size_t>(other)], 1) == 0) open.push_back(other);
    }
  }
  return reached;
}

std::vector<int64_t> optimal_adjustment(const Matrix& graph, int64_t cause, int64_t effect) {
  const AdjacencyLists effects = effects_of(graph), causes = causes_of(graph);
  const std::vector<char> after = reached_from(effects, cause),
                          before = reached_from(causes, effect);
  std::vector<char> candidates(after.size(), 0), excluded(after.size(), 0);
  excluded[static_cast<size_t>(cause)] = 1;
  for (size_t column = 0; column < after.size(); ++column) {
    const bool between = after[column] != 0 && before[column] != 0;
    if (!between || column == static_cast<size_t>(cause)) continue;
    for (const int64_t own : causes[column]) candidates[static_cast<size_t>(own)] = 1;
    const std::vector<char> later = reached_from(effects, static_cast<int64_t>(column));
    for (size_t other = 0; other < later.size(); ++other) excluded[other] |= later[other];
  }
  std::vector<int64_t> found;
  for (size_t column = 0; column < candidates.size(); ++column) {
    if (candidates[column] != 0 && excluded[column] == 0) {
      found.push_back(static_cast<int64_t>(column));
    }
  }
  return found;
}

}  // namespace

std::pair<double, double> interval_of(const Estimate& estimate, double level) {
  if (estimate.error == 0) return {estimate.value, estimate.value};
  if (std::isinf(estimate.error)) return {-kInfinite, kInfinite};
  const double half = student_limit(estimate.free, level) * estimate.error;
  return {estimate.value - half, estimate.value + half};
}

std::pair<double, double> interval_of(std::span<const Estimate> estimates, double level) {
  double least = kInfinite, most = -kInfinite;
  for (const Estimate& each : estimates) {
    const auto [low, high] = interval_of(each, level);
    least = std::min(least, low);
    most = std::max(most, high);
  }
  if (estimates.size() == 1 || !(most - least < kInfinite)) return {least, most};
  // An end of the mixture lies between the ends of its parts.
  const auto quantile = [&](double share) {
    double low = least, high = most;
    for (int step = 0; step < 100 && low < high; ++step) {
      const double middle = low + (high - low) / 2;
      double below = 0;
      for (const Estimate& each : estimates) below += probability_below(each, middle);
      (below < share * static_cast<double>(estimates.size()) ? low : high) = middle;
      if (middle == low && middle == high) break;
    }
    // Halves of a distance to a number that is known never get there.
    for (const Estimate& each : estimates) {
      if (each.error == 0 && std::abs(high - each.value) <= 1e-12 * (most - least)) {
        return each.value;
      }
    }
    return high;
  };
  return {quantile(0.5 - level / 2), quantile(0.5 + level / 2)};
}

Estimate coefficient_of(const Covariance& covariance, int64_t column,
                        std::span<const int64_t> causes, int64_t cause) {
  const double free =
      static_cast<double>(covariance.observations) - 1 - static_cast<double>(causes.size());
  if (free < 1) {
    throw InputError(std::string("table: expected at least ")
                         .append(std::to_string(causes.size() + 2))
                         .append(" rows for a regression on ")
                         .append(std::to_string(causes.size()))
                         .append(" columns, got ")
                         .append(std::to_string(covariance.observations)));
  }
  const Regression found = regress(covariance.matrix, column, causes);
  const auto at = std::ranges::find(causes, cause) - causes.begin();
  const double value = found.coefficients[at];
  if (!(found.increase[at] > 0)) return {value, kInfinite, free};
  const double variance = noise_of(covariance.matrix, column, found.variance);
  return {value, std::abs(value) * std::sqrt(variance / (free * found.increase[at])), free};
}

double p_value_of(const Estimate& estimate) {
  if (std::isinf(estimate.error)) return 1;
  return student_tails(estimate.free, estimate.value / estimate.error);
}

TotalEffect total_effect(const Covariance& covariance, const Matrix& graph, int64_t cause,
                         int64_t effect) {
  TotalEffect found;
  found.path = reached_from(effects_of(graph), cause)[static_cast<size_t>(effect)] != 0;
  if (!found.path) return found;
  found.adjustment = optimal_adjustment(graph, cause, effect);
  std::vector<int64_t> columns = found.adjustment;
  columns.push_back(cause);
  found.estimate = coefficient_of(covariance, effect, columns, cause);
  return found;
}

}  // namespace nsimplex::causal
