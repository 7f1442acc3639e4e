// Evaluates the steps of the proofs on collapse, for masked stacks and token derivatives.

#include "lab/smoothing/masked_collapse.h"

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>

#include <algorithm>
#include <cmath>

namespace nsimplex::analysis {

using at::Tensor;

namespace {

// Place [t, m]: the token of axis m in tuple t, all n^axes of them.
Tensor all_tuples(int64_t n, int64_t axes) {
  std::vector<Tensor> columns(axes, at::arange(n));
  return axes == 1 ? columns.front().unsqueeze(1) : at::cartesian_prod(columns);
}

// The product of all rows except that of `axis`, for each tuple: [tuples, width].
Tensor others(const std::vector<Tensor>& rows, const Tensor& tuples, size_t axis) {
  Tensor product = at::ones({tuples.size(0), rows.front().size(1)}, rows.front().options());
  for (size_t m = 0; m < rows.size(); ++m) {
    if (m == axis) continue;
    product = product * rows[m].index_select(0, tuples.select(1, static_cast<int64_t>(m)));
  }
  return product;
}

// 1 at [t, j] if the token of the axis is j.
Tensor which(const Tensor& tuples, size_t axis, int64_t n) {
  const Tensor column = tuples.select(1, static_cast<int64_t>(axis));
  return column.unsqueeze(1).eq(at::arange(n)).to(at::kDouble);
}

std::vector<Tensor> projected(const Tensor& tokens, const std::vector<Tensor>& weights) {
  std::vector<Tensor> rows;
  for (const Tensor& each : weights) rows.push_back(tokens.matmul(each));
  return rows;
}

}  // namespace

TokenDerivatives token_derivatives(const PureHead& head, const Tensor& tokens) {
  const int64_t n = tokens.size(0), order = head.order();
  const double scale = analysis::logit_scale_of(head);
  const std::vector<Tensor> keys = projected(tokens, head.keys);
  const std::vector<Tensor> values = projected(tokens, head.values);

  const Tensor tuples = all_tuples(n, order + 1);
  const Tensor query = tokens.matmul(head.keys[0]).index_select(0, tuples.select(1, 0));
  const Tensor shares =
      (scale * (query * others(keys, tuples, 0)).sum(-1)).view({n, -1}).softmax(-1);
  TokenDerivatives result;
  result.logits = at::zeros({tuples.size(0), n, tokens.size(1)}, tokens.options());
  for (size_t m = 0; m < keys.size(); ++m) {
    const Tensor own = scale * others(keys, tuples, m).matmul(head.keys[m].t());
    result.logits += which(tuples, m, n).unsqueeze(2) * own.unsqueeze(1);
  }

  // For the tuples of keys, which are the same for every query.
  const Tensor key_tuples = all_tuples(n, order);
  Tensor of_values = at::zeros({key_tuples.size(0), n, head.values[0].size(1), tokens.size(1)},
                               tokens.options());  // [K, j, out, in]
  for (size_t m = 0; m < values.size(); ++m) {
    const Tensor own = others(values, key_tuples, m).unsqueeze(2) * head.values[m].t().unsqueeze(0);
    of_values += which(key_tuples, m, n).view({-1, n, 1, 1}) * own.unsqueeze(1);
  }
  result.values = at::einsum("ik,kjab->ijab", {shares, of_values});

  const Tensor slopes = result.logits.view({n, -1, n, tokens.size(1)});  // [i, K, j, in]
  const Tensor mean = at::einsum("ik,ikjb->ijb", {shares, slopes});
  const Tensor products = others(values, key_tuples, values.size());  // of all axes
  result.weights = at::einsum("ik,ikjb,ka->ijab", {shares, slopes - mean.unsqueeze(1), products});
  return result;
}

using at::Tensor;

namespace {

// The smallest softmax weight of the tuples of a mask.
double least_weight(const PureHead& head, const Tensor& tokens, const TupleMask& mask) {
  const Tensor counts = mask.offsets.flatten().diff();
  const Tensor query = at::arange(counts.size(0)).repeat_interleave(counts);
  Tensor product = tokens.matmul(head.keys.front()).index_select(0, query);
  for (int64_t m = 0; m < head.order(); ++m) {
    const Tensor keys = tokens.matmul(head.keys[m + 1]);
    product = product * keys.index_select(0, mask.indices.select(1, m));
  }
  const Tensor logits = product.sum(-1) * analysis::logit_scale_of(head);
  // The tuples of each query are consecutive.
  double least = 1;
  const Tensor offsets = mask.offsets.flatten();
  for (int64_t i = 0; i < counts.size(0); ++i) {
    const Tensor own = logits.slice(0, offsets[i].item<int64_t>(), offsets[i + 1].item<int64_t>());
    if (own.numel() > 0) least = std::min(least, own.softmax(0).min().item<double>());
  }
  return least;
}

}  // namespace

MaskedStack run_stack(const std::vector<PureHead>& layers, const Tensor& tokens,
                      const TupleMask& mask) {
  MaskedStack stack;
  stack.tokens = {tokens};
  double largest_value = 0;
  for (const PureHead& head : layers) {
    stack.least_weight =
        std::min(stack.least_weight, least_weight(head, stack.tokens.back(), mask));
    largest_value = std::max(largest_value, largest_norm(head.values));
    for (const Tensor& keys : head.keys) {
      stack.largest_key_norm =
          std::max(stack.largest_key_norm, at::linalg_matrix_norm(keys, 2).item<double>());
    }
    stack.tokens.push_back(apply(head, stack.tokens.back(), mask));
  }
  stack.floor = std::ssize(stack.tokens);
  for (int64_t t = std::ssize(stack.tokens) - 1; t >= 0; --t) {
    const auto norm = composite_norm(stack.tokens[t]).item<double>();
    const auto residual = composite_norm(mean_residual(stack.tokens[t])).item<double>();
    if (at_floor(residual, norm)) stack.floor = t;
    stack.largest_norm = std::max(stack.largest_norm, norm);
  }
  const auto order = static_cast<double>(layers.front().order());
  stack.value_product = std::pow(stack.largest_norm, order - 1) * std::pow(largest_value, order);
  return stack;
}

void ClosestSides::add(double own_left, double own_right) {
  // own_right / own_left < right / left, without dividing by 0.
  if (compared++ == 0 || own_right * left < right * own_left || std::isnan(own_left)) {
    left = own_left;
    right = own_right;
  }
}

MaskedSteps masked_steps(const MaskedStack& stack, int64_t centre, int64_t radius) {
  const Tensor all = at::stack(stack.tokens);  // [L + 1, n, d]
  const Tensor highest = all.amax(1);
  const Tensor lowest = std::get<0>(all.amin(1).flip(0).cummin(0)).flip(0) - stack.least_weight;
  const Tensor own = all.select(1, centre).contiguous();
  const auto top = highest.accessor<double, 2>(), bottom = lowest.accessor<double, 2>(),
             at_centre = own.accessor<double, 2>();
  MaskedSteps steps;
  for (int64_t t = 0; t + 1 < stack.floor; ++t) {
    for (int64_t j = 0; j < all.size(2); ++j) {
      const double range = top[t][j] - bottom[t][j];
      const double rho = (top[t][j] - at_centre[t][j]) / range;
      const bool negative = top[t][j] < 0;
      const auto right = [&](int64_t steps_on) {
        return (1 - rho * std::pow(stack.least_weight, static_cast<double>(steps_on))) * range;
      };
      for (int64_t on = 1; on <= radius && t + on < stack.floor; ++on) {
        steps.lemma[negative].add(at_centre[t + on][j] - bottom[t][j], right(on));
      }
      if (t + radius < stack.floor) {
        steps.theorem[negative].add(top[t + radius][j] - bottom[t + radius][j], right(radius));
      }
    }
  }
  return steps;
}

}  // namespace nsimplex::analysis
