// Declares the data and options of the commands that compare language models.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/cli11.h"
#include "cli/lm_command.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "lab/language/comparison.h"
#include "train/training_options.h"

// Data and options of the commands that compare language models.
namespace nsimplex::cli {

struct OpenCorpus {
  training::Corpus corpus;
  int64_t vocabulary;
};
OpenCorpus open_corpus(const CorpusOptions& options);

/// Two lines of text that describe the data and the training.
std::string describe(const training::Corpus& corpus, const training::TrainingOptions& training,
                     int64_t context);

/// Shared options of the commands that train several language models in turns. With the defaults
/// they take minutes on two cores.
struct ComparisonOptions : CommonOptions, CorpusOptions, ModelFlags {
  std::vector<std::string> arms;  ///< see comparison_arms()
  int64_t seeds = 1;              ///< counted up from `seed`
  training::TrainingOptions training;

  ComparisonOptions();
};

/// Adds --arms, --seeds and the options of text, model and training, with the values of `options`
/// as defaults.
void add_comparison_flags(CLI::App& command, ComparisonOptions& options);

/// Sets a quarter of the context for every axis and for the number of keys, unless they were given.
/// Throws InputError that names a training option out of its range.
void complete(ComparisonOptions& options);

/// The models of a comparison from their names, NAME[:WORD]... NAME is one of
///
///     ordinary   no simplicial layer
///     window     windowed simplicial layers
///     topk       simplicial layers over the keys that an indexer chooses
///     path       the same along paths
///     linear     separable simplicial layers
///
/// and words that change it: reuse or light, relu or softmax (for the indexer; default reuse,
/// softmax), loss (its alignment loss, with the weight of `base`), determinant and rotary, unit
/// (the scale), augment and sink (the normaliser softmax_sink) of the simplicial layers, and wide
/// (an MLP so wide that the model has as many weights as the largest one that is not wide).
/// Everything else is from `base`. Throws InputError that names the model.
std::vector<training::Arm> comparison_arms(const std::vector<std::string>& names,
                                           const LanguageModelOptions& base);

/// The eight indexers: relu and softmax scores, reuse and light, without and with the loss.
std::vector<std::string> indexer_arms();

/// Calls training::train_arms with a progress bar named `label`. Ctrl-C stops it (Interrupted).
std::vector<training::ArmResult> train_arms_shown(
    const std::string& label, const std::vector<training::Arm>& arms,
    const training::TrainingOptions& training, const training::Corpus& corpus,
    const CommonOptions& options,
    const std::function<void(const training::ArmPoint&)>& on_point = {});

}  // namespace nsimplex::cli
