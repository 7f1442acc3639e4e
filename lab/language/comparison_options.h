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

// What the commands that compare language models read.
namespace nsimplex::cli {

/// Texts, or files of token numbers.
struct CorpusFlags {
  TextOptions text;
  std::string tokenizer;
  std::vector<std::string> token_files;  ///< one, or one to train and one to validate on
  int64_t vocabulary = 0;                ///< of the token files; 0: 65536
};
void add_corpus_flags(CLI::App& command, CorpusFlags& flags);

struct OpenCorpus {
  training::Corpus corpus;
  int64_t vocabulary;
};
OpenCorpus open_corpus(const CorpusFlags& flags);

/// Two lines for people: how much text, how it is trained on.
std::string describe(const training::Corpus& corpus, const training::TrainingOptions& training,
                     int64_t context);

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

/// The models of a comparison from their names: NAME[:WORD]..., NAME one of
///
///     ordinary   no simplicial layer
///     window     windowed simplicial layers
///     topk       simplicial layers over the keys that an indexer chooses
///     path       the same along paths
///     linear     separable simplicial layers
///
/// and words that change it: reuse or light, relu or softmax (the indexer's; default reuse,
/// softmax), loss (its alignment loss, with the weight of `base`), wide (an MLP so wide that the
/// model has as many weights as the largest of those that are not wide). Everything else is
/// `base`'s. Throws InputError that names the arm.
std::vector<training::Arm> comparison_arms(const std::vector<std::string>& names,
                                           const LanguageModelOptions& base);

/// The eight indexers: relu and softmax scores, reuse and light, without and with the loss.
std::vector<std::string> indexer_arms();

/// training::train_arms with a progress bar named `label`, until Ctrl-C (Interrupted).
std::vector<training::ArmResult> train_arms_shown(
    const std::string& label, const std::vector<training::Arm>& arms,
    const training::TrainingOptions& training, const training::Corpus& corpus,
    const CommonOptions& options,
    const std::function<void(const training::ArmPoint&)>& on_point = {});

}  // namespace nsimplex::cli
