// Computes metrics of binary predictions and of scores, such as precision and area under the ROC
// curve.

#include "support/ranking_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace nsimplex {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Calls step(positives, negatives) for the examples of each different score, the highest first.
// Returns false, without a call, if a score is NaN: such scores have no order.
template <class Step>
[[nodiscard]] bool by_falling_score(std::span<const double> scores,
                                    std::span<const uint8_t> positive, Step&& step) {
  if (std::ranges::any_of(scores, [](double score) { return std::isnan(score); })) return false;
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t begin = 0; begin < order.size();) {
    int64_t found[2] = {0, 0};
    size_t end = begin;
    for (; end < order.size() && scores[order[end]] == scores[order[begin]]; ++end) {
      ++found[positive[order[end]] != 0];
    }
    step(found[1], found[0]);
    begin = end;
  }
  return true;
}

}  // namespace

void BinaryCounts::add(bool predicted, bool actual) {
  ++(predicted ? (actual ? true_positive : false_positive)
               : (actual ? false_negative : true_negative));
}

double BinaryCounts::accuracy() const {
  return ratio(true_positive + true_negative,
               true_positive + true_negative + false_positive + false_negative);
}

double BinaryCounts::precision() const {
  return ratio(true_positive, true_positive + false_positive);
}

double BinaryCounts::recall() const { return ratio(true_positive, true_positive + false_negative); }

double BinaryCounts::f1() const {
  return ratio(2 * true_positive, 2 * true_positive + false_positive + false_negative);
}

double area_under_roc(std::span<const double> scores, std::span<const uint8_t> positive) {
  int64_t positives = 0, negatives = 0;
  double above = 0.0;  // pairs of a positive and a negative below it
  const bool ordered =
      by_falling_score(scores, positive, [&](int64_t more_positives, int64_t more_negatives) {
        above += static_cast<double>(more_negatives) *
                 (static_cast<double>(positives) + 0.5 * static_cast<double>(more_positives));
        positives += more_positives;
        negatives += more_negatives;
      });
  if (!ordered || positives == 0 || negatives == 0) return kNone;
  return above / (static_cast<double>(positives) * static_cast<double>(negatives));
}

double average_precision(std::span<const double> scores, std::span<const uint8_t> positive) {
  int64_t positives = 0, seen = 0;
  double area = 0.0;
  const bool ordered =
      by_falling_score(scores, positive, [&](int64_t more_positives, int64_t more_negatives) {
        positives += more_positives;
        seen += more_positives + more_negatives;
        area += static_cast<double>(more_positives) * ratio(positives, seen);
      });
  return !ordered || positives == 0 ? kNone : area / static_cast<double>(positives);
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<double> places(values.size(), std::numeric_limits<double>::quiet_NaN());
  if (std::ranges::any_of(values, [](double value) { return std::isnan(value); })) return places;
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = 0.5 * static_cast<double>(begin + 1 + end);
    for (; begin < end; ++begin) places[order[begin]] = shared;
  }
  return places;
}

double rank_correlation(std::span<const double> left, std::span<const double> right) {
  const std::vector<double> a = ranks(left), b = ranks(right);
  const double middle = 0.5 * static_cast<double>(left.size() + 1);  // of both
  double both = 0, of_a = 0, of_b = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    both += (a[k] - middle) * (b[k] - middle);
    of_a += (a[k] - middle) * (a[k] - middle);
    of_b += (b[k] - middle) * (b[k] - middle);
  }
  return both / std::sqrt(of_a * of_b);
}

}  // namespace nsimplex
