#pragma once

#include <cstdint>
#include <span>
#include <vector>

// Figures of yes and no, and of scores, against what is true. Spans of a call have one length.
namespace nsimplex {

/// A share: part / whole, 0 of nothing.
inline double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// How often a yes or no was right. Each figure whose denominator is 0 is 0.
struct BinaryCounts {
  int64_t true_positive = 0, false_positive = 0, false_negative = 0, true_negative = 0;

  void add(bool predicted, bool actual);
  double accuracy() const;
  double precision() const;  ///< TP / (TP + FP)
  double recall() const;     ///< TP / (TP + FN)
  double f1() const;         ///< 2 TP / (2 TP + FP + FN)
};

/// Area under the curve of true against false positive rate: the chance that a positive has a
/// higher score than a negative, equal ones counting half. NaN unless there are both, and where a
/// score is NaN. O(n log n).
double area_under_roc(std::span<const double> scores, std::span<const uint8_t> positive);

/// Area under the curve of precision against recall, as a sum of steps (average precision):
///
///     sum_t (recall(t) - recall(t')) precision(t)
///
/// over the different scores t, falling, t' the one before; equal scores are one step, so that
/// their order does not matter. NaN without positives, and where a score is NaN. O(n log n).
double average_precision(std::span<const double> scores, std::span<const uint8_t> positive);

/// Places of the values from the least up, counted from 1; equal ones share the mean of theirs. Where a
/// value is NaN there is no order, and every place is NaN. O(n log n).
std::vector<double> ranks(std::span<const double> values);

/// Spearman's correlation: Pearson's of the ranks. NaN where one side has equal values alone, or holds a NaN.
/// Spans have one length. O(n log n).
double rank_correlation(std::span<const double> left, std::span<const double> right);

}  // namespace nsimplex
