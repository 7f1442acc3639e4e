// The options that describe a language model.

#include "cli/model_flags.h"

#include <algorithm>

#include "attention/common/attention_names.h"
#include "cli/options.h"
#include "nn/model_names.h"

namespace nsimplex::cli {
namespace {

// Default windows of a simplicial layer: one long axis, the others short. The layer then costs
// about as much as ordinary attention over the product of the windows.
constexpr int64_t kLongWindow = 256, kShortWindow = 16;

std::vector<int64_t> default_window(int64_t order) {
  std::vector<int64_t> window(static_cast<size_t>(std::max<int64_t>(order, 1)), kShortWindow);
  window.back() = kLongWindow;
  return window;
}

// An option whose value language_model_options() checks.
template <class Choice>
void add_choice(CLI::App& command, const char* name, std::string& value, const char* text) {
  offer(option_adder(command, "Model")(name, value, text), names_of<Choice>());
}

}  // namespace

void add_shape_flags(CLI::App& command, ModelFlags& o, const std::string& window) {
  const auto add = option_adder(command, "Model");
  add("--layers", o.model.layers, "Blocks");
  add("--heads", o.model.heads, "Query heads");
  add("--kv-heads", o.model.kv_heads, "Key and value heads, a divisor of --heads; 0: as many");
  add("--width", o.model.dim, "Width");
  add("--context", o.model.context, "Tokens of a training window");
  add("--order", o.model.order, "Key axes N of the simplicial layers");
  add("--every", o.model.every, "Every K-th layer is simplicial; 0: none");
  command
      .add_option("--window", o.window,
                  "Keys that a query sees per axis, for example 16,256; default: " + window)
      ->delimiter(',')
      ->group("Model");
  add("--topk", o.model.topk, "Keys per query that topk and path choose");
  add("--indexer-loss", o.model.indexer_loss,
      "Weight of the indexer's loss; with 0 the indexer light learns nothing");
  add_choice<HeadNorm>(command, "--norm", o.norm, "RMS-normalise heads: none, qk or qkv");
  add_choice<Activation>(command, "--mlp", o.mlp, "Activation of the MLP: swiglu or gelu");
  command.add_flag("--untied", o.untied, "Do not share output weights with the embedding")
      ->group("Model");
}

void add_layer_flags(CLI::App& command, ModelFlags& o) {
  const auto add = option_adder(command, "Model");
  add_choice<Form>(
      command, "--form", o.form,
      "Scores of the simplicial layers: product or determinant, which needs a --width that is "
      "a multiple of heads x (order + 1)");
  command
      .add_flag("--rotary", o.model.rotary,
                "Rotary positions in the simplicial layers, with form determinant")
      ->group("Model");
  add_choice<Normalizer>(
      command, "--normalizer", o.normalizer,
      "Normaliser of the simplicial layers: softmax, softmax_sink (a learned sink per head), "
      "sigmoid or relu");
  command
      .add_flag("--augment", o.model.augment,
                "Add a key of ones to every axis but the first of the simplicial layers")
      ->group("Model");
  add("--dropout", o.model.dropout, "Share of tuples that the simplicial layers drop in training");
}

void add_choice_flags(CLI::App& command, ModelFlags& o) {
  const auto add = option_adder(command, "Model");
  add_choice<Sparsity>(
      command, "--sparse", o.sparse,
      "Tuples of the simplicial layers: window, topk or path (of keys that an indexer chooses) or "
      "linear (separable features of all keys)");
  add_choice<IndexSource>(
      command, "--indexer", o.indexer,
      "Scores of the indexer: reuse (from the previous layer) or light (from its own projections)");
  add_choice<IndexScores>(command, "--indexer-scores", o.indexer_scores,
                          "Function of the indexer's scores: relu or softmax");
  add_choice<ScalePreset>(command, "--scale", o.preset,
                          "Scale of the logits of the simplicial layers: standard or unit");
  add_layer_flags(command, o);
}

LanguageModelOptions language_model_options(const ModelFlags& options, int64_t vocabulary) {
  // Names become enums by the same table of the model that checkpoints use.
  auto fields = to_map(options.model);
  fields["vocabulary"] = std::to_string(vocabulary);
  fields["sparse"] = options.sparse;
  fields["indexer"] = options.indexer;
  fields["indexer_scores"] = options.indexer_scores;
  fields["scale"] = options.preset;
  fields["form"] = options.form;
  fields["normalizer"] = options.normalizer;
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

}  // namespace nsimplex::cli
