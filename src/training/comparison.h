#pragma once

#include <nsimplex/language_model.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/tokens.h"
#include "training/learning_curve.h"
#include "training/training_options.h"

namespace nsimplex::training {

/// One of the models that a comparison trains side by side.
struct Arm {
  std::string name;
  LanguageModelOptions model;
  int64_t steps = 0;  ///< of its schedule; 0: those of the training options
};

/// What a comparison trains on and judges by.
struct Corpus {
  data::Tokens tokens;
  data::Split split;
};

/// One arm at one step of its training.
struct ArmPoint {
  size_t arm = 0;
  int64_t step = 0;
  double train_loss = 0.0;               ///< mean since the point before, nats a token
  std::optional<double> auxiliary_loss;  ///< of its indexers
  double val_loss = 0.0;
  double seconds = 0.0;  ///< median of a step so far, times the steps
};

struct ArmResult {
  std::vector<CurvePoint> curve;  ///< validation loss
  int64_t parameters = 0;
  int64_t steps = 0;
  double seconds_per_step = 0.0;  ///< median
  double tokens_per_second = 0.0;
  std::optional<double> auxiliary_loss;  ///< over the last steps
  std::optional<double> retained_mass;   ///< mean over the layers that choose keys
};

struct ComparisonEvents {
  std::function<void(int64_t done, double loss)> step;  ///< updates of all arms so far
  std::function<void(const ArmPoint&)> point;
};

/// Trains all arms at once, by turns: update t of every arm sees the same batch, and weights that
/// two arms share by name and shape start equal. Since the arms take turns within every step, a
/// machine that is slower for a while is slower for all of them, and their times can be compared.
///
/// Every random number comes from training.seed. An arm with fewer steps sees the first batches of
/// the others. What an event throws ends the comparison. Throws InputError and Diverged as Trainer.
std::vector<ArmResult> train_arms(const std::vector<Arm>& arms, const TrainingOptions& training,
                                  const Corpus& corpus, c10::Device device,
                                  const ComparisonEvents& events = {});

/// Median seconds of a step of each arm, by turns, on models that are thrown away; those of a dense
/// warm-up are not counted.
std::vector<double> time_steps(const std::vector<Arm>& arms, const TrainingOptions& training,
                               const Corpus& corpus, c10::Device device, int64_t steps);

}  // namespace nsimplex::training
