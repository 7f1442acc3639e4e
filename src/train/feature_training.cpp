// Trains feature transformers, and fits linear baselines by logistic and ridge regression.

#include "train/feature_training.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/optim/lbfgs.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/common/rounding.h"
#include "support/error.h"
#include "support/require.h"
#include "train/optimizer.h"
#include "train/training_loop.h"
#include "train/training_options.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

constexpr int64_t kFolds = 5;

// Weights [M, C], and the bias [C] below them: [M + 1, C].
class Logistic {
 public:
  Logistic(int64_t columns, int64_t classes)
      : weights_(at::zeros({columns + 1, classes}, at::kDouble).set_requires_grad(true)) {}

  // Starts from the last weights. With falling strengths, every fit is near the previous one.
  void fit(const Tensor& x, const Tensor& labels, double strength) {
    constexpr int kSteps = 200;
    torch::optim::LBFGS optimizer({weights_}, torch::optim::LBFGSOptions(1.0)
                                                  .max_iter(kSteps)
                                                  .tolerance_grad(1e-7)
                                                  .tolerance_change(1e-10)
                                                  .history_size(10)
                                                  .line_search_fn("strong_wolfe"));
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss =
          at::cross_entropy_loss(logits(x), labels) + strength / 2 * slopes().square().sum();
      loss.backward();
      return loss;
    });
  }

  Tensor logits(const Tensor& x) const {
    return at::addmm(weights_.select(0, weights_.size(0) - 1), x, slopes());
  }

 private:
  Tensor slopes() const { return weights_.narrow(0, 0, weights_.size(0) - 1); }

  Tensor weights_;
};

// The part of each row, 0 .. kFolds - 1. Rows of a class are assigned in turn.
Tensor folds_of(const Tensor& labels, int64_t classes) {
  std::vector<int64_t> next(static_cast<size_t>(classes));
  const Tensor folds = at::empty_like(labels);
  for (int64_t row = 0; row < labels.numel(); ++row) {
    int64_t& of_class = next[static_cast<size_t>(labels[row].item<int64_t>())];
    folds[row] = of_class++ % kFolds;
  }
  return folds;
}

// Scales by the mean and the deviation of each column of x. A constant column is not divided.
std::pair<Tensor, Tensor> scaled(const Tensor& x, const Tensor& judge) {
  const Tensor mean = x.mean(0), deviation = x.std(0, /*unbiased=*/false);
  const Tensor divisor = deviation.masked_fill(deviation.eq(0), 1);
  return {(x - mean) / divisor, (judge - mean) / divisor};
}

}  // namespace

LinearAnswers logistic_regression(const Tensor& x, const Tensor& labels, int64_t classes,
                                  const Tensor& judge, const std::function<void()>& checkpoint) {
  const auto [columns, asked] = scaled(x, judge);
  const std::vector<double> strengths{1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5};
  std::vector<double> errors(strengths.size());
  const Tensor folds = folds_of(labels, classes);
  for (int64_t fold = 0; fold < kFolds; ++fold) {
    const Tensor out = folds.eq(fold).nonzero().squeeze(1),
                 in = folds.ne(fold).nonzero().squeeze(1);
    if (out.numel() == 0 || in.numel() == 0) continue;
    Logistic model(columns.size(1), classes);
    for (size_t i = 0; i < strengths.size(); ++i) {
      if (checkpoint) checkpoint();
      model.fit(columns.index_select(0, in), labels.index_select(0, in), strengths[i]);
      const at::NoGradGuard no_grad;
      errors[i] += at::cross_entropy_loss(model.logits(columns.index_select(0, out)),
                                          labels.index_select(0, out), {}, at::Reduction::Sum)
                       .item<double>();
    }
  }
  const auto best =
      static_cast<size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
  Logistic model(columns.size(1), classes);
  model.fit(columns, labels, strengths[best]);
  const at::NoGradGuard no_grad;
  return {model.logits(asked).argmax(1), strengths[best]};
}

LinearAnswers ridge_regression(const Tensor& x, const Tensor& numbers, const Tensor& judge) {
  const auto [columns, asked] = scaled(x, judge);
  const auto rows = static_cast<double>(columns.size(0));
  const Tensor mean = numbers.mean(), centred = numbers - mean;
  const auto [u, s, v] = at::linalg_svd(columns, /*full_matrices=*/false);
  const Tensor squares = s.square(), part = u.t().mv(centred);
  LinearAnswers best;
  double least = std::numeric_limits<double>::infinity();
  for (double strength = 100.0; strength > 0.5e-5; strength /= 10) {
    const Tensor kept = squares / (squares + rows * strength);
    // The leave-one-out error of a row is its own error over 1 - h, with h the weight of the row in
    // its own prediction.
    const Tensor own = u.square().mv(kept) + 1 / rows;
    const Tensor left_out = (centred - u.mv(kept * part)) / (1 - own).clamp_min(1e-12);
    const double error = left_out.square().mean().item<double>();
    if (best.answers.defined() && !(error < least)) continue;
    least = error;
    const Tensor weights = v.t().mv(s / (squares + rows * strength) * part);
    best = {asked.mv(weights) + mean, strength};
  }
  return best;
}

namespace {

using at::Tensor;

// The values of a function for blocks of observations.
template <class Function>
Tensor in_batches(const Tensor& x, int64_t batch, const std::function<void()>& checkpoint,
                  Function&& function) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> parts;
  for (const Tensor& block : x.split(batch)) {
    if (checkpoint) checkpoint();
    parts.push_back(function(block));
    require_finite_outputs(std::nullopt, parts.back());
  }
  return at::cat(parts);
}

}  // namespace

void check(const FeatureTrainingOptions& o) {
  require_within("--epochs", 0, kMostAsked, o.epochs);
  require_within("--batch", 1, kMostAsked, o.batch);
  require_argument(o.learning_rate > 0 && std::isfinite(o.learning_rate), "--lr",
                   "a positive number", o.learning_rate);
  require_argument(o.weight_decay >= 0, "--weight-decay", "0 or more", o.weight_decay);
  require_argument(o.mask > 0 && o.mask <= 1, "--mask", "a share above 0 and at most 1", o.mask);
}

namespace {

// Epochs over examples in random order.
class ExampleTrainee : public Trainee {
 public:
  ExampleTrainee(const torch::nn::Module& module, int64_t count, const FeatureTrainingOptions& o,
                 uint64_t seed, const ExampleLoss& loss, Ranks& ranks)
      : Trainee(o.epochs * ceil_div(count, o.batch)),
        options_(o),
        count_(count),
        loss_(loss),
        ranks_(ranks),
        order_(at::make_generator<at::CPUGeneratorImpl>(2 * seed)),
        draws_(at::make_generator<at::CPUGeneratorImpl>(2 * seed + 1)),
        parameters_(named_parameters(module)),
        optimizer_(parameters_, {.beta2 = 0.999, .weight_decay = o.weight_decay}) {
    for (const io::NamedTensor& each : parameters_) ranks.copy_first(each.tensor.detach());
  }

  double update(int64_t step) override {
    if (next_ == batches_.size()) {
      batches_ = at::randperm(count_, order_, at::kLong).split(options_.batch);
      next_ = 0;
    }
    optimizer_.zero_grad();
    const Tensor& examples = batches_[next_++];
    const PartialLoss part = loss_(examples, ranks_.rows_of(examples.numel()), draws_);
    double value = 0.0;
    if (part.share > 0.0) {
      const Tensor loss = part.share < 1.0 ? part.mean * part.share : part.mean;
      loss.backward();
      value = loss.item<double>();
    }
    ranks_.total({&value, 1}, parameters_);
    finish_update(optimizer_, step, value, options_.learning_rate);
    return value;
  }

 private:
  const FeatureTrainingOptions& options_;
  int64_t count_;
  const ExampleLoss& loss_;
  Ranks& ranks_;
  at::Generator order_, draws_;
  std::vector<io::NamedTensor> parameters_;
  AdamW optimizer_;
  std::vector<Tensor> batches_;  // of the epoch
  size_t next_ = 0;
};

}  // namespace

void train_examples(const torch::nn::Module& module, int64_t count,
                    const FeatureTrainingOptions& options, uint64_t seed, const ExampleLoss& loss,
                    const FeatureEvents& events, Ranks& ranks) {
  check(options);
  ExampleTrainee trainee(module, count, options, seed, loss, ranks);
  LoopEvents loop;
  if (events.checkpoint) loop.prepare = [&](int64_t) { events.checkpoint(); };
  loop.step = [&](size_t, int64_t step, double value) {
    if (events.step) events.step(step, trainee.steps(), value);
  };
  train(trainee, {}, loop);
}

void restore_values(FeatureTransformer& model, const Tensor& x,
                    const FeatureTrainingOptions& options, uint64_t seed,
                    const FeatureEvents& events, Ranks& ranks) {
  train_examples(
      *model, x.size(0), options, seed,
      [&](const Tensor& examples, Ranks::Rows own, const at::Generator& generator) -> PartialLoss {
        const Tensor rows = x.index_select(0, examples);
        // Masks the places with the lowest uniform numbers, so that at least one is masked. Every
        // rank draws the mask of the whole step.
        const Tensor draw =
            at::rand(rows.sizes(), generator, at::kDouble).masked_fill(rows.eq(0), 2.0);
        const Tensor masked = draw.lt(options.mask).logical_or(draw.eq(draw.min()));
        const Tensor own_masked = masked.narrow(0, own.begin, own.count);
        const double share =
            share_of(own_masked.sum().item<int64_t>(), masked.sum().item<int64_t>());
        if (share == 0.0) return {{}, share};
        const Tensor own_rows = rows.narrow(0, own.begin, own.count);
        return {model->reconstruction_loss(own_rows, own_masked), share};
      },
      events, ranks);
}

void learn_answers(FeatureTransformer& model, const Tensor& x, const Tensor& answers,
                   const FeatureTrainingOptions& options, uint64_t seed,
                   const FeatureEvents& events, Ranks& ranks) {
  train_examples(
      *model, x.size(0), options, seed,
      [&](const Tensor& examples, Ranks::Rows own, const at::Generator&) -> PartialLoss {
        const double share = share_of(own.count, examples.numel());
        if (share == 0.0) return {{}, share};
        const Tensor rows = examples.narrow(0, own.begin, own.count);
        const Tensor output = model->predict(model->forward(x.index_select(0, rows)));
        const Tensor truth = answers.index_select(0, rows);
        return {
            truth.dim() == 1 ? at::cross_entropy_loss(output, truth) : at::mse_loss(output, truth),
            share};
      },
      events, ranks);
}

Tensor predict_all(FeatureTransformer& model, const Tensor& x, int64_t batch,
                   const std::function<void()>& checkpoint) {
  return in_batches(x, batch, checkpoint,
                    [&](const Tensor& block) { return model->predict(model->forward(block)); });
}

Tensor embed_all(FeatureTransformer& model, const Tensor& x, int64_t batch,
                 const std::function<void()>& checkpoint) {
  return in_batches(x, batch, checkpoint,
                    [&](const Tensor& block) { return model->aggregate(model->forward(block)); });
}

}  // namespace nsimplex::training
