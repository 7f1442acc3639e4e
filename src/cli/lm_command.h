// Declares what the commands `nsimplex lm` share.

#pragma once

#include <nsimplex/language_model.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"
#include "data/tokenizer.h"
#include "data/tokens.h"
#include "train/checkpoint.h"

// Shared code of the commands `nsimplex lm ...`; each has its own file.
namespace nsimplex::cli {

void add_lm_train(CLI::App& parent, Session& session);
void add_lm_eval(CLI::App& parent, Session& session);
void add_lm_sample(CLI::App& parent, Session& session);

/// --text and --glob, and token files in their place.
struct TextOptions {
  std::vector<std::string> sources;
  std::string glob = "*";
  std::vector<std::string> token_files, validation_files;

  bool empty() const { return sources.empty() && token_files.empty(); }
};
void add_text_options(CLI::App& command, TextOptions& text);

/// --text, --glob, --tokenizer, --tokens, --validation-tokens and --vocabulary.
struct CorpusOptions {
  TextOptions text;
  std::string tokenizer;
  int64_t vocabulary = 0;  ///< of the token files; 0: the tokenizer's, or 65536
};
void add_corpus_options(CLI::App& command, CorpusOptions& corpus);

/// The texts or token files to train on.
struct TrainingText {
  std::unique_ptr<data::Tokenizer> tokenizer;
  data::Tokens tokens;
  bool without_tokenizer;  ///< token files, and no tokenizer was named
  TextOptions text;        ///< with the validation files that were named as the second of --tokens
};
TrainingText open_training_text(const CorpusOptions& options);

/// Of two token files alone, the second one is for validation.
TextOptions with_validation_files(TextOptions text);

/// The texts as tokens of the tokenizer, or the token files.
data::Tokens open_tokens(const TextOptions& text, const data::Tokenizer& tokenizer);

/// The model of a run directory or file, ready for use.
struct LoadedModel {
  LanguageModel model;
  std::unique_ptr<data::Tokenizer> tokenizer;
  int64_t step;
  training::TextRecord text;
};
/// Throws InputError if a weight is not finite, unless `non_finite` allows it.
LoadedModel load_model(const std::string& path, c10::Device device, bool non_finite = false);

/// --non-finite, for load_model().
void add_non_finite(CLI::App& command, bool& non_finite);

/// A text for evaluating a model. If nothing is named, it is the text of the model's run.
struct RecordedText : TextOptions {
  std::string split = "validation";
};
/// MODEL, --text, --glob, --tokens and --part.
void add_recorded_text(CLI::App& command, RecordedText& text, std::string& model);

/// What a run read.
TextOptions recorded_text(const training::TextRecord& record);

/// Opens and tokenizes it. Reports on standard error if the text of the run has changed.
data::Tokens open_recorded(const RecordedText& text, const LoadedModel& model);

/// train, validation, or all of the tokens.
data::Slice slice_of(const data::Tokens& tokens, const std::string& split);

}  // namespace nsimplex::cli
