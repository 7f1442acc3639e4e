#pragma once

#include <array>
#include <string>
#include <vector>

#include "train/graph_task.h"

namespace nsimplex::training {

/// Sets of points whose pairs are labelled: 1 for those that are edges.
struct PairSets {
  at::Tensor features;  ///< [n, d], of the points
  TupleBatch edges;     ///< undirected, without loops, over the same nodes
  at::Tensor kinds;     ///< int64 [sets], from 0 on; undefined: all of one kind
};

struct PairLoss {
  double soft_f1 = 0.0;  ///< weight of the sum over sets of 1 - soft F1, beside cross entropy
};

/// Which pairs of a set are edges. Input: the points; output: all ordered pairs of each set, one
/// logit. Loops count neither in loss nor in figures.
///
/// The loss is the mean binary cross entropy, and where soft_f1 says so 1 - 2 sum p t / (sum p +
/// sum t) of each set, p the probabilities and t the targets.
///
/// Source: Serviansky et al., arXiv 2002.08772.
class PairTask : public GraphTask {
 public:
  /// The sets of training, validation and test split.
  PairTask(std::array<PairSets, 3> splits, const PairLoss& loss);

  int64_t size(GraphSplit split) const override;
  GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                   const at::Generator& generator) override;
  at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const override;

  /// Figures of ordered pairs, edges taken where a logit is positive: f1, precision, recall,
  /// accuracy, and accuracy_with_loops, where loops count as pairs that are rightly told to be no
  /// edges.
  std::unique_ptr<GraphScorer> scorer() const override;

 private:
  std::array<PairSets, 3> splits_;
  PairLoss loss_;
};

/// The same where edges join what belongs together: whatever is predicted is completed to a
/// partition, each connected component being a part.
///
/// Figures are means over sets of those of partition_scores(): f1, rand_index,
/// adjusted_rand_index; and the same of each kind, NAME_f1 and so on, for the names of the kinds
/// that there are.
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
  int64_t nodes = 20, test_nodes = 200;            ///< of one; validation has those of training
};

/// Chains of nodes, one of whose ends carries a label as a one-hot vector; every node is to be
/// told the label. Input: pairs, both directions of each link and the loop of every node, all
/// features zero but those of the loop at the end. Output: nodes, two logits. Figures: micro_f1 and
/// macro_f1 over all nodes of a split.
///
/// Sources: Gu et al., arXiv 2009.06211; Kim, Oh and Hong, arXiv 2110.14416, appendix A.2.4.
class ChainTask : public GraphTask {
 public:
  /// Labels are drawn from `seed`.
  ChainTask(const ChainOptions& options, uint64_t seed);

  int64_t size(GraphSplit split) const override;
  GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                   const at::Generator& generator) override;
  at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const override;
  std::unique_ptr<GraphScorer> scorer() const override;

  /// The more frequent label of the test split for all nodes.
  std::vector<std::pair<std::string, Scores>> references() const override;

 private:
  const std::vector<int64_t>& labels(GraphSplit split) const {
    return labels_[static_cast<size_t>(split)];
  }

  ChainOptions options_;
  std::vector<int64_t> labels_[3];  // of every split
};

}  // namespace nsimplex::training
