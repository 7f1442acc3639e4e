#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <numbers>

#include "cli/interrupt.h"
#include "cli/json_lines.h"
#include "cli/lm.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "training/evaluate.h"

namespace nsimplex::cli {
namespace {

struct EvalOptions : CommonOptions {
  std::string model;
  TextOptions text;
  std::string split = "validation";
};

data::Slice slice(const data::Tokens& tokens, const std::string& name) {
  const data::Split split = data::split(tokens);
  if (name == "train") return split.train;
  if (name == "validation") return split.validation;
  return {0, tokens.size()};
}

int run_eval(const EvalOptions& options) {
  LoadedModel loaded = load_model(options.model, options.torch_device());
  TextOptions text = options.text;
  const bool recorded = text.sources.empty();
  if (recorded) text = {loaded.text.sources, loaded.text.glob};
  const data::Tokens tokens = open_tokens(text, *loaded.tokenizer);
  if (recorded && tokens.fingerprint() != loaded.text.fingerprint) {
    fmt::print(stderr, "nsimplex: the text has changed since the model was trained on it\n");
  }

  ProgressBar bar("eval", slice(tokens, options.split).size() - 1, options.json);
  const training::Evaluation result =
      training::evaluate(loaded.model, tokens, slice(tokens, options.split),
                         loaded.model->options().context, 0, [&](int64_t done, int64_t) {
                           interrupt::check();
                           bar.update(done);
                         });
  bar.finish();

  const double rate = static_cast<double>(result.tokens) / result.seconds;
  if (options.json) {
    print_json_line({{"step", loaded.step},
                     {"train_loss", nullptr},
                     {"val_loss", result.loss},
                     {"tokens_per_second", rate}});
    return 0;
  }
  print(fmt::format("loss          {:.4f} nats a token\n", result.loss));
  print(fmt::format("              {:.4f} bits a token\n", result.loss / std::numbers::ln2));
  print(fmt::format("perplexity    {:.3f}\n", std::exp(result.loss)));
  print(fmt::format("tokens        {} ({} split)\n", result.tokens, options.split));
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
       .summary = "Loss of a language model over the whole validation split of a text",
       .examples = "nsimplex lm eval runs/first\n"
                   "nsimplex lm eval runs/first/model.safetensors --text other.txt --split all"},
      options, run_eval);
  command.add_option("model", options->model, "Run directory, checkpoint or model.safetensors")
      ->type_name("MODEL")
      ->required();
  add_text_options(command, options->text);
  command.get_option("--text")->description(
      "Files, folders, or - for standard input; by default the text of the run directory");
  command
      .add_option("--split", options->split, "validation (the last tenth), train (the rest) or all")
      ->check(CLI::IsMember({"validation", "train", "all"}))
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Text");
}

}  // namespace nsimplex::cli
