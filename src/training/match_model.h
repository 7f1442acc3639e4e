#pragma once

#include <ATen/core/Generator.h>
#include <nsimplex/layers.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>

#include "training/match_size.h"

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

}  // namespace nsimplex::training
