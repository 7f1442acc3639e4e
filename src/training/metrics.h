#pragma once

#include <cstdint>
#include <span>

#include "support/binary_metrics.h"

// Figures of predictions against what is true. Plain C++; spans of a call have one length.
namespace nsimplex::training {

using nsimplex::area_under_roc;
using nsimplex::average_precision;
using nsimplex::BinaryCounts;

/// F1 of one of several classes: micro counts all predictions alike and is the accuracy; macro is
/// the mean of each class's F1, over the classes that were predicted or are true. Classes count
/// from 0. NaN without predictions.
struct ClassF1 {
  double micro = 0.0, macro = 0.0;
};
ClassF1 class_f1(std::span<const int64_t> predicted, std::span<const int64_t> actual);

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
