#include "analysis/masked_collapse.h"

#include <ATen/ATen.h>
#include <nsimplex/analysis_smoothing.h>

#include <algorithm>
#include <cmath>

namespace nsimplex::analysis {

using at::Tensor;

namespace {

// The least softmax weight of the tuples of a mask.
double least_weight(const PureHead& head, const Tensor& tokens, const TupleMask& mask) {
  const Tensor counts = mask.offsets.flatten().diff();
  const Tensor query = at::arange(counts.size(0)).repeat_interleave(counts);
  Tensor product = tokens.matmul(head.keys.front()).index_select(0, query);
  for (int64_t m = 0; m < head.order(); ++m) {
    const Tensor keys = tokens.matmul(head.keys[m + 1]);
    product = product * keys.index_select(0, mask.indices.select(1, m));
  }
  const Tensor logits = product.sum(-1) * head.logit_scale();
  // Every query's tuples lie one after the other.
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
