// Declares stacks of random layers and how fast their tokens collapse.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/collapse.h"
#include "cli/output.h"
#include "lab/common/verdicts.h"
#include "support/names.h"

namespace nsimplex::cli {

/// The normalisation of each token after a layer: none, mean 0 and variance 1 of its channels, or
/// mean square 1.
enum class TokenNorm { none, layer, rms };

}  // namespace nsimplex::cli

namespace nsimplex {

template <>
inline constexpr Names<cli::TokenNorm, 3> kNames<cli::TokenNorm>{{{"none", cli::TokenNorm::none},
                                                                  {"layer", cli::TokenNorm::layer},
                                                                  {"rms", cli::TokenNorm::rms}}};

}  // namespace nsimplex

namespace nsimplex::cli {

/// A stack of layers of N-simplicial attention with random weights, measured layer by layer.
struct DepthArm {
  std::string name;
  int64_t order = 1;
  bool skip = false;  ///< X + f(X)
  TokenNorm norm = TokenNorm::none;
  AttentionOptions options;  ///< of stacks without a mask: another form, reducer or normaliser
  std::optional<analysis::TupleMask> mask;
  /// instead of a mask: the number of keys per query, chosen again by every layer
  int64_t best_keys = 0;
  bool paths = false;  ///< over these, instead of all their combinations
  at::Tensor
      distances;       ///< of a mask: int64 [n, n], layers from j until i depends on it; -1: never
  int64_t radius = 1;  ///< of the mask; -1: not one
  double gap = 0;      ///< lambda_2 of its 1-skeleton; NaN if the tokens choose the keys
  at::ScalarType dtype = at::kDouble;  ///< of weights, tokens and attention
};

struct DepthSettings {
  int64_t tokens = 16, channels = 16, layers = 24;
};

/// The stacks are: without and with a skip connection, normalised or not; then masks of several
/// radii, in the setting of the theorems and with unit mean square; the former again in float32 and
/// bfloat16. Others are beyond the theorems: the four keys with the largest logits of the first
/// projection (as an indexer that reuses it chooses them) and paths over these, other reducers, the
/// determinant form if the channels can be cut for it, and sigmoid.
std::vector<DepthArm> depth_arms(int64_t order, const DepthSettings& settings, uint64_t seed);

/// A window of all earlier tokens, of a quarter and of two of them, four random keys, and paths
/// over these.
std::vector<DepthArm> masked_arms(int64_t order, int64_t tokens, TokenNorm norm, uint64_t seed);

/// One layer of the stack, in the dtype of the tokens.
at::Tensor run_layer(const DepthArm& arm, const analysis::PureHead& head, const at::Tensor& tokens);

/// The measurements of a stack, from the input on, layer by layer, until float64 ends
/// (analysis::at_floor()).
struct DepthCurve {
  DepthArm arm;
  std::vector<double> log10_residual;  ///< of the smallest residual
  std::vector<double> ratio;           ///< ||res(X)|| / ||X||
  std::vector<double> effective_rank, mean_cosine, dirichlet_energy;

  /// The decrease of ln(ratio) per layer, by least squares; NaN for fewer than three points.
  double rate() const;
};

/// Weights come from torch's generator.
DepthCurve watch_depth(const DepthArm& arm, const DepthSettings& settings);

/// {curve, order, norm, masked, radius, lambda_2, dtype, rate, log10_residual, ratio,
/// effective_rank, mean_cosine, dirichlet_energy}
Json to_json(const DepthCurve& curve);

/// Tests statements on all curves: with unit mean square, a mask of larger radius collapses slower;
/// less precision does not delay collapse.
void test_curves(const std::vector<DepthCurve>& curves, Verdicts& verdicts);

}  // namespace nsimplex::cli
