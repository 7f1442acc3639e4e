// The commands `lm eval` and `lm sample`: the loss and the samples of a language model.

#include "cli/lm_command.h"

#include <ATen/ops/isfinite.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <string_view>

#include "cli/commands.h"
#include "cli/output.h"
#include "data/text_files.h"
#include "io/input_file.h"
#include "support/error.h"
#include "support/log.h"
#include "support/printable.h"
#include "support/stopwatch.h"
#include "train/inference.h"
#include "train/optimizer.h"
#include "train/stored_state.h"

namespace nsimplex::cli {

void add_lm_command(CLI::App& parent, Session& session) {
  CLI::App& group = add_group(parent, "lm", "Train, evaluate and sample language models");
  add_lm_train(group, session);
  add_lm_eval(group, session);
  add_lm_sample(group, session);
}

void add_text_options(CLI::App& command, TextOptions& text) {
  command.add_option("--text", text.sources, "Files, folders, or - for standard input")
      ->type_name("FILE...")
      ->group("Text");
  command.add_option("--glob", text.glob, "Pattern of file names in folders, at any depth: '*.py'")
      ->type_name("PATTERN")
      ->capture_default_str()
      ->group("Text");
}

data::Tokens open_tokens(const TextOptions& text, const data::Tokenizer& tokenizer) {
  if (text.empty()) throw InputError("--text: expected files, folders or - (standard input)");
  if (text.token_files.empty())
    return data::Tokens(data::open_texts(text.sources, text.glob), tokenizer);
  if (!text.sources.empty()) throw InputError("--tokens: expected no --text with it");
  return data::Tokens::of_files(text.token_files, text.validation_files, tokenizer.vocabulary());
}

void add_corpus_options(CLI::App& command, CorpusOptions& o) {
  add_text_options(command, o.text);
  const auto add = [&](const char* name, auto& value, const char* text) {
    return command.add_option(name, value, text)->group("Text");
  };
  add("--tokenizer", o.tokenizer, "SentencePiece model; default: bytes as tokens")
      ->type_name("FILE");
  add("--tokens", o.text.token_files,
      "Token files instead of texts, like nanoGPT's: one for training and one for validation, or "
      "those for training if --validation-tokens names the other")
      ->type_name("FILE...");
  add("--validation-tokens", o.text.validation_files,
      "Token files for validation; default: the last tenth")
      ->type_name("FILE...");
  add("--vocabulary", o.vocabulary,
      "Vocabulary of --tokens, whose numbers have two bytes up to 65536 and four beyond; 0: the "
      "tokenizer's, else 65536")
      ->check(within(int64_t{0}, int64_t{1} << 31))
      ->capture_default_str();
}

TextOptions with_validation_files(TextOptions text) {
  if (text.token_files.empty() && !text.validation_files.empty())
    throw InputError("--validation-tokens: expected --tokens with it");
  if (!text.validation_files.empty() || text.token_files.size() < 2) return text;
  if (text.token_files.size() > 2) {
    throw InputError(
        fmt::format("--tokens: expected a file for training and one for validation, got {} files",
                    text.token_files.size()));
  }
  text.validation_files = {text.token_files.back()};
  text.token_files.pop_back();
  return text;
}

TrainingText open_training_text(const CorpusOptions& o) {
  const TextOptions text = with_validation_files(o.text);
  const bool without_tokenizer = !text.token_files.empty() && o.tokenizer.empty();
  if (o.vocabulary != 0 && !without_tokenizer) {
    throw InputError("--vocabulary: expected --tokens with it, and no --tokenizer");
  }
  std::unique_ptr<data::Tokenizer> tokenizer =
      without_tokenizer
          ? data::number_tokenizer(o.vocabulary > 0 ? o.vocabulary : data::kMostUint16)
          : data::load_tokenizer(o.tokenizer.empty() ? "" : io::read_text(o.tokenizer),
                                 o.tokenizer);
  data::Tokens tokens = open_tokens(text, *tokenizer);
  return {std::move(tokenizer), std::move(tokens), without_tokenizer, text};
}

void add_non_finite(CLI::App& command, bool& non_finite) {
  command.add_flag("--non-finite", non_finite,
                   "Use a model even if it holds weights that are not finite");
}

LoadedModel load_model(const std::string& path, c10::Device device, bool non_finite) {
  const training::SavedModel saved = training::read_model(path);
  LoadedModel loaded{training::of_file(path, [&] { return LanguageModel(saved.options); }),
                     saved.without_tokenizer ? data::number_tokenizer(saved.options.vocabulary)
                                             : data::load_tokenizer(saved.tokenizer, path),
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
  loaded.model->eval();
  return loaded;
}

void add_recorded_text(CLI::App& command, RecordedText& text, std::string& model) {
  add_argument(command, "MODEL", model, "Run directory, checkpoint or model.safetensors");
  add_text_options(command, text);
  command.get_option("--text")->description(
      "Files, folders, or - for standard input; by default the text of the run directory");
  command.add_option("--tokens", text.token_files, "Token files instead of texts, as of lm train")
      ->type_name("FILE...")
      ->group("Text");
  command
      .add_option("--part", text.split,
                  "Part of the text: validation (the last tenth), train (the rest) or all")
      ->check(one_of({"validation", "train", "all"}))
      ->capture_default_str()
      ->group("Text");
}

TextOptions recorded_text(const training::TextRecord& record) {
  return {record.sources, record.glob, record.token_files, record.validation_files};
}

data::Tokens open_recorded(const RecordedText& text, const LoadedModel& model) {
  if (!text.empty()) return open_tokens(text, *model.tokenizer);
  data::Tokens tokens = open_tokens(recorded_text(model.text), *model.tokenizer);
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

namespace {

struct EvalOptions : CommonOptions {
  std::string model;
  bool non_finite = false;
  RecordedText text;
};

int run_eval(const EvalOptions& options) {
  LoadedModel loaded = load_model(options.model, options.torch_device(), options.non_finite);
  const data::Tokens tokens = open_recorded(options.text, loaded);
  const data::Slice slice = slice_of(tokens, options.text.split);

  ProgressBar bar("eval", slice.size() - 1, options.json);
  const training::Evaluation result = training::evaluate(
      loaded.model, tokens, slice, loaded.model->options().context, 0, [&](int64_t done, int64_t) {
        interrupt::check();
        bar.update(done);
      });
  bar.finish();

  const double rate = static_cast<double>(result.tokens) / result.seconds;
  if (options.json) {
    print_json_line("evaluation", {{"step", loaded.step},
                                   {"train_loss", nullptr},
                                   {"val_loss", result.loss},
                                   {"tokens_per_second", rate}});
    return 0;
  }
  print(fmt::format("loss          {:.4f} nats per token\n", result.loss));
  print(fmt::format("              {:.4f} bits per token\n", result.loss / std::numbers::ln2));
  print(fmt::format("perplexity    {:.3f}\n", std::exp(result.loss)));
  print(fmt::format("tokens        {} ({} split)\n", result.tokens, options.text.split));
  print(fmt::format("tokens/s      {:.0f}\n", rate));
  print(fmt::format("step          {}\n", loaded.step));
  return 0;
}

}  // namespace

void add_lm_eval(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "eval",
       .summary = "Measure the loss of a language model over the whole validation split of a text",
       .examples = "nsimplex lm eval runs/first\n"
                   "nsimplex lm eval runs/first/model.safetensors --text other.txt --part all",
       .acts = {.out = false, .seed = false, .device = true}},
      options, run_eval);
  add_recorded_text(command, options->text, options->model);
  add_non_finite(command, options->non_finite);
}

namespace {

struct SampleOptions : CommonOptions {
  std::string model;
  std::string prompt;
  bool non_finite = false;
  int64_t tokens = 500;
  training::SamplingOptions sampling;
};

// Without a prompt, a text starts like a text that follows another one.
std::vector<int32_t> first_tokens(const data::Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<int32_t> tokens = tokenizer.encode(prompt);
  if (tokens.empty() && tokenizer.separator() >= 0) tokens = {tokenizer.separator()};
  if (tokens.empty()) tokens = tokenizer.encode("\n");
  if (tokens.empty()) tokens = {0};
  return tokens;
}

// The number of bytes at the end of a text that begin a UTF-8 character but do not complete it.
size_t begun_character(std::string_view text) {
  constexpr size_t kMost = 3;
  for (size_t back = 1; back <= std::min(kMost, text.size()); ++back) {
    const auto byte = static_cast<uint8_t>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

// Nobody has checked the output of a model. On a terminal every character that would act on it is
// escaped, except line breaks and tabs. A token may be part of a character, which waits for the
// rest.
class TerminalText {
 public:
  std::string next(std::string_view added) {
    held_ += added;
    const size_t whole = held_.size() - begun_character(held_);
    const std::string shown = quoted(std::string_view(held_).substr(0, whole));
    held_.erase(0, whole);
    return shown;
  }

  std::string finish() const { return quoted(held_); }

 private:
  static std::string quoted(std::string_view text) {
    std::string shown;
    while (!text.empty()) {
      const size_t plain = std::min(text.find_first_of("\n\t"), text.size());
      shown += printable(text.substr(0, plain));
      if (plain < text.size()) shown += text[plain];
      text.remove_prefix(std::min(plain + 1, text.size()));
    }
    return shown;
  }

  std::string held_;
};

int run_sample(const SampleOptions& options) {
  training::SamplingOptions sampling = options.sampling;
  sampling.seed = options.seed;
  training::check(sampling);
  if (options.tokens < 0) {
    throw InputError(fmt::format("--tokens: expected 0 or more, got {}", options.tokens));
  }
  LoadedModel loaded = load_model(options.model, options.torch_device(), options.non_finite);

  const Stopwatch watch;
  data::StreamDecoder decoder(*loaded.tokenizer);
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  TerminalText shown;
  std::string text;
  int64_t count = 0;
  const auto show = [&](const std::string& added) {
    text += added;
    if (!options.json) print(terminal ? shown.next(added) : added);
  };
  const std::string prompt = options.prompt == "-" ? io::read_text("-") : options.prompt;
  const std::vector<int32_t> first = first_tokens(*loaded.tokenizer, prompt);
  if (!prompt.empty()) {
    for (const int32_t token : first) show(decoder.next(token));
  }
  training::generate(loaded.model, first, options.tokens, sampling, [&](int32_t token) {
    show(decoder.next(token));
    ++count;
    return !interrupt::requested();
  });
  show(decoder.finish());

  const double seconds = watch.seconds();
  if (options.json) {
    print_json_line("sample", {{"prompt", prompt},
                               {"text", text},
                               {"tokens", count},
                               {"tokens_per_second", static_cast<double>(count) / seconds}});
  } else {
    if (terminal) print(shown.finish());
    if (!text.ends_with('\n')) print("\n");
  }
  return 0;
}

}  // namespace

void add_lm_sample(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<SampleOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "sample",
       .summary = "Sample text from a language model",
       .examples = "nsimplex lm sample runs/first --prompt 'def ' --tokens 300\n"
                   "nsimplex lm sample runs/first --temperature 0.7 --top-p 0.95 --seed 3",
       .acts = {.out = false, .device = true}},
      options, run_sample);
  add_argument(command, "MODEL", options->model, "Run directory, checkpoint or model.safetensors");
  add_non_finite(command, options->non_finite);
  const auto add = [&](const std::string& name, auto& value, const std::string& text) {
    command.add_option(name, value, text)->capture_default_str()->group("Sampling");
  };
  add("--prompt", options->prompt, "Text to continue, or - for standard input");
  add("--tokens", options->tokens, "Number of tokens to draw");
  add("--temperature", options->sampling.temperature,
      "Divisor of the logits; 0: always the likeliest token");
  add("--top-k", options->sampling.top_k, "Draw only from the K likeliest tokens; 0: all");
  add("--top-p", options->sampling.top_p,
      "Draw only from the likeliest tokens that reach this probability together");
}

}  // namespace nsimplex::cli
