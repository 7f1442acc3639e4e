// Declares the model for the Match tasks and its training.

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

/// Embedding, blocks (non-causal attention, GELU MLP), RMSNorm, one logit per position. There are
/// no position encodings unless the arm rotates, since the task is about sets.
class MatchModel : public torch::nn::Module {
 public:
  /// All weights come from `generator`.
  MatchModel(const MatchArm& arm, const MatchSize& size, HeadNorm norm,
             const at::Generator& generator);

  /// tokens int64 [B, T] -> logits [B, T].
  at::Tensor forward(const at::Tensor& tokens);

  /// Of the indexers in the last forward() that recorded gradients; undefined for a dense model.
  at::Tensor auxiliary_loss() const;

  /// Sets the embedding of number x to sqrt(2) (cos 2 pi f x / M, sin 2 pi f x / M) in channels
  /// 2 f - 2 and 2 f - 1. Sums modulo M are then products of such channels. Training goes on from
  /// there.
  void place_on_circles();

  /// Whether the layers that choose keys attend to all tuples for now, while their indexers learn
  /// from all keys.
  void set_warm_up(bool warms_up);

 private:
  std::vector<SimplicialAttention> choosing_layers() const;

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
  bool circles = false;         ///< numbers start on circles: see MatchModel::place_on_circles()
  int64_t indexer_warmup = 0;   ///< first steps, in which layers that choose keys are dense
  /// one dense layer of this order, with an MLP of 4 dim, sets the size
  int64_t reference_order = 2;
  MatchEqual equal = MatchEqual::parameters;  ///< the quantity in which models equal the reference
};

struct MatchPoint {
  int64_t step = 0;
  double loss = 0.0;      ///< of the batch of this step, without the indexers' loss
  double accuracy = 0.0;  ///< on the held-out sequences, NaN between evaluations
};

struct MatchResult {
  double accuracy = 0.0;  ///< on the held-out sequences, after the last step
  double majority = 0.0;  ///< accuracy of always predicting the more common label
  MatchSize size;
  int64_t parameters = 0;
  double flops = 0.0;         ///< per training step and position
  double step_seconds = 0.0;  ///< median
  double seconds = 0.0;       ///< training and evaluation
};

/// The size at which a model is trained.
MatchSize size_of(const MatchOptions& options, const MatchArm& arm);

/// Throws InputError that names the option if options or models are invalid.
void check_match(const MatchOptions& options, const std::vector<MatchArm>& arms);

/// Trains the models on new sequences, one batch per step, and evaluates them on held-out ones. The
/// models take turns step by step on the same batch, so that a machine that is slow for a while is
/// slow for all. All random numbers come from `seed`, and the result of a model does not depend on
/// the others. `report` is called after each step of each model, with the model's place in `arms`;
/// an exception from it ends the training.
std::vector<MatchResult> train_match(
    const MatchOptions& options, const std::vector<MatchArm>& arms, uint64_t seed,
    const std::function<void(size_t arm, const MatchPoint&)>& report);

}  // namespace nsimplex::training
