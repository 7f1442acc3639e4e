#pragma once

#include <cstdint>

/// What is compared on a match task, and how large each model is.
namespace nsimplex::training {

/// Which tuples an attention layer computes: all, or those of k keys that an indexer chooses
/// (nsimplex/sparse_layers.h).
enum class MatchTuples { dense, topk, path };

/// One model of a comparison.
struct MatchArm {
  int64_t order = 1;  ///< N of every attention layer
  int64_t depth = 1;  ///< L, blocks
  MatchTuples tuples = MatchTuples::dense;
  int64_t topk = 0;  ///< k of topk and path
};

/// Widths of a model, and of what it reads.
struct MatchSize {
  int64_t modulus = 0, length = 0;
  int64_t heads = 0;
  int64_t dim = 0;     ///< C
  int64_t hidden = 0;  ///< of every MLP
};

constexpr int64_t kMatchIndexHeads = 4, kMatchIndexDim = 16;  // of an indexer

/// Numbers that the model learns:
///
///     M C + L ((2 N + 2) C^2 + 2 C hidden + 2 C + indexer) + 2 C + 1
///
/// with (H' D' + D' + H') C for the indexer of a sparse arm.
int64_t match_parameters(const MatchArm& arm, const MatchSize& size);

/// Floating-point operations of a training step for each position: what the matrix products and the
/// operators count, nothing that is done element by element.
///
///     products   6 for every weight but the embedding: one product forward, two backward
///     attention  16 C for every tuple: 2 (D + Dv) a head forward, three times that backward
///                (nsimplex/attention_cost.h); T^N tuples, or min(k, T)^N
///     indexer    4 for every weight, since no gradient reaches its input; scores 2 H' D' T; for
///                the alignment loss the layer's logits, 2 C a tuple, and 6 H' D' a chosen key
double match_flops(const MatchArm& arm, const MatchSize& size);

enum class MatchEqual { parameters, flops };

/// The size at which `arm` costs as much as `reference` does at `reference_size`.
///
/// The width is the largest up to that of the reference, in steps of the heads, that leaves the MLP
/// three widths of hidden units or more (a usual one has four); the MLP then takes what is left, to
/// the nearest unit. So a lower order keeps the width and gets a wider MLP, a deeper model gets
/// narrower blocks. Throws InputError where no width fits.
MatchSize equal_size(const MatchArm& arm, const MatchArm& reference,
                     const MatchSize& reference_size, MatchEqual equal);

}  // namespace nsimplex::training
