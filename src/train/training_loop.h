// Declares the loop that every training uses.

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

/// The loop of every training: language models, features and the experiments of the
/// laboratory.
namespace nsimplex::training {

/// The error of a run that cannot continue because its loss or gradient is not finite.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Diverged, which names the step (counted from 1) and the number that is not finite. Call
/// it before the update, which would make every weight useless.
void require_finite(int64_t step, double loss, double gradient_norm = 0.0);

/// The same for the outputs of a model after `step` updates, or after its training. An update can
/// make the weights useless although the loss before it was finite, and after the last update there
/// is no further loss.
void require_finite_outputs(std::optional<int64_t> step, const at::Tensor& outputs);

/// Finishes update `step`, counted from 1, after its gradients are computed. Throws Diverged unless
/// `loss` and the gradients' norm are finite; no weight has changed then. Otherwise it scales the
/// gradients to a norm of at most `clip` (0: unlimited) and calls the optimiser. Returns the norm
/// before scaling.
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

  /// Evaluates the model after `step` updates. Throws Diverged if the result is not finite. Returns
  /// whether the training continues; false ends it before its last step (patience).
  virtual bool evaluate(int64_t /*step*/) { return true; }

  /// Stores everything that the next update needs.
  virtual void save() {}

  /// The total number of updates, and the number so far.
  int64_t steps() const { return steps_; }
  int64_t done() const { return done_; }

  /// The seconds of the updates of this object, and of those before it that continue_after() got.
  const std::vector<double>& times() const { return times_; }
  double seconds() const { return seconds_; }
  double median_seconds() const;

  /// The used share of the limit of seconds; 0 without a limit.
  double spent() const { return most_seconds_ > 0 ? seconds_ / most_seconds_ : 0.0; }

  bool ended() const { return gave_up_ || done_ >= steps_ || spent() >= 1.0; }

  /// One update, the event after it, and an evaluation if one is due. `told` gets the loss.
  void advance(const std::function<void(int64_t step, double loss)>& told);

 protected:
  /// Continues a training after `done` updates, which took these seconds (if known).
  void continue_after(int64_t done, std::vector<double> times = {});

 private:
  int64_t steps_, done_ = 0;
  double most_seconds_, seconds_ = 0.0;
  std::vector<double> times_;
  bool gave_up_ = false;
};

/// When models are saved, and the order of models that train side by side.
struct LoopOptions {
  int64_t save_every = 0;  ///< steps between calls of save(); 0: no saving by steps
  double save_seconds = std::numeric_limits<double>::infinity();  ///< between calls of save()
  bool rotates = false;  ///< whether each step begins with the next model
};

/// Every function is optional and runs on the training thread. An exception ends the training.
struct LoopEvents {
  std::function<bool()> stop;  ///< asked before each step; true: end here
  /// before a step: draws the data that all models share
  std::function<void(int64_t step)> prepare;
  std::function<void(size_t model, int64_t step, double loss)> step;  ///< after each update
};

enum class TrainingEnd { finished, stopped };

/// Trains models side by side, step by step in turns, until each has ended or `stop` returns true.
/// All have done the same number of updates. Every model is saved between two steps as the options
/// say, and at the end unless nothing has changed since the last time.
TrainingEnd train(std::span<Trainee* const> models, const LoopOptions& options,
                  const LoopEvents& events);

/// The same for one model.
inline TrainingEnd train(Trainee& model, const LoopOptions& options, const LoopEvents& events) {
  Trainee* const models[] = {&model};
  return train(models, options, events);
}

}  // namespace nsimplex::training
