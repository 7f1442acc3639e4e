#pragma once

#include <memory>
#include <vector>

#include "data/hyperedges.h"
#include "training/graph_task.h"

namespace nsimplex::training {

struct HyperedgeTaskOptions {
  int64_t negatives = 5;         ///< of every positive
  double positive_weight = 5.0;  ///< of a positive in the loss
  bool redraw = false;           ///< the negatives of every validation
};

/// Whether tuples of nodes are hyperedges. Input: all nodes as one graph, without features of their
/// own; output: some positives and their negatives, each tuple once, one logit.
///
/// Negatives: in training, drawn anew at each visit, none is a tuple of the training split; others
/// may be, since a model that never sees held-out tuples among the negatives could tell them by
/// that. In validation and test none is a tuple of either file, and those of an example depend on
/// the seed and the example alone; with `redraw` those of validation are others each time.
///
/// Targets [m, 3]: 1 for a hyperedge; how often the tuple came; the same of examples whose positive
/// is new to the training file (and comes for the first time).
///
/// Source: Zhang, Zou and Ma, "Hyper-SAGNN", ICLR 2020 (arXiv 1911.02613), section 4.
class HyperedgeTask : public GraphTask {
 public:
  HyperedgeTask(data::HyperedgeSplits splits, const HyperedgeTaskOptions& options, uint64_t seed);

  int64_t size(GraphSplit split) const override;
  GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                   const at::Generator& generator) override;

  /// Binary cross entropy, positives `positive_weight` times.
  at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const override;

  /// auc, aupr (average precision); auc_unseen, aupr_unseen of the examples whose positive is new
  /// to the training file, where there are others.
  std::unique_ptr<GraphScorer> scorer() const override;

  bool redraws_validation() const override { return options_.redraw; }

  const data::HyperedgeSplits& splits() const { return splits_; }

 private:
  const io::Tuples& positives(GraphSplit split) const;

  data::HyperedgeSplits splits_;
  HyperedgeTaskOptions options_;
  uint64_t seed_;
  bool repeats_ = false;  // whether the test file has tuples of the training file, or any twice
  TupleBatch nodes_;
  std::unique_ptr<data::NegativeSampler> in_training_, held_out_;
};

}  // namespace nsimplex::training
