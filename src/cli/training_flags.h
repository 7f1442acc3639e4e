#pragma once

#include "cli/cli11.h"
#include "training/training_options.h"

namespace nsimplex::cli {

/// Steps, batches, rates and validation of a training.
void add_training_flags(CLI::App& command, training::TrainingOptions& options);

}  // namespace nsimplex::cli
