#include "attention/dense/dense_terms.h"

#include <ATen/ATen.h>

#include <limits>

namespace nsimplex::dense {
namespace {

using at::Tensor;
using kernels::Range;

// [.., X, C] and [.., Y, C] -> [.., X * Y, C], the channelwise product of every pair of rows.
Tensor product_of_rows(const Tensor& left, const Tensor& right) {
  return (left.unsqueeze(-2) * right.unsqueeze(-3)).flatten(-3, -2);
}

// Rows [B, H, L, C] of the leading tuples: the channelwise product over axes 1..N-1 (ones for N =
// 1).
Tensor leading_rows(const std::vector<Tensor>& axes) {
  if (axes.size() == 1) return at::ones({1, 1, 1, 1}, axes[0].options());
  Tensor rows = axes[0];
  for (size_t m = 1; m + 1 < axes.size(); ++m) rows = product_of_rows(rows, axes[m]);
  return rows;
}

// Gradients of axes 1..N-1 given that of their leading rows.
std::vector<Tensor> leading_rows_backward(const std::vector<Tensor>& axes, Tensor grad) {
  std::vector<Tensor> grads(axes.size() - 1);
  for (size_t m = grads.size(); m-- > 1;) {
    // rows = product_of_rows(before, axes[m])
    const Tensor before = leading_rows({axes.begin(), axes.begin() + m + 1});
    const Tensor pairs = grad.unflatten(-2, {before.size(-2), axes[m].size(-2)});
    grads[m] = (pairs * before.unsqueeze(-2)).sum(-3);
    grad = (pairs * axes[m].unsqueeze(-3)).sum(-2);
  }
  if (!grads.empty()) grads[0] = grad;
  return grads;
}

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
      valid(valid_keys(call)),
      accumulate(accumulate_type(call.query.scalar_type())),
      groups(call.query.size(1) / call.keys[0].size(1)) {
  query = by_group(call.query);
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
  leading_key_ = leading_rows(keys_);
  leading_value_ = leading_rows(values_);
  combined_ = query_.unsqueeze(-2) * leading_key_.unsqueeze(2).unsqueeze(2);
}

Tensor TileTerms::rows(const Tensor& tensor) const {
  return tensor.narrow(3, tile_.first_query, tile_.queries).to(problem_.accumulate);
}

Tensor TileTerms::logits() const {
  return times(combined_, keys_.back().transpose(-1, -2))
      .masked_fill(admissible().logical_not(), -std::numeric_limits<double>::infinity());
}

Tensor TileTerms::combine_values(const Tensor& weights) const {
  if (problem_.settings.reduce == Reduce::product) {
    return (times(weights, values_.back()) * leading_value_.unsqueeze(2).unsqueeze(2)).sum(-2);
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
  // grad . v^(m), one axis after the other: the tuple's sum, flattened like the tuples.
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
    grads = leading_rows_backward(values_, (along_last * grad.unsqueeze(-2)).sum({2, 3}));
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
  std::vector<Tensor> grads =
      leading_rows_backward(keys_, (grad_combined * query_.unsqueeze(-2)).sum({2, 3}));
  grads.push_back(over_rows(grad_logits, combined_));
  return grads;
}

Tensor TileTerms::grad_query(const Tensor& grad_combined) const {
  return (grad_combined * leading_key_.unsqueeze(2).unsqueeze(2)).sum(-2) *
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
  return grad.unsqueeze(-2) * leading_value_.unsqueeze(2).unsqueeze(2);
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

Tensor TileTerms::positions(Range range) const {
  return at::arange(range.begin, range.end, problem_.query.options().dtype(at::kLong));
}

// The tile's rows of one axis. Rows beyond the valid keys are zeroed: what lies there never
// shows.
Tensor TileTerms::slice(const Tensor& tensor, int axis) const {
  const Range range = tile_.keys[axis];
  const Tensor part = tensor.narrow(2, range.begin, range.size()).to(problem_.accumulate);
  if (!problem_.valid.defined()) return part;
  const Tensor valid = positions(range).lt(problem_.valid.select(0, axis).unsqueeze(-1));  // [B, n]
  return at::where(valid.unsqueeze(1).unsqueeze(-1), part, 0);
}

// Which keys of an axis each query sees: [B or 1, Q, n_m].
Tensor TileTerms::visible(int axis) const {
  const kernels::Visibility& rule = problem_.settings.visible[axis];
  const Tensor key = positions(tile_.keys[axis]).unsqueeze(0);
  const Tensor position =
      positions({tile_.first_query, tile_.first_query + tile_.queries}).unsqueeze(1) + rule.offset;
  Tensor seen = at::ones({tile_.queries, key.size(1)}, key.options().dtype(at::kBool));
  if (rule.left >= 0) seen = seen.logical_and(key.gt(position - rule.left));
  if (rule.right >= 0) seen = seen.logical_and(key.le(position + rule.right));
  if (rule.causal) seen = seen.logical_and(key.le(position));
  seen = seen.unsqueeze(0);
  if (!problem_.valid.defined()) return seen;
  return seen.logical_and(key.lt(problem_.valid.select(0, axis).unsqueeze(-1)).unsqueeze(1));
}

// Which tuples each query sees: [B or 1, 1, 1, Q, L, K].
Tensor TileTerms::admissible() const {
  Tensor tuples = visible(0);
  for (int m = 1; m < problem_.settings.order; ++m) {
    tuples = tuples.unsqueeze(-1).logical_and(visible(m).unsqueeze(-2)).flatten(-2, -1);
  }
  return tuples.unflatten(-1, {leading_count(), last_count()}).unsqueeze(1).unsqueeze(1);
}

}  // namespace nsimplex::dense
