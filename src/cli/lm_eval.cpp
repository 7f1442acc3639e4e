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
  print(fmt::format("loss          {:.4f} nats a token\n", result.loss));
  print(fmt::format("              {:.4f} bits a token\n", result.loss / std::numbers::ln2));
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
       .summary = "Loss of a language model over the whole validation split of a text",
       .examples = "nsimplex lm eval runs/first\n"
                   "nsimplex lm eval runs/first/model.safetensors --text other.txt --split all",
       .acts = {.out = false, .seed = false, .device = true}},
      options, run_eval);
  add_recorded_text(command, options->text, options->model);
  add_non_finite(command, options->non_finite);
}

}  // namespace nsimplex::cli
