#pragma once

#include <nsimplex/language_model.h>

#include <optional>
#include <vector>

#include "data/tokens.h"
#include "training/adamw.h"
#include "training/diverged.h"
#include "training/schedule.h"
#include "training/training_options.h"

namespace nsimplex::training {

/// Losses of one update, nats a token, mean over its passes, and its gradient.
struct StepLoss {
  double cross_entropy = 0.0;
  std::optional<double> auxiliary;  ///< of the indexers, which was added; absent where none learns
  double gradient_norm = 0.0;       ///< before clipping
};

/// A language model and what makes it learn: AdamW, clipping, the schedule.
class Learner {
 public:
  /// A model on `device` with whatever weights it starts with; see first_checkpoint() and model().
  Learner(const LanguageModelOptions& model, const TrainingOptions& training, c10::Device device,
          const std::optional<at::Generator>& generator = std::nullopt);

  /// Update `number`, counted from 1, with the mean gradient of the batches. Throws Diverged, which
  /// names the update, when loss or gradient are no longer finite; weights are then from before it.
  StepLoss update(int64_t number, const std::vector<data::Batch>& batches);

  LanguageModel& model() { return model_; }
  AdamW& optimizer() { return optimizer_; }

 private:
  StepLoss accumulate_gradients(const std::vector<data::Batch>& batches);

  TrainingOptions options_;
  c10::Device device_;
  LanguageModel model_;
  AdamW optimizer_;
  Schedule schedule_;
};

}  // namespace nsimplex::training
