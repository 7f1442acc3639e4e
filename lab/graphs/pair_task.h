// Declares the tasks of predicting pairs and partitions of a set, and of labelling chains.

#pragma once

#include <array>
#include <string>
#include <vector>

#include "lab/graphs/graph_task.h"

namespace nsimplex::training {

/// Sets of points with labelled pairs: 1 for edges.
struct PairSets {
  at::Tensor features;  ///< [n, d], of the points
  TupleBatch edges;     ///< undirected, without loops, over the same nodes
  at::Tensor kinds;     ///< int64 [sets], from 0 on; undefined: all have one kind
};

struct PairLoss {
  double soft_f1 = 0.0;  ///< weight of the sum over sets of 1 - soft F1, added to the cross entropy
};

/// Predicts which pairs of a set are edges. Input: the points. Output: all ordered pairs of each
/// set, one logit each. Loops count neither in the loss nor in metrics.
///
/// The loss is the mean binary cross entropy, plus soft_f1 times 1 - 2 sum p t / (sum p + sum t) of
/// each set, where p are the probabilities and t the targets.
///
/// Source: Serviansky et al., arXiv 2002.08772.
class PairTask : public GraphTask {
 public:
  /// The sets of the training, validation and test split.
  PairTask(std::array<PairSets, 3> splits, const PairLoss& loss);

  int64_t size(GraphSplit split) const override;
  GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                   const at::Generator& generator) override;
  at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const override;

  /// Metrics of ordered pairs, with positive logits as edges: f1, precision, recall, accuracy, and
  /// accuracy_with_loops, in which loops count as pairs that are correctly predicted as no edges.
  std::unique_ptr<GraphScorer> scorer() const override;

 private:
  std::array<PairSets, 3> splits_;
  PairLoss loss_;
};

/// The same for edges that join points of the same part. The prediction is completed to a
/// partition: each connected component is a part.
///
/// Metrics are means over sets of those of partition_scores(): f1, rand_index, adjusted_rand_index.
/// There are the same metrics for each kind that occurs, NAME_f1 and so on.
class PartitionTask : public PairTask {
 public:
  PartitionTask(std::array<PairSets, 3> splits, const PairLoss& loss,
                std::vector<std::string> kinds = {})
      : PairTask(std::move(splits), loss), kinds_(std::move(kinds)) {}

  std::unique_ptr<GraphScorer> scorer() const override;

 private:
  std::vector<std::string> kinds_;
};

struct ChainOptions {
  int64_t train = 40, validation = 20, test = 20;  ///< chains
  int64_t nodes = 20, test_nodes = 200;  ///< nodes per chain; validation uses those of training
};

/// Chains of nodes. One end of each carries a label as a one-hot vector, and every node must
/// predict this label. Input: pairs, with both directions of each link and the loop of every node;
/// all features are zero except those of the loop at the end. Output: nodes, two logits. Metrics:
/// micro_f1 and macro_f1 over all nodes of a split.
///
/// Sources: Gu et al., arXiv 2009.06211; Kim, Oh and Hong, arXiv 2110.14416, appendix A.2.4.
class ChainTask : public GraphTask {
 public:
  /// `seed` determines the labels.
  ChainTask(const ChainOptions& options, uint64_t seed);

  int64_t size(GraphSplit split) const override;
  GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                   const at::Generator& generator) override;
  at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const override;
  std::unique_ptr<GraphScorer> scorer() const override;

  /// Predicts the more frequent label of the test split for all nodes.
  std::vector<std::pair<std::string, Scores>> references() const override;

 private:
  const std::vector<int64_t>& labels(GraphSplit split) const {
    return labels_[static_cast<size_t>(split)];
  }

  ChainOptions options_;
  std::vector<int64_t> labels_[3];  // of every split
};

}  // namespace nsimplex::training
