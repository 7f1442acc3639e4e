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

/// --text and --glob.
struct TextOptions {
  std::vector<std::string> sources;
  std::string glob = "*";
};
void add_text_options(CLI::App& command, TextOptions& text);

/// Opens and tokenizes the texts.
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

/// A text for evaluating a model. Without sources it is the text of the model's run.
struct RecordedText : TextOptions {
  std::string split = "validation";
};
/// MODEL, --text, --glob and --split.
void add_recorded_text(CLI::App& command, RecordedText& text, std::string& model);

/// Opens and tokenizes it. Reports on standard error if the text of the run has changed.
data::Tokens open_recorded(const RecordedText& text, const LoadedModel& model);

/// train, validation, or all of the tokens.
data::Slice slice_of(const data::Tokens& tokens, const std::string& split);

}  // namespace nsimplex::cli
