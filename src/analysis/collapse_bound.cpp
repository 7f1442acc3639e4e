// nsimplex::collapse_bound(), depth_bound() and their operators.

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "analysis/collapse.h"
#include "support/plain_tensor.h"
#include "support/size_limits.h"

namespace nsimplex {

using at::Tensor;

namespace {

Tensor checked_weights(const std::string& argument, const Tensor& weights, int64_t rows) {
  TORCH_CHECK_TYPE(is_floating(weights), argument, ": expected floating point numbers, got ",
                   weights.scalar_type());
  TORCH_CHECK_VALUE(weights.dim() == 2 && weights.size(0) == rows, argument,
                    ": expected matrices of ", rows, " rows, got shape ", weights.sizes());
  return weights.detach().to(at::kCPU, at::kDouble);
}

std::vector<Tensor> checked_weights(const std::string& argument, at::TensorList all, int64_t rows) {
  std::vector<Tensor> checked;
  for (const Tensor& each : all) {
    checked.push_back(checked_weights(argument, each, rows));
    TORCH_CHECK_VALUE(each.size(1) == all.front().size(1), argument,
                      ": expected matrices of one width, got ", all.front().size(1), " and ",
                      each.size(1));
  }
  return checked;
}

// The logits of n tokens at order N are n^(N+1) numbers.
Tensor checked_tokens(const std::string& function, const Tensor& tokens, size_t order) {
  TORCH_CHECK_TYPE(is_floating(tokens), function, "tokens: expected floating point numbers, got ",
                   tokens.scalar_type());
  TORCH_CHECK_VALUE(tokens.dim() == 2 && tokens.numel() > 0, function,
                    "tokens: expected [n, C] with at least one of each, got ", tokens.sizes());
  int64_t logits = tokens.size(0);
  for (size_t axis = 0; axis < order; ++axis) logits = saturating_product(logits, tokens.size(0));
  TORCH_CHECK_VALUE(logits <= kMostMade, function, "tokens: expected at most ", kMostMade,
                    " logits, n^(N+1) of n tokens at order N, got n = ", tokens.size(0),
                    " and N = ", order);
  return tokens.detach().to(at::kCPU, at::kDouble);
}

// In float64 on the CPU. `label` ends with a space.
CollapseHead checked_head(const std::string& label, at::TensorList keys, at::TensorList values,
                          const std::optional<Tensor>& output, int64_t channels) {
  CollapseHead head{checked_weights(label + "keys", keys, channels),
                    checked_weights(label + "values", values, channels)};
  if (output) head.output = checked_weights(label + "output", *output, values.front().size(1));
  return head;
}

CollapseHead checked_head(const std::string& label, const CollapseHead& head, int64_t channels) {
  CollapseHead checked = checked_head(label, head.keys, head.values, head.output, channels);
  const Tensor& last = checked.output ? *checked.output : checked.values.front();
  TORCH_CHECK_VALUE(last.size(1) == channels, label, "expected an output of ", channels,
                    " channels as the tokens, got ", last.sizes());
  return checked;
}

using Layers = std::vector<std::vector<CollapseHead>>;

// visit(label, layer, head) for each head of each layer.
template <class Visit>
void for_each_head(const Layers& layers, Visit&& visit) {
  for (size_t t = 0; t < layers.size(); ++t) {
    for (size_t h = 0; h < layers[t].size(); ++h) {
      visit(c10::str("[depth_bound] layers[", t, "][", h, "]: "), t, layers[t][h]);
    }
  }
}

// The order that all heads have.
int64_t common_order(const Layers& layers) {
  TORCH_CHECK_VALUE(
      !layers.empty() && std::ranges::none_of(layers, [](const auto& own) { return own.empty(); }),
      "[depth_bound] layers: expected at least one, each with at least one head");
  const int64_t order = layers.front().front().order();
  for_each_head(layers, [&](const std::string& label, size_t, const CollapseHead& head) {
    const auto keys = static_cast<int64_t>(head.keys.size());
    TORCH_CHECK_VALUE(order >= 1, label, "expected at least one of values, got none");
    TORCH_CHECK_VALUE(head.order() == order && keys == order + 1, label, "expected ", order + 1,
                      " keys and ", order, " values as in the first head, got ", keys, " and ",
                      head.order());
  });
  return order;
}

Layers checked_layers(const Layers& layers, int64_t channels) {
  Layers checked(layers.size());
  for_each_head(layers, [&](const std::string& label, size_t t, const CollapseHead& head) {
    checked[t].push_back(checked_head(label, head, channels));
  });
  return checked;
}

// Maxima over layers and heads, and the logarithm of the factor with the power (3^L - 1) / 2.
struct StackFactors {
  double order, gamma = 0, logit_range = 0, key = 0, value = 0, output = 1, heads = 0, scale = 0;
  double norm = 0;  // ||X^(t)||

  void add(const CollapseHead& head, const analysis::CollapseFactors& own) {
    gamma = std::max(gamma, own.gamma);
    logit_range = std::max(logit_range, own.logit_range);
    key = std::max(key, own.largest_key);
    value = std::max(value, own.largest_value);
    output = std::max(output, own.output);
    scale = std::max(scale, analysis::logit_scale_of(head));
  }

  double beta() const { return std::pow(2 * key, order + 1) * std::pow(2 * value, order) * output; }

  double log_factor() const {
    return std::log(4 * gamma * heads * scale) + (order + 1) * std::log(2 * key) +
           order * std::log(2 * value) + std::log(output) +
           (order == 1 ? 0 : 2 * (order - 1) * std::log(norm));
  }
};

}  // namespace

CollapseBound collapse_bound(at::TensorList keys, at::TensorList values, const Tensor& tokens,
                             const std::optional<Tensor>& output) {
  const std::string at = "[collapse_bound] ";
  TORCH_CHECK_VALUE(!values.empty() && keys.size() == values.size() + 1, at,
                    "keys: expected one more than the ", values.size(),
                    " values, the first for the queries, got ", keys.size());
  const Tensor own = checked_tokens(at, tokens, values.size());
  return analysis::collapse_bound(checked_head(at, keys, values, output, own.size(1)), own);
}

DepthBound depth_bound(const Layers& layers, const Tensor& tokens) {
  const int64_t order = common_order(layers);
  Tensor now = checked_tokens("[depth_bound] ", tokens, static_cast<size_t>(order));
  const Layers stack = checked_layers(layers, now.size(1));
  StackFactors largest{.order = static_cast<double>(order)};
  std::vector<double> residuals, bounds, norms;
  for (size_t t = 0; t <= stack.size(); ++t) {
    const MinimalResidual residual = minimal_residual(now);
    residuals.push_back(std::log(residual.norm.item<double>()));
    norms.push_back(composite_norm(now).item<double>());
    largest.norm = std::max(largest.norm, norms.back());
    const double power = std::pow(3, static_cast<double>(t));
    bounds.push_back(t == 0 ? residuals.front()
                            : power * residuals.front() + (power - 1) / 2 * largest.log_factor());
    if (t == stack.size()) break;
    Tensor next = at::zeros_like(now);
    for (const CollapseHead& head : stack[t]) {
      largest.add(head, analysis::factors_of(head, now, residual.offset));
      next = next + analysis::apply(head, now);
    }
    largest.heads = std::max(largest.heads, static_cast<double>(stack[t].size()));
    now = next;
  }
  const auto on_device = [&](const std::vector<double>& numbers) {
    return at::tensor(numbers, at::kDouble).to(tokens.device());
  };
  return {on_device(residuals), on_device(bounds), on_device(norms),
          largest.gamma,        largest.beta(),    largest.logit_range};
}

namespace {

using Counts = at::IntArrayRef;

// The next `count` of a list of tensors.
std::vector<Tensor> take(at::TensorList all, size_t& begin, int64_t count, const char* argument) {
  TORCH_CHECK_VALUE(count >= 0 && begin + static_cast<size_t>(count) <= all.size(),
                    "[depth_bound] ", argument, ": expected as many as the counts say, got ",
                    all.size());
  const at::TensorList part = all.slice(begin, static_cast<size_t>(count));
  begin += part.size();
  return part.vec();
}

// Heads of all layers one after the other, as the operator takes them.
Layers layers_of(at::TensorList keys, at::TensorList values,
                 const c10::List<std::optional<Tensor>>& outputs, Counts heads, Counts key_counts,
                 Counts value_counts) {
  Layers layers;
  size_t head = 0, key = 0, value = 0;
  for (const int64_t count : heads) {
    layers.emplace_back();
    for (int64_t h = 0; h < count; ++h, ++head) {
      TORCH_CHECK_VALUE(
          head < key_counts.size() && head < value_counts.size() && head < outputs.size(),
          "[depth_bound] heads: expected as many as there are counts and outputs, got more than ",
          head);
      layers.back().push_back({take(keys, key, key_counts[head], "keys"),
                               take(values, value, value_counts[head], "values"),
                               outputs.get(head)});
    }
  }
  return layers;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "collapse_bound(Tensor[] keys, Tensor[] values, Tensor tokens, Tensor? output=None) -> "
      "(float, float, float, float, float, float, float)",
      [](at::TensorList keys, at::TensorList values, const Tensor& tokens,
         const std::optional<Tensor>& output) {
        const CollapseBound found = collapse_bound(keys, values, tokens, output);
        return std::tuple(found.residual, found.next_residual, found.next_norm, found.bound,
                          found.gamma, found.beta, found.logit_range);
      });
  m.def(
      "depth_bound(Tensor[] keys, Tensor[] values, Tensor?[] outputs, Tensor tokens, int[] heads, "
      "int[] key_counts, int[] value_counts) -> (Tensor, Tensor, Tensor, float, float, float)",
      [](at::TensorList keys, at::TensorList values,
         const c10::List<std::optional<Tensor>>& outputs, const Tensor& tokens, Counts heads,
         Counts key_counts, Counts value_counts) {
        const DepthBound found =
            depth_bound(layers_of(keys, values, outputs, heads, key_counts, value_counts), tokens);
        return std::tuple(found.residual, found.bound, found.norm, found.gamma, found.beta,
                          found.logit_range);
      });
}

}  // namespace nsimplex
