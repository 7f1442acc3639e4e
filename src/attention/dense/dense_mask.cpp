#include "attention/dense/dense_mask.h"

#include <ATen/ATen.h>

namespace nsimplex::dense {
namespace {

using at::Tensor;

constexpr int64_t kQueries = 2, kFirstAxis = 3;  // dimensions

at::DimVector key_counts(const Tile& tile, int64_t order) {
  at::DimVector counts;
  for (int64_t m = 0; m < order; ++m) counts.push_back(tile.keys[m].size());
  return counts;
}

}  // namespace

TupleMask::TupleMask(const Tensor& mask, int order, int64_t kv_heads)
    : mask_(mask), sizes_(mask.sizes()), kv_heads_(kv_heads) {
  while (mask_.dim() < kFirstAxis + order) mask_ = mask_.unsqueeze(0);
}

Tensor TupleMask::slice(const Tile& tile) const {
  const int64_t order = mask_.dim() - kFirstAxis;
  const auto narrow = [](const Tensor& tensor, int64_t dimension, int64_t begin, int64_t count) {
    return tensor.size(dimension) == 1 ? tensor : tensor.narrow(dimension, begin, count);
  };
  Tensor part = narrow(mask_, kQueries, tile.first_query, tile.queries);
  for (int64_t m = 0; m < order; ++m) {
    part = narrow(part, kFirstAxis + m, tile.keys[m].begin, tile.keys[m].size());
  }
  const at::DimVector counts = key_counts(tile, order);
  at::DimVector sizes(part.sizes().slice(0, kFirstAxis));
  sizes.insert(sizes.end(), counts.begin(), counts.end());
  part = part.expand(sizes).flatten(kFirstAxis, -1).unflatten(-1, {-1, counts.back()});
  return part.size(1) == 1 ? part.unsqueeze(1)
                           : part.unflatten(1, {kv_heads_, part.size(1) / kv_heads_});
}

void MaskGradient::add(const Tile& tile, const Tensor& grad_logits) {
  const Tensor& mask = mask_.mask_;
  const int64_t order = mask.dim() - kFirstAxis;
  Tensor part =
      grad_logits.flatten(1, 2).flatten(kFirstAxis, -1).unflatten(-1, key_counts(tile, order));
  at::DimVector broadcast;
  for (int64_t d = 0; d < mask.dim(); ++d) {
    if (mask.size(d) == 1) broadcast.push_back(d);
  }
  if (!broadcast.empty()) part = part.sum(broadcast, /*keepdim=*/true);
  at::DimVector padding;  // from the last dimension to the first axis
  for (int64_t m = order; m-- > 0;) {
    const int64_t length = mask.size(kFirstAxis + m);
    padding.push_back(length == 1 ? 0 : tile.keys[m].begin);
    padding.push_back(length == 1 ? 0 : length - tile.keys[m].end);
  }
  part = at::constant_pad_nd(part, padding);
  block_ = block_.defined() ? block_ + part : part;
}

void MaskGradient::end_block(int64_t queries, const at::TensorOptions& options) {
  if (!block_.defined()) {
    at::DimVector sizes(mask_.mask_.sizes());
    if (sizes[kQueries] != 1) sizes[kQueries] = queries;
    block_ = at::zeros(sizes, options);
  }
  if (mask_.mask_.size(kQueries) != 1) {
    blocks_.push_back(block_);
    block_ = Tensor();
  }
}

Tensor MaskGradient::finish() const {
  const Tensor whole = blocks_.empty() ? block_ : at::cat(blocks_, kQueries);
  return whole.reshape(mask_.sizes_).to(mask_.mask_.scalar_type());
}

}  // namespace nsimplex::dense
