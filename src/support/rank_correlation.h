#pragma once

#include <span>
#include <vector>

namespace nsimplex {

/// Places of the values from the least up, counted from 1; equal ones share the mean of theirs. Where a
/// value is NaN there is no order, and every place is NaN. O(n log n).
std::vector<double> ranks(std::span<const double> values);

/// Spearman's correlation: Pearson's of the ranks. NaN where one side has equal values alone, or holds a NaN.
/// Spans have one length. O(n log n).
double rank_correlation(std::span<const double> left, std::span<const double> right);

}  // namespace nsimplex
