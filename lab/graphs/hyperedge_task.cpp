// The task of hyperedge prediction, and the Hyper-SAGNN baseline.

#include "lab/graphs/hyperedge_task.h"

#include <ATen/ATen.h>
#include <nsimplex/graph.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "train/scores.h"

namespace nsimplex::training {

using at::Tensor;

namespace {

// keeps probabilities in fp32 away from 0 and 1, which have no logit
constexpr double kLogitEps = 1e-6;

}  // namespace

HyperSagnn::Norm HyperSagnn::add_norm(const char* name) {
  const std::string prefix = name;
  return {register_parameter(prefix + "_gain", at::ones({options_.channels})),
          register_parameter(prefix + "_shift", at::zeros({options_.channels}))};
}

HyperSagnn::HyperSagnn(const HyperSagnnOptions& options) : options_(options) {
  const int64_t c = options.channels, inner = options.heads * options.head_dim;
  const auto add = [&](const char* name, int64_t in, int64_t out, bool bias) {
    return register_module(name, torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias)));
  };
  query_ = add("query", c, inner, false);
  key_ = add("key", c, inner, false);
  value_ = add("value", c, inner, false);
  mix_ = add("mix", inner, c, false);
  judge_ = add("judge", c, 1, true);
  for (const char* name : {"dynamic1", "dynamic2", "static1", "static2"}) {
    mlp_.push_back(add(name, c, c, true));
  }
  const at::NoGradGuard no_grad;
  const double deviation = std::sqrt(2.0 / static_cast<double>(c + options.head_dim));
  for (const auto& layer : {query_, key_, value_}) layer->weight.normal_(0, deviation);
  query_norm_ = add_norm("query_norm");
  key_norm_ = add_norm("key_norm");
  value_norm_ = add_norm("value_norm");
  dynamic_norm_ = add_norm("dynamic_norm");
  static_norm_ = add_norm("static_norm");
  left_norm_ = add_norm("left_norm");
  right_norm_ = add_norm("right_norm");
}

Tensor HyperSagnn::normalise(const Tensor& x, const Norm& norm) const {
  return at::layer_norm(x, {options_.channels}, norm.gain, norm.shift);
}

// x [m, k, C] -> [m, k, C]: every node attends to the others of its tuple.
Tensor HyperSagnn::attend(const Tensor& x) {
  const int64_t rows = x.size(0), nodes = x.size(1);
  const auto heads = [&](const Tensor& of) {
    return of.view({rows, nodes, options_.heads, options_.head_dim}).transpose(1, 2);
  };
  const Tensor q = heads(query_->forward(normalise(x, query_norm_))),
               k = heads(key_->forward(normalise(x, key_norm_))),
               v = heads(value_->forward(normalise(x, value_norm_)));
  const Tensor itself = at::eye(nodes, x.options().dtype(at::kBool));
  const Tensor scores = (q.matmul(k.transpose(2, 3)) / std::sqrt(options_.head_dim))
                            .masked_fill(itself, -std::numeric_limits<float>::infinity());
  const Tensor mixed = scores.softmax(-1).matmul(v).transpose(1, 2).reshape({rows, nodes, -1});
  return at::dropout(mix_->forward(mixed), options_.attention_dropout, is_training());
}

// Applies the MLP whose layers begin at `first`.
Tensor HyperSagnn::feed(size_t first, const Tensor& x) {
  const Tensor hidden =
      at::dropout(mlp_[first]->forward(x).tanh(), options_.dropout, is_training());
  return mlp_[first + 1]->forward(hidden);
}

Tensor HyperSagnn::logits(const Tensor& x) {
  const Tensor attended = attend(x);
  const Tensor changed = normalise(attended + feed(0, attended), dynamic_norm_),
               alone = normalise(feed(2, x), static_norm_);
  const Tensor difference = normalise(changed, left_norm_) - normalise(alone, right_norm_);
  return judge_->forward(difference.square()).sigmoid().mean(1).logit(kLogitEps);
}

GraphModel::Forward HyperSagnn::prepare(const GraphBatch& batch) {
  return [this, tuples = batch.output.tuples, features = batch.features] {
    return logits(features.index_select(0, tuples.flatten())
                      .view({tuples.size(0), tuples.size(1), options_.channels}));
  };
}

namespace {

std::shared_ptr<data::KnownTuples> known(const data::HyperedgeSplits& splits,
                                         std::initializer_list<const io::Tuples*> lists) {
  auto tuples = std::make_shared<data::KnownTuples>(splits.typed);
  for (const io::Tuples* list : lists) {
    for (int64_t row = 0; row < list->count(); ++row) tuples->insert(splits.row(*list, row));
  }
  return tuples;
}

// Different tuples and their multiplicities.
class Candidates {
 public:
  Candidates(int64_t width, bool typed) : width_(width), typed_(typed) {}

  void add(std::vector<int64_t> tuple, bool positive, bool unseen) {
    if (!typed_) std::sort(tuple.begin(), tuple.end());
    const auto [place, fresh] = rows_.try_emplace(std::move(tuple), std::ssize(targets_) / 3);
    if (fresh) {
      values_.insert(values_.end(), place->first.begin(), place->first.end());
      targets_.insert(targets_.end(), {positive ? 1.F : 0.F, 0.F, 0.F});
    }
    targets_[3 * place->second + 1] += 1;
    targets_[3 * place->second + 2] += unseen ? 1.F : 0.F;
  }

  Tensor tuples() const { return at::tensor(values_, at::kLong).view({-1, width_}); }
  Tensor targets() const { return at::tensor(targets_, at::kFloat).view({-1, 3}); }

 private:
  int64_t width_;
  bool typed_;
  std::map<std::vector<int64_t>, int64_t> rows_;
  std::vector<int64_t> values_;
  std::vector<float> targets_;
};

// Scores of many tuples with their multiplicities.
struct Ranking {
  std::vector<double> scores;
  std::vector<uint8_t> positive;

  void add(double score, bool is_positive, int64_t times) {
    scores.insert(scores.end(), times, score);
    positive.insert(positive.end(), times, is_positive);
  }
};

class HyperedgeScorer : public GraphScorer {
 public:
  explicit HyperedgeScorer(bool repeats) : repeats_(repeats) {}

  void add(const Tensor& outputs, const GraphBatch& batch) override {
    const Tensor logits = outputs.flatten().to(at::kDouble), targets = batch.targets;
    const auto score = logits.accessor<double, 1>();
    const auto target = targets.accessor<float, 2>();
    for (int64_t row = 0; row < score.size(0); ++row) {
      const bool positive = target[row][0] > 0;
      all_.add(score[row], positive, static_cast<int64_t>(target[row][1]));
      unseen_.add(score[row], positive, static_cast<int64_t>(target[row][2]));
    }
  }

  Scores scores() const override {
    Scores scores{{"auc", area_under_roc(all_.scores, all_.positive)},
                  {"aupr", average_precision(all_.scores, all_.positive)}};
    if (repeats_) {
      scores.emplace_back("auc_unseen", area_under_roc(unseen_.scores, unseen_.positive));
      scores.emplace_back("aupr_unseen", average_precision(unseen_.scores, unseen_.positive));
    }
    return scores;
  }

 private:
  bool repeats_;
  Ranking all_, unseen_;
};

}  // namespace

HyperedgeTask::HyperedgeTask(data::HyperedgeSplits splits, const HyperedgeTaskOptions& options,
                             uint64_t seed)
    : splits_(std::move(splits)), options_(options), seed_(seed) {
  repeats_ = std::ranges::any_of(splits_.unseen, [](uint8_t unseen) { return unseen == 0; });
  nodes_ = complete_tuples(at::tensor({splits_.nodes}, at::kLong), 1);
  in_training_ = std::make_unique<data::NegativeSampler>(splits_, known(splits_, {&splits_.train}));
  held_out_ = std::make_unique<data::NegativeSampler>(
      splits_, known(splits_, {&splits_.train, &splits_.validation, &splits_.test}));
}

const io::Tuples& HyperedgeTask::positives(GraphSplit split) const {
  return split == GraphSplit::train        ? splits_.train
         : split == GraphSplit::validation ? splits_.validation
                                           : splits_.test;
}

int64_t HyperedgeTask::size(GraphSplit split) const { return positives(split).count(); }

GraphBatch HyperedgeTask::batch(GraphSplit split, std::span<const int64_t> examples,
                                const at::Generator& generator) {
  const io::Tuples& positive = positives(split);
  const bool training = split == GraphSplit::train;
  const bool anew = training || (split == GraphSplit::validation && redraws_validation());
  const data::NegativeSampler& sampler = training ? *in_training_ : *held_out_;
  const uint64_t visit =
      anew ? static_cast<uint64_t>(at::empty({1}, at::kLong).random_(generator).item<int64_t>())
           : random_bits(seed_, static_cast<uint64_t>(split));
  const bool tested = split == GraphSplit::test || (!training && splits_.validates_by_test);
  Candidates candidates(positive.width, splits_.typed);
  for (const int64_t example : examples) {
    const auto tuple = splits_.row(positive, example);
    const bool unseen = !tested || splits_.unseen[example] != 0;
    candidates.add({tuple.begin(), tuple.end()}, true, unseen);
    RandomStream draws(random_bits(visit, static_cast<uint64_t>(example)));
    for (int64_t n = 0; n < options_.negatives; ++n) {
      candidates.add(sampler.draw(tuple, draws), false, unseen);
    }
  }
  const Tensor tuples = candidates.tuples();
  return {nodes_, at::empty({splits_.nodes, 0}),
          tuple_batch(tuples, splits_.nodes,
                      splits_.typed ? Symmetry::loop_free : Symmetry::undirected),
          candidates.targets()};
}

Tensor HyperedgeTask::loss(const Tensor& outputs, const GraphBatch& batch) const {
  const Tensor target = batch.targets.select(1, 0), times = batch.targets.select(1, 1);
  const Tensor weight = times * (1 + target * (options_.positive_weight - 1));
  return at::binary_cross_entropy_with_logits(outputs.flatten(), target, weight, {},
                                              at::Reduction::Sum) /
         times.sum();
}

std::unique_ptr<GraphScorer> HyperedgeTask::scorer() const {
  return std::make_unique<HyperedgeScorer>(repeats_);
}

}  // namespace nsimplex::training
