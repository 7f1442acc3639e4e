#include "analysis/collapse.h"

#include <ATen/ATen.h>
#include <nsimplex/analysis_smoothing.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsimplex::analysis {

using at::Tensor;

namespace {

double largest_norm(const std::vector<Tensor>& matrices) {
  double largest = 0;
  for (const Tensor& matrix : matrices) {
    largest = std::max(largest, composite_norm(matrix).item<double>());
  }
  return largest;
}

// [n, d] as the factor of key axis `axis` among `axes`: [1, .., n, .., 1, d].
Tensor along(const Tensor& rows, size_t axis, size_t axes) {
  std::vector<int64_t> shape(axes + 1, 1);
  shape[axis] = rows.size(0);
  shape.back() = rows.size(1);
  return rows.reshape(shape);
}

double logit_scale(const PureHead& head) {
  return 1 / std::sqrt(static_cast<double>(head.head_dim()));
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

Tensor apply(const PureHead& head, const Tensor& tokens, const AttentionOptions& options) {
  const auto project = [&](const Tensor& weights) {
    return tokens.matmul(weights).unsqueeze(0).unsqueeze(0);
  };
  std::vector<Tensor> keys, values;
  for (size_t m = 1; m < head.keys.size(); ++m) keys.push_back(project(head.keys[m]));
  for (const Tensor& weights : head.values) values.push_back(project(weights));
  return attention(project(head.keys.front()), keys, values, options).out.squeeze(0).squeeze(0);
}

SplitLogits split_logits(const PureHead& head, const Tensor& tokens, const Tensor& offset) {
  const Tensor residual = tokens - offset;
  // Of the product of (constant + residual) over the axes: what has none, one, more residuals. They
  // are kept apart, since E is small beside the rest and would drown in its rounding.
  Tensor none = at::ones({head.head_dim()}, tokens.options());
  Tensor one = at::zeros({head.head_dim()}, tokens.options()), more = one;
  for (size_t axis = 0; axis < head.keys.size(); ++axis) {
    const Tensor constant = offset.matmul(head.keys[axis]);
    const Tensor rest = along(residual.matmul(head.keys[axis]), axis, head.keys.size());
    more = more * (constant + rest) + one * rest;
    one = one * constant + none * rest;
    none = none * constant;
  }
  return {one.sum(-1).flatten(1), more.sum(-1).flatten(1)};
}

CollapseBound collapse_bound(const PureHead& head, const Tensor& tokens) {
  const MinimalResidual now = nsimplex::minimal_residual(tokens);
  const Tensor remainder = split_logits(head, tokens, now.offset).remainder;
  const Tensor range = ranges(remainder);
  CollapseBound result;
  result.logit_range = logit_scale(head) * range.max().item<double>();
  if (const double widest = widest_columns(remainder); widest > 0) {
    result.gamma =
        std::sqrt(range.max().item<double>()) * std::sqrt(range.sum().item<double>()) / widest;
  }
  const auto order = static_cast<double>(head.order());
  result.beta = std::pow(2 * largest_norm(head.keys), order + 1) *
                std::pow(2 * largest_norm(head.values), order);
  const auto reached = now.norm.item<double>();
  result.residual = now.lower.item<double>();
  result.next_residual = nsimplex::minimal_residual(apply(head, tokens)).norm.item<double>();
  result.bound = 4 * result.gamma * logit_scale(head) * result.beta *
                 std::pow(composite_norm(tokens).item<double>(), 2 * (order - 1)) *
                 std::pow(reached, 3);
  return result;
}

CollapseLemmas collapse_lemmas(const PureHead& head, const Tensor& tokens, const Tensor& offset) {
  const SplitLogits logits = split_logits(head, tokens, offset);
  const Tensor residual = tokens - offset;
  Tensor additive = at::zeros({1}, tokens.options());
  for (size_t axis = 0; axis < head.keys.size(); ++axis) {
    Tensor own = residual.matmul(head.keys[axis]);  // times the other axes' constants
    for (size_t other = 0; other < head.keys.size(); ++other) {
      if (other != axis) own = own * offset.matmul(head.keys[other]);
    }
    additive = additive + along(own.sum(-1, true), axis, head.keys.size()).squeeze(-1);
  }
  const double scale = logit_scale(head);
  const Tensor separable = (scale * logits.first).softmax(-1);
  const Tensor weights = (scale * (logits.first + logits.remainder)).softmax(-1);
  const Tensor shift = scale * ranges(logits.remainder).unsqueeze(1);  // D
  const Tensor rows = separable.matmul(value_products(head, tokens));
  const auto relative = [](const Tensor& difference, const Tensor& of) {
    const auto size = of.abs().max().item<double>();
    return size > 0 ? difference.abs().max().item<double>() / size : 0.0;
  };
  // Where 1 - D <= 0 the lower inequality says nothing.
  const Tensor below = at::where(shift < 1, weights / ((1 - shift) * separable),
                                 std::numeric_limits<double>::infinity());
  return {.additive = relative(logits.first - additive.flatten(1), logits.first),
          .row_constant = relative(rows - rows.narrow(0, 0, 1), rows),
          .below = below.min().item<double>(),
          .above = ((1 + 2 * shift) * separable / weights).min().item<double>(),
          .logit_range = shift.max().item<double>()};
}

}  // namespace nsimplex::analysis
