// Declares the task of hyperedge prediction and the Hyper-SAGNN baseline.

#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <vector>

#include "lab/graphs/graph_task.h"
#include "lab/graphs/hyperedges.h"

namespace nsimplex::training {

struct HyperSagnnOptions {
  int64_t channels = 64;
  int64_t heads = 8, head_dim = 16;
  double attention_dropout = 0.3, dropout = 0.4;
};

/// Hyper-SAGNN scores a tuple by how much attention among its nodes changes them. For the features
/// x_1 .. x_k of a tuple,
///
///     d_p = LN(a_p + MLP(a_p)),   a = attention over the other nodes of the tuple, without itself,
///     s_p = LN(MLP'(x_p)),
///     probability = mean_p sigmoid(w . (LN(d_p) - LN(s_p))^2 + b),
///
/// returned as its logit. Input: all nodes with features [n, channels]. Output: tuples of any order
/// from 2. The MLPs are linear - tanh - linear.
///
/// Source: Zhang, Zou and Ma, "Hyper-SAGNN: a self-attention based graph neural network for
/// hypergraphs", ICLR 2020 (arXiv 1911.02613). Widths and dropout are those of the authors' code.
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
  std::vector<torch::nn::Linear> mlp_;  // two of the dynamic part, two of the static part
};

struct HyperedgeTaskOptions {
  int64_t negatives = 5;         ///< per positive
  double positive_weight = 5.0;  ///< weight of a positive in the loss
  bool redraw = false;           ///< whether every validation draws new negatives
};

/// Predicts whether tuples of nodes are hyperedges. Input: all nodes as one graph, without
/// features. Output: some positives and their negatives, each tuple once, with one logit each.
///
/// Negatives: training draws new ones at each visit, none of which is a tuple of the training
/// split. They may be held-out tuples, because a model could otherwise recognise these by their
/// absence among the negatives. In validation and test, no negative is a tuple of either file. The
/// negatives of an example depend on the seed and the example only; with `redraw`, those of
/// validation change every time.
///
/// Targets [m, 3]: 1 for a hyperedge; the number of times that the tuple occurs; the same number
/// over the examples whose positive is new to the training file (and occurs for the first time).
///
/// Source: Zhang, Zou and Ma, "Hyper-SAGNN", ICLR 2020 (arXiv 1911.02613), section 4.
class HyperedgeTask : public GraphTask {
 public:
  HyperedgeTask(data::HyperedgeSplits splits, const HyperedgeTaskOptions& options, uint64_t seed);

  int64_t size(GraphSplit split) const override;
  GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                   const at::Generator& generator) override;

  /// Binary cross entropy, in which positives have the weight `positive_weight`.
  at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const override;

  /// Metrics: auc and aupr (average precision); if there are other examples, also auc_unseen and
  /// aupr_unseen of those whose positive is new to the training file.
  std::unique_ptr<GraphScorer> scorer() const override;

  bool redraws_validation() const override { return options_.redraw; }

  const data::HyperedgeSplits& splits() const { return splits_; }

 private:
  const io::Tuples& positives(GraphSplit split) const;

  data::HyperedgeSplits splits_;
  HyperedgeTaskOptions options_;
  uint64_t seed_;
  // whether the test file repeats tuples, its own or those of the training file
  bool repeats_ = false;
  TupleBatch nodes_;
  std::unique_ptr<data::NegativeSampler> in_training_, held_out_;
};

}  // namespace nsimplex::training
