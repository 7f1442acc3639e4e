// The tasks of predicting pairs and partitions of a set, and of labelling chains.

#include "lab/graphs/pair_task.h"

#include <ATen/ATen.h>
#include <nsimplex/graph.h>

#include <algorithm>

#include "lab/graphs/encoder_network.h"
#include "support/error.h"
#include "support/random.h"
#include "train/scores.h"

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

}  // namespace

PairTask::PairTask(std::array<PairSets, 3> splits, const PairLoss& loss)
    : splits_(std::move(splits)), loss_(loss) {
  for (const PairSets& sets : splits_) {
    check_tuples(sets.edges, "sets");
    if (sets.edges.symmetry != Symmetry::undirected || sets.edges.order() != 2) {
      throw InputError("[sets] edges: expected undirected pairs");
    }
    if (sets.features.dim() != 2 || sets.features.size(0) != sets.edges.nodes()) {
      throw InputError("[sets] features: expected one row per point");
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
  const ChosenRows nodes = rows_of(sets.edges.node_offsets, chosen);

  GraphBatch batch;
  batch.input = complete_tuples(nodes.counts, 1);
  batch.output = complete_tuples(nodes.counts, 2);
  batch.features = sets.features.index_select(0, nodes.rows);
  if (sets.kinds.defined()) batch.kinds = sets.kinds.index_select(0, chosen);
  // Among the pairs of its set in lexicographic order, (i, j) is number i n + j.
  const ChosenRows edges = rows_of(sets.edges.tuple_offsets, chosen);
  const auto spread = [&](const Tensor& values) { return values.repeat_interleave(edges.counts); };
  const Tensor local =
      sets.edges.tuples.index_select(0, edges.rows) - spread(nodes.first).unsqueeze(1);
  const Tensor i = local.select(1, 0), j = local.select(1, 1), n = spread(nodes.counts);
  const Tensor base = spread(batch.output.tuple_offsets.slice(0, 0, -1));
  batch.targets = at::zeros({batch.output.size()});
  batch.targets.index_fill_(0, base + i * n + j, 1).index_fill_(0, base + j * n + i, 1);
  return batch;
}

Tensor PairTask::loss(const Tensor& outputs, const GraphBatch& batch) const {
  const Tensor rows = proper_rows(batch.output);
  const Tensor logits = outputs.flatten().index_select(0, rows);
  const Tensor targets = batch.targets.index_select(0, rows);
  // Sets with one point have no pairs. This avoids a mean over nothing for a batch of such sets
  // only.
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
  // For a set without edges and without likely pairs, eps keeps this term at 1 - 0.
  const Tensor f1 = 2 * sum(likely * targets) / (sum(likely + targets) + 1e-12);
  return entropy + loss_.soft_f1 * (1 - f1).sum();
}

std::unique_ptr<GraphScorer> PairTask::scorer() const { return std::make_unique<PairScorer>(); }

namespace {

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

namespace {

// The part of every node; `joined` [m] marks the ordered pairs that belong together.
std::vector<int64_t> parts_of(const TupleBatch& pairs, const Tensor& joined) {
  const Tensor upper = pairs.tuples.select(1, 0) < pairs.tuples.select(1, 1);
  const Tensor rows = (joined & upper).nonzero().flatten();
  const Tensor tuples = pairs.tuples.index_select(0, rows);
  // Rows keep their order, so those of a graph begin after the rows of the graphs before it.
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
