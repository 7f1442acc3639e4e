#include <fmt/format.h>

#include <chrono>

#include "cli/interrupt.h"
#include "cli/json_lines.h"
#include "cli/lm.h"
#include "cli/output.h"
#include "support/error.h"
#include "training/generate.h"

namespace nsimplex::cli {
namespace {

struct SampleOptions : CommonOptions {
  std::string model;
  std::string prompt;
  bool non_finite = false;
  int64_t tokens = 500;
  training::SamplingOptions sampling;
};

// Without a prompt a text starts as texts do after one another.
std::vector<int32_t> first_tokens(const data::Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<int32_t> tokens = tokenizer.encode(prompt);
  if (tokens.empty() && tokenizer.separator() >= 0) tokens = {tokenizer.separator()};
  if (tokens.empty()) tokens = tokenizer.encode("\n");
  if (tokens.empty()) tokens = {0};
  return tokens;
}

int run_sample(const SampleOptions& options) {
  training::SamplingOptions sampling = options.sampling;
  sampling.seed = options.seed;
  training::check(sampling);
  if (options.tokens < 0) {
    throw InputError(fmt::format("tokens: expected 0 or more, got {}", options.tokens));
  }
  LoadedModel loaded = load_model(options.model, options.torch_device(), options.non_finite);

  const auto begun = std::chrono::steady_clock::now();
  data::StreamDecoder decoder(*loaded.tokenizer);
  std::string text;
  int64_t count = 0;
  const auto show = [&](const std::string& added) {
    text += added;
    if (!options.json) print(added);
  };
  const std::vector<int32_t> prompt = first_tokens(*loaded.tokenizer, options.prompt);
  if (!options.prompt.empty()) {
    for (const int32_t token : prompt) show(decoder.next(token));
  }
  training::generate(loaded.model, prompt, options.tokens, sampling, [&](int32_t token) {
    show(decoder.next(token));
    ++count;
    return !interrupt::requested();
  });
  show(decoder.finish());

  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  if (options.json) {
    print_json_line({{"prompt", options.prompt},
                     {"text", text},
                     {"tokens", count},
                     {"tokens_per_second", static_cast<double>(count) / seconds.count()}});
  } else if (!text.ends_with('\n')) {
    print("\n");
  }
  return 0;
}

}  // namespace

void add_lm_sample(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<SampleOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "sample",
       .summary = "Text from a language model, as it is drawn",
       .examples = "nsimplex lm sample runs/first --prompt 'def ' --tokens 300\n"
                   "nsimplex lm sample runs/first --temperature 0.7 --top-p 0.95 --seed 3",
       .acts = {.out = false, .device = true}},
      options, run_sample);
  command.add_option("model", options->model, "Run directory, checkpoint or model.safetensors")
      ->type_name("MODEL")
      ->required();
  add_non_finite(command, options->non_finite);
  const auto add = [&](const std::string& name, auto& value, const std::string& text) {
    command.add_option(name, value, text)->capture_default_str()->group("Sampling");
  };
  add("--prompt", options->prompt, "Text to continue");
  add("--tokens", options->tokens, "Tokens to draw");
  add("--temperature", options->sampling.temperature,
      "Divides the logits; 0: always the likeliest");
  add("--top-k", options->sampling.top_k, "Only the K likeliest tokens; 0: all");
  add("--top-p", options->sampling.top_p, "Only the likeliest tokens that reach this probability");
}

}  // namespace nsimplex::cli
