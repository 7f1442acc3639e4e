#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "train/graph_training.h"
#include "train/optimizer.h"
#include "train/scores.h"

namespace nsimplex::training {

/// Model and optimiser of a training on graphs; one call of step() an update.
class GraphStepper {
 public:
  GraphStepper(GraphTask& task, GraphModel& model, const GraphTrainingOptions& options,
               int64_t steps, int64_t steps_an_epoch);

  /// Returns the task's loss.
  double step(std::span<const int64_t> examples, const at::Generator& generator);

  /// The weights that are judged, in the place of the model's: their average where there is one.
  AverageInPlace judged_weights() { return AverageInPlace(average_ ? &*average_ : nullptr); }

  /// What the optimiser and the average have learned, by name; shares memory with them.
  std::vector<io::NamedTensor> state() const;

  /// Seconds of each step, float64.
  at::Tensor times() const;

  /// Goes on after the steps that took these seconds; what state() names has been put in place.
  void continue_after(const at::Tensor& times);

  int64_t steps() const { return std::ssize(times_); }
  double seconds() const { return seconds_; }
  double median_seconds() const { return median(times_); }

 private:
  // Share of the budget of time that is gone.
  double spent_seconds() const { return options_.seconds > 0 ? seconds_ / options_.seconds : 0; }

  GraphTask& task_;
  GraphModel& model_;
  GraphTrainingOptions options_;
  AdamW optimizer_;
  LinearSchedule schedule_;
  std::optional<WeightAverage> average_;
  std::vector<double> times_;  // seconds of each step
  double seconds_ = 0.0;
};

}  // namespace nsimplex::training
