// Declares the training of a graph model.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lab/graphs/graph_task.h"
#include "train/training_loop.h"

namespace nsimplex::training {

/// The warm-up of Schedule, then a constant rate or a linear decay that would reach 0 one step after
/// the last:
///
///     rate(t) = peak (t + 1) / (warmup + 1)                    t < warmup
///             = peak                                           after, constant
///             = peak (steps - t) / (steps - warmup)            after, decaying
///
/// With a limit of time, a decaying rate also reaches 0 at the end of the time: it is at most peak
/// (1 - spent), where `spent` is the used share.
struct LinearSchedule {
  double peak;
  int64_t warmup, steps;
  bool decays;

  double rate(int64_t step, double spent = 0.0) const {
    if (step < warmup) {
      return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    }
    if (!decays) return peak;
    const double left = static_cast<double>(std::max<int64_t>(steps - step, 0)) /
                        static_cast<double>(std::max<int64_t>(steps - warmup, 1));
    return peak * std::min(left, std::max(1 - spent, 0.0));
  }
};

/// Copies of all weights of a module, including buffers, in the order of named_weights().
std::vector<at::Tensor> copy_of_weights(const torch::nn::Module& module);

/// Restores the weights that copy_of_weights() returned.
void restore_weights(const torch::nn::Module& module, const std::vector<at::Tensor>& copies);

/// Exponential moving average of a module's parameters, which often gives better predictions than
/// the parameters themselves (Polyak and Juditsky, SIAM J. Control Optim. 30, 1992, in the form of
/// Adam's paper, section 7.2). After update t
///
///     a_t = d_t a_{t-1} + (1 - d_t) w_t,  d_t = min(decay, (1 + t) / (10 + t)),
///
/// from a_0 = w_0. The second bound reduces the weight of the beginning. Buffers (statistics of a
/// batch normalisation, random features) are not averaged. It takes the memory of one copy of the
/// parameters.
class WeightAverage {
 public:
  WeightAverage(const torch::nn::Module& module, double decay);

  /// Adds the module's parameters to the average, after an update of them.
  void add();

  /// The average. The tensors share memory with this object. To continue from another average, copy
  /// its numbers into them and set the number of `updates`.
  const std::vector<at::Tensor>& tensors() const { return average_; }
  void continue_after(int64_t updates) { updates_ = updates; }

  /// Exchanges the average with the module's parameters.
  void swap();

 private:
  std::vector<at::Tensor> parameters_, average_;
  double decay_;
  int64_t updates_ = 0;
};

/// Puts the average in the place of the module's parameters during its lifetime. Without an average
/// it does nothing.
class AverageInPlace {
 public:
  explicit AverageInPlace(WeightAverage* average) : average_(average) {
    if (average_ != nullptr) average_->swap();
  }
  ~AverageInPlace() {
    if (average_ != nullptr) average_->swap();
  }
  AverageInPlace(const AverageInPlace&) = delete;
  AverageInPlace& operator=(const AverageInPlace&) = delete;

 private:
  WeightAverage* average_;
};

struct GraphTrainingOptions {
  int64_t epochs = 100;
  int64_t batch = 32;  ///< examples per step; the last step of an epoch may have fewer
  double learning_rate = 1e-3;
  double warmup = 0.0;  ///< epochs of linear warm-up
  bool decays = false;  ///< whether the rate then decays linearly to 0, over steps or seconds
  double clip = 0.0;    ///< largest norm of the gradient; 0: unlimited
  double weight_decay = 0.0;
  double ema = 0.0;     ///< decay of WeightAverage, which is then evaluated; 0: no average
  double redraw = 1.0;  ///< share of the training in which every step has new random features
  int64_t evaluate_every = 1;  ///< epochs between validations; the last epoch always has one
  int64_t patience = 0;        ///< epochs without a better validation that end it; 0: unlimited
  double seconds = 0.0;        ///< of training, after which it ends with a validation; 0: unlimited
};

/// Throws InputError, which names the option, if an option is invalid.
void check(const GraphTrainingOptions& options);

struct GraphResult {
  GraphPoint best, last;  ///< by the first validation metric; the later one of equal epochs
  Scores best_test, last_test;
  int64_t parameters = 0;
  double step_seconds = 0.0;  ///< median, including the making of the batch and its plans
  bool stopped = false;       ///< whether GraphEvents::stop ended it before its last epoch
};

struct GraphEvents {
  std::function<void(int64_t done, int64_t of, double loss)> step;  ///< after each update
  std::function<void(const GraphPoint&)> point;                     ///< after each validation
  std::function<bool()> stop;  ///< asked before each step; true: end with the current result

  /// Called before a step with the state from which the training can continue: when it stops, and
  /// when `save_every` seconds have passed since the last call. The tensors are those of the
  /// training.
  std::function<void(const GraphState&)> save;
  double save_every = 30.0;
};

/// Trains a model on a task with Adam (beta 0.9, 0.999; optional decoupled weight decay). It
/// evaluates the model on the test split twice: with the weights of the best validated epoch, which
/// the model keeps, and with those of the last epoch. It reads the test split at the end only. With
/// an average, the weights of an epoch are their moving average at its end; training itself
/// continues with the plain weights.
///
/// `seed` determines everything random. Weights, dropout and random features use torch's default
/// generator, which is seeded before `make`. The order of the examples and the draws of a task have
/// separate generators. Validation and test batches use the same random numbers every time.
///
/// A training can continue from `start`, a state that GraphEvents::save got for the same task,
/// model, options and seed. It then ends with the same bits as one that never stopped (same
/// machine, same number of threads), unless a limit of seconds decides.
///
/// A stopped training returns the last validated epoch, or nothing if there is none. Throws
/// InputError for invalid options or tasks and for a state of another training. Throws Diverged,
/// which names the step, if the loss or the gradient is not finite.
std::optional<GraphResult> train_graphs(GraphTask& task,
                                        const std::function<std::shared_ptr<GraphModel>()>& make,
                                        const GraphTrainingOptions& options, uint64_t seed,
                                        const GraphEvents& events = {},
                                        const GraphState* start = nullptr);

}  // namespace nsimplex::training
