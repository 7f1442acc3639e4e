// Declares the Match tasks, their sequences and the sizes of equal models.

#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <nsimplex/attention.h>

#include <cstdint>

#include "support/names.h"

/// Match-r, tasks that separate the orders of attention (Match2 and Match3: Sanford, Hsu and
/// Telgarsky 2023, arXiv 2306.02896). In a sequence x of numbers modulo M, position i has the label
/// 1 if there are r - 1 positions j1, .., j_{r-1} (equal ones and i itself are allowed) with x_i +
/// x_j1 + .. + x_j_{r-1} = 0 mod M. A layer of order r - 1 sees all such positions at once.
namespace nsimplex::training {

/// The distribution of sequences. `balanced` keeps those with label 1 at half of the positions (for
/// an odd length, every other sequence has one more), so guessing gives exactly 0.5. `natural`
/// keeps all, and about 1 - (1 - 1/M)^(number of multisets of r - 1 positions) of the labels are 1.
enum class MatchLabels { balanced, natural };

struct MatchTask {
  int64_t arity = 3;     ///< r, at least 2
  int64_t modulus = 37;  ///< M
  int64_t length = 8;    ///< T
  MatchLabels labels = MatchLabels::balanced;
};

/// The usual M and T of an arity, 2 to 4. With more multisets of positions, the modulus that leaves
/// half of the labels 0 is larger. M is prime, so that no number but 0 matches itself alone.
MatchTask match_task(int64_t arity);

struct MatchSequences {
  at::Tensor tokens;  ///< int64 [count, length], values 0..M-1
  at::Tensor labels;  ///< fp32 [count, length], 0 or 1
};

/// Draws uniform sequences by rejection, in O(r T min(M, T^(r-1))) each. Throws InputError if fewer
/// than about one sequence in 2000 would be kept.
MatchSequences draw_match(int64_t count, const MatchTask& task, const at::Generator& generator);

/// The compared models, and the size of each.

/// The tuples that an attention layer computes: all, or those of k keys that an indexer chooses
/// (nsimplex/sparse_layers.h).
enum class MatchTuples { dense, topk, path };

/// One model of a comparison.
struct MatchArm {
  int64_t order = 1;  ///< N of every attention layer
  int64_t depth = 1;  ///< L, blocks
  MatchTuples tuples = MatchTuples::dense;
  int64_t topk = 0;  ///< k of topk and path
  Form form = Form::product;
  bool rotary = false;  ///< with form determinant, or order 1
};

/// Widths of a model and of its input.
struct MatchSize {
  int64_t modulus = 0, length = 0;
  int64_t heads = 0;
  int64_t dim = 0;     ///< C
  int64_t hidden = 0;  ///< of every MLP
};

constexpr int64_t kMatchIndexHeads = 4, kMatchIndexDim = 16;  // of an indexer

/// The number of learned weights:
///
///     M C + L ((2 N + 2) C^2 + 2 C hidden + 2 C + indexer) + 2 C + 1
///
/// with (H' D' + D' + H') C for the indexer of a sparse arm.
int64_t match_parameters(const MatchArm& arm, const MatchSize& size);

/// Floating-point operations of a training step per position: those of the matrix products and the
/// operators, without elementwise operations.
///
///     products   6 per weight except the embedding: one product forward, two backward
///     attention  16 C per tuple: 2 (D + Dv) per head forward, three times that backward
///                (nsimplex/attention.h); T^N tuples, or min(k, T)^N
///     indexer    4 per weight, since no gradient reaches its input; scores 2 H' D' T; for
///                the alignment loss the layer's logits, 2 C per tuple, and 6 H' D' per chosen key
double match_flops(const MatchArm& arm, const MatchSize& size);

enum class MatchEqual { parameters, flops };

/// The size at which `arm` costs as much as `reference` at `reference_size`.
///
/// The width is the largest multiple of the heads, up to that of the reference, for which the MLP
/// has at least three widths of hidden units (four are usual). The MLP then takes the remaining
/// cost, to the nearest unit. So a lower order keeps the width and gets a wider MLP, and a deeper
/// model gets narrower blocks. Throws InputError if no width fits.
MatchSize equal_size(const MatchArm& arm, const MatchArm& reference,
                     const MatchSize& reference_size, MatchEqual equal);

}  // namespace nsimplex::training

namespace nsimplex {

template <>
inline constexpr Names<training::MatchLabels, 2> kNames<training::MatchLabels>{
    {{"balanced", training::MatchLabels::balanced}, {"natural", training::MatchLabels::natural}}};
template <>
inline constexpr Names<training::MatchTuples, 3> kNames<training::MatchTuples>{
    {{"dense", training::MatchTuples::dense},
     {"topk", training::MatchTuples::topk},
     {"path", training::MatchTuples::path}}};
template <>
inline constexpr Names<training::MatchEqual, 2> kNames<training::MatchEqual>{
    {{"parameters", training::MatchEqual::parameters}, {"flops", training::MatchEqual::flops}}};

}  // namespace nsimplex
