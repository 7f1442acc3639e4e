#pragma once

#include <cstdint>
#include <span>

// Figures of predictions against what is true. Plain C++; spans of a call have one length.
namespace nsimplex::training {

/// How often a yes or no was right. Each figure whose denominator is 0 is 0.
struct BinaryCounts {
  int64_t true_positive = 0, false_positive = 0, false_negative = 0, true_negative = 0;

  void add(bool predicted, bool actual);
  double accuracy() const;
  double precision() const;  ///< TP / (TP + FP)
  double recall() const;     ///< TP / (TP + FN)
  double f1() const;         ///< 2 TP / (2 TP + FP + FN)
};

/// F1 of one of several classes: micro counts all predictions alike and is the accuracy; macro is
/// the mean of each class's F1, over the classes that were predicted or are true. Classes count
/// from 0. NaN without predictions.
struct ClassF1 {
  double micro = 0.0, macro = 0.0;
};
ClassF1 class_f1(std::span<const int64_t> predicted, std::span<const int64_t> actual);

/// Area under the curve of true against false positive rate: the chance that a positive has a
/// higher score than a negative, equal ones counting half. NaN unless there are both. O(n log n).
double area_under_roc(std::span<const double> scores, std::span<const uint8_t> positive);

/// Area under the curve of precision against recall, as a sum of steps (average precision):
///
///     sum_t (recall(t) - recall(t')) precision(t)
///
/// over the different scores t, falling, t' the one before; equal scores are one step, so that
/// their order does not matter. NaN without positives. O(n log n).
double average_precision(std::span<const double> scores, std::span<const uint8_t> positive);

/// Two partitions of the same things, as a number for each thing: equal numbers are one part.
/// Figures are about pairs of things, those together in a part being the positive ones.
///
/// rand_index is the share of pairs that both join or both separate; adjusted_rand_index is
/// (RI - E[RI]) / (1 - E[RI]) with the expectation over random partitions with parts of the same
/// sizes (Hubert and Arabie, "Comparing partitions", 1985). All are 1 where both partitions are
/// equal; f1 is 0 where only one of them joins any pair. O(n log n).
struct PartitionScores {
  double f1 = 0.0, rand_index = 0.0, adjusted_rand_index = 0.0;
};
PartitionScores partition_scores(std::span<const int64_t> predicted,
                                 std::span<const int64_t> actual);

}  // namespace nsimplex::training
