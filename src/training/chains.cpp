#include "training/chains.h"

#include <ATen/ATen.h>
#include <nsimplex/graph_builders.h>
#include <nsimplex/graph_generators.h>

#include <algorithm>

#include "support/error.h"
#include "support/random.h"
#include "training/graph_head.h"
#include "training/metrics.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

Scores scores_of(const ClassF1& f1) { return {{"micro_f1", f1.micro}, {"macro_f1", f1.macro}}; }

class LabelScorer : public GraphScorer {
 public:
  void add(const Tensor& outputs, const GraphBatch& batch) override {
    const auto append = [](std::vector<int64_t>& all, const Tensor& labels) {
      const int64_t* begin = labels.const_data_ptr<int64_t>();
      all.insert(all.end(), begin, begin + labels.numel());
    };
    append(told_, outputs.argmax(1));
    append(true_, batch.targets);
  }

  Scores scores() const override { return scores_of(class_f1(told_, true_)); }

 private:
  std::vector<int64_t> told_, true_;
};

}  // namespace

ChainTask::ChainTask(const ChainOptions& options, uint64_t seed) : options_(options) {
  if (options.nodes < 1 || options.test_nodes < 1) {
    throw InputError("[chains] nodes: expected at least 1 in a chain");
  }
  uint64_t drawn = 0;
  for (const GraphSplit split : {GraphSplit::train, GraphSplit::validation, GraphSplit::test}) {
    for (int64_t chain = 0; chain < size(split); ++chain) {
      labels_[static_cast<size_t>(split)].push_back(
          static_cast<int64_t>(random_below(2, random_bits(seed, drawn++))));
    }
  }
}

int64_t ChainTask::size(GraphSplit split) const {
  return split == GraphSplit::train        ? options_.train
         : split == GraphSplit::validation ? options_.validation
                                           : options_.test;
}

GraphBatch ChainTask::batch(GraphSplit split, std::span<const int64_t> examples,
                            const at::Generator&) {
  const int64_t length = split == GraphSplit::test ? options_.test_nodes : options_.nodes;
  const Tensor nodes = at::full({std::ssize(examples)}, length, at::kLong);
  GraphBatch batch;
  batch.input = with_loops(all_orders(chain_graphs(nodes)).batch).batch;
  batch.output = complete_tuples(nodes, 1);
  std::vector<int64_t> chosen;
  for (const int64_t example : examples) {
    chosen.push_back(labels(split)[static_cast<size_t>(example)]);
  }
  const Tensor label = at::tensor(chosen, at::kLong);
  batch.targets = label.repeat_interleave(length);
  // The loop of the first node of every chain.
  const Tensor ends =
      loop_rows(batch.input).index_select(0, batch.input.node_offsets.slice(0, 0, -1));
  batch.features = at::zeros({batch.input.size(), 2});
  batch.features.index_put_({ends, label}, at::ones({}));
  return batch;
}

Tensor ChainTask::loss(const Tensor& outputs, const GraphBatch& batch) const {
  return at::cross_entropy_loss(outputs, batch.targets);
}

std::unique_ptr<GraphScorer> ChainTask::scorer() const { return std::make_unique<LabelScorer>(); }

std::vector<std::pair<std::string, Scores>> ChainTask::references() const {
  const auto& test = labels(GraphSplit::test);
  const auto ones = std::count(test.begin(), test.end(), 1);
  const std::vector<int64_t> majority(test.size(), 2 * ones > std::ssize(test) ? 1 : 0);
  return {{"majority", scores_of(class_f1(majority, test))}};
}

}  // namespace nsimplex::training
