#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

/// Match3, a task that separates the orders of attention (Sanford, Hsu and Telgarsky 2023, arXiv
/// 2306.02896): over a sequence x of numbers modulo M, position i is labelled 1 when two positions
/// j1, j2 exist (equal ones and i itself allowed) with x_i + x_j1 + x_j2 = 0 mod M. One
/// 2-simplicial layer looks at pairs (j1, j2) and can solve it; ordinary attention looks at one j
/// at a time.
namespace nsimplex::training {

struct Match3Sequences {
  at::Tensor tokens;  ///< int64 [count, length], values 0..M-1
  at::Tensor labels;  ///< fp32 [count, length], 0 or 1
};

/// Which sequences are drawn: `balanced` keeps those with label 1 at half of the positions (for an
/// odd length every other sequence has the one more), so that guessing earns exactly 0.5; `natural`
/// keeps all, and 1 - (1 - 1/M)^(T (T + 1) / 2) or so of the labels are 1.
enum class Match3Labels { balanced, natural };

/// Uniform sequences, drawn by rejection. Throws InputError where fewer than about one sequence in
/// 2000 would be kept.
Match3Sequences draw_match3(int64_t count, int64_t length, int64_t modulus, Match3Labels labels,
                            const at::Generator& generator);

struct Match3Options {
  int64_t modulus = 37;  ///< M
  int64_t length = 8;    ///< T
  Match3Labels labels = Match3Labels::balanced;
  int64_t dim = 96;
  int64_t heads = 4;
  int64_t batch = 256;
  int64_t steps = 1500;
  double learning_rate = 2e-3;  ///< peak; 50 steps of warm-up, then cosine to 0
  int64_t evaluate_every = 50;  ///< steps between points of the curve
  int64_t held_out = 2048;      ///< sequences that are never trained on
  int64_t highest_order = 2;    ///< lower orders get a wider MLP, to have as many parameters
};

struct Match3Point {
  int64_t step = 0;
  double loss = 0.0;      ///< of the batch of this step
  double accuracy = 0.0;  ///< on the held-out sequences, NaN between evaluations
};

struct Match3Result {
  double accuracy = 0.0;  ///< on the held-out sequences, after the last step
  double majority = 0.0;  ///< what always answering the commoner label earns there
  int64_t parameters = 0;
  double seconds = 0.0;  ///< training and evaluation
};

/// Trains one block (attention of `order`, not causal, and a GELU MLP) on fresh sequences, one
/// batch a step, and judges it on held-out ones. Every number that depends on chance comes from
/// `seed`; the held-out sequences are the same for every order. `report` is called after each step;
/// what it throws ends the training.
Match3Result train_match3(const Match3Options& options, int64_t order, uint64_t seed,
                          const std::function<void(const Match3Point&)>& report);

}  // namespace nsimplex::training
