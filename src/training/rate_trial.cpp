#include "training/rate_trial.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

#include "training/evaluate.h"
#include "training/learner.h"
#include "training/parameters.h"
#include "training/statistics.h"

namespace nsimplex::training {
namespace {

constexpr double kSpike = 5.0;   // times the running median
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

}  // namespace nsimplex::training
