// The model for the Match tasks, and the training of several models in turns.

#include "lab/match/match_training.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <nsimplex/sparse_layers.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <utility>

#include "support/error.h"
#include "support/require.h"
#include "support/stopwatch.h"
#include "train/optimizer.h"
#include "train/scores.h"
#include "train/training_loop.h"

namespace nsimplex::training {
namespace {

constexpr double kEmbeddingDeviation = 1.0;  // numbers are symbols, which should start far apart

SimplicialAttention make_attention(const MatchArm& arm, const MatchSize& size, HeadNorm norm) {
  SimplicialAttentionOptions attention;
  attention.dim = size.dim;
  attention.heads = size.heads;
  attention.order = arm.order;
  attention.norm = norm;
  attention.form = arm.form;
  attention.rotary = arm.rotary;
  if (arm.tuples == MatchTuples::dense) return SimplicialAttention(attention);
  SelectionOptions selection;
  selection.pattern = arm.tuples == MatchTuples::path ? TuplePattern::path : TuplePattern::product;
  selection.keys = arm.topk;
  // Any weight works: the loss reaches only the indexer, and AdamW's steps do not depend on the
  // scale of a gradient.
  selection.loss_weight = 1.0;
  // A first layer has no previous layer whose scores it could reuse.
  selection.indexer = {.heads = kMatchIndexHeads,
                       .index_dim = kMatchIndexDim,
                       .source = IndexSource::light,
                       .scores = IndexScores::relu};
  const std::shared_ptr<SimplicialAttentionImpl> layer =
      std::make_shared<SparseAttentionImpl>(attention, selection);
  return SimplicialAttention(layer);
}

}  // namespace

MatchModel::MatchModel(const MatchArm& arm, const MatchSize& size, HeadNorm norm,
                       const at::Generator& generator) {
  const FeedForwardOptions mlp{.hidden = size.hidden, .activation = Activation::gelu};
  for (int64_t layer = 0; layer < arm.depth; ++layer) {
    blocks_->push_back(TransformerBlock(make_attention(arm, size, norm), mlp));
  }
  register_module("blocks", blocks_);
  embedding_ = register_module("embedding", torch::nn::Embedding(size.modulus, size.dim));
  norm_ = register_module("norm", RMSNorm(size.dim));
  head_ = register_module("head", torch::nn::Linear(size.dim, 1));

  const at::NoGradGuard no_grad;
  embedding_->weight.normal_(0.0, kEmbeddingDeviation, generator);
  // The branches of all blocks together start with the variance of those of one block.
  const double gain = 1.0 / std::sqrt(static_cast<double>(arm.depth));
  for (size_t i = 0; i < blocks_->size(); ++i) {
    blocks_->at<TransformerBlockImpl>(i).reset_parameters({generator, gain});
  }
  head_->weight.normal_(0.0, 1.0 / std::sqrt(3.0 * static_cast<double>(size.dim)), generator);
  head_->bias.zero_();
}

at::Tensor MatchModel::forward(const at::Tensor& tokens) {
  at::Tensor x = embedding_->forward(tokens);
  for (size_t i = 0; i < blocks_->size(); ++i) {
    x = blocks_->at<TransformerBlockImpl>(i).forward(x);
  }
  return head_->forward(norm_->forward(x)).squeeze(-1);
}

std::vector<SimplicialAttention> MatchModel::choosing_layers() const {
  std::vector<SimplicialAttention> layers;
  for (size_t i = 0; i < blocks_->size(); ++i) {
    const SimplicialAttention& layer = blocks_->at<TransformerBlockImpl>(i).attention();
    if (layer->has_indexer()) layers.push_back(layer);
  }
  return layers;
}

at::Tensor MatchModel::auxiliary_loss() const {
  at::Tensor sum;
  for (const SimplicialAttention& layer : choosing_layers()) {
    const at::Tensor& loss = layer->auxiliary_loss();
    if (loss.defined()) sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

void MatchModel::place_on_circles() {
  const at::NoGradGuard no_grad;
  at::Tensor& weight = embedding_->weight;
  const int64_t modulus = weight.size(0), pairs = weight.size(1) / 2;
  const at::Tensor turns =
      at::outer(at::arange(modulus, weight.options()), at::arange(1, pairs + 1, weight.options()));
  const at::Tensor angles = turns * (2 * std::numbers::pi / static_cast<double>(modulus));
  const at::Tensor points = at::stack({angles.cos(), angles.sin()}, -1).flatten(1);
  weight.narrow(1, 0, 2 * pairs).copy_(points * std::numbers::sqrt2);
}

void MatchModel::set_warm_up(bool warms_up) {
  for (SimplicialAttention layer : choosing_layers()) layer->set_warm_up(warms_up);
}

namespace {

constexpr int64_t kWarmup = 50;

bool is_prime(int64_t number) {
  for (int64_t factor = 2; factor <= number / factor; ++factor) {
    if (number % factor == 0) return false;
  }
  return number >= 2;
}

// The sequences of one seed: fresh ones for every step, and those that are held out.
struct MatchDraws {
  MatchSequences batch, held_out;
};

// One arm in training.
class MatchTrainee : public Trainee {
 public:
  MatchTrainee(const MatchOptions& o, const MatchArm& arm, const at::Generator& generator,
               const MatchDraws& draws, std::function<void(const MatchPoint&)> report)
      : Trainee(o.steps),
        options_(o),
        draws_(draws),
        report_(std::move(report)),
        model_(arm, size_of(o, arm), o.norm, generator),
        optimizer_(named_parameters(model_), {.beta2 = 0.999, .weight_decay = 0.01}),
        schedule_{o.learning_rate, 0.0, std::min(kWarmup, o.steps / 10), o.steps} {
    if (o.circles) model_.place_on_circles();
    result_.size = size_of(o, arm);
    result_.flops = match_flops(arm, result_.size);
    result_.parameters = parameter_count(model_);
  }

  double update(int64_t step) override {
    model_.set_warm_up(step <= options_.indexer_warmup);
    const at::Tensor loss = at::binary_cross_entropy_with_logits(
        model_.forward(draws_.batch.tokens), draws_.batch.labels);
    const at::Tensor indexers = model_.auxiliary_loss();
    optimizer_.zero_grad();
    (indexers.defined() ? loss + indexers : loss).backward();
    loss_ = loss.item<double>();
    finish_update(optimizer_, step, loss_, schedule_.rate(step - 1));
    return loss_;
  }

  bool is_evaluated_at(int64_t step) const override {
    return step % options_.evaluate_every == 0 || step == options_.steps;
  }

  // Computes the share of right answers.
  bool evaluate(int64_t step) override {
    const Stopwatch watch;
    {
      const at::NoGradGuard no_grad;
      const MatchSequences& data = draws_.held_out;
      int64_t right = 0;
      const auto tokens = data.tokens.split(options_.batch),
                 labels = data.labels.split(options_.batch);
      for (size_t i = 0; i < tokens.size(); ++i) {
        const at::Tensor logits = model_.forward(tokens[i]);
        require_finite_outputs(step, logits);
        right += ((logits > 0) == (labels[i] > 0)).sum().item<int64_t>();
      }
      result_.accuracy = static_cast<double>(right) / static_cast<double>(data.labels.numel());
    }
    evaluation_seconds_ += watch.seconds();
    report_({step, loss_, result_.accuracy});
    return true;
  }

  // Tells of a step without an evaluation.
  void report(int64_t step) const {
    if (is_evaluated_at(step)) return;
    report_({step, loss_, std::numeric_limits<double>::quiet_NaN()});
  }

  MatchResult result() const {
    MatchResult result = result_;
    result.step_seconds = median_seconds();
    result.seconds = seconds() + evaluation_seconds_;
    const double ones = draws_.held_out.labels.mean().item<double>();
    result.majority = std::max(ones, 1.0 - ones);
    return result;
  }

 private:
  const MatchOptions& options_;
  const MatchDraws& draws_;
  std::function<void(const MatchPoint&)> report_;
  MatchModel model_;
  AdamW optimizer_;
  Schedule schedule_;
  MatchResult result_;
  double loss_ = 0.0, evaluation_seconds_ = 0.0;
};

}  // namespace

MatchSize size_of(const MatchOptions& o, const MatchArm& arm) {
  const MatchArm reference{.order = o.reference_order};
  const MatchSize size{.modulus = o.task.modulus,
                       .length = o.task.length,
                       .heads = o.heads,
                       .dim = o.dim,
                       .hidden = 4 * o.dim};
  return equal_size(arm, reference, size, o.equal);
}

void check_match(const MatchOptions& o, const std::vector<MatchArm>& arms) {
  require_at_least("[match] reference_order", 1, o.reference_order);
  require_at_least("--width", 1, o.dim);
  require_at_least("--heads", 1, o.heads);
  require_at_least("--batch", 1, o.batch);
  require_at_least("--steps", 1, o.steps);
  require_at_least("--eval-every", 1, o.evaluate_every);
  require_at_least("--test", 1, o.held_out);
  require_at_least("--indexer-warmup", 0, o.indexer_warmup);
  if (!(o.learning_rate > 0)) throw InputError("--lr: expected a positive number");
  if (o.dim % o.heads != 0) {
    throw InputError("--heads: expected a divisor of --width " + std::to_string(o.dim) + ", got " +
                     std::to_string(o.heads));
  }
  if (arms.empty()) throw InputError("[match] arms: expected at least one");
  for (const MatchArm& arm : arms) {
    require_at_least("--order", 1, arm.order);
    require_at_least("--depth", 1, arm.depth);
    if (arm.tuples != MatchTuples::dense) require_at_least("--topk", 1, arm.topk);
    size_of(o, arm);
  }
  // M must be prime, so that no number but 0 matches itself alone. Whether sequences exist depends
  // on the size of M and is reported first.
  const std::string expected = "expected a prime, got " + std::to_string(o.task.modulus);
  const bool prime = is_prime(o.task.modulus);
  try {
    draw_match(1, o.task, at::make_generator<at::CPUGeneratorImpl>(0));
  } catch (const InputError& error) {
    if (prime || o.task.modulus < 2) throw;
    throw InputError(error.what() + ("; " + expected));
  }
  if (!prime) {
    throw InputError("[match" + std::to_string(o.task.arity) + "] modulus: " + expected);
  }
}

std::vector<MatchResult> train_match(
    const MatchOptions& options, const std::vector<MatchArm>& arms, uint64_t seed,
    const std::function<void(size_t arm, const MatchPoint&)>& report) {
  const auto& o = options;
  check_match(o, arms);
  // Separate random streams make models independent of each other: each model's weights start from
  // the same state, and all share the sequences.
  const auto stream = [&](uint64_t which) {
    return at::make_generator<at::CPUGeneratorImpl>(3 * seed + which);
  };
  const at::Generator fresh = stream(1);
  MatchDraws draws{{}, draw_match(o.held_out, o.task, stream(2))};
  std::vector<std::unique_ptr<MatchTrainee>> trainees;
  std::vector<Trainee*> turns;
  for (size_t i = 0; i < arms.size(); ++i) {
    trainees.push_back(std::make_unique<MatchTrainee>(
        o, arms[i], stream(0), draws, [&report, i](const MatchPoint& point) { report(i, point); }));
    turns.push_back(trainees.back().get());
  }
  train(turns, {},
        {.stop = {},
         .prepare = [&](int64_t) { draws.batch = draw_match(o.batch, o.task, fresh); },
         .step = [&](size_t arm, int64_t step, double) { trainees[arm]->report(step); }});
  std::vector<MatchResult> results;
  for (const auto& each : trainees) results.push_back(each->result());
  return results;
}

}  // namespace nsimplex::training
