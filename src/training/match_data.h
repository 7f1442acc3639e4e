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

}  // namespace nsimplex::training
