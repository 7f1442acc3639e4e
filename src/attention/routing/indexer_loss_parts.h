// Declares the attention mass of single keys and the alignment loss of an indexer.

#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace nsimplex::routing {

/// The attention layer that an indexer learns to predict, for some of its queries.
struct Layer {
  const at::Tensor& query;  ///< [B, Hq, c, D]
  at::TensorList keys;      ///< N of [B, Hk, T, D]
  bool causal = false;      ///< aligned to the ends
  std::string_view form = "product";
  std::optional<double> logit_scale;
};

/// Marginal mass of the keys: summed over axes and the other indices, divided by N and averaged
/// over heads: [B, c, T], float32 or float64. It is computed tile by tile.
at::Tensor marginal_mass(const Layer& layer);

/// The same with the softmax over the tuples of I_i x .. x I_i only: [B, c, n], one number per
/// entry of table [B, c, n], 0 for -1. The causal option of the layer does not apply.
at::Tensor product_mass(const Layer& layer, const at::Tensor& table);

/// The same with the softmax over the paths of the table [B, T, n] that begin at rows first_row,
/// .., first_row + c - 1. Only the mass of a row's own keys counts.
at::Tensor path_mass(const Layer& layer, const at::Tensor& table, int64_t first_row);

}  // namespace nsimplex::routing
