#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include <vector>

#include "training/graph_task.h"

namespace nsimplex::training {

struct HyperSagnnOptions {
  int64_t channels = 64;
  int64_t heads = 8, head_dim = 16;
  double attention_dropout = 0.3, dropout = 0.4;
};

/// Hyper-SAGNN: judges a tuple by how much attention among its nodes changes them. For the features
/// x_1 .. x_k of a tuple,
///
///     d_p = LN(a_p + MLP(a_p)),   a = attention over the other nodes of the tuple, without itself,
///     s_p = LN(MLP'(x_p)),
///     probability = mean_p sigmoid(w . (LN(d_p) - LN(s_p))^2 + b),
///
/// given as its logit. Input: all nodes with features [n, channels]; output: tuples of any order
/// from 2. The MLPs are linear - tanh - linear.
///
/// Source: Zhang, Zou and Ma, "Hyper-SAGNN: a self-attention based graph neural network for
/// hypergraphs", ICLR 2020 (arXiv 1911.02613); widths and dropout as its authors published them.
class HyperSagnn : public GraphModel {
 public:
  explicit HyperSagnn(const HyperSagnnOptions& options);
  Forward prepare(const GraphBatch& batch) override;

 private:
  struct Norm {
    at::Tensor gain, shift;
  };

  Norm add_norm(const char* name);
  at::Tensor normalise(const at::Tensor& x, const Norm& norm) const;
  at::Tensor attend(const at::Tensor& x);
  at::Tensor feed(size_t first, const at::Tensor& x);
  at::Tensor logits(const at::Tensor& x);

  HyperSagnnOptions options_;
  Norm query_norm_, key_norm_, value_norm_, dynamic_norm_, static_norm_, left_norm_, right_norm_;
  torch::nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr}, mix_{nullptr}, judge_{nullptr};
  std::vector<torch::nn::Linear> mlp_;  // two of the dynamic, two of the static part
};

}  // namespace nsimplex::training
