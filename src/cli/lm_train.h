// Declares the options of `lm train`.

#pragma once

#include <memory>
#include <string>

#include "cli/cli11.h"
#include "cli/lm_command.h"
#include "cli/model_flags.h"
#include "train/training_options.h"

namespace nsimplex::cli {

/// Adds steps, batches, rates and validation of a training.
void add_training_flags(CLI::App& command, training::TrainingOptions& options);

struct TrainOptions : CommonOptions, ModelFlags {
  const CLI::App* command = nullptr;  ///< tells which options were given
  CorpusOptions corpus;
  training::TrainingOptions training;
};

void add_train_options(CLI::App& command, const std::shared_ptr<TrainOptions>& options);

/// A resumed run computes the same results as an uninterrupted one. An option that would change
/// them is an InputError.
void refuse_changes(const TrainOptions& options);

}  // namespace nsimplex::cli
