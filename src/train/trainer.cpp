// Trains a language model from a checkpoint to its last step.

#include "train/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include <filesystem>

#include "support/error.h"
#include "train/inference.h"
#include "train/optimizer.h"
#include "train/stored_state.h"

namespace nsimplex::training {
namespace {

// Turns on bf16 autocast for one scope. Casts of weights are shared within it.
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

std::string checkpoint_in(const std::string& folder) {
  return (std::filesystem::path(folder) / kCheckpointFile).string();
}

AdamWOptions adamw_options(const TrainingOptions& o) {
  return {.beta1 = o.beta1, .beta2 = o.beta2, .weight_decay = o.weight_decay};
}

}  // namespace

Learner::Learner(const LanguageModelOptions& model, const TrainingOptions& training,
                 c10::Device device, const std::optional<at::Generator>& generator, Ranks& ranks)
    : options_(training),
      device_(device),
      model_(make_model(model, device, generator)),
      optimizer_(named_parameters(*model_), adamw_options(training)),
      schedule_{training.lr, training.min_lr, training.warmup, training.steps},
      ranks_(ranks) {
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
  double losses[] = {loss.cross_entropy, loss.auxiliary.value_or(0.0)};
  ranks_.average(losses, named_parameters(*model_));
  loss.cross_entropy = losses[0];
  if (loss.auxiliary) loss.auxiliary = losses[1];
  loss.gradient_norm =
      finish_update(optimizer_, number, loss.cross_entropy + loss.auxiliary.value_or(0.0),
                    schedule_.rate(number - 1), options_.clip);
  return loss;
}

namespace {

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
  checkpoint.weights = named_parameters(*first);
  checkpoint.optimizer = AdamW(checkpoint.weights, {}).state();
  checkpoint.generator = generator.get_state();
  return checkpoint;
}

Trainer::Trainer(std::string folder, const Checkpoint& start, const data::Tokens& tokens,
                 c10::Device device, Ranks& ranks, const std::function<void()>& make_folder)
    : Trainee(start.training.steps),
      folder_(std::move(folder)),
      ranks_(ranks),
      state_(start),
      tokens_(tokens),
      // first_checkpoint() has made a model of new options.
      learner_(of_file(
          checkpoint_in(folder_),
          [&] { return Learner(start.model, start.training, device, std::nullopt, ranks); })),
      sampler_(tokens, data::split(tokens).train, start.training.batch, start.model.context,
               start.training.seed) {
  require_shared_training();
  if (tokens.size() != start.text.tokens || tokens.fingerprint() != start.text.fingerprint) {
    throw InputError(
        fmt::format("the text is not the one this run began with ({} tokens then, {} now)",
                    start.text.tokens, tokens.size()));
  }
  if (make_folder) make_folder();
  if (ranks.writes()) lock_.emplace(folder_);
  const std::string origin = checkpoint_in(folder_);
  state_.weights = named_parameters(*learner_.model());
  state_.optimizer = learner_.optimizer().state();
  copy_into(state_.weights, start.weights, origin);
  copy_into(state_.optimizer, start.optimizer, origin);
  sampler_.seek(start.progress.position);
  continue_after(start.progress.step);
  of_file(origin,
          [&] { set_state(at::detail::getDefaultCPUGenerator(), start.generator, "generator"); });
  require_common_start();
}

void Trainer::require_shared_training() const {
  if (ranks_.size() == 1) return;
  ranks_.require_divides(state_.training.batch);
  if (state_.model.dropout > 0) {
    throw InputError(
        fmt::format("dropout: expected 0 with several ranks, got {}; each rank would "
                    "drop the tuples of the first rows",
                    state_.model.dropout));
  }
}

// All ranks have read the folder when this returns, so that one of them may write to it.
void Trainer::require_common_start() {
  if (ranks_.size() == 1) return;
  const std::vector<double> steps = ranks_.gather(static_cast<double>(done()));
  for (size_t rank = 1; rank < steps.size(); ++rank) {
    if (steps[rank] == steps[0]) continue;
    throw InputError(
        fmt::format("{}: expected a folder that all ranks share, but rank {} found "
                    "step {} and rank 0 found step {}",
                    folder_, rank, steps[rank], steps[0]));
  }
}

TrainingEnd Trainer::run(const TrainingEvents& events) {
  const TrainingOptions& o = state_.training;
  const int64_t first = done();
  // The checkpoint is the first file of a run. A folder without one contains nothing to keep.
  if (first == 0) {
    save();
  } else if (ranks_.writes()) {
    write_model(folder_, state_);  // a run that died between the two files left an old one
  }
  if (ranks_.writes()) {
    log_.emplace((std::filesystem::path(folder_) / kMetricsFile).string(), first);
  }
  told_ = events.metrics;

  const double tokens = static_cast<double>(o.batch * o.accumulate * state_.model.context);
  const TrainingEnd end = train(*this, {.save_every = o.checkpoint_every},
                                {.stop = [&] { return ranks_.any(events.stop && events.stop()); },
                                 .prepare = {},
                                 .step =
                                     [&](size_t, int64_t step, double loss) {
                                       if (events.step)
                                         events.step(step, loss, tokens / times().back());
                                     }});
  // The loop saves between steps. A run that stops before its first step may have new options.
  if ((end == TrainingEnd::stopped) == (done() == first)) save();
  return end;
}

double Trainer::update(int64_t step) {
  std::vector<data::Batch> batches;
  for (int64_t i = 0; i < state_.training.accumulate; ++i) {
    batches.push_back(ranks_.share(sampler_.next()));
  }
  const StepLoss loss = learner_.update(step, batches);
  Progress& progress = state_.progress;
  progress.position = sampler_.position();
  progress.step = step;
  progress.loss_sum += loss.cross_entropy;
  progress.auxiliary_sum += loss.auxiliary.value_or(0.0);
  learns_auxiliary_ = loss.auxiliary.has_value();
  ++progress.loss_steps;
  return loss.cross_entropy;
}

bool Trainer::is_evaluated_at(int64_t step) const {
  const TrainingOptions& o = state_.training;
  return due(step, o.log_every, o.steps) || due(step, o.eval_every, o.steps);
}

bool Trainer::evaluate(int64_t /*step*/) {
  const Metrics metrics = measure();
  if (log_) log_->append(metrics);
  if (told_) told_(metrics);
  return true;
}

// Ends the interval since the last line.
Metrics Trainer::measure() {
  const TrainingOptions& o = state_.training;
  Progress& progress = state_.progress;
  Metrics metrics;
  metrics.step = progress.step;
  const double steps = static_cast<double>(progress.loss_steps);
  metrics.train_loss = progress.loss_sum / steps;
  if (learns_auxiliary_) metrics.auxiliary_loss = progress.auxiliary_sum / steps;
  const int64_t timed_steps = std::ssize(times()) - steps_before_;
  const double tokens =
      static_cast<double>(timed_steps * o.batch * o.accumulate * state_.model.context);
  metrics.tokens_per_second = tokens / (seconds() - seconds_before_);
  if (due(progress.step, o.eval_every, o.steps)) {
    metrics.val_loss =
        training::evaluate(learner_.model(), tokens_, data::split(tokens_).validation,
                           state_.model.context, o.eval_tokens, {}, ranks_)
            .loss;
    require_finite(progress.step, *metrics.val_loss);
  }
  progress.loss_sum = progress.auxiliary_sum = 0.0;
  progress.loss_steps = 0;
  seconds_before_ = seconds();
  steps_before_ = std::ssize(times());
  return metrics;
}

void Trainer::save() {
  if (!ranks_.writes()) return;
  // First writes the lines up to this checkpoint's step, because resuming does not write them
  // again.
  if (log_) log_->sync();
  state_.generator = at::detail::getDefaultCPUGenerator().get_state();
  write_checkpoint(folder_, state_);
}

}  // namespace nsimplex::training
