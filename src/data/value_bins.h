#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nsimplex::data {

/// Measured values as numbers of bins, as the code books of single-cell transformers take them.
///
/// Zeros are bin 0. The other values of the table that the bins are made from are cut at their
/// quantiles into `count` bins of equally many, 1 .. count, the same for all columns; values of
/// another table that lie outside go to the first or last of them. Equal values stay together, so
/// that a bin of a table with few different values may be empty.
class ValueBins {
 public:
  /// From `values`, floating [N, M], all finite. Throws InputError where all of them are zero.
  ValueBins(const at::Tensor& values, int64_t count);

  /// Of edges(), as they were before.
  explicit ValueBins(at::Tensor edges);

  /// int64 of the same shape, 0 .. count.
  at::Tensor operator()(const at::Tensor& values) const;

  /// float64 [count - 1], ascending: v belongs to bin 1 + the number of edges <= v.
  const at::Tensor& edges() const { return edges_; }

 private:
  at::Tensor edges_;
};

}  // namespace nsimplex::data
