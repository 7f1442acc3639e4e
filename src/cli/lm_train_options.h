#pragma once

#include <nsimplex/language_model.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/lm.h"
#include "training/training_options.h"

namespace nsimplex::cli {

struct TrainOptions : CommonOptions {
  const CLI::App* command = nullptr;  ///< tells which options were given
  TextOptions text;
  std::string tokenizer;
  std::string resume;
  LanguageModelOptions model;
  std::vector<int64_t> window;  ///< keys of each axis; empty: by order
  std::string sparse = "window", indexer = "reuse", indexer_scores = "softmax";
  std::string preset = "standard", norm = "none", mlp = "swiglu";
  bool untied = false;
  training::TrainingOptions training;
};

void add_train_options(CLI::App& command, const std::shared_ptr<TrainOptions>& options);

/// The model that was asked for.
LanguageModelOptions language_model_options(const TrainOptions& options, int64_t vocabulary);

/// A resumed run computes what it would have computed; an option that would change that is an
/// InputError.
void refuse_changes(const TrainOptions& options);

}  // namespace nsimplex::cli
