#include "training/pair_task.h"

#include <ATen/ATen.h>
#include <nsimplex/graph_builders.h>

#include <algorithm>

#include "support/error.h"
#include "training/metrics.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

// Rows (i, j) with i != j.
Tensor proper_rows(const TupleBatch& pairs) {
  return (pairs.tuples.select(1, 0) != pairs.tuples.select(1, 1)).nonzero().flatten();
}

class PairScorer : public GraphScorer {
 public:
  void add(const Tensor& outputs, const GraphBatch& batch) override {
    const Tensor rows = proper_rows(batch.output);
    const Tensor told = outputs.flatten().index_select(0, rows) > 0;
    const Tensor edges = batch.targets.index_select(0, rows) > 0;
    const auto count = [](const Tensor& which) { return which.sum().item<int64_t>(); };
    counts_.true_positive += count(told & edges);
    counts_.false_positive += count(told & ~edges);
    counts_.false_negative += count(~told & edges);
    counts_.true_negative += count(~told & ~edges);
    loops_ += batch.output.nodes();
  }

  Scores scores() const override {
    BinaryCounts with_loops = counts_;
    with_loops.true_negative += loops_;
    return {{"f1", counts_.f1()},
            {"precision", counts_.precision()},
            {"recall", counts_.recall()},
            {"accuracy", counts_.accuracy()},
            {"accuracy_with_loops", with_loops.accuracy()}};
  }

 private:
  BinaryCounts counts_;
  int64_t loops_ = 0;
};

// Numbers begin .. begin + count - 1 for each of two lists, one after the other.
Tensor ranges(const Tensor& begins, const Tensor& counts) {
  const Tensor ends = counts.cumsum(0);
  const Tensor shift = (begins - (ends - counts)).repeat_interleave(counts);
  return at::arange(shift.size(0), shift.options()) + shift;
}

}  // namespace

PairTask::PairTask(std::array<PairSets, 3> splits, const PairLoss& loss)
    : splits_(std::move(splits)), loss_(loss) {
  for (const PairSets& sets : splits_) {
    check_tuples(sets.edges, "sets");
    if (sets.edges.symmetry != Symmetry::undirected || sets.edges.order() != 2) {
      throw InputError("[sets] edges: expected undirected pairs");
    }
    if (sets.features.dim() != 2 || sets.features.size(0) != sets.edges.nodes()) {
      throw InputError("[sets] features: expected one row a point");
    }
  }
}

int64_t PairTask::size(GraphSplit split) const {
  return splits_[static_cast<size_t>(split)].edges.graphs();
}

GraphBatch PairTask::batch(GraphSplit split, std::span<const int64_t> examples,
                           const at::Generator&) {
  const PairSets& sets = splits_[static_cast<size_t>(split)];
  const Tensor chosen = at::tensor(at::ArrayRef<int64_t>(examples.data(), examples.size()));
  const auto of = [&](const Tensor& offsets) { return offsets.index_select(0, chosen); };
  const auto sizes = [&](const Tensor& offsets) { return of(offsets.slice(0, 1)) - of(offsets); };
  const Tensor first_nodes = of(sets.edges.node_offsets), nodes = sizes(sets.edges.node_offsets);

  GraphBatch batch;
  batch.input = complete_tuples(nodes, 1);
  batch.output = complete_tuples(nodes, 2);
  batch.features = sets.features.index_select(0, ranges(first_nodes, nodes));
  if (sets.kinds.defined()) batch.kinds = sets.kinds.index_select(0, chosen);
  // Among the pairs of its set in lexicographic order, (i, j) is number i n + j.
  const Tensor edges = sizes(sets.edges.tuple_offsets);
  const Tensor rows = ranges(of(sets.edges.tuple_offsets), edges);
  const auto spread = [&](const Tensor& values) { return values.repeat_interleave(edges); };
  const Tensor local = sets.edges.tuples.index_select(0, rows) - spread(first_nodes).unsqueeze(1);
  const Tensor i = local.select(1, 0), j = local.select(1, 1), n = spread(nodes);
  const Tensor base = spread(batch.output.tuple_offsets.slice(0, 0, -1));
  batch.targets = at::zeros({batch.output.size()});
  batch.targets.index_fill_(0, base + i * n + j, 1).index_fill_(0, base + j * n + i, 1);
  return batch;
}

Tensor PairTask::loss(const Tensor& outputs, const GraphBatch& batch) const {
  const Tensor rows = proper_rows(batch.output);
  const Tensor logits = outputs.flatten().index_select(0, rows);
  const Tensor targets = batch.targets.index_select(0, rows);
  // Sets of one point have no pairs: a batch of them alone is no mean over nothing.
  const Tensor entropy =
      at::binary_cross_entropy_with_logits(logits, targets, {}, {}, at::Reduction::Sum) /
      static_cast<double>(std::max<int64_t>(rows.size(0), 1));
  if (loss_.soft_f1 == 0) return entropy;
  const Tensor sizes = batch.output.tuple_offsets.diff();
  const Tensor sets = at::arange(sizes.size(0), sizes.options()).repeat_interleave(sizes);
  const auto sum = [&](const Tensor& values) {
    return at::zeros({sizes.size(0)}, values.options())
        .index_add(0, sets.index_select(0, rows), values);
  };
  const Tensor likely = logits.sigmoid();
  // A set without edges and without likely pairs has nothing to find: eps keeps it at 1 - 0.
  const Tensor f1 = 2 * sum(likely * targets) / (sum(likely + targets) + 1e-12);
  return entropy + loss_.soft_f1 * (1 - f1).sum();
}

std::unique_ptr<GraphScorer> PairTask::scorer() const { return std::make_unique<PairScorer>(); }

}  // namespace nsimplex::training
