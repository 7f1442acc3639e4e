#include "training/feature_training.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <cmath>

#include "support/error.h"
#include "training/adamw.h"
#include "training/diverged.h"
#include "training/parameters.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

// What a function gives for blocks of observations.
template <class Function>
Tensor in_batches(const Tensor& x, int64_t batch, Function&& function) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> parts;
  for (const Tensor& block : x.split(batch)) {
    parts.push_back(function(block));
    require_finite_outputs(std::nullopt, parts.back());
  }
  return at::cat(parts);
}

}  // namespace

void check(const FeatureTrainingOptions& o) {
  const auto require = [](bool ok, const char* name, const char* expected, double got) {
    if (!ok) throw InputError(fmt::format("{}: expected {}, got {}", name, expected, got));
  };
  require(o.epochs >= 0, "epochs", "0 or more", static_cast<double>(o.epochs));
  require(o.batch >= 1, "batch", "at least 1", static_cast<double>(o.batch));
  require(o.learning_rate > 0 && std::isfinite(o.learning_rate), "learning rate",
          "a positive number", o.learning_rate);
  require(o.weight_decay >= 0, "weight decay", "0 or more", o.weight_decay);
  require(o.mask > 0 && o.mask <= 1, "mask", "a share above 0 and at most 1", o.mask);
}

void train_examples(const torch::nn::Module& module, int64_t count,
                    const FeatureTrainingOptions& options, uint64_t seed,
                    const std::function<Tensor(const Tensor&, const at::Generator&)>& loss,
                    const FeatureEvents& events) {
  check(options);
  const auto order = at::make_generator<at::CPUGeneratorImpl>(2 * seed);
  const auto draws = at::make_generator<at::CPUGeneratorImpl>(2 * seed + 1);
  AdamW optimizer(named_parameters(module), {.beta2 = 0.999, .weight_decay = options.weight_decay});
  const int64_t steps = options.epochs * ((count + options.batch - 1) / options.batch);
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const Tensor& examples : at::randperm(count, order, at::kLong).split(options.batch)) {
      if (events.checkpoint) events.checkpoint();
      optimizer.zero_grad();
      const Tensor value = loss(examples, draws);
      value.backward();
      const double number = value.item<double>();
      require_finite(step + 1, number);
      optimizer.step(options.learning_rate);
      ++step;
      if (events.step) events.step(step, steps, number);
    }
  }
}

void restore_values(FeatureTransformer& model, const Tensor& x,
                    const FeatureTrainingOptions& options, uint64_t seed,
                    const FeatureEvents& events) {
  train_examples(
      *model, x.size(0), options, seed,
      [&](const Tensor& examples, const at::Generator& generator) {
        const Tensor rows = x.index_select(0, examples);
        // The lowest of uniform numbers are masked, so that there is always one to restore.
        const Tensor draw =
            at::rand(rows.sizes(), generator, at::kDouble).masked_fill(rows.eq(0), 2.0);
        const Tensor masked = draw.lt(options.mask).logical_or(draw.eq(draw.min()));
        return model->reconstruction_loss(rows, masked);
      },
      events);
}

void learn_answers(FeatureTransformer& model, const Tensor& x, const Tensor& answers,
                   const FeatureTrainingOptions& options, uint64_t seed,
                   const FeatureEvents& events) {
  train_examples(
      *model, x.size(0), options, seed,
      [&](const Tensor& examples, const at::Generator&) {
        const Tensor output = model->predict(model->forward(x.index_select(0, examples)));
        const Tensor truth = answers.index_select(0, examples);
        return truth.dim() == 1 ? at::cross_entropy_loss(output, truth)
                                : at::mse_loss(output, truth);
      },
      events);
}

Tensor predict_all(FeatureTransformer& model, const Tensor& x, int64_t batch) {
  return in_batches(x, batch,
                    [&](const Tensor& block) { return model->predict(model->forward(block)); });
}

Tensor embed_all(FeatureTransformer& model, const Tensor& x, int64_t batch) {
  return in_batches(x, batch,
                    [&](const Tensor& block) { return model->aggregate(model->forward(block)); });
}

}  // namespace nsimplex::training
