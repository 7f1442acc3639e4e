// Declares metrics of binary predictions and of scores.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

// Metrics for binary predictions and scores against true labels. Spans of a call have the same
// length.
namespace nsimplex {

/// part / whole, or 0 if whole is 0.
inline double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Counts of right and wrong binary predictions. A metric whose denominator is 0 is 0.
struct BinaryCounts {
  int64_t true_positive = 0, false_positive = 0, false_negative = 0, true_negative = 0;

  void add(bool predicted, bool actual);
  double accuracy() const;
  double precision() const;  ///< TP / (TP + FP)
  double recall() const;     ///< TP / (TP + FN)
  double f1() const;         ///< 2 TP / (2 TP + FP + FN)
};

/// Area under the ROC curve of true against false positive rate: the probability that a positive
/// has a higher score than a negative; ties count half. NaN unless there are both, and if a score
/// is NaN. O(n log n).
double area_under_roc(std::span<const double> scores, std::span<const uint8_t> positive);

/// Area under the curve of precision against recall, as a sum of steps (average precision):
///
///     sum_t (recall(t) - recall(t')) precision(t)
///
/// over the different scores t in descending order, where t' is the one before. Equal scores are
/// one step, so their order does not matter. NaN without positives, and if a score is NaN. O(n log
/// n).
double average_precision(std::span<const double> scores, std::span<const uint8_t> positive);

/// Ranks of the values in ascending order, from 1; equal values share the mean of their ranks. If a
/// value is NaN there is no order, and every rank is NaN. O(n log n).
std::vector<double> ranks(std::span<const double> values);

/// Spearman's correlation, which is Pearson's of the ranks. NaN if one side has only equal values
/// or holds a NaN. Spans have the same length. O(n log n).
double rank_correlation(std::span<const double> left, std::span<const double> right);

}  // namespace nsimplex
