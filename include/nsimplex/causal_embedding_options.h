#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace nsimplex {

/// How points move; docs/causal/embedding.md compares them.
enum class EmbeddingOptimiser {
  rsgd,    ///< Riemannian gradient descent, Eq. 19 to 21
  radam,   ///< Riemannian Adam: first moment carried along geodesics, one second moment a point
  tangent  ///< Adam on the points' tangent vectors at the origin
};

/// Weights of attracting pairs. paths: P_mn + P_nm of P = sum over h <= hops of decay^(h-1) |A|^h;
/// direct: |A_mn|, so that effects that are no direct ones attract with weight 0.
enum class AttractionWeight { paths, direct };

/// Which nodes attract m, N+(m). both: those that a directed path of at most `hops` edges joins
/// with m in either direction; causes: those such a path comes from. All others but m repel.
enum class AttractionSide { both, causes };

/// What becomes of a walk from effects to causes at a node without causes. uniform: it goes on
/// anywhere; eigenvector: it ends, and the leading eigenvector of what is left is taken.
enum class DanglingRule { uniform, eigenvector };

struct CausalEmbeddingOptions {
  int64_t dimension = 3;
  EmbeddingOptimiser optimiser = EmbeddingOptimiser::tangent;
  int64_t steps = 300;
  /// Falls along a half cosine to a hundredth; unset: 1 for tangent, 0.3 for radam, 0.1 for rsgd.
  std::optional<double> learning_rate = {};

  std::optional<int64_t> hops = {};         ///< unset: 1 for a hierarchy, 2 otherwise
  std::optional<AttractionSide> side = {};  ///< unset: causes for a hierarchy, else both
  AttractionWeight weight = AttractionWeight::paths;
  double decay = 0.5;
  /// Nodes that stand for all as negatives, drawn anew each step; 0: all of them. Unset: all up
  /// to 2,000 nodes, 512 beyond.
  std::optional<int64_t> negatives = {};

  /// |A| is first freed of the units of nodes and of its common size, as docs/causal/embedding.md
  /// says; false: as it is given.
  bool balanced = true;

  /// lambda_g. 0.7 keeps mean rank and MAP within a tenth of the best strength on the graphs of
  /// docs/causal/embedding.md, small and large, dense and sparse, and radii in the order of effects.
  double generality = 0.7;
  /// lambda_g multiplies sqrt(W_m W) M pi_m log cosh r_m, which weighs as much as the node's pairs
  /// do and ends at the origin; false: pi_m r_m, as printed.
  bool relative = true;
  double restart = 0.15;  ///< w of Eq. 18
  DanglingRule dangling = DanglingRule::uniform;

  int64_t seed = 0;
  /// Called before every step with its number; what it throws ends the embedding.
  std::function<void(int64_t step)> checkpoint = {};
};

}  // namespace nsimplex
