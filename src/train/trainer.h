// Declares the training of a language model.

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
#include "train/ranks.h"
#include "train/scores.h"
#include "train/training_loop.h"
#include "train/training_options.h"

namespace nsimplex::training {

/// The losses of one update (nats per token, mean over its passes), and the norm of its gradient.
struct StepLoss {
  double cross_entropy = 0.0;
  /// loss of the indexers, which was added; absent if none learns
  std::optional<double> auxiliary;
  double gradient_norm = 0.0;  ///< before clipping
};

/// A language model with AdamW, clipping and a schedule.
class Learner {
 public:
  /// A model on `device`. first_checkpoint() and model() set its weights.
  Learner(const LanguageModelOptions& model, const TrainingOptions& training, c10::Device device,
          const std::optional<at::Generator>& generator = std::nullopt, Ranks& ranks = only_rank());

  /// Does update `number`, counted from 1, with the mean gradient of the batches of all ranks. Throws
  /// Diverged, which names the update, if loss or gradient are not finite; the weights are then
  /// unchanged.
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
  Ranks& ranks_;
};

/// Functions that observe and control a training. All are optional and run on the training thread.
struct TrainingEvents {
  std::function<void(int64_t step, double loss, double tokens_per_second)>
      step;                                     ///< after each update
  std::function<void(const Metrics&)> metrics;  ///< each line of metrics.jsonl
  std::function<bool()> stop;                   ///< asked before each step; true: save and return
};

/// The state of a run before its first step: weights from the seed, an empty optimiser. Throws
/// InputError if the options or the text are invalid.
Checkpoint first_checkpoint(const LanguageModelOptions& model, const TrainingOptions& training,
                            const TextRecord& text, const std::string& tokenizer);

/// Trains a language model on the training slice of a text, from a checkpoint to its last step.
///
/// New and resumed runs are the same: both begin with a checkpoint. Step t depends only on the
/// state in the checkpoint. So a run that was stopped or killed and then resumed ends with the same
/// bits as one that never was (same machine, same number of threads and of ranks).
///
/// Several ranks train one model: each computes its rows of every batch, with the losses of one rank
/// to rounding. Rank 0 writes, and all ranks read the run folder.
class Trainer : private Trainee {
 public:
  /// `folder` gets checkpoint.safetensors, model.safetensors and metrics.jsonl. Throws InputError
  /// if the text is not that of the checkpoint, if another process trains in the folder, or if the
  /// ranks cannot train this model together. `make_folder` is called on every rank once nothing but
  /// the folder can be refused; without it the folder is there.
  Trainer(std::string folder, const Checkpoint& start, const data::Tokens& tokens,
          c10::Device device = c10::kCPU, Ranks& ranks = only_rank(),
          const std::function<void()>& make_folder = {});

  /// Throws Diverged, which names the step, if loss or gradient are not finite. The weights and the
  /// last checkpoint are then those before that step.
  TrainingEnd run(const TrainingEvents& events = {});

  LanguageModel& model() { return learner_.model(); }

 private:
  double update(int64_t step) override;
  bool is_evaluated_at(int64_t step) const override;
  bool evaluate(int64_t step) override;
  void save() override;
  Metrics measure();

  void require_shared_training() const;
  void require_common_start();

  std::string folder_;
  Ranks& ranks_;
  std::optional<io::FolderLock> lock_;  // of the rank that writes
  Checkpoint state_;                    // options and progress; its tensors are those of learner_
  const data::Tokens& tokens_;
  Learner learner_;
  data::BatchSampler sampler_;
  std::optional<MetricsLog> log_;
  std::function<void(const Metrics&)> told_;  // called for each line
  double seconds_before_ = 0.0;               // of the steps before the last line
  int64_t steps_before_ = 0;                  // of this process
  bool learns_auxiliary_ = false;
};

}  // namespace nsimplex::training
