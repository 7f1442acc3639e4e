// Predicted pairs as partitions of their sets.

#include <ATen/ATen.h>
#include <nsimplex/graph_structure.h>

#include <algorithm>

#include "training/metrics.h"
#include "training/pair_task.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

// The part of every node, where `joined` [m] says which ordered pairs belong together.
std::vector<int64_t> parts_of(const TupleBatch& pairs, const Tensor& joined) {
  const Tensor upper = pairs.tuples.select(1, 0) < pairs.tuples.select(1, 1);
  const Tensor rows = (joined & upper).nonzero().flatten();
  const Tensor tuples = pairs.tuples.index_select(0, rows);
  // Rows stay in their order, so that those of a graph begin where the rows before it end.
  const Tensor offsets = at::searchsorted(rows, pairs.tuple_offsets);
  const Tensor labels =
      connected_components({tuples, offsets, pairs.node_offsets, Symmetry::undirected});
  const int64_t* begin = labels.const_data_ptr<int64_t>();
  return {begin, begin + labels.numel()};
}

class PartitionScorer : public GraphScorer {
 public:
  explicit PartitionScorer(const std::vector<std::string>& kinds)
      : names_(kinds), of_kinds_(kinds.size()) {}

  void add(const Tensor& outputs, const GraphBatch& batch) override {
    const std::vector<int64_t> told = parts_of(batch.output, outputs.flatten() > 0);
    const std::vector<int64_t> actual = parts_of(batch.output, batch.targets > 0);
    const int64_t* nodes = batch.output.node_offsets.const_data_ptr<int64_t>();
    for (int64_t set = 0; set < batch.output.graphs(); ++set) {
      const auto begin = static_cast<size_t>(nodes[set]);
      const auto size = static_cast<size_t>(nodes[set + 1]) - begin;
      const PartitionScores scores = partition_scores(std::span(told).subspan(begin, size),
                                                      std::span(actual).subspan(begin, size));
      all_.add(scores);
      if (!batch.kinds.defined()) continue;
      const auto kind = static_cast<size_t>(batch.kinds[set].item<int64_t>());
      if (kind < of_kinds_.size()) of_kinds_[kind].add(scores);
    }
  }

  Scores scores() const override {
    Scores scores;
    all_.append(scores, "");
    for (size_t kind = 0; kind < names_.size(); ++kind) {
      if (of_kinds_[kind].count > 0) of_kinds_[kind].append(scores, names_[kind] + "_");
    }
    return scores;
  }

 private:
  struct Sums {
    PartitionScores sum;
    int64_t count = 0;

    void add(const PartitionScores& scores) {
      sum.f1 += scores.f1;
      sum.rand_index += scores.rand_index;
      sum.adjusted_rand_index += scores.adjusted_rand_index;
      ++count;
    }

    void append(Scores& scores, const std::string& prefix) const {
      const auto sets = static_cast<double>(std::max<int64_t>(count, 1));
      scores.emplace_back(prefix + "f1", sum.f1 / sets);
      scores.emplace_back(prefix + "rand_index", sum.rand_index / sets);
      scores.emplace_back(prefix + "adjusted_rand_index", sum.adjusted_rand_index / sets);
    }
  };

  std::vector<std::string> names_;
  Sums all_;
  std::vector<Sums> of_kinds_;
};

}  // namespace

std::unique_ptr<GraphScorer> PartitionTask::scorer() const {
  return std::make_unique<PartitionScorer>(kinds_);
}

}  // namespace nsimplex::training
