// Estimates sensitivity and sharpness of a function by ascent, and computes their bounds.

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>
#include <torch/library.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "analysis/ascent.h"
#include "analysis/checks.h"

namespace nsimplex {
namespace {

using analysis::AscentProblem;
using analysis::Norm;
using analysis::Tensors;
using at::Tensor;

// For each block the inputs that its directions perturb: {i}, or {i, j}.
using Blocks = std::vector<std::vector<size_t>>;

// For each direction and input, [blocks x copies]: 1 if the block's direction perturbs it.
std::vector<Tensors> active_inputs(const Blocks& blocks, size_t inputs, int64_t copies,
                                   const at::TensorOptions& options) {
  std::vector<Tensors> active;
  for (size_t k = 0; k < blocks[0].size(); ++k) {
    active.emplace_back();
    for (size_t i = 0; i < inputs; ++i) {
      const Tensor chosen = at::zeros({std::ssize(blocks), 1}, options);
      for (size_t b = 0; b < blocks.size(); ++b) {
        if (blocks[b][k] == i) chosen[static_cast<int64_t>(b)].fill_(1);
      }
      active.back().push_back(chosen.expand({-1, copies}).flatten());
    }
  }
  return active;
}

// Every block and start is a separate problem: [blocks, starts, B] of them, climbed at once.
SensitivityEstimate climb(const TensorFunction& function, const Tensors& inputs,
                          const SensitivityOptions& options, const Blocks& blocks) {
  const int64_t problems = inputs[0].size(0), copies = options.starts * problems;
  Tensors x;
  for (const Tensor& input : inputs) {
    std::vector<int64_t> repeats(input.dim(), 1);
    repeats[0] = std::ssize(blocks) * options.starts;
    x.push_back(input.detach().repeat(repeats));
  }
  AscentProblem problem{.function = function, .norm = Norm::inf_rms};
  problem.active = active_inputs(blocks, inputs.size(), copies, inputs[0].options());
  for (size_t i = 0; i < options.input_rms.size(); ++i) {
    const double width = static_cast<double>(inputs[i].size(-1));
    problem.domains.push_back({options.input_rms[i] * std::sqrt(width), /*sphere=*/true});
  }
  std::vector<Tensors> directions;
  for (const Tensors& active : problem.active) {
    directions.push_back(analysis::random_direction(x, Norm::inf_rms, active));
  }
  const auto found = ascend(problem, std::move(x), std::move(directions), options.ascent);
  const Tensor all = found.value.view({-1, problems});  // [blocks x starts, B]
  const auto [value, best] = all.max(0);
  const Tensor rows = best * problems + at::arange(problems, best.options());
  SensitivityEstimate estimate{value, all.view({std::ssize(blocks), options.starts, -1}).amax(1)};
  for (const Tensor& each : found.inputs) estimate.inputs.push_back(each.index_select(0, rows));
  for (const Tensors& direction : found.directions) {
    estimate.directions.emplace_back();
    for (const Tensor& each : direction) {
      estimate.directions.back().push_back(each.index_select(0, rows));
    }
  }
  return estimate;
}

void check(const char* name, const Tensors& inputs, const SensitivityOptions& options) {
  analysis::check_problems(name, inputs);
  require(options.starts >= 1, name, ": starts: expected one or more, got ", options.starts);
  const size_t given = options.input_rms.size();
  require(given == 0 || given == inputs.size(), name, ": input_rms: expected ", inputs.size(),
          " numbers, one per input, or none, got ", given);
  for (const double rms : options.input_rms) analysis::check_positive(name, "input_rms", rms);
}

}  // namespace

Tensor inf_rms(const Tensor& x) {
  return x.norm(2, -1).max() / std::sqrt(static_cast<double>(x.size(-1)));
}

Tensor inf_op(const Tensor& weights, int64_t order) {
  require(order >= 1 && weights.dim() > order, "inf_op: weights: expected ", order,
          " key axes behind that of the queries, got ", weights.sizes());
  return weights.abs().flatten(weights.dim() - order).sum(-1).max();
}

SensitivityEstimate sensitivity(const TensorFunction& function, const Tensors& inputs,
                                const SensitivityOptions& options) {
  check("sensitivity", inputs, options);
  Blocks blocks;
  for (size_t i = 0; i < inputs.size(); ++i) blocks.push_back({i});
  return climb(function, inputs, options, blocks);
}

SensitivityEstimate sharpness(const TensorFunction& function, const Tensors& inputs,
                              const SensitivityOptions& options) {
  check("sharpness", inputs, options);
  Blocks blocks;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t j = i; j < inputs.size(); ++j) blocks.push_back({i, j});
  }
  return climb(function, inputs, options, blocks);
}

namespace {

// Attention of inputs divided by their norms; c1 and c2 then contain the norms.
struct Normalized {
  double c1, c2;
  std::vector<double> norms;  // of q, k_1.., v_1..
};

double product(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 1.0, std::multiplies<>());
}

constexpr int64_t kMostBoundedOrder = 1 << 20;  // each has its own numbers

Normalized normalized(const char* name, int64_t order, int64_t head_dim, int64_t value_dim,
                      const Scale& scale, const InputNorms& norms) {
  require(order >= 1 && head_dim >= 1 && value_dim >= 1, name,
          ": expected order, head_dim and value_dim of one or more, got ", order, ", ", head_dim,
          " and ", value_dim);
  TORCH_CHECK_VALUE(order <= kMostBoundedOrder, "[", name, "] order: expected 1 to ",
                    kMostBoundedOrder, ", got ", order);
  const auto of = [&](const char* argument, std::vector<double> given) {
    if (given.empty()) given.assign(order, 1);
    require(std::ssize(given) == order, name, ": ", argument, ": expected ", order,
            " norms or none, got ", given.size());
    for (const double norm : given) analysis::check_positive(name, argument, norm);
    return given;
  };
  analysis::check_positive(name, "query", norms.query);
  const std::vector<double> keys = of("keys", norms.keys), values = of("values", norms.values);
  const auto n = static_cast<double>(order);
  Normalized result{std::abs(scale.logit) * std::pow(static_cast<double>(head_dim), (n + 1) / 2) *
                        norms.query * product(keys),
                    std::abs(scale.output) * std::pow(static_cast<double>(value_dim), (n - 1) / 2) *
                        product(values),
                    {norms.query}};
  result.norms.insert(result.norms.end(), keys.begin(), keys.end());
  result.norms.insert(result.norms.end(), values.begin(), values.end());
  return result;
}

}  // namespace

std::vector<double> sensitivity_bounds(int64_t order, int64_t head_dim, int64_t value_dim,
                                       const Scale& scale, const InputNorms& norms) {
  const Normalized unit =
      normalized("sensitivity_bounds", order, head_dim, value_dim, scale, norms);
  std::vector<double> bounds;
  for (int64_t i = 0; i < 2 * order + 1; ++i) {
    const double bound = i <= order ? unit.c1 * unit.c2 : unit.c2;
    bounds.push_back(bound / unit.norms[i]);
  }
  return bounds;
}

std::vector<double> sharpness_bounds(int64_t order, int64_t head_dim, int64_t value_dim,
                                     const Scale& scale, const InputNorms& norms) {
  const auto [c1, c2, sizes] =
      normalized("sharpness_bounds", order, head_dim, value_dim, scale, norms);
  std::vector<double> bounds;
  for (int64_t i = 0; i < 2 * order + 1; ++i) {
    for (int64_t j = i; j < 2 * order + 1; ++j) {
      double bound = 0;  // a value with itself
      if (j <= order) {
        bound = i == j ? 2 * c1 * c1 * c2 : c2 * (c1 + 2 * c1 * c1);
      } else if (i <= order) {
        bound = c1 * c2;
      } else if (i < j) {
        bound = c2;
      }
      bounds.push_back(bound / (sizes[i] * sizes[j]));
    }
  }
  return bounds;
}

namespace {

// Norms of q, k_1.., v_1.., as the operators take them; none: norms of one.
InputNorms input_norms(const char* name, int64_t order, at::ArrayRef<double> given) {
  if (given.empty()) return {};
  TORCH_CHECK_VALUE(order >= 1 && std::ssize(given) == 2 * order + 1, "[", name,
                    "] input_rms: expected 2 order + 1 norms or none, got ", given.size(),
                    " for order ", order);
  const auto keys = given.slice(1, order), values = given.slice(1 + order);
  return {given[0], keys.vec(), values.vec()};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::string arguments =
      "(int order, int head_dim, int value_dim, float logit_scale, float output_scale, float[] "
      "input_rms) -> float[]";
  m.def(("sensitivity_bounds" + arguments).c_str(),
        [](int64_t order, int64_t head_dim, int64_t value_dim, double logit_scale,
           double output_scale, at::ArrayRef<double> input_rms) {
          const InputNorms norms = input_norms("sensitivity_bounds", order, input_rms);
          return analysis::as_operator([&] {
            return sensitivity_bounds(order, head_dim, value_dim, {logit_scale, output_scale},
                                      norms);
          });
        });
  m.def(("sharpness_bounds" + arguments).c_str(),
        [](int64_t order, int64_t head_dim, int64_t value_dim, double logit_scale,
           double output_scale, at::ArrayRef<double> input_rms) {
          const InputNorms norms = input_norms("sharpness_bounds", order, input_rms);
          return analysis::as_operator([&] {
            return sharpness_bounds(order, head_dim, value_dim, {logit_scale, output_scale}, norms);
          });
        });
}

}  // namespace

}  // namespace nsimplex
