#include "data/value_bins.h"

#include <ATen/ATen.h>

#include <utility>

#include "support/error.h"

namespace nsimplex::data {

using at::Tensor;

ValueBins::ValueBins(const Tensor& values, int64_t count) {
  const Tensor flat = values.to(at::kDouble).flatten();
  const Tensor sorted = std::get<0>(flat.index({flat.ne(0)}).sort());
  const int64_t size = sorted.size(0);
  if (size == 0) throw InputError("bins: expected a table with a value that is not zero");
  // at::quantile refuses more than 2^24 numbers; the value at a place will do as well.
  const Tensor places = at::arange(1, count, at::kLong) * size / count;
  edges_ = sorted.index_select(0, places.to(at::kLong).clamp_max(size - 1));
}

ValueBins::ValueBins(Tensor edges) : edges_(std::move(edges)) {}

Tensor ValueBins::operator()(const Tensor& values) const {
  const Tensor numbers =
      at::searchsorted(edges_, values.to(at::kDouble).contiguous(), false, true) + 1;
  return numbers.masked_fill(values.eq(0), 0);
}

}  // namespace nsimplex::data
