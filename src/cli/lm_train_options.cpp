#include "cli/lm_train_options.h"

#include <fmt/format.h>

#include <set>

#include "support/error.h"

namespace nsimplex::cli {
namespace {

// Keys that each axis of a simplicial layer sees by default: one long axis, the others short, so
// that a layer costs about as much as ordinary attention over its product.
constexpr int64_t kLongWindow = 256, kShortWindow = 16;

std::vector<int64_t> default_window(int64_t order) {
  std::vector<int64_t> window(static_cast<size_t>(std::max<int64_t>(order, 1)), kShortWindow);
  window.back() = kLongWindow;
  return window;
}

void add_model_options(CLI::App& command, TrainOptions& o) {
  const auto add = [&](const std::string& name, auto& value, const std::string& text) {
    return command.add_option(name, value, text)->capture_default_str()->group("Model");
  };
  add("--layers", o.model.layers, "Blocks");
  add("--heads", o.model.heads, "Query heads");
  add("--kv-heads", o.model.kv_heads, "Key and value heads, a divisor of --heads; 0: as many");
  add("--dim", o.model.dim, "Width");
  add("--context", o.model.context, "Tokens of a training window");
  add("--order", o.model.order, "Key axes N of the simplicial layers");
  add("--every", o.model.every, "Every K-th layer is simplicial; 0: none");
  command.add_option("--window", o.window, "Keys seen on each axis: 16,256; default: 16,..,16,256")
      ->delimiter(',')
      ->type_name("W,..")
      ->group("Model");
  add("--sparse", o.sparse,
      "Tuples of the simplicial layers: window; topk or path, of keys that an indexer chooses; "
      "linear, separable features of all keys")
      ->type_name("NAME");
  add("--topk", o.model.topk, "Keys chosen for a query, of topk and path");
  add("--indexer", o.indexer,
      "Scores by the layer before (reuse) or projections of its own (light)")
      ->type_name("NAME");
  add("--indexer-scores", o.indexer_scores, "relu or softmax")->type_name("NAME");
  add("--indexer-loss", o.model.indexer_loss,
      "Weight of the indexer's loss; 0: none, and light learns nothing");
  add("--preset", o.preset, "Scale of the simplicial layers: standard or unit")->type_name("NAME");
  add("--norm", o.norm, "RMS-normalise heads: none, qk or qkv")->type_name("NAME");
  add("--mlp", o.mlp, "swiglu or gelu")->type_name("NAME");
  command.add_flag("--untied", o.untied, "Output weights apart from the embedding")->group("Model");
}

void add_training_options(CLI::App& command, training::TrainingOptions& o) {
  const auto add = [&](const std::string& name, auto& value, const std::string& text) {
    command.add_option(name, value, text)->capture_default_str()->group("Training");
  };
  add("--steps", o.steps, "Updates");
  add("--batch", o.batch, "Windows of a pass");
  add("--accumulate", o.accumulate, "Passes whose gradients are averaged before an update");
  add("--lr", o.lr, "Learning rate after warm-up");
  add("--min-lr", o.min_lr, "Learning rate of the last step; a cosine leads there");
  add("--warmup", o.warmup, "Steps of linear warm-up");
  add("--beta1", o.beta1, "AdamW's decay of the mean");
  add("--beta2", o.beta2, "AdamW's decay of the variance");
  add("--weight-decay", o.weight_decay, "Of matrices; not of gains and embeddings");
  add("--clip", o.clip, "Largest norm of the gradient; 0: unlimited");
  command.add_flag("--bf16", o.bf16, "bfloat16 autocast of the forward pass")->group("Training");
  add("--log-every", o.log_every, "Steps between lines of metrics.jsonl");
  add("--eval-every", o.eval_every, "Steps between validations; 0: only at the end");
  add("--eval-tokens", o.eval_tokens, "Validation tokens looked at each time; 0: all");
  add("--checkpoint-every", o.checkpoint_every, "Steps between checkpoints; 0: only at the end");
}

}  // namespace

void add_train_options(CLI::App& command, const std::shared_ptr<TrainOptions>& options) {
  options->command = &command;
  add_text_options(command, options->text);
  command
      .add_option("--tokenizer", options->tokenizer,
                  "SentencePiece model; without it a token is a byte")
      ->type_name("FILE")
      ->group("Text");
  command.add_option("--resume", options->resume, "Continue the run in this folder, bit for bit")
      ->type_name("DIR");
  add_model_options(command, *options);
  add_training_options(command, options->training);
}

LanguageModelOptions language_model_options(const TrainOptions& options, int64_t vocabulary) {
  // Names become enums where a checkpoint's do: one table, in the model.
  auto fields = to_map(options.model);
  fields["vocabulary"] = std::to_string(vocabulary);
  fields["sparse"] = options.sparse;
  fields["indexer"] = options.indexer;
  fields["indexer_scores"] = options.indexer_scores;
  fields["scale"] = options.preset;
  fields["norm"] = options.norm;
  fields["mlp"] = options.mlp;
  fields["tied"] = options.untied ? "false" : "true";
  LanguageModelOptions model = nsimplex::language_model_options(fields);
  model.window.clear();
  for (const int64_t keys : options.window.empty() ? default_window(model.order) : options.window) {
    model.window.push_back(Window::last(keys));
  }
  return model;
}

void refuse_changes(const TrainOptions& options) {
  static const std::set<std::string> kHarmless = {"resume", "text", "glob",  "threads",
                                                  "device", "json", "config"};
  for (const CLI::Option* option : options.command->get_options()) {
    const auto& names = option->get_lnames();
    if (option->count() > 0 && !names.empty() && !kHarmless.contains(names.front())) {
      throw InputError(fmt::format(
          "--{} cannot be given with --resume: a run continues as it began", names.front()));
    }
  }
}

}  // namespace nsimplex::cli
