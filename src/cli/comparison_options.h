#pragma once

#include <string>
#include <vector>

#include "cli/corpus_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "training/training_options.h"

namespace nsimplex::cli {

/// What the commands have in common that train several language models by turns. The defaults take
/// minutes on two cores.
struct ComparisonOptions : CommonOptions, CorpusFlags, ModelFlags {
  std::vector<std::string> arms;  ///< see comparison_arms()
  int64_t seeds = 1;              ///< counted up from `seed`
  training::TrainingOptions training;

  ComparisonOptions();
};

/// --arms, --seeds and those of text, model and training, with the defaults that `options` has.
void add_comparison_flags(CLI::App& command, ComparisonOptions& options);

/// A quarter of the context on every axis and as many keys, where nothing else was asked for.
/// Throws InputError that names a training option out of its range.
void complete(ComparisonOptions& options);

}  // namespace nsimplex::cli
