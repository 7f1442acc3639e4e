#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "train/optimizer.h"

/// The loop that every training runs: language models, graphs, features and the experiments of the
/// laboratory.
namespace nsimplex::training {

/// A run that cannot go on: its loss or gradient is no longer finite.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Diverged, which names the step (counted from 1) and the number that is not finite. Call
/// it before the update, which would spread the damage over every weight.
void require_finite(int64_t step, double loss, double gradient_norm = 0.0);

/// The same for the outputs of a model after `step` updates, or after its training. An update can
/// spoil the weights although the loss before it was finite, and after the last one there is no
/// further loss that would tell.
void require_finite_outputs(std::optional<int64_t> step, const at::Tensor& outputs);

/// Ends update `step`, counted from 1, whose gradients are there. Throws Diverged unless `loss` and
/// the gradients' norm are finite; no weight has changed then. Otherwise it scales the gradients to
/// a norm of at most `clip` (0: unlimited) and lets the optimiser step. Returns the norm before
/// that.
double finish_update(AdamW& optimizer, int64_t step, double loss, double rate, double clip = 0.0);

/// A model in training: the part that differs between trainings. train() calls its functions.
class Trainee {
 public:
  /// The training ends after `steps` updates, or after the update with which all of them together
  /// took `most_seconds` (0: unlimited).
  explicit Trainee(int64_t steps, double most_seconds = 0.0)
      : steps_(steps), most_seconds_(most_seconds) {}
  virtual ~Trainee() = default;
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;

  /// Does update `step`, counted from 1, and returns its loss.
  virtual double update(int64_t step) = 0;

  /// Whether evaluate() follows this update. It always follows the last one.
  virtual bool is_evaluated_at(int64_t /*step*/) const { return false; }

  /// Evaluates the model after `step` updates. Throws Diverged where the result is not finite.
  /// Returns whether the training goes on: false ends it before its last step (patience).
  virtual bool evaluate(int64_t /*step*/) { return true; }

  /// Stores all that the next update needs.
  virtual void save() {}

  /// Updates that the training has in all, and those behind the model.
  int64_t steps() const { return steps_; }
  int64_t done() const { return done_; }

  /// Seconds of the updates in this object's time, and before it where continue_after() got them.
  const std::vector<double>& times() const { return times_; }
  double seconds() const { return seconds_; }
  double median_seconds() const;

  /// Share of the seconds that are gone; 0 where they are unlimited.
  double spent() const { return most_seconds_ > 0 ? seconds_ / most_seconds_ : 0.0; }

  bool ended() const { return gave_up_ || done_ >= steps_ || spent() >= 1.0; }

  /// One update, the event after it and the evaluation that is due. `told` gets the loss.
  void advance(const std::function<void(int64_t step, double loss)>& told);

 protected:
  /// Continues a training that has done so many updates, in these seconds where they are known.
  void continue_after(int64_t done, std::vector<double> times = {});

 private:
  int64_t steps_, done_ = 0;
  double most_seconds_, seconds_ = 0.0;
  std::vector<double> times_;
  bool gave_up_ = false;
};

/// When models are saved, and the order of those that are trained side by side.
struct LoopOptions {
  int64_t save_every = 0;  ///< steps between calls of save(); 0: none by steps
  double save_seconds = std::numeric_limits<double>::infinity();  ///< between calls of save()
  bool rotates = false;  ///< whether each step begins with another model
};

/// Every function is optional and runs on the training thread. An exception ends the training.
struct LoopEvents {
  std::function<bool()> stop;                 ///< asked before each step; true: end here
  std::function<void(int64_t step)> prepare;  ///< before a step: draws what all models see
  std::function<void(size_t model, int64_t step, double loss)> step;  ///< after each update
};

enum class TrainingEnd { finished, stopped };

/// Trains models side by side, step by step in turns, until each has ended or `stop` says so. All
/// have done the same number of updates. Every model is saved between two steps where options ask
/// for it, and where the training stops, unless nothing was done since the last time.
TrainingEnd train(std::span<Trainee* const> models, const LoopOptions& options,
                  const LoopEvents& events);

/// The same for one model.
inline TrainingEnd train(Trainee& model, const LoopOptions& options, const LoopEvents& events) {
  Trainee* const models[] = {&model};
  return train(models, options, events);
}

}  // namespace nsimplex::training
