#include "train/graph_stepper.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <string>

#include "train/optimizer.h"
#include "train/stopwatch.h"
#include "train/trainer.h"
#include "train/training_options.h"

namespace nsimplex::training {

GraphStepper::GraphStepper(GraphTask& task, GraphModel& model, const GraphTrainingOptions& o,
                           int64_t steps, int64_t steps_an_epoch)
    : task_(task),
      model_(model),
      options_(o),
      optimizer_(named_parameters(model), {.beta2 = 0.999, .weight_decay = o.weight_decay}),
      schedule_{o.learning_rate,
                static_cast<int64_t>(o.warmup * static_cast<double>(steps_an_epoch)), steps,
                o.decays} {
  if (o.ema > 0) average_.emplace(model, o.ema);
}

double GraphStepper::step(std::span<const int64_t> examples, const at::Generator& generator) {
  const Stopwatch watch;
  model_.train();
  const double of_steps = static_cast<double>(steps()) / static_cast<double>(schedule_.steps);
  if (std::max(of_steps, spent_seconds()) < options_.redraw) model_.redraw_features();
  const GraphBatch batch = task_.batch(GraphSplit::train, examples, generator);
  const at::Tensor loss = task_.loss(model_.prepare(batch)(), batch);
  const at::Tensor auxiliary = model_.auxiliary_loss();
  optimizer_.zero_grad();
  (auxiliary.defined() ? loss + auxiliary : loss).backward();
  const double value = loss.item<double>(), norm = optimizer_.gradient_norm();
  require_finite(steps() + 1, value, norm);
  optimizer_.step(schedule_.rate(steps(), spent_seconds()),
                  options_.clip > 0 ? std::max(norm / options_.clip, 1.0) : 1.0);
  if (average_) average_->add();
  times_.push_back(watch.seconds());
  seconds_ += times_.back();
  return value;
}

std::vector<io::NamedTensor> GraphStepper::state() const {
  std::vector<io::NamedTensor> state = optimizer_.state();
  for (io::NamedTensor& each : state) each.name.insert(0, "optimizer.");
  if (!average_) return state;
  for (size_t i = 0; i < average_->tensors().size(); ++i) {
    state.push_back({"average." + std::to_string(i), average_->tensors()[i]});
  }
  return state;
}

at::Tensor GraphStepper::times() const { return at::tensor(times_, at::kDouble); }

void GraphStepper::continue_after(const at::Tensor& times) {
  const auto* first = times.const_data_ptr<double>();
  times_.assign(first, first + times.numel());
  for (const double each : times_) seconds_ += each;
  if (average_) average_->continue_after(steps());
}

}  // namespace nsimplex::training
