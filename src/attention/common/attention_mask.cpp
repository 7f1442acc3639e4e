// Evaluates which keys and tuples a query may see, and the gradient of an additive mask.

#include "attention/common/attention_mask.h"

#include <ATen/ATen.h>

namespace nsimplex::dense {
namespace {

using at::Tensor;
using kernels::Range;

Tensor both(const Tensor& one, const Tensor& other) {
  return one.defined() ? one.logical_and(other) : other;
}

}  // namespace

Admissible::Admissible(const Call& call, const Settings& settings)
    : settings_(settings), index_options_(call.query.options().dtype(at::kLong)) {
  const Options& options = call.options;
  const int64_t batch = call.query.size(0), queries = call.query.size(2);
  if (options.key_lengths || options.key_masks) {
    Tensor alive;  // [B]: whether every axis has a key
    for (int m = 0; m < settings.order; ++m) {
      Tensor keys;
      if (options.key_lengths) {
        const Tensor lengths = options.key_lengths->expand({settings.order, batch}).select(0, m);
        keys = positions({0, settings.visible[m].length}).lt(lengths.unsqueeze(-1));
      }
      if (options.key_masks) keys = both(keys, (*options.key_masks)[m]);
      alive = both(alive, keys.any(-1));
      taking_part_.push_back(keys);
    }
    // An entry without keys on one axis has no tuples, so none of its keys is read.
    for (Tensor& keys : taking_part_) keys = keys.logical_and(alive.unsqueeze(-1));
  }
  if (options.cu_seqlens) {
    const Tensor& bounds = *options.cu_seqlens;
    const Tensor document = at::searchsorted(bounds, positions({0, queries}),
                                             /*out_int32=*/false, /*right=*/true);
    document_begin_ = bounds.index_select(0, document - 1);
    document_end_ = bounds.index_select(0, document);
  }
  if (options.query_positions) query_positions_ = positions_of_queries(call);
  masks_ = masks_of(call);
}

Tensor Admissible::positions(Range range) const {
  return at::arange(range.begin, range.end, index_options_);
}

Tensor Admissible::keys(int axis, Range range) const {
  if (taking_part_.empty()) return {};
  return taking_part_[axis].narrow(1, range.begin, range.size());
}

// The positions of the queries of a tile among the keys of an axis: [B or 1, Q, 1].
Tensor Admissible::query_positions(int axis, const Tile& tile) const {
  const Tensor rows = query_positions_.defined()
                          ? query_positions_.narrow(1, tile.first_query, tile.queries)
                          : (positions({tile.first_query, tile.first_query + tile.queries}) +
                             settings_.visible[axis].offset)
                                .unsqueeze(0);
  return rows.unsqueeze(-1);
}

// Which keys of an axis each query sees: [B or 1, Q, n_m].
Tensor Admissible::visible(int axis, const Tile& tile) const {
  const kernels::Visibility& rule = settings_.visible[axis];
  const Tensor key = positions(tile.keys[axis]).unsqueeze(0).unsqueeze(0);
  const Tensor position = query_positions(axis, tile);
  Tensor seen = at::ones({1, tile.queries, key.size(2)}, key.options().dtype(at::kBool));
  if (rule.left >= 0) seen = seen.logical_and(key.gt(position - rule.left));
  if (rule.right >= 0) seen = seen.logical_and(key.le(position + rule.right));
  if (rule.causal) seen = seen.logical_and(key.le(position));
  if (settings_.distinct == Distinct::with_query) seen = seen.logical_and(key.ne(position));
  if (document_begin_.defined()) {
    const auto bound = [&](const Tensor& bounds) {
      return bounds.narrow(0, tile.first_query, tile.queries).unsqueeze(1).unsqueeze(0);
    };
    seen =
        seen.logical_and(key.ge(bound(document_begin_))).logical_and(key.lt(bound(document_end_)));
  }
  const Tensor keys_taking_part = keys(axis, tile.keys[axis]);
  return keys_taking_part.defined() ? seen.logical_and(keys_taking_part.unsqueeze(1)) : seen;
}

// A [.., n_m] tensor at its axis among [B, Q, n_1, .., n_N].
Tensor Admissible::axis_view(Tensor tensor, int axis) const {
  for (int m = axis + 1; m < settings_.order; ++m) tensor = tensor.unsqueeze(-1);
  while (tensor.dim() < 2 + settings_.order) tensor = tensor.unsqueeze(2);
  return tensor;
}

// [B, Q, n_1, .., n_N] to [B, 1, 1, Q, L, K].
Tensor Admissible::by_leading(const Tensor& tuples, const Tile& tile) const {
  return tuples.flatten(2, -1)
      .unflatten(-1, {-1, tile.keys[settings_.order - 1].size()})
      .unsqueeze(1)
      .unsqueeze(1);
}

Tensor Admissible::distances(const Tile& tile) const {
  Tensor sum;
  for (int m = 0; m < settings_.order; ++m) {
    const Tensor key = positions(tile.keys[m]).unsqueeze(0).unsqueeze(0);
    const Tensor own = axis_view((query_positions(m, tile) - key).abs(), m);
    sum = sum.defined() ? sum + own : own;
  }
  return by_leading(sum, tile);
}

Tensor Admissible::tuples(const Tile& tile) const {
  const int order = settings_.order;
  Tensor tuples;
  for (int m = 0; m < order; ++m) tuples = both(tuples, axis_view(visible(m, tile), m));
  if (settings_.distinct != Distinct::none) {
    for (int m = 0; m < order; ++m) {
      for (int other = m + 1; other < order; ++other) {
        const Tensor first = axis_view(positions(tile.keys[m]).unsqueeze(0).unsqueeze(0), m);
        const Tensor second =
            axis_view(positions(tile.keys[other]).unsqueeze(0).unsqueeze(0), other);
        tuples = tuples.logical_and(first.ne(second));
      }
    }
  }
  tuples = by_leading(tuples, tile);
  for (const TupleMask& mask : masks_) {
    if (mask.boolean()) tuples = tuples.logical_and(mask.slice(tile));
  }
  return tuples;
}

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

TupleMask TupleMask::of_pairs(const Tensor& mask, int axis, int order, int64_t kv_heads) {
  Tensor tuples = mask;
  for (int m = 0; m < axis; ++m) tuples = tuples.unsqueeze(-2);
  for (int m = axis + 1; m < order; ++m) tuples = tuples.unsqueeze(-1);
  TupleMask result(tuples, order, kv_heads);
  result.sizes_ = mask.sizes();
  return result;
}

std::vector<TupleMask> pair_masks_of(const Call& call) {
  std::vector<TupleMask> masks;
  for (const Tensor& mask : call.pair_masks()) {
    masks.push_back(TupleMask::of_pairs(mask, static_cast<int>(masks.size()),
                                        static_cast<int>(call.keys.size()), call.keys[0].size(1)));
  }
  return masks;
}

std::vector<TupleMask> masks_of(const Call& call) {
  std::vector<TupleMask> masks = pair_masks_of(call);
  if (call.options.mask) {
    const auto order = static_cast<int>(call.keys.size());
    masks.emplace(masks.begin(), *call.options.mask, order, call.keys[0].size(1));
  }
  return masks;
}

Tensor TupleMask::in_own_shape(const Tensor& gradient) const {
  return gradient.reshape(sizes_).to(mask_.scalar_type());
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
  return mask_.in_own_shape(whole);
}

}  // namespace nsimplex::dense
