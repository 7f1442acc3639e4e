#pragma once

#include <vector>

#include "training/graph_task.h"

namespace nsimplex::training {

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
