#include "training/match3.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <nsimplex/layers.h>
#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "support/error.h"
#include "training/adamw.h"
#include "training/schedule.h"

namespace nsimplex::training {
namespace {

constexpr double kEmbeddingDeviation = 1.0;  // numbers are symbols: far apart from the first step
constexpr int64_t kWarmup = 50;

void check(const Match3Options& o, int64_t order) {
  const auto at_least = [](const char* name, int64_t value, int64_t least) {
    if (value < least) {
      throw InputError("[match3] " + std::string(name) + ": expected at least " +
                       std::to_string(least) + ", got " + std::to_string(value));
    }
  };
  at_least("order", order, 1);
  at_least("highest_order", o.highest_order, order);
  at_least("batch", o.batch, 1);
  at_least("steps", o.steps, 1);
  at_least("evaluate_every", o.evaluate_every, 1);
  at_least("held_out", o.held_out, 1);
  if (!(o.learning_rate > 0))
    throw InputError("[match3] learning_rate: expected a positive number");
}

// Embedding, one pre-norm block, RMSNorm, one logit a position. No positions: the task is about
// sets.
class Model : public torch::nn::Module {
 public:
  Model(const Match3Options& o, int64_t order, const at::Generator& generator) {
    TransformerBlockOptions block;
    block.attention.dim = o.dim;
    block.attention.heads = o.heads;
    block.attention.order = order;
    block.mlp.activation = Activation::gelu;
    // Each order less saves a key and a value projection, 2 dim^2 weights: as many as dim more
    // hidden units have.
    block.mlp.hidden = 4 * o.dim + (o.highest_order - order) * o.dim;
    block_ = register_module("block", TransformerBlock(block));
    embedding_ = register_module("embedding", torch::nn::Embedding(o.modulus, o.dim));
    norm_ = register_module("norm", RMSNorm(o.dim));
    head_ = register_module("head", torch::nn::Linear(o.dim, 1));

    const at::NoGradGuard no_grad;
    embedding_->weight.normal_(0.0, kEmbeddingDeviation, generator);
    block_->reset_parameters({generator});
    head_->weight.normal_(0.0, 1.0 / std::sqrt(3.0 * static_cast<double>(o.dim)), generator);
    head_->bias.zero_();
  }

  // [B, T] -> [B, T]
  at::Tensor forward(const at::Tensor& tokens) {
    return head_->forward(norm_->forward(block_->forward(embedding_->forward(tokens)))).squeeze(-1);
  }

 private:
  torch::nn::Embedding embedding_{nullptr};
  TransformerBlock block_{nullptr};
  RMSNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};

double accuracy(Model& model, const Match3Sequences& data, int64_t batch) {
  const at::NoGradGuard no_grad;
  int64_t right = 0;
  const auto tokens = data.tokens.split(batch), labels = data.labels.split(batch);
  for (size_t i = 0; i < tokens.size(); ++i) {
    right += ((model.forward(tokens[i]) > 0) == (labels[i] > 0)).sum().item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(data.labels.numel());
}

std::vector<io::NamedTensor> parameters(const Model& model) {
  std::vector<io::NamedTensor> named;
  for (const auto& item : model.named_parameters()) named.push_back({item.key(), item.value()});
  return named;
}

}  // namespace

Match3Result train_match3(const Match3Options& options, int64_t order, uint64_t seed,
                          const std::function<void(const Match3Point&)>& report) {
  const auto& o = options;
  check(o, order);
  const auto start = std::chrono::steady_clock::now();
  // Streams of their own, so that every order is trained and judged on the same sequences.
  const auto weights = at::make_generator<at::CPUGeneratorImpl>(3 * seed);
  const auto fresh = at::make_generator<at::CPUGeneratorImpl>(3 * seed + 1);
  const auto other = at::make_generator<at::CPUGeneratorImpl>(3 * seed + 2);
  const auto draw = [&](int64_t count, const at::Generator& generator) {
    return draw_match3(count, o.length, o.modulus, o.labels, generator);
  };
  const Match3Sequences held_out = draw(o.held_out, other);

  Model model(o, order, weights);
  AdamW optimizer(parameters(model), {.beta2 = 0.999, .weight_decay = 0.01});
  const Schedule schedule{o.learning_rate, 0.0, std::min(kWarmup, o.steps / 10), o.steps};
  Match3Result result;
  for (int64_t step = 0; step < o.steps; ++step) {
    const Match3Sequences batch = draw(o.batch, fresh);
    const at::Tensor loss =
        at::binary_cross_entropy_with_logits(model.forward(batch.tokens), batch.labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step(schedule.rate(step));

    Match3Point point{step + 1, loss.item<double>(), std::numeric_limits<double>::quiet_NaN()};
    if (point.step % o.evaluate_every == 0 || point.step == o.steps) {
      point.accuracy = result.accuracy = accuracy(model, held_out, o.batch);
    }
    report(point);
  }
  const double ones = held_out.labels.mean().item<double>();
  result.majority = std::max(ones, 1.0 - ones);
  for (const at::Tensor& parameter : model.parameters()) result.parameters += parameter.numel();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace nsimplex::training
