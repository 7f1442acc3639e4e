#include "lab/match/match_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <nsimplex/sparse_layers.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "support/error.h"
#include "train/optimizer.h"
#include "train/scores.h"
#include "train/stopwatch.h"
#include "train/training_options.h"

namespace nsimplex::training {
namespace {

constexpr double kEmbeddingDeviation = 1.0;  // numbers are symbols, which should start far apart

SimplicialAttention make_attention(const MatchArm& arm, const MatchSize& size, HeadNorm norm) {
  SimplicialAttentionOptions attention;
  attention.dim = size.dim;
  attention.heads = size.heads;
  attention.order = arm.order;
  attention.norm = norm;
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

at::Tensor MatchModel::auxiliary_loss() const {
  at::Tensor sum;
  for (size_t i = 0; i < blocks_->size(); ++i) {
    const auto attention = blocks_->at<TransformerBlockImpl>(i).attention().ptr();
    const auto sparse = std::dynamic_pointer_cast<SparseAttentionImpl>(attention);
    if (!sparse || !sparse->auxiliary_loss().defined()) continue;
    sum = sum.defined() ? sum + sparse->auxiliary_loss() : sparse->auxiliary_loss();
  }
  return sum;
}

namespace {

constexpr int64_t kWarmup = 50;

void require_positive(const char* name, int64_t value) {
  if (value >= 1) return;
  throw InputError("[match] " + std::string(name) + ": expected at least 1, got " +
                   std::to_string(value));
}

bool is_prime(int64_t number) {
  for (int64_t factor = 2; factor <= number / factor; ++factor) {
    if (number % factor == 0) return false;
  }
  return number >= 2;
}

// A model in training.
class Contestant {
 public:
  Contestant(const MatchOptions& o, const MatchArm& arm, const at::Generator& generator)
      : model_(arm, size_of(o, arm), o.norm, generator),
        optimizer_(named_parameters(model_), {.beta2 = 0.999, .weight_decay = 0.01}) {
    result_.size = size_of(o, arm);
    result_.flops = match_flops(arm, result_.size);
    result_.parameters = parameter_count(model_);
  }

  // Makes update `number`, counted from 1. Returns the loss.
  double step(int64_t number, const MatchSequences& batch, double rate) {
    const Stopwatch watch;
    const at::Tensor loss =
        at::binary_cross_entropy_with_logits(model_.forward(batch.tokens), batch.labels);
    const at::Tensor indexers = model_.auxiliary_loss();
    optimizer_.zero_grad();
    (indexers.defined() ? loss + indexers : loss).backward();
    const double value = loss.item<double>();
    require_finite(number, value, optimizer_.gradient_norm());
    optimizer_.step(rate);
    times_.push_back(watch.seconds());
    result_.seconds += times_.back();
    return value;
  }

  // The accuracy after update `number`.
  double evaluate(int64_t number, const MatchSequences& data, int64_t batch) {
    const Stopwatch watch;
    const at::NoGradGuard no_grad;
    int64_t right = 0;
    const auto tokens = data.tokens.split(batch), labels = data.labels.split(batch);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const at::Tensor logits = model_.forward(tokens[i]);
      require_finite_outputs(number, logits);
      right += ((logits > 0) == (labels[i] > 0)).sum().item<int64_t>();
    }
    result_.accuracy = static_cast<double>(right) / static_cast<double>(data.labels.numel());
    result_.seconds += watch.seconds();
    return result_.accuracy;
  }

  MatchResult result() {
    result_.step_seconds = median(times_);
    return result_;
  }

 private:
  MatchModel model_;
  AdamW optimizer_;
  std::vector<double> times_;  // seconds of each step
  MatchResult result_;
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
  require_positive("reference_order", o.reference_order);
  require_positive("dim", o.dim);
  require_positive("heads", o.heads);
  require_positive("batch", o.batch);
  require_positive("steps", o.steps);
  require_positive("evaluate_every", o.evaluate_every);
  require_positive("held_out", o.held_out);
  if (!(o.learning_rate > 0)) throw InputError("[match] learning_rate: expected a positive number");
  if (o.dim % o.heads != 0) {
    throw InputError("[match] heads: expected a divisor of dim " + std::to_string(o.dim) +
                     ", got " + std::to_string(o.heads));
  }
  if (arms.empty()) throw InputError("[match] arms: expected at least one");
  for (const MatchArm& arm : arms) {
    require_positive("order", arm.order);
    require_positive("depth", arm.depth);
    if (arm.tuples != MatchTuples::dense) require_positive("topk", arm.topk);
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
  const MatchSequences held_out = draw_match(o.held_out, o.task, stream(2));
  std::vector<std::unique_ptr<Contestant>> contestants;
  for (const MatchArm& arm : arms) {
    contestants.push_back(std::make_unique<Contestant>(o, arm, stream(0)));
  }

  const Schedule schedule{o.learning_rate, 0.0, std::min(kWarmup, o.steps / 10), o.steps};
  for (int64_t step = 1; step <= o.steps; ++step) {
    const MatchSequences batch = draw_match(o.batch, o.task, fresh);
    const bool due = step % o.evaluate_every == 0 || step == o.steps;
    for (size_t i = 0; i < contestants.size(); ++i) {
      MatchPoint point{step, contestants[i]->step(step, batch, schedule.rate(step - 1)),
                       std::numeric_limits<double>::quiet_NaN()};
      if (due) point.accuracy = contestants[i]->evaluate(step, held_out, o.batch);
      report(i, point);
    }
  }

  const double ones = held_out.labels.mean().item<double>();
  std::vector<MatchResult> results;
  for (const auto& contestant : contestants) {
    results.push_back(contestant->result());
    results.back().majority = std::max(ones, 1.0 - ones);
  }
  return results;
}

}  // namespace nsimplex::training
