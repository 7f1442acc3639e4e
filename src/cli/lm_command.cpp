#include "cli/commands.h"
#include "cli/lm.h"
#include "data/text_files.h"
#include "support/error.h"
#include "training/parameters.h"

namespace nsimplex::cli {

void add_lm_command(CLI::App& parent, Session& session) {
  CLI::App& group = add_group(parent, "lm", "Language models: train, evaluate, sample, compare");
  add_lm_train(group, session);
  add_lm_eval(group, session);
  add_lm_sample(group, session);
  add_lm_compare(group, session);
  add_lm_scaling(group, session);
}

void add_text_options(CLI::App& command, TextOptions& text) {
  command.add_option("--text", text.sources, "Files, folders, or - for standard input")
      ->type_name("FILE...")
      ->group("Text");
  command.add_option("--glob", text.glob, "Which files of a folder, at any depth: '*.py'")
      ->type_name("PATTERN")
      ->capture_default_str()
      ->group("Text");
}

data::Tokens open_tokens(const TextOptions& text, const data::Tokenizer& tokenizer) {
  if (text.sources.empty())
    throw InputError("--text: expected files, folders or - (standard input)");
  return data::Tokens(data::open_texts(text.sources, text.glob), tokenizer);
}

LoadedModel load_model(const std::string& path, c10::Device device) {
  const training::SavedModel saved = training::read_model(path);
  LoadedModel loaded{LanguageModel(saved.options), data::load_tokenizer(saved.tokenizer, path),
                     saved.step, saved.text};
  if (loaded.tokenizer->vocabulary() != saved.options.vocabulary) {
    throw InputError("cannot use " + path +
                     ": its tokenizer is missing or belongs to another model");
  }
  training::copy_into(training::named_parameters(*loaded.model), saved.weights, path);
  loaded.model->to(device);
  return loaded;
}

}  // namespace nsimplex::cli
