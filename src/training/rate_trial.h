#pragma once

#include <functional>
#include <limits>

#include "training/comparison.h"

namespace nsimplex::training {

/// How the gradients of a model's matrices are spread, the worst of them each.
struct GradientShape {
  double peak = 0.0;        ///< largest magnitude over the root mean square
  double kurtosis = 0.0;    ///< E g^4 / (E g^2)^2: 3 for normal gradients
  double int8_error = 0.0;  ///< relative error of rounding to 255 steps of the largest magnitude
};

/// Of the gradients that the last update left, embeddings left out.
GradientShape gradient_shape(LanguageModelImpl& model);

/// Steps whose gradient norm is more than five times the median of those before; the first ten
/// steps are none.
int64_t count_spikes(const std::vector<double>& gradient_norms);

/// A model that was trained at one rate.
struct RateTrial {
  LanguageModel model{nullptr};  ///< at the end, or from before the step that diverged
  bool diverged = false;
  double early_loss = std::numeric_limits<double>::quiet_NaN();  ///< validation, after a tenth
  double val_loss = std::numeric_limits<double>::quiet_NaN();
  int64_t spikes = 0;
  GradientShape gradient;

  /// Whether it came to the end, and lower than where it stood after a tenth of the steps.
  bool stable() const { return !diverged && val_loss < early_loss; }
};

/// What is told of a training as it goes on.
struct RateTrialEvents {
  std::function<void(int64_t, double)> step;  ///< every step with its loss; may throw
  /// The model after a tenth of the steps, unless its loss is no longer finite.
  std::function<void(LanguageModel&)> early;
};

/// Trains one model as train_arms() would alone; a loss or gradient that is no longer finite is a
/// result here.
RateTrial train_at_rate(const LanguageModelOptions& model, const TrainingOptions& training,
                        const Corpus& corpus, c10::Device device,
                        const RateTrialEvents& events = {});

}  // namespace nsimplex::training
