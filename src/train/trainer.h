#pragma once

#include <nsimplex/language_model.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/tokens.h"
#include "io/output_file.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"
#include "train/scores.h"
#include "train/training_loop.h"
#include "train/training_options.h"

namespace nsimplex::training {

/// Losses of one update, nats a token, mean over its passes, and its gradient.
struct StepLoss {
  double cross_entropy = 0.0;
  std::optional<double> auxiliary;  ///< of the indexers, which was added; absent where none learns
  double gradient_norm = 0.0;       ///< before clipping
};

/// A language model with AdamW, clipping and a schedule.
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

/// What a caller may watch and steer. Every function is optional and runs on the training thread.
struct TrainingEvents {
  std::function<void(int64_t step, double loss, double tokens_per_second)>
      step;                                     ///< after each update
  std::function<void(const Metrics&)> metrics;  ///< each line of metrics.jsonl
  std::function<bool()> stop;                   ///< asked before each step; true: save and return
};

/// State of a run before its first step: weights from the seed, an empty optimiser. Throws
/// InputError when the options or the text cannot be used.
Checkpoint first_checkpoint(const LanguageModelOptions& model, const TrainingOptions& training,
                            const TextRecord& text, const std::string& tokenizer);

/// Trains a language model on the training slice of a text, from a checkpoint to its last step.
///
/// A new run and a resumed one take the same path: both begin with a checkpoint. What step t
/// computes depends on the state in the checkpoint alone, so a run that was stopped or killed and
/// resumed ends with the bits of one that never was (same machine, same number of threads).
class Trainer : private Trainee {
 public:
  /// `folder` gets checkpoint.safetensors, model.safetensors and metrics.jsonl. Throws InputError
  /// when the text is not the one the checkpoint was made with, or when another process trains in
  /// the folder.
  Trainer(std::string folder, const Checkpoint& start, const data::Tokens& tokens,
          c10::Device device = c10::kCPU);

  /// Throws Diverged, which names the step, when loss or gradient are no longer finite; weights and
  /// the last checkpoint are from before that step.
  TrainingEnd run(const TrainingEvents& events = {});

  LanguageModel& model() { return learner_.model(); }

 private:
  double update(int64_t step) override;
  bool is_evaluated_at(int64_t step) const override;
  bool evaluate(int64_t step) override;
  void save() override;
  Metrics measure();

  std::string folder_;
  io::FolderLock lock_;
  Checkpoint state_;  // options and progress; its tensors are those of learner_
  const data::Tokens& tokens_;
  Learner learner_;
  data::BatchSampler sampler_;
  std::optional<MetricsLog> log_;
  std::function<void(const Metrics&)> told_;  // each line
  double seconds_before_ = 0.0;               // of the steps before the last line
  int64_t steps_before_ = 0;                  // of this process
  bool learns_auxiliary_ = false;
};

}  // namespace nsimplex::training
