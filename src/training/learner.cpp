#include "training/learner.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include <cmath>

#include "training/parameters.h"

namespace nsimplex::training {
namespace {

// bf16 autocast for one scope; casts of weights are shared within it.
class Autocast {
 public:
  Autocast(c10::DeviceType device, bool wanted)
      : device_(device), before_(at::autocast::is_autocast_enabled(device)) {
    if (wanted) {
      at::autocast::set_autocast_enabled(device, true);
      at::autocast::set_autocast_dtype(device, at::kBFloat16);
    }
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, before_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool before_;
};

LanguageModel make_model(const LanguageModelOptions& options, c10::Device device,
                         const std::optional<at::Generator>& generator) {
  LanguageModel model(options, generator);
  model->to(device);
  return model;
}

AdamWOptions adamw_options(const TrainingOptions& o) {
  return {.beta1 = o.beta1, .beta2 = o.beta2, .weight_decay = o.weight_decay};
}

}  // namespace

Learner::Learner(const LanguageModelOptions& model, const TrainingOptions& training,
                 c10::Device device, const std::optional<at::Generator>& generator)
    : options_(training),
      device_(device),
      model_(make_model(model, device, generator)),
      optimizer_(named_parameters(*model_), adamw_options(training)),
      schedule_{training.lr, training.min_lr, training.warmup, training.steps} {
  check(training);
}

StepLoss Learner::accumulate_gradients(const std::vector<data::Batch>& batches) {
  optimizer_.zero_grad();
  const double count = static_cast<double>(batches.size());
  StepLoss mean;
  for (const data::Batch& batch : batches) {
    at::Tensor loss;
    {
      const Autocast autocast(device_.type(), options_.bf16);
      loss = model_->loss(batch.inputs.to(device_), batch.targets.to(device_));
    }
    if (batches.size() > 1) loss = loss / count;
    loss.backward();
    mean.cross_entropy += loss.item<double>();
    if (const at::Tensor auxiliary = model_->auxiliary_loss(); auxiliary.defined()) {
      const double part = auxiliary.item<double>() / count;
      mean.cross_entropy -= part;
      mean.auxiliary = mean.auxiliary.value_or(0.0) + part;
    }
  }
  return mean;
}

StepLoss Learner::update(int64_t number, const std::vector<data::Batch>& batches) {
  model_->set_warm_up(number <= options_.indexer_warmup);
  StepLoss loss = accumulate_gradients(batches);
  model_->set_warm_up(false);
  const double norm = loss.gradient_norm = optimizer_.gradient_norm();
  require_finite(number, loss.cross_entropy + loss.auxiliary.value_or(0.0), norm);
  const double divisor = options_.clip > 0 ? std::max(norm / options_.clip, 1.0) : 1.0;
  optimizer_.step(schedule_.rate(number - 1), divisor);
  return loss;
}

}  // namespace nsimplex::training
