#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "train/graph_task.h"
#include "train/training_loop.h"

namespace nsimplex::training {

struct GraphTrainingOptions {
  int64_t epochs = 100;
  int64_t batch = 32;  ///< examples of a step; the last one of an epoch may have fewer
  double learning_rate = 1e-3;
  double warmup = 0.0;  ///< epochs of linear warm-up
  bool decays = false;  ///< whether the rate then falls to 0 on a line, by steps or by seconds
  double clip = 0.0;    ///< largest norm of the gradient; 0: unlimited
  double weight_decay = 0.0;
  double ema = 0.0;     ///< decay of WeightAverage, which is then judged; 0: none
  double redraw = 1.0;  ///< share of the training in which every step has new random features
  int64_t evaluate_every = 1;  ///< epochs between validations; the last epoch always has one
  int64_t patience = 0;        ///< epochs without a better validation that end it; 0: none do
  double seconds = 0.0;        ///< of training, after which it ends with a validation; 0: none
};

/// Throws InputError, which names the option, where options cannot be used.
void check(const GraphTrainingOptions& options);

struct GraphResult {
  GraphPoint best, last;  ///< by the first validation figure; of equal ones the later epoch
  Scores best_test, last_test;
  int64_t parameters = 0;
  double step_seconds = 0.0;  ///< median, with making the batch and its plans
  bool stopped = false;       ///< before its last epoch, by GraphEvents::stop
};

struct GraphEvents {
  std::function<void(int64_t done, int64_t of, double loss)> step;  ///< after each update
  std::function<void(const GraphPoint&)> point;                     ///< after each validation
  std::function<bool()> stop;  ///< asked before each step; true: end with what is reached

  /// Called before a step with what the training needs to go on there: where it stops, and when
  /// `save_every` seconds have passed since the call before. Tensors are the training's own.
  std::function<void(const GraphState&)> save;
  double save_every = 30.0;
};

/// Trains a model on a task with Adam (beta 0.9, 0.999; decoupled weight decay where asked for) and
/// judges it on the test split twice: with the weights of the best validated epoch, which the model
/// is left with, and with those of the last one. The test split is read at the end alone. Where an
/// average is asked for, the weights of an epoch are their moving average at its end, and training
/// goes on as it would without.
///
/// Everything random comes from `seed`: weights, dropout and random features through torch's
/// default generator, which is seeded before `make`; the order of the examples and what a task
/// draws through generators of their own. Validation and test batches are drawn from the same
/// numbers every time.
///
/// A training that goes on from `start`, a state that GraphEvents::save had of the same task, model,
/// options and seed, ends with the bits of one that never stopped (same machine, same number of
/// threads), but for what a limit of seconds decides.
///
/// A stopped training ends with the last validated epoch; nothing is returned where there is none.
/// Throws InputError for options or a task that cannot be used and for a state of something else,
/// Diverged, which names the step, where the loss or the gradient is not finite.
std::optional<GraphResult> train_graphs(GraphTask& task,
                                        const std::function<std::shared_ptr<GraphModel>()>& make,
                                        const GraphTrainingOptions& options, uint64_t seed,
                                        const GraphEvents& events = {},
                                        const GraphState* start = nullptr);

}  // namespace nsimplex::training
