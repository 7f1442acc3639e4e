// Trains language models side by side, compares their loss curves, and tries single learning rates.

#include "lab/language/comparison.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "support/median.h"
#include "train/inference.h"
#include "train/optimizer.h"
#include "train/scores.h"
#include "train/trainer.h"
#include "train/training_loop.h"

namespace nsimplex::training {

std::vector<CurvePoint> smooth(std::span<const CurvePoint> curve, int64_t reach) {
  std::vector<CurvePoint> result(curve.begin(), curve.end());
  const int64_t count = static_cast<int64_t>(curve.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t span = std::min({reach, i, count - 1 - i});
    double sum = 0.0;
    for (int64_t j = i - span; j <= i + span; ++j) sum += curve[j].loss;
    result[i].loss = sum / static_cast<double>(2 * span + 1);
  }
  return result;
}

std::optional<double> first_step_at(std::span<const CurvePoint> curve, double loss) {
  for (size_t i = 0; i < curve.size(); ++i) {
    if (curve[i].loss > loss) continue;
    const double step = static_cast<double>(curve[i].step);
    if (i == 0) return step;
    const CurvePoint& before = curve[i - 1];  // above the loss
    const double part = (before.loss - loss) / (before.loss - curve[i].loss);
    return static_cast<double>(before.step) + part * (step - static_cast<double>(before.step));
  }
  return std::nullopt;
}

std::vector<SpeedUpPoint> speed_up(std::span<const CurvePoint> x, std::span<const CurvePoint> y) {
  std::vector<SpeedUpPoint> result;
  for (const CurvePoint& point : x) {
    if (y.empty() || point.step == 0 || point.loss > y.front().loss) continue;
    const auto step = first_step_at(y, point.loss);
    if (step) result.push_back({point.step, *step / static_cast<double>(point.step) - 1.0});
  }
  return result;
}

namespace {

constexpr double kSpike = 5.0;   // relative to the running median
constexpr size_t kSettled = 10;  // steps before one can be a spike
constexpr double kLargestInt8 = 127.0;

}  // namespace

GradientShape gradient_shape(LanguageModelImpl& model) {
  GradientShape worst;
  for (const io::NamedTensor& each : named_parameters(model)) {
    const at::Tensor& gradient = each.tensor.grad();
    if (!gradient.defined() || !decays(each.name, each.tensor)) continue;
    const at::Tensor g = gradient.detach().to(at::kDouble).flatten();
    const double largest = g.abs().max().item<double>();
    const double square = g.square().mean().item<double>();
    if (!(square > 0)) continue;
    const double step = largest / kLargestInt8;
    const double rounding = ((g / step).round() * step - g).square().mean().item<double>();
    const double fourth = g.square().square().mean().item<double>();
    worst.peak = std::max(worst.peak, largest / std::sqrt(square));
    worst.kurtosis = std::max(worst.kurtosis, fourth / (square * square));
    worst.int8_error = std::max(worst.int8_error, std::sqrt(rounding / square));
  }
  return worst;
}

int64_t count_spikes(const std::vector<double>& norms) {
  int64_t spikes = 0;
  for (size_t i = kSettled; i < norms.size(); ++i) {
    const std::vector<double> before(norms.begin(), norms.begin() + static_cast<int64_t>(i));
    spikes += norms[i] > kSpike * median(before);
  }
  return spikes;
}

namespace {

// Rounds every gradient of a model when autograd delivers it.
void round_gradients(LanguageModelImpl& model) {
  for (const io::NamedTensor& each : named_parameters(model)) {
    each.tensor.register_hook(
        [](const at::Tensor& gradient) { return gradient.to(at::kBFloat16).to(gradient.dtype()); });
  }
}

// One model at one rate, on its own batches.
class RateTrainee : public Trainee {
 public:
  RateTrainee(const LanguageModelOptions& model, const TrainingOptions& training,
              const Corpus& corpus, c10::Device device, const RateTrialEvents& events,
              GradientNumbers gradients)
      : Trainee(training.steps),
        corpus_(corpus),
        events_(events),
        context_(model.context),
        eval_tokens_(training.eval_tokens),
        early_(std::max<int64_t>(training.steps / 10, 1)),
        learner_(model, training, device, at::make_generator<at::CPUGeneratorImpl>(training.seed)),
        sampler_(corpus.tokens, corpus.split.train, training.batch, model.context, training.seed),
        batches_(static_cast<size_t>(training.accumulate)) {
    trial_.model = learner_.model();
    if (gradients == GradientNumbers::bfloat16) round_gradients(*trial_.model);
  }

  double update(int64_t step) override {
    for (data::Batch& batch : batches_) batch = sampler_.next();
    const StepLoss loss = learner_.update(step, batches_);
    gradient_norms_.push_back(loss.gradient_norm);
    return loss.cross_entropy;
  }

  bool is_evaluated_at(int64_t step) const override { return step == early_; }

  // A loss that is not finite is a result here.
  bool evaluate(int64_t step) override {
    if (step == early_) {
      trial_.early_loss = validation_loss();
      if (events_.early && std::isfinite(trial_.early_loss)) events_.early(trial_.model);
    }
    if (step == steps()) trial_.val_loss = validation_loss();
    return true;
  }

  RateTrial trial(bool diverged) {
    trial_.diverged = diverged;
    trial_.spikes = count_spikes(gradient_norms_);
    trial_.gradient = gradient_shape(*learner_.model());
    return trial_;
  }

 private:
  double validation_loss() {
    return training::evaluate(learner_.model(), corpus_.tokens, corpus_.split.validation, context_,
                              eval_tokens_)
        .loss;
  }

  const Corpus& corpus_;
  const RateTrialEvents& events_;
  int64_t context_, eval_tokens_, early_;
  Learner learner_;
  data::BatchSampler sampler_;
  std::vector<data::Batch> batches_;
  std::vector<double> gradient_norms_;
  RateTrial trial_;
};

}  // namespace

RateTrial train_at_rate(const LanguageModelOptions& model, const TrainingOptions& training,
                        const Corpus& corpus, c10::Device device, const RateTrialEvents& events,
                        GradientNumbers gradients) {
  RateTrainee trainee(model, training, corpus, device, events, gradients);
  try {
    train(trainee, {}, {.stop = {}, .prepare = {}, .step = [&](size_t, int64_t step, double loss) {
                          if (events.step) events.step(step, loss);
                        }});
  } catch (const Diverged&) {
    return trainee.trial(/*diverged=*/true);
  }
  return trainee.trial(/*diverged=*/false);
}

namespace {

constexpr int64_t kMassWindows = 8;  // validation windows that the retained mass is measured on

// Mean over the layers that choose keys, on windows spread over the validation text.
std::optional<double> retained_mass(LanguageModel& model, const Corpus& corpus, int64_t context,
                                    c10::Device device) {
  const data::Slice slice = corpus.split.validation;
  const int64_t room = slice.size() - context - 1;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < kMassWindows; ++i) {
    starts.push_back(slice.begin + i * std::max<int64_t>(room, 0) / kMassWindows);
  }
  if (room < 0) return std::nullopt;
  const data::Batch batch = data::gather(corpus.tokens, starts, context);
  const std::vector<double> masses = model->retained_mass(batch.inputs.to(device));
  if (masses.empty()) return std::nullopt;
  return std::accumulate(masses.begin(), masses.end(), 0.0) / static_cast<double>(masses.size());
}

// The batches of a step, which all arms see.
using Batches = std::vector<data::Batch>;

// One arm in training. Without a corpus it is only timed.
class ArmTrainee : public Trainee {
 public:
  ArmTrainee(const Arm& arm, size_t number, const TrainingOptions& own, int64_t steps,
             c10::Device device, const Batches& batches)
      : Trainee(steps),
        number_(number),
        training_(own),
        context_(arm.model.context),
        device_(device),
        batches_(batches),
        learner_(arm.model, own, device, at::make_generator<at::CPUGeneratorImpl>(own.seed)) {
    result_.parameters = parameter_count(*learner_.model());
    result_.steps = own.steps;
  }

  void evaluate_on(const Corpus& corpus, const std::function<void(const ArmPoint&)>& told) {
    corpus_ = &corpus;
    told_ = told;
  }

  double update(int64_t step) override {
    const StepLoss loss = learner_.update(step, batches_);
    loss_sum_ += loss.cross_entropy;
    auxiliary_sum_ += loss.auxiliary.value_or(0.0);
    has_auxiliary_ = loss.auxiliary.has_value();
    ++loss_steps_;
    return loss.cross_entropy;
  }

  bool is_evaluated_at(int64_t step) const override {
    return training_.eval_every > 0 && step % training_.eval_every == 0;
  }

  // Closes the interval since the last point.
  bool evaluate(int64_t step) override {
    if (corpus_ == nullptr) return true;
    ArmPoint point;
    point.arm = number_;
    point.step = step;
    point.train_loss = mean_loss();
    if (has_auxiliary_) {
      point.auxiliary_loss = auxiliary_sum_ / static_cast<double>(loss_steps_);
    }
    point.val_loss = training::evaluate(learner_.model(), corpus_->tokens,
                                        corpus_->split.validation, context_, training_.eval_tokens)
                         .loss;
    require_finite(step, point.val_loss);
    point.seconds = median_seconds() * static_cast<double>(step);
    loss_sum_ = auxiliary_sum_ = 0.0;
    loss_steps_ = 0;
    result_.auxiliary_loss = point.auxiliary_loss;
    result_.curve.push_back({step, point.val_loss});
    if (told_) told_(point);
    return true;
  }

  /// Mean over the steps since the last point.
  double mean_loss() const { return loss_sum_ / static_cast<double>(loss_steps_); }

  ArmResult result() {
    ArmResult result = result_;
    result.seconds_per_step = median_seconds();
    result.tokens_per_second =
        static_cast<double>(training_.batch * training_.accumulate * context_) /
        result.seconds_per_step;
    result.retained_mass = retained_mass(learner_.model(), *corpus_, context_, device_);
    return result;
  }

  LanguageModel& model() { return learner_.model(); }

 private:
  size_t number_;
  TrainingOptions training_;
  int64_t context_;
  c10::Device device_;
  const Batches& batches_;
  Learner learner_;
  const Corpus* corpus_ = nullptr;
  std::function<void(const ArmPoint&)> told_;
  double loss_sum_ = 0.0, auxiliary_sum_ = 0.0;
  bool has_auxiliary_ = false;
  int64_t loss_steps_ = 0;
  ArmResult result_;
};

// All arms, and the batches that they see.
class ArmTrainees {
 public:
  /// `most_steps`: of every arm; without it as many as the arm asks for.
  ArmTrainees(const std::vector<Arm>& arms, const TrainingOptions& training, const Corpus& corpus,
              c10::Device device, std::optional<int64_t> most_steps = std::nullopt)
      : batches_(static_cast<size_t>(training.accumulate)),
        sampler_(corpus.tokens, corpus.split.train, training.batch, arms.front().model.context,
                 training.seed) {
    for (size_t i = 0; i < arms.size(); ++i) {
      TrainingOptions own = training;
      if (arms[i].steps > 0) own.steps = arms[i].steps;
      const int64_t steps = std::min(own.steps, most_steps.value_or(own.steps));
      trainees_.push_back(std::make_unique<ArmTrainee>(arms[i], i, own, steps, device, batches_));
    }
    share_first_weights();
  }

  // The order in which arms take their turns goes round, so that none is always the first to see a
  // batch.
  void train(const std::function<void(size_t arm)>& told = {}) {
    std::vector<Trainee*> turns;
    for (const auto& each : trainees_) turns.push_back(each.get());
    training::train(turns, {.rotates = true},
                    {.stop = {},
                     .prepare =
                         [&](int64_t) {
                           for (data::Batch& batch : batches_) batch = sampler_.next();
                         },
                     .step =
                         [&](size_t arm, int64_t, double) {
                           if (told) told(arm);
                         }});
  }

  const std::vector<std::unique_ptr<ArmTrainee>>& all() const { return trainees_; }

 private:
  // Weights that an earlier arm has under the same name and in the same shape are taken from it.
  void share_first_weights() {
    std::map<std::string, at::Tensor> first;
    for (const auto& trainee : trainees_) {
      for (const io::NamedTensor& each : named_parameters(*trainee->model())) {
        const auto [known, added] = first.try_emplace(each.name, each.tensor);
        if (added || known->second.sizes() != each.tensor.sizes()) continue;
        const at::NoGradGuard no_grad;
        at::Tensor(each.tensor).copy_(known->second);
      }
    }
  }

  Batches batches_;
  data::BatchSampler sampler_;
  std::vector<std::unique_ptr<ArmTrainee>> trainees_;
};

}  // namespace

std::vector<ArmResult> train_arms(const std::vector<Arm>& arms, const TrainingOptions& training,
                                  const Corpus& corpus, c10::Device device,
                                  const ComparisonEvents& events) {
  ArmTrainees trainees(arms, training, corpus, device);
  for (const auto& each : trainees.all()) each->evaluate_on(corpus, events.point);
  int64_t done = 0;
  trainees.train([&](size_t arm) {
    if (events.step) events.step(++done, trainees.all()[arm]->mean_loss());
  });
  std::vector<ArmResult> results;
  for (const auto& each : trainees.all()) results.push_back(each->result());
  return results;
}

std::vector<double> time_steps(const std::vector<Arm>& arms, const TrainingOptions& training,
                               const Corpus& corpus, c10::Device device, int64_t steps) {
  TrainingOptions settled = training;
  settled.indexer_warmup = 0;
  ArmTrainees trainees(arms, settled, corpus, device, steps);
  trainees.train();
  std::vector<double> seconds;
  for (const auto& each : trainees.all()) seconds.push_back(each->median_seconds());
  return seconds;
}

}  // namespace nsimplex::training
