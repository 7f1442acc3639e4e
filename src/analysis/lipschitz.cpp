// Estimates Lipschitz constants by ascent, and computes their bounds for attention.

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/ascent.h"
#include "analysis/checks.h"
#include "support/named_option.h"
#include "support/plain_tensor.h"

namespace nsimplex {

template <>
inline constexpr Names<LipschitzForm, 3> kNames<LipschitzForm>{
    {{"printed", LipschitzForm::printed},
     {"proof", LipschitzForm::proof},
     {"all_factors", LipschitzForm::all_factors}}};

using analysis::AscentProblem;
using analysis::Norm;
using analysis::Tensors;
using at::Tensor;

JacobianNorm jacobian_norm(const TensorFunction& function, const Tensor& x,
                           const AscentOptions& options) {
  analysis::check_problems("jacobian_norm", {x});
  const AscentProblem problem{.function = function};
  const auto found =
      ascend(problem, {x}, {analysis::random_direction({x}, Norm::frobenius)}, options);
  return {found.value, found.directions[0][0]};
}

LipschitzEstimate lipschitz_constant(const TensorFunction& function, const Tensor& start,
                                     double radius, const AscentOptions& options) {
  analysis::check_problems("lipschitz_constant", {start});
  analysis::check_positive("lipschitz_constant", "radius", radius);
  const AscentProblem problem{.function = function, .domains = {{.radius = radius}}};
  const auto found =
      ascend(problem, {start}, {analysis::random_direction({start}, Norm::frobenius)}, options);
  return {found.value, found.inputs[0], found.directions[0][0]};
}

Tensor token_influence(const std::function<Tensor(const Tensor&)>& function, const Tensor& x,
                       const std::optional<std::vector<int64_t>>& rows) {
  const std::string at = "[token_influence] ";
  TORCH_CHECK_VALUE(x.dim() == 3 && is_floating(x), at, "x: expected floating [B, T, C], got ",
                    x.scalar_type(), " ", x.sizes());
  const analysis::GradientsOn on;
  const Tensor given = analysis::leaf(x);
  const Tensor out = function(given);
  TORCH_CHECK_VALUE(out.dim() == 3 && out.size(0) == x.size(0), at,
                    "function: expected an output [", x.size(0), ", T, C], got ", out.sizes());
  std::vector<int64_t> chosen(static_cast<size_t>(out.size(1)));
  std::iota(chosen.begin(), chosen.end(), 0);
  if (rows) {
    int64_t last = -1;
    for (const int64_t row : *rows) {
      TORCH_CHECK_VALUE(row > last && row < out.size(1), at,
                        "rows: expected rising indices from 0 to ", out.size(1) - 1, ", got ", row,
                        " after ", last);
      last = row;
    }
    chosen = *rows;
  }
  analysis::require_gradient(out);
  Tensor squares = at::zeros({x.size(0), static_cast<int64_t>(chosen.size()), x.size(1)},
                             x.options().requires_grad(false));
  for (size_t place = 0; place < chosen.size(); ++place) {
    for (int64_t channel = 0; channel < out.size(2); ++channel) {
      const Tensor one = out.select(1, chosen[place]).select(1, channel).sum();
      const Tensor slope =
          torch::autograd::grad({one}, {given}, /*grad_outputs=*/{}, /*retain_graph=*/true,
                                /*create_graph=*/false, /*allow_unused=*/true)[0];
      if (slope.defined()) {
        squares.select(1, static_cast<int64_t>(place)) += slope.square().sum(-1);
      }
    }
  }
  return squares.sqrt();
}

double lipschitz_bound(const AttentionSize& size, LipschitzForm form) {
  require(size.order >= 1 && size.tokens >= 1 && size.head_dim >= 1,
          "lipschitz_bound: expected order, tokens and head_dim of one or more, got ", size.order,
          ", ", size.tokens, " and ", size.head_dim);
  require(size.radius >= 0 && size.key_norm >= 0 && size.value_norm >= 0 && size.output_scale >= 0,
          "lipschitz_bound: expected radius and norms of zero or more, got ", size.radius, ", ",
          size.key_norm, ", ", size.value_norm, " and ", size.output_scale);
  const auto n = static_cast<double>(size.tokens), order = static_cast<double>(size.order);
  const double logits = std::sqrt(static_cast<double>(size.head_dim)) *
                        std::pow(size.key_norm * size.radius, order + 1);
  const double values = size.output_scale * n * std::sqrt(n) * std::pow(size.value_norm, order) *
                        std::pow(size.radius, order - 1);
  switch (form) {
    case LipschitzForm::printed:  // std::hypot would need glibc 2.35
      return std::sqrt(2.0) * values * order * std::sqrt(1 + order * logits * order * logits);
    case LipschitzForm::proof:
      return values * order * (1 + logits);
    case LipschitzForm::all_factors:
      break;
  }
  return values * (order + (order + 1) * logits);
}

double pair_lipschitz_bound(int64_t tokens, double radius, double form_norm, double value_norm) {
  require(tokens >= 1 && radius >= 0 && form_norm >= 0 && value_norm >= 0,
          "pair_lipschitz_bound: expected a token or more, radius and norms of zero or "
          "more, got ",
          tokens, ", ", radius, ", ", form_norm, " and ", value_norm);
  const auto n = static_cast<double>(tokens);
  const double logits = form_norm * radius * radius;
  return std::sqrt(3.0) * value_norm * std::sqrt(logits * logits * (4 * n + 1) + n);
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "lipschitz_bound(int order, int tokens, int head_dim, float radius, float key_norm, float "
      "value_norm, str form, float output_scale) -> float",
      [](int64_t order, int64_t tokens, int64_t head_dim, double radius, double key_norm,
         double value_norm, std::string_view form, double output_scale) {
        const auto chosen = named_option<LipschitzForm>("lipschitz_bound", "form", form,
                                                        {.before = "", .last = " or "});
        return analysis::as_operator([&] {
          return lipschitz_bound(
              {order, tokens, head_dim, radius, key_norm, value_norm, output_scale}, chosen);
        });
      });
  m.def(
      "pair_lipschitz_bound(int tokens, float radius, float form_norm, float value_norm) -> float",
      [](int64_t tokens, double radius, double form_norm, double value_norm) {
        return analysis::as_operator(
            [&] { return pair_lipschitz_bound(tokens, radius, form_norm, value_norm); });
      });
}

}  // namespace nsimplex
