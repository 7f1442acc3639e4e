// Declares the comparison of language models by their loss curves.

#pragma once

#include <nsimplex/language_model.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/tokens.h"
#include "train/training_options.h"

// How much sooner one model learns than another, according to their loss curves.
namespace nsimplex::training {

struct CurvePoint {
  int64_t step = 0;
  double loss = 0.0;
};

/// Centred moving average over 2 * reach + 1 points. Near the ends it uses as many points as both
/// sides have, so that a straight line stays unchanged.
std::vector<CurvePoint> smooth(std::span<const CurvePoint> curve, int64_t reach);

/// The first step at which a curve, linear between its points, is at or below `loss`; absent if
/// there is none.
std::optional<double> first_step_at(std::span<const CurvePoint> curve, double loss);

struct SpeedUpPoint {
  int64_t step = 0;
  double speed_up = 0.0;  ///< 0: as fast, 0.01: 1 % fewer steps
};

/// Batch-wise speed-up of curve X over curve Y at each of X's steps t:
///
///     t_Y(L_X(t)) / t - 1,    t_Y(l) the first step at which Y reaches l
///
/// Steps whose loss Y never reaches are left out, and so are steps where X is above Y's first
/// point, which Y has passed before it was first measured. (Pappone, "Beyond attention as a graph",
/// Figure 9.)
std::vector<SpeedUpPoint> speed_up(std::span<const CurvePoint> x, std::span<const CurvePoint> y);

/// One of the models that a comparison trains side by side.
struct Arm {
  std::string name;
  LanguageModelOptions model;
  int64_t steps = 0;  ///< of its schedule; 0: from the training options
};

/// The data for training and evaluation of a comparison.
struct Corpus {
  data::Tokens tokens;
  data::Split split;
};

/// One model at one step of its training.
struct ArmPoint {
  size_t arm = 0;
  int64_t step = 0;
  double train_loss = 0.0;               ///< mean since the point before, nats per token
  std::optional<double> auxiliary_loss;  ///< of its indexers
  double val_loss = 0.0;
  double seconds = 0.0;  ///< median time of a step so far, times the steps
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
  std::function<void(int64_t done, double loss)> step;  ///< updates of all models so far
  std::function<void(const ArmPoint&)> point;
};

/// Trains all models in turns: update t of every model sees the same batch, and weights that two
/// models share by name and shape start equal. Since the models take turns within every step, a
/// machine that is slower for a while is slower for all of them, and their times can be compared.
///
/// Every random number comes from training.seed. A model with fewer steps sees the first batches of
/// the others. An exception of an event ends the comparison. Throws InputError and Diverged like
/// Trainer.
std::vector<ArmResult> train_arms(const std::vector<Arm>& arms, const TrainingOptions& training,
                                  const Corpus& corpus, c10::Device device,
                                  const ComparisonEvents& events = {});

/// Median seconds per step of each model, in turns, on models that are thrown away. Steps of a
/// dense warm-up are not counted.
std::vector<double> time_steps(const std::vector<Arm>& arms, const TrainingOptions& training,
                               const Corpus& corpus, c10::Device device, int64_t steps);

/// How the gradients of a model's matrices are distributed; each value is the worst of all
/// matrices.
struct GradientShape {
  double peak = 0.0;        ///< largest magnitude over the root mean square
  double kurtosis = 0.0;    ///< E g^4 / (E g^2)^2: 3 for normal gradients
  double int8_error = 0.0;  ///< relative error of rounding to 255 steps of the largest magnitude
};

/// For the gradients that the last update left, without embeddings.
GradientShape gradient_shape(LanguageModelImpl& model);

/// Steps whose gradient norm is more than five times the median of those before; the first ten
/// steps never count.
int64_t count_spikes(const std::vector<double>& gradient_norms);

/// A model that was trained at one rate.
struct RateTrial {
  LanguageModel model{nullptr};  ///< at the end, or before the step that diverged
  bool diverged = false;
  double early_loss = std::numeric_limits<double>::quiet_NaN();  ///< validation, after a tenth
  double val_loss = std::numeric_limits<double>::quiet_NaN();
  int64_t spikes = 0;
  GradientShape gradient;

  /// Whether it finished, with a lower loss than after a tenth of the steps.
  bool stable() const { return !diverged && val_loss < early_loss; }
};

/// Events of a training in progress.
struct RateTrialEvents {
  std::function<void(int64_t, double)> step;  ///< every step with its loss; may throw
  /// The model after a tenth of the steps, unless its loss is no longer finite.
  std::function<void(LanguageModel&)> early;
};

/// The numbers that hold a gradient before it is clipped and used.
enum class GradientNumbers { full, bfloat16 };

/// Trains one model like train_arms() would alone. A loss or gradient that is not finite is a
/// result here.
RateTrial train_at_rate(const LanguageModelOptions& model, const TrainingOptions& training,
                        const Corpus& corpus, c10::Device device,
                        const RateTrialEvents& events = {},
                        GradientNumbers gradients = GradientNumbers::full);

}  // namespace nsimplex::training
