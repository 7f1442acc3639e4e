#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/layers.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "input_error_of.h"

namespace nsimplex::test {

/// Names of a module's parameters, in their order.
inline std::vector<std::string> names(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& item : module.named_parameters()) names.push_back(item.key());
  return names;
}

inline double error(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

inline SimplicialAttentionOptions layer_options(int64_t order) {
  SimplicialAttentionOptions options;
  options.dim = 24;
  options.heads = 4;
  options.order = order;
  return options;
}

/// Cuts the rows of the one projection into q, k1..kN, v1..vN, each [B, H, T, D], by hand.
inline std::vector<at::Tensor> project(SimplicialAttention& layer, const at::Tensor& x) {
  const auto& o = layer->options();
  const at::Tensor weight = layer->named_parameters()["qkv.weight"];
  std::vector<at::Tensor> parts;
  int64_t row = 0;
  for (int64_t part = 0; part < 1 + 2 * o.order; ++part) {
    const int64_t heads = part == 0 ? o.heads : o.kv_heads;
    const at::Tensor rows = weight.narrow(0, row, heads * o.head_dim);
    row += heads * o.head_dim;
    parts.push_back(at::matmul(x, rows.t())
                        .view({x.size(0), x.size(1), heads, o.head_dim})
                        .permute({0, 2, 1, 3}));
  }
  EXPECT_EQ(row, weight.size(0));
  return parts;
}

}  // namespace nsimplex::test
