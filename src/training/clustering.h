#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

/// Clusters of embedded observations, and how good they are.
namespace nsimplex::training {

/// k-means (Lloyd) from k-means++ starts, the best of `starts` by the sum of squared distances: the
/// cluster of every row of x [N, d], int64 [N]. A cluster that loses all its rows keeps its centre.
/// O(N k d) a round, at most 100 rounds a start. Source: Arthur and Vassilvitskii, SODA 2007.
at::Tensor k_means(const at::Tensor& x, int64_t k, uint64_t seed, int64_t starts = 10);

/// I(U; V) / ((H(U) + H(V)) / 2) of two labellings, int64 [N] from 0 on; 1 where both are one
/// class.
double normalised_mutual_information(const at::Tensor& a, const at::Tensor& b);

/// Mean over the rows of (b - a) / max(a, b): a the mean Euclidean distance to the rows of the same
/// label, b that to the nearest other label's; 0 for a row alone in its label. O(N^2 d).
/// Source: Rousseeuw, 1987.
double silhouette(const at::Tensor& x, const at::Tensor& labels);

/// The first `count` principal components of x [N, M]: [N, min(count, N, M)].
at::Tensor principal_components(const at::Tensor& x, int64_t count);

}  // namespace nsimplex::training
