#pragma once

#include <ATen/core/Generator.h>
#include <nsimplex/layers.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "lab/match/match_data.h"

namespace nsimplex::training {

/// Embedding, blocks (attention that is not causal, GELU MLP), RMSNorm, one logit a position. No
/// positions: the task is about sets.
class MatchModel : public torch::nn::Module {
 public:
  /// Weights come from `generator` alone.
  MatchModel(const MatchArm& arm, const MatchSize& size, HeadNorm norm,
             const at::Generator& generator);

  /// tokens int64 [B, T] -> logits [B, T].
  at::Tensor forward(const at::Tensor& tokens);

  /// Of the indexers at the last forward(), which recorded gradients; undefined for a dense arm.
  at::Tensor auxiliary_loss() const;

 private:
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::ModuleList blocks_;
  RMSNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};

struct MatchOptions {
  MatchTask task;
  int64_t dim = 96;
  int64_t heads = 4;
  HeadNorm norm = HeadNorm::none;
  int64_t batch = 256;
  int64_t steps = 1500;
  double learning_rate = 2e-3;  ///< peak; 50 steps of warm-up, then cosine to 0
  int64_t evaluate_every = 50;  ///< steps between points of the curve
  int64_t held_out = 2048;      ///< sequences that are never trained on
  int64_t reference_order = 2;  ///< one dense layer of it, with an MLP of 4 dim, sets the size
  MatchEqual equal = MatchEqual::parameters;  ///< in what the arms equal the reference
};

struct MatchPoint {
  int64_t step = 0;
  double loss = 0.0;      ///< of the batch of this step, without the indexers'
  double accuracy = 0.0;  ///< on the held-out sequences, NaN between evaluations
};

struct MatchResult {
  double accuracy = 0.0;  ///< on the held-out sequences, after the last step
  double majority = 0.0;  ///< what always answering the commoner label earns there
  MatchSize size;
  int64_t parameters = 0;
  double flops = 0.0;         ///< of a training step, for each position
  double step_seconds = 0.0;  ///< median
  double seconds = 0.0;       ///< training and evaluation
};

/// The size at which an arm is trained.
MatchSize size_of(const MatchOptions& options, const MatchArm& arm);

/// Throws InputError, which names the option, where options or arms cannot be used.
void check_match(const MatchOptions& options, const std::vector<MatchArm>& arms);

/// Trains the arms on fresh sequences, one batch a step, and judges them on held-out ones. The arms
/// take turns step by step, on the same batch, so that a machine that is slow for a while is slow
/// for all. Every number that depends on chance comes from `seed`, and what an arm comes to does
/// not depend on the others. `report` is called after each step of each arm, with the arm's place
/// in `arms`; what it throws ends the training.
std::vector<MatchResult> train_match(
    const MatchOptions& options, const std::vector<MatchArm>& arms, uint64_t seed,
    const std::function<void(size_t arm, const MatchPoint&)>& report);

}  // namespace nsimplex::training
