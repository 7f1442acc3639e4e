#include "training/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "support/error.h"
#include "training/evaluate.h"

namespace nsimplex::training {
namespace {

using Clock = std::chrono::steady_clock;

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

AdamWOptions adamw_options(const TrainingOptions& o) {
  return {.beta1 = o.beta1, .beta2 = o.beta2, .weight_decay = o.weight_decay};
}

LanguageModel make_model(const LanguageModelOptions& options, c10::Device device) {
  LanguageModel model(options);
  model->to(device);
  return model;
}

bool due(int64_t step, int64_t every, int64_t last) {
  return step == last || (every > 0 && step % every == 0);
}

}  // namespace

Checkpoint first_checkpoint(const LanguageModelOptions& model, const TrainingOptions& training,
                            const TextRecord& text, const std::string& tokenizer) {
  check(training);
  Checkpoint checkpoint{.model = model, .training = training, .text = text, .tokenizer = tokenizer};
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(training.seed);
  const LanguageModel first(model, generator);
  checkpoint.weights = named_parameters(first);
  checkpoint.optimizer = AdamW(checkpoint.weights, adamw_options(training)).state();
  checkpoint.generator = generator.get_state();
  return checkpoint;
}

Trainer::Trainer(std::string folder, const Checkpoint& start, const data::Tokens& tokens,
                 c10::Device device)
    : folder_(std::move(folder)),
      lock_(folder_),
      state_(start),
      tokens_(tokens),
      device_(device),
      model_(make_model(start.model, device)),
      optimizer_(named_parameters(model_), adamw_options(start.training)),
      schedule_{start.training.lr, start.training.min_lr, start.training.warmup,
                start.training.steps},
      sampler_(tokens, data::split(tokens).train, start.training.batch, start.model.context,
               start.training.seed) {
  check(start.training);
  if (tokens.size() != start.text.tokens || tokens.fingerprint() != start.text.fingerprint) {
    throw InputError(
        fmt::format("the text is not the one this run began with ({} tokens then, {} now)",
                    start.text.tokens, tokens.size()));
  }
  const std::string origin = (std::filesystem::path(folder_) / kCheckpointFile).string();
  state_.weights = named_parameters(model_);
  state_.optimizer = optimizer_.state();
  copy_into(state_.weights, start.weights, origin);
  copy_into(state_.optimizer, start.optimizer, origin);
  sampler_.seek(start.progress.position);
  try {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_state(start.generator);
  } catch (const c10::Error&) {
    throw InputError("cannot read " + origin + ": its generator state is damaged");
  }
}

TrainingEnd Trainer::run(const TrainingEvents& events) {
  const TrainingOptions& o = state_.training;
  Progress& progress = state_.progress;
  // The checkpoint is the first file of a run: a folder without one holds nothing worth keeping.
  if (progress.step == 0) {
    save();
  } else {
    write_model(folder_, state_);  // a run that died between the two files left an old one
  }
  log_.emplace((std::filesystem::path(folder_) / kMetricsFile).string(), progress.step);

  while (progress.step < o.steps) {
    if (events.stop && events.stop()) {
      save();
      return TrainingEnd::stopped;
    }
    const auto begun = Clock::now();
    const double loss = step();
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    ++progress.step;
    progress.loss_sum += loss;
    ++progress.loss_steps;
    seconds_ += seconds;
    ++timed_steps_;
    const double tokens = static_cast<double>(o.batch * o.accumulate * state_.model.context);
    if (events.step) events.step(progress.step, loss, tokens / seconds);

    const int64_t now = progress.step;
    if (due(now, o.log_every, o.steps) || due(now, o.eval_every, o.steps)) {
      const Metrics metrics = measure();
      log_->append(metrics);
      if (events.metrics) events.metrics(metrics);
    }
    if (due(now, o.checkpoint_every, o.steps)) save();
  }
  return TrainingEnd::finished;
}

// Gradients of the mean loss over the windows of one update; returns that loss.
double Trainer::accumulate_gradients() {
  const TrainingOptions& o = state_.training;
  optimizer_.zero_grad();
  double sum = 0.0;
  for (int64_t pass = 0; pass < o.accumulate; ++pass) {
    const data::Batch batch = sampler_.next();
    at::Tensor loss;
    {
      const Autocast autocast(device_.type(), o.bf16);
      loss = model_->loss(batch.inputs.to(device_), batch.targets.to(device_));
    }
    if (o.accumulate > 1) loss = loss / static_cast<double>(o.accumulate);
    loss.backward();
    sum += loss.item<double>();
  }
  return sum;
}

double Trainer::step() {
  const TrainingOptions& o = state_.training;
  const int64_t number = state_.progress.step + 1;
  const double loss = accumulate_gradients();
  const double norm = optimizer_.gradient_norm();
  // Checked before the update, which would spread the damage over every weight.
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    throw Diverged(fmt::format("the {} is {} at step {}: the run stops; try a lower learning rate",
                               std::isfinite(loss) ? "gradient norm" : "loss",
                               std::isfinite(loss) ? norm : loss, number));
  }
  optimizer_.step(schedule_.rate(number - 1), o.clip > 0 ? std::max(norm / o.clip, 1.0) : 1.0);
  state_.progress.position = sampler_.position();
  return loss;
}

// Closes the interval since the last line.
Metrics Trainer::measure() {
  const TrainingOptions& o = state_.training;
  Progress& progress = state_.progress;
  Metrics metrics;
  metrics.step = progress.step;
  metrics.train_loss = progress.loss_sum / static_cast<double>(progress.loss_steps);
  const double tokens =
      static_cast<double>(timed_steps_ * o.batch * o.accumulate * state_.model.context);
  metrics.tokens_per_second = tokens / seconds_;
  if (due(progress.step, o.eval_every, o.steps)) {
    metrics.val_loss = evaluate(model_, tokens_, data::split(tokens_).validation,
                                state_.model.context, o.eval_tokens)
                           .loss;
  }
  progress.loss_sum = 0.0;
  progress.loss_steps = 0;
  seconds_ = 0.0;
  timed_steps_ = 0;
  return metrics;
}

void Trainer::save() {
  // First the lines that this checkpoint's step covers: resuming takes them as written.
  if (log_) log_->sync();
  state_.generator = at::detail::getDefaultCPUGenerator().get_state();
  write_checkpoint(folder_, state_);
}

}  // namespace nsimplex::training
