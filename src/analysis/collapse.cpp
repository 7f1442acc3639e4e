// Evaluates both sides of the bound on how equal one head makes tokens.

#include "analysis/collapse.h"

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>
#include <nsimplex/sparse_attention.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsimplex::analysis {

using at::Tensor;

namespace {

// [n, d] as the factor of key axis `axis` among `axes`: [1, .., n, .., 1, d].
Tensor along(const Tensor& rows, size_t axis, size_t axes) {
  std::vector<int64_t> shape(axes + 1, 1);
  shape[axis] = rows.size(0);
  shape.back() = rows.size(1);
  return rows.reshape(shape);
}

// Products of the values of every tuple: [n^N, channels].
Tensor value_products(const PureHead& head, const Tensor& tokens) {
  Tensor products = tokens.matmul(head.values.front());
  for (size_t m = 1; m < head.values.size(); ++m) {
    products = (products.unsqueeze(1) * tokens.matmul(head.values[m])).flatten(0, 1);
  }
  return products;
}

Tensor ranges(const Tensor& rows) { return rows.amax(-1) - rows.amin(-1); }

// max_{j,j'} sum_i |E_ij - E_ij'|, column by column.
double widest_columns(const Tensor& rows) {
  double widest = 0;
  for (int64_t j = 0; j < rows.size(1); ++j) {
    widest = std::max(widest, (rows - rows.narrow(1, j, 1)).abs().sum(0).max().item<double>());
  }
  return widest;
}

}  // namespace

PureHead random_head(int64_t order, int64_t channels) {
  const auto draw = [&] {
    return at::randn({channels, channels}, at::kDouble) / std::sqrt(static_cast<double>(channels));
  };
  PureHead head;
  for (int64_t m = 0; m <= order; ++m) head.keys.push_back(draw());
  for (int64_t m = 0; m < order; ++m) head.values.push_back(draw());
  return head;
}

double largest_norm(const std::vector<Tensor>& weights) {
  double largest = 0;
  for (const Tensor& each : weights) {
    largest = std::max(largest, composite_norm(each).item<double>());
  }
  return largest;
}

bool at_floor(double residual, double norm) {
  constexpr double kLeastRatio = 1e-13, kLeastNorm = 1e-290;
  return !(norm > kLeastNorm) || !std::isfinite(norm) || residual < kLeastRatio * norm;
}

TupleMask tuple_mask(const MaskRows& rows) {
  const Tensor values = at::tensor(rows.values, at::kLong).view({-1, rows.order + 1});
  return {values.slice(1, 1).contiguous(),
          at::tensor(rows.row_offsets, at::kLong).view({1, 1, rows.nodes() + 1})};
}

Tensor apply(const PureHead& head, const Tensor& tokens, const std::optional<TupleMask>& mask,
             const AttentionOptions& options) {
  const auto project = [&](const Tensor& weights) {
    return tokens.matmul(weights).unsqueeze(0).unsqueeze(0);
  };
  const Tensor query = project(head.keys.front());
  std::vector<Tensor> keys, values;
  for (size_t m = 1; m < head.keys.size(); ++m) keys.push_back(project(head.keys[m]));
  for (const Tensor& weights : head.values) values.push_back(project(weights));
  const AttentionOutput found =
      mask ? sparse_attention(query, keys, values, mask->indices, mask->offsets)
           : attention(query, keys, values, options);
  const Tensor out = found.out.squeeze(0).squeeze(0);
  return head.output ? out.matmul(*head.output) : out;
}

SplitLogits split_logits(const PureHead& head, const Tensor& tokens, const Tensor& offset) {
  const Tensor residual = tokens - offset;
  // The product of (constant + residual) over the axes, split into parts with no, one and more
  // residuals. They are kept apart, since E is small relative to the rest and would be lost in its
  // rounding.
  Tensor none = at::ones({head_dim_of(head)}, tokens.options());
  Tensor one = at::zeros({head_dim_of(head)}, tokens.options()), more = one;
  for (size_t axis = 0; axis < head.keys.size(); ++axis) {
    const Tensor constant = offset.matmul(head.keys[axis]);
    const Tensor rest = along(residual.matmul(head.keys[axis]), axis, head.keys.size());
    more = more * (constant + rest) + one * rest;
    one = one * constant + none * rest;
    none = none * constant;
  }
  return {one.sum(-1).flatten(1), more.sum(-1).flatten(1)};
}

CollapseFactors factors_of(const PureHead& head, const Tensor& tokens, const Tensor& offset) {
  const Tensor remainder = split_logits(head, tokens, offset).remainder;
  const Tensor range = ranges(remainder);
  CollapseFactors factors{.logit_range = logit_scale_of(head) * range.max().item<double>(),
                          .largest_key = largest_norm(head.keys),
                          .largest_value = largest_norm(head.values)};
  if (head.output) factors.output = composite_norm(*head.output).item<double>();
  if (const double widest = widest_columns(remainder); widest > 0) {
    factors.gamma =
        std::sqrt(range.max().item<double>()) * std::sqrt(range.sum().item<double>()) / widest;
  }
  return factors;
}

CollapseBound collapse_bound(const PureHead& head, const Tensor& tokens) {
  const MinimalResidual now = nsimplex::minimal_residual(tokens);
  const CollapseFactors factors = factors_of(head, tokens, now.offset);
  CollapseBound result;
  result.logit_range = factors.logit_range;
  result.gamma = factors.gamma;
  const auto order = static_cast<double>(head.order());
  result.beta =
      std::pow(2 * factors.largest_key, order + 1) * std::pow(2 * factors.largest_value, order);
  const auto reached = now.norm.item<double>();
  result.residual = now.lower.item<double>();
  const Tensor next = apply(head, tokens);
  result.next_residual = nsimplex::minimal_residual(next).norm.item<double>();
  result.next_norm = composite_norm(next).item<double>();
  result.bound = factors.output * 4 * result.gamma * logit_scale_of(head) * result.beta *
                 std::pow(composite_norm(tokens).item<double>(), 2 * (order - 1)) *
                 std::pow(reached, 3);
  return result;
}

CollapseLemmas collapse_lemmas(const PureHead& head, const Tensor& tokens, const Tensor& offset) {
  const SplitLogits logits = split_logits(head, tokens, offset);
  const Tensor residual = tokens - offset;
  Tensor additive = at::zeros({1}, tokens.options());
  for (size_t axis = 0; axis < head.keys.size(); ++axis) {
    Tensor own = residual.matmul(head.keys[axis]);  // to be multiplied by the other axes' constants
    for (size_t other = 0; other < head.keys.size(); ++other) {
      if (other != axis) own = own * offset.matmul(head.keys[other]);
    }
    additive = additive + along(own.sum(-1, true), axis, head.keys.size()).squeeze(-1);
  }
  const double scale = logit_scale_of(head);
  const Tensor separable = (scale * logits.first).softmax(-1);
  const Tensor weights = (scale * (logits.first + logits.remainder)).softmax(-1);
  const Tensor shift = scale * ranges(logits.remainder).unsqueeze(1);  // D
  const Tensor rows = separable.matmul(value_products(head, tokens));
  const auto relative = [](const Tensor& difference, const Tensor& of) {
    const auto size = of.abs().max().item<double>();
    return size > 0 ? difference.abs().max().item<double>() / size : 0.0;
  };
  // For 1 - D <= 0 the lower inequality is void.
  const Tensor below = at::where(shift < 1, weights / ((1 - shift) * separable),
                                 std::numeric_limits<double>::infinity());
  return {.additive = relative(logits.first - additive.flatten(1), logits.first),
          .row_constant = relative(rows - rows.narrow(0, 0, 1), rows),
          .below = below.min().item<double>(),
          .above = ((1 + 2 * shift) * separable / weights).min().item<double>(),
          .logit_range = shift.max().item<double>()};
}

}  // namespace nsimplex::analysis
