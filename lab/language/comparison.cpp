#include "lab/language/comparison.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "train/inference.h"
#include "train/optimizer.h"
#include "train/scores.h"
#include "train/stopwatch.h"
#include "train/trainer.h"

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

RateTrial train_at_rate(const LanguageModelOptions& model, const TrainingOptions& training,
                        const Corpus& corpus, c10::Device device, const RateTrialEvents& events) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(training.seed);
  Learner learner(model, training, device, generator);
  data::BatchSampler sampler(corpus.tokens, corpus.split.train, training.batch, model.context,
                             training.seed);
  const auto loss = [&] {
    return evaluate(learner.model(), corpus.tokens, corpus.split.validation, model.context,
                    training.eval_tokens)
        .loss;
  };
  const int64_t early = std::max<int64_t>(training.steps / 10, 1);
  RateTrial trial;
  trial.model = learner.model();
  std::vector<double> gradient_norms;
  std::vector<data::Batch> batches(static_cast<size_t>(training.accumulate));
  try {
    for (int64_t step = 1; step <= training.steps; ++step) {
      for (data::Batch& batch : batches) batch = sampler.next();
      const StepLoss now = learner.update(step, batches);
      gradient_norms.push_back(now.gradient_norm);
      if (events.step) events.step(step, now.cross_entropy);
      if (step != early) continue;
      trial.early_loss = loss();
      if (events.early && std::isfinite(trial.early_loss)) events.early(trial.model);
    }
    trial.val_loss = loss();
  } catch (const Diverged&) {
    trial.diverged = true;
  }
  trial.spikes = count_spikes(gradient_norms);
  trial.gradient = gradient_shape(*learner.model());
  return trial;
}

namespace {

constexpr int64_t kMassWindows = 8;  // validation windows that the retained mass is measured on

// A model in training.
struct Contender {
  std::unique_ptr<Learner> learner;
  int64_t steps = 0;
  std::vector<double> seconds;  // of every step
  double loss_sum = 0.0, auxiliary_sum = 0.0;
  bool has_auxiliary = false;
  int64_t loss_steps = 0;
  ArmResult result;
};

// Takes over weights that an earlier model has under the same name and with the same shape.
void share_first_weights(std::vector<Contender>& contenders) {
  std::map<std::string, at::Tensor> first;
  for (Contender& contender : contenders) {
    for (const io::NamedTensor& each : named_parameters(*contender.learner->model())) {
      const auto [known, added] = first.try_emplace(each.name, each.tensor);
      if (added || known->second.sizes() != each.tensor.sizes()) continue;
      const at::NoGradGuard no_grad;
      at::Tensor(each.tensor).copy_(known->second);
    }
  }
}

std::vector<Contender> make_contenders(const std::vector<Arm>& arms,
                                       const TrainingOptions& training, c10::Device device) {
  std::vector<Contender> contenders;
  for (const Arm& arm : arms) {
    Contender contender;
    TrainingOptions own = training;
    if (arm.steps > 0) own.steps = arm.steps;
    contender.steps = own.steps;
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(training.seed);
    contender.learner = std::make_unique<Learner>(arm.model, own, device, generator);
    contender.result.parameters = parameter_count(*contender.learner->model());
    contenders.push_back(std::move(contender));
  }
  share_first_weights(contenders);
  return contenders;
}

void update(Contender& contender, int64_t step, const std::vector<data::Batch>& batches) {
  const Stopwatch watch;
  const StepLoss loss = contender.learner->update(step, batches);
  contender.seconds.push_back(watch.seconds());
  contender.loss_sum += loss.cross_entropy;
  contender.auxiliary_sum += loss.auxiliary.value_or(0.0);
  contender.has_auxiliary = loss.auxiliary.has_value();
  ++contender.loss_steps;
}

// Validates, and ends the interval since the last point.
ArmPoint measure(Contender& contender, int64_t step, const TrainingOptions& training,
                 const Corpus& corpus, int64_t context) {
  ArmPoint point;
  const double steps = static_cast<double>(contender.loss_steps);
  point.step = step;
  point.train_loss = contender.loss_sum / steps;
  if (contender.has_auxiliary) point.auxiliary_loss = contender.auxiliary_sum / steps;
  point.val_loss = evaluate(contender.learner->model(), corpus.tokens, corpus.split.validation,
                            context, training.eval_tokens)
                       .loss;
  point.seconds = median(contender.seconds) * static_cast<double>(step);
  contender.loss_sum = contender.auxiliary_sum = 0.0;
  contender.loss_steps = 0;
  contender.result.auxiliary_loss = point.auxiliary_loss;
  contender.result.curve.push_back({step, point.val_loss});
  return point;
}

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

// Rotates the order in which models take their turns, so that no model always sees a batch first.
template <class Body>
void by_turns(std::vector<Contender>& contenders, int64_t step, Body&& body) {
  for (size_t turn = 0; turn < contenders.size(); ++turn) {
    const size_t arm = (static_cast<size_t>(step) + turn) % contenders.size();
    if (step <= contenders[arm].steps) body(arm, contenders[arm]);
  }
}

}  // namespace

std::vector<ArmResult> train_arms(const std::vector<Arm>& arms, const TrainingOptions& training,
                                  const Corpus& corpus, c10::Device device,
                                  const ComparisonEvents& events) {
  std::vector<Contender> contenders = make_contenders(arms, training, device);
  const int64_t context = arms.front().model.context;
  data::BatchSampler sampler(corpus.tokens, corpus.split.train, training.batch, context,
                             training.seed);
  int64_t last = 0, done = 0;
  for (const Contender& each : contenders) last = std::max(last, each.steps);
  std::vector<data::Batch> batches(static_cast<size_t>(training.accumulate));
  for (int64_t step = 1; step <= last; ++step) {
    for (data::Batch& batch : batches) batch = sampler.next();
    by_turns(contenders, step, [&](size_t arm, Contender& contender) {
      update(contender, step, batches);
      const double loss = contender.loss_sum / static_cast<double>(contender.loss_steps);
      if (events.step) events.step(++done, loss);
      const bool due = training.eval_every > 0 && step % training.eval_every == 0;
      if (!due && step != contender.steps) return;
      ArmPoint point = measure(contender, step, training, corpus, context);
      point.arm = arm;
      if (events.point) events.point(point);
    });
  }
  std::vector<ArmResult> results;
  for (Contender& contender : contenders) {
    ArmResult& result = contender.result;
    result.steps = contender.steps;
    result.seconds_per_step = median(contender.seconds);
    result.tokens_per_second = static_cast<double>(training.batch * training.accumulate * context) /
                               result.seconds_per_step;
    result.retained_mass = retained_mass(contender.learner->model(), corpus, context, device);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<double> time_steps(const std::vector<Arm>& arms, const TrainingOptions& training,
                               const Corpus& corpus, c10::Device device, int64_t steps) {
  TrainingOptions settled = training;
  settled.indexer_warmup = 0;
  std::vector<Contender> contenders = make_contenders(arms, settled, device);
  data::BatchSampler sampler(corpus.tokens, corpus.split.train, training.batch,
                             arms.front().model.context, training.seed);
  std::vector<data::Batch> batches(static_cast<size_t>(training.accumulate));
  for (int64_t step = 1; step <= steps; ++step) {
    for (data::Batch& batch : batches) batch = sampler.next();
    by_turns(contenders, step,
             [&](size_t, Contender& contender) { update(contender, step, batches); });
  }
  std::vector<double> seconds;
  for (const Contender& each : contenders) seconds.push_back(median(each.seconds));
  return seconds;
}

}  // namespace nsimplex::training
