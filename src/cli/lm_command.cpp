#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/lm.h"
#include "data/text_files.h"
#include "support/error.h"
#include "support/log.h"
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

void add_non_finite(CLI::App& command, bool& non_finite) {
  command.add_flag("--non-finite", non_finite,
                   "Use a model although it holds weights that are not finite");
}

LoadedModel load_model(const std::string& path, c10::Device device, bool non_finite) {
  const training::SavedModel saved = training::read_model(path);
  LoadedModel loaded{LanguageModel(saved.options), data::load_tokenizer(saved.tokenizer, path),
                     saved.step, saved.text};
  if (loaded.tokenizer->vocabulary() != saved.options.vocabulary) {
    throw InputError("cannot use " + path +
                     ": its tokenizer is missing or belongs to another model");
  }
  training::copy_into(training::named_parameters(*loaded.model), saved.weights, path);
  for (const io::NamedTensor& each : saved.weights) {
    if (non_finite || at::isfinite(each.tensor).all().item<bool>()) continue;
    throw InputError(fmt::format(
        "cannot use {}: tensor {} holds numbers that are not finite (--non-finite uses it)", path,
        each.name));
  }
  loaded.model->to(device);
  return loaded;
}

void add_recorded_text(CLI::App& command, RecordedText& text, std::string& model) {
  command.add_option("model", model, "Run directory, checkpoint or model.safetensors")
      ->type_name("MODEL")
      ->required();
  add_text_options(command, text);
  command.get_option("--text")->description(
      "Files, folders, or - for standard input; by default the text of the run directory");
  command.add_option("--split", text.split, "validation (the last tenth), train (the rest) or all")
      ->check(CLI::IsMember({"validation", "train", "all"}))
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Text");
}

data::Tokens open_recorded(const RecordedText& text, const LoadedModel& model) {
  if (!text.sources.empty()) return open_tokens(text, *model.tokenizer);
  data::Tokens tokens = open_tokens({model.text.sources, model.text.glob}, *model.tokenizer);
  if (tokens.fingerprint() != model.text.fingerprint) {
    log_line("the text has changed since the model was trained on it");
  }
  return tokens;
}

data::Slice slice_of(const data::Tokens& tokens, const std::string& split) {
  const data::Split parts = data::split(tokens);
  if (split == "train") return parts.train;
  if (split == "validation") return parts.validation;
  return {0, tokens.size()};
}

}  // namespace nsimplex::cli
