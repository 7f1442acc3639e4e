// Computes logits, value sums, dropout and gradients of one tile by ATen calls.

#include "attention/common/attention_terms.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "kernels/common/tuple_hash.h"

// Unsigned numbers in int64 tensors. Products and sums wrap to the same bits, and the copies of the
// sign bit are cleared after a right shift.

namespace nsimplex::dense {
namespace {

using at::Tensor;

int64_t as_signed(uint64_t bits) { return static_cast<int64_t>(bits); }

Tensor shift_right(const Tensor& x, int bits) {
  return x.bitwise_right_shift(bits).bitwise_and((int64_t{1} << (64 - bits)) - 1);
}

Tensor low_half(const Tensor& x) { return x.bitwise_and(int64_t{0xFFFFFFFF}); }

Tensor splitmix64(Tensor x) {
  x = x + as_signed(kernels::kGoldenGamma);
  x = x.bitwise_xor(shift_right(x, 30)) * as_signed(0xBF58476D1CE4E5B9u);
  x = x.bitwise_xor(shift_right(x, 27)) * as_signed(0x94D049BB133111EBu);
  return x.bitwise_xor(shift_right(x, 31));
}

Tensor fmix32(Tensor x) {
  x = low_half(x.bitwise_xor(shift_right(x, 16)) * int64_t{0x85EBCA6B});
  x = low_half(x.bitwise_xor(shift_right(x, 13)) * int64_t{0xC2B2AE35});
  return x.bitwise_xor(shift_right(x, 16));
}

}  // namespace

Dropout::Dropout(const Call& call, const Settings& settings) : settings_(settings) {
  if (!active()) return;
  const at::TensorOptions options = call.query.options().dtype(at::kLong);
  const int64_t batch = call.query.size(0), heads = call.query.size(1),
                kv_heads = call.keys[0].size(1);
  const Tensor sequences = at::arange(batch * heads, options).unsqueeze(-1);
  const Tensor queries = at::arange(call.query.size(2), options);
  const int64_t start = as_signed(kernels::splitmix64(static_cast<uint64_t>(settings.seed)));
  rows_ = low_half(splitmix64(splitmix64(sequences.bitwise_xor(start)).bitwise_xor(queries)))
              .view({batch, kv_heads, heads / kv_heads, call.query.size(2)});
  for (int m = 0; m < settings.order; ++m) {
    const uint64_t offset = static_cast<uint64_t>(m + 1) * kernels::kGoldenGamma;
    const Tensor key = at::arange(settings.visible[m].length, options);
    keys_.push_back(low_half(splitmix64(key + as_signed(offset))));
  }
}

Tensor Dropout::factors(const Tile& tile, at::ScalarType type) const {
  Tensor hash = rows_.narrow(3, tile.first_query, tile.queries).unsqueeze(-1);
  for (int m = 0; m < settings_.order; ++m) {
    const Tensor keys = keys_[m].narrow(0, tile.keys[m].begin, tile.keys[m].size());
    if (m > 0) hash = hash.flatten(4, -1).unsqueeze(-1);
    hash = hash.bitwise_xor(keys);
  }
  if (settings_.order == 1) hash = hash.unsqueeze(4);
  const auto threshold = static_cast<int64_t>(kernels::drop_threshold(settings_.dropout_p));
  return fmix32(hash).ge(threshold).to(type) / (1.0 - settings_.dropout_p);
}

namespace {

using at::Tensor;
using kernels::Range;

// [B, H, rows.., X] @ [B, H, X, Y] -> [B, H, rows.., Y]
Tensor times(const Tensor& left, const Tensor& right) {
  const at::DimVector inner(left.sizes().slice(2, left.dim() - 3));
  return at::matmul(left.flatten(2, -2), right).unflatten(2, inner);
}

// sum over all rows of left^T right: [B, H, rows.., X], [B, H, rows.., Y] -> [B, H, X, Y]
Tensor over_rows(const Tensor& left, const Tensor& right) {
  return at::matmul(left.flatten(2, -2).transpose(-1, -2), right.flatten(2, -2));
}

}  // namespace

Problem::Problem(const Call& call)
    : settings(settings_of(call)),
      keys(call.keys),
      values(call.values),
      accumulate(accumulate_type(call.query.scalar_type())),
      groups(call.query.size(1) / call.keys[0].size(1)),
      admissible(call, settings),
      dropout(call, settings),
      leading_keys(settings.form, settings.order),
      leading_values(Form::product, settings.order) {
  query = by_group(call.query);
  const auto of_heads = [&](const OptionalTensor& numbers) {
    if (!numbers) return Tensor();
    return accumulated(*numbers, accumulate).unflatten(0, {keys[0].size(1), groups}).unsqueeze(-1);
  };
  sink = of_heads(call.options.sink);
  slopes = of_heads(call.options.alibi_slopes);
  const bool has_double = !call.query.is_mps();
  const bool adds = std::ranges::any_of(admissible.masks(), std::not_fn(&TupleMask::boolean));
  logit_type = adds && has_double ? at::kDouble : accumulate;
}

Tensor Problem::by_group(const Tensor& tensor) const {
  return tensor.unflatten(1, {keys[0].size(1), groups});
}

double Problem::output_scale() const {
  const double scale = settings.scale.output;
  return settings.reduce == Reduce::mean ? scale / settings.order : scale;
}

TileTerms::TileTerms(const Problem& problem, const Tile& tile) : problem_(problem), tile_(tile) {
  query_ = rows(problem.query) * problem.settings.scale.logit;
  for (int m = 0; m < problem.settings.order; ++m) {
    keys_.push_back(slice(problem.keys[m], m));
    values_.push_back(slice(problem.values[m], m));
  }
  leading_key_ = problem.leading_keys.of(keys_).unsqueeze(2).unsqueeze(2);
  leading_value_ = problem.leading_values.of(values_).unsqueeze(2).unsqueeze(2);
  combined_ = problem.leading_keys.with_query().z(leading_key_, query_.unsqueeze(-2));
  const double softcap = problem.settings.softcap;
  if (softcap > 0) capped_ = (scores() / softcap).tanh();
}

Tensor TileTerms::rows(const Tensor& tensor) const {
  return tensor.narrow(3, tile_.first_query, tile_.queries).to(problem_.accumulate);
}

Tensor TileTerms::scores() const { return times(combined_, keys_.back().transpose(-1, -2)); }

Tensor TileTerms::before_softcap(const Tensor& grad_logits) const {
  return capped_.defined() ? grad_logits * (1 - capped_ * capped_) : grad_logits;
}

Tensor TileTerms::logits() const {
  Tensor logits = capped_.defined() ? capped_ * problem_.settings.softcap : scores();
  if (problem_.slopes.defined()) {
    const Tensor distances = problem_.admissible.distances(tile_).to(problem_.accumulate);
    logits = logits - problem_.slopes.unsqueeze(-1).unsqueeze(-1) * distances;
  }
  for (const TupleMask& mask : problem_.admissible.masks()) {
    if (mask.boolean()) continue;
    const Tensor added = accumulated(mask.slice(tile_), problem_.accumulate);
    logits = logits.to(problem_.logit_type) + added.to(problem_.logit_type);
  }
  return logits.masked_fill(problem_.admissible.tuples(tile_).logical_not(),
                            -std::numeric_limits<double>::infinity());
}

Tensor TileTerms::with_dropout(const Tensor& weights) const {
  if (!problem_.dropout.active()) return weights;
  return weights * problem_.dropout.factors(tile_, problem_.accumulate);
}

Tensor TileTerms::combine_values(const Tensor& weights) const {
  if (problem_.settings.reduce == Reduce::product) {
    return (times(weights, values_.back()) * leading_value_).sum(-2);
  }
  Tensor sum;
  for (size_t m = 0; m < values_.size(); ++m) {
    const Tensor part = times(marginal(weights, m), values_[m]);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Tensor TileTerms::grad_weights(const Tensor& grad) const {
  if (problem_.settings.reduce == Reduce::product) {
    return times(grad_rows(grad), values_.back().transpose(-1, -2));
  }
  // grad . v^(m), one axis after the other. The result is the tuple's sum, flattened like the
  // tuples.
  Tensor sum = times(grad, values_[0].transpose(-1, -2));
  for (size_t m = 1; m < values_.size(); ++m) {
    const Tensor part = times(grad, values_[m].transpose(-1, -2));
    sum = (sum.unsqueeze(-1) + part.unsqueeze(-2)).flatten(-2, -1);
  }
  return sum.unflatten(-1, {leading_count(), last_count()});
}

std::vector<Tensor> TileTerms::grad_values(const Tensor& weights, const Tensor& grad) const {
  std::vector<Tensor> grads;
  if (problem_.settings.reduce == Reduce::product) {
    const Tensor along_last = times(weights, values_.back());
    grads =
        problem_.leading_values.backward(values_, (along_last * grad.unsqueeze(-2)).sum({2, 3}));
    grads.push_back(over_rows(weights, grad_rows(grad)));
  } else {
    for (size_t m = 0; m < values_.size(); ++m) {
      grads.push_back(over_rows(marginal(weights, m), grad));
    }
  }
  return grads;
}

Tensor TileTerms::grad_combined(const Tensor& grad_logits) const {
  return times(grad_logits, keys_.back());
}

std::vector<Tensor> TileTerms::grad_keys(const Tensor& grad_logits,
                                         const Tensor& grad_combined) const {
  const LeadingRows& leading = problem_.leading_keys;
  const Tensor grad_rows = leading.with_query().x(query_.unsqueeze(-2), grad_combined);
  std::vector<Tensor> grads = leading.backward(keys_, grad_rows.sum({2, 3}));
  grads.push_back(over_rows(grad_logits, combined_));
  return grads;
}

Tensor TileTerms::grad_query(const Tensor& grad_combined) const {
  return problem_.leading_keys.with_query().y(leading_key_, grad_combined).sum(-2) *
         problem_.settings.scale.logit;
}

int64_t TileTerms::last_count() const { return tile_.keys[problem_.settings.order - 1].size(); }

int64_t TileTerms::leading_count() const {
  int64_t count = 1;
  for (int m = 0; m + 1 < problem_.settings.order; ++m) count *= tile_.keys[m].size();
  return count;
}

// The output's gradient times the leading values: [B, H, G, Q, L, Dv].
Tensor TileTerms::grad_rows(const Tensor& grad) const {
  return grad.unsqueeze(-2) * leading_value_;
}

// Sum of the weights over all axes but m: [B, H, G, Q, n_m].
Tensor TileTerms::marginal(const Tensor& weights, size_t axis) const {
  at::DimVector counts, others;
  for (int m = 0; m < problem_.settings.order; ++m) {
    counts.push_back(tile_.keys[m].size());
    if (static_cast<size_t>(m) != axis) others.push_back(4 + m);
  }
  const Tensor by_axis = weights.flatten(4, 5).unflatten(4, counts);
  return others.empty() ? by_axis : by_axis.sum(others);
}

// The tile's rows of one axis. Rows of keys that are left out are set to zero, so their contents
// never matter.
Tensor TileTerms::slice(const Tensor& tensor, int axis) const {
  const Range range = tile_.keys[axis];
  const Tensor part = tensor.narrow(2, range.begin, range.size()).to(problem_.accumulate);
  const Tensor keys = problem_.admissible.keys(axis, range);  // [B, n]
  return keys.defined() ? at::where(keys.unsqueeze(1).unsqueeze(-1), part, 0) : part;
}

}  // namespace nsimplex::dense
