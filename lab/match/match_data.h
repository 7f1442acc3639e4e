#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

/// Match-r, tasks that separate the orders of attention (Match2 and Match3: Sanford, Hsu and
/// Telgarsky 2023, arXiv 2306.02896): over a sequence x of numbers modulo M, position i is labelled
/// 1 when r - 1 positions j1, .., j_{r-1} exist (equal ones and i itself allowed) with
/// x_i + x_j1 + .. + x_j_{r-1} = 0 mod M. A layer of order r - 1 looks at all such positions at
/// once.
namespace nsimplex::training {

/// Which sequences are drawn: `balanced` keeps those with label 1 at half of the positions (for an
/// odd length every other sequence has the one more), so that guessing earns exactly 0.5; `natural`
/// keeps all, and 1 - (1 - 1/M)^(number of multisets of r - 1 positions) or so of the labels are 1.
enum class MatchLabels { balanced, natural };

struct MatchTask {
  int64_t arity = 3;     ///< r, at least 2
  int64_t modulus = 37;  ///< M
  int64_t length = 8;    ///< T
  MatchLabels labels = MatchLabels::balanced;
};

/// The usual M and T of an arity, 2 to 4. The more multisets of positions, the larger the modulus
/// that leaves half of the labels 0. M is prime: no number but 0 then matches itself alone.
MatchTask match_task(int64_t arity);

struct MatchSequences {
  at::Tensor tokens;  ///< int64 [count, length], values 0..M-1
  at::Tensor labels;  ///< fp32 [count, length], 0 or 1
};

/// Uniform sequences, drawn by rejection, in O(r T min(M, T^(r-1))) each. Throws InputError where
/// fewer than about one sequence in 2000 would be kept.
MatchSequences draw_match(int64_t count, const MatchTask& task, const at::Generator& generator);

/// What is compared on a match task, and how large each model is.

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
///                (nsimplex/attention.h); T^N tuples, or min(k, T)^N
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
