// The options of language-model comparisons, and the models that their names stand for.

#include "lab/language/comparison_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "cli/lm_train.h"
#include "cli/output.h"
#include "nn/model_names.h"
#include "support/error.h"
#include "train/optimizer.h"

namespace nsimplex::cli {

OpenCorpus open_corpus(const CorpusOptions& options) {
  TrainingText text = open_training_text(options);
  const data::Split split = data::split(text.tokens);
  return {{std::move(text.tokens), split}, text.tokenizer->vocabulary()};
}

std::string describe(const training::Corpus& corpus, const training::TrainingOptions& o,
                     int64_t context) {
  return fmt::format(
      "text    {} tokens for training, {} for validation\n"
      "run     {} steps of {} x {} windows of {} tokens, rate {} to {}\n",
      corpus.split.train.size(), corpus.split.validation.size(), o.steps, o.batch, o.accumulate,
      context, o.lr, o.min_lr);
}

ComparisonOptions::ComparisonOptions() {
  model.context = 128;
  model.topk = 0;
  model.indexer_loss = 0.1;
  training.steps = 600;
  training.lr = 2e-3;
  training.warmup = 60;
  training.eval_every = 25;
  training.eval_tokens = 16384;
}

void add_comparison_flags(CLI::App& command, ComparisonOptions& o) {
  command
      .add_option(
          "--arms", o.arms,
          "Models as NAME[:WORD]..: ordinary, window, topk, path or linear, with the words reuse, "
          "light, relu, softmax, loss, determinant, rotary, unit, augment, sink and wide; or "
          "indexers, the eight models of topk")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
  command.add_option("--seeds", o.seeds, "Number of seeds, counted up from --seed")
      ->check(within(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  add_corpus_options(command, o);
  add_model_flags(command, o, "a quarter of the context on every axis",
                  {"--sparse", "--sinks", "--indexer", "--indexer-scores"});
  add_training_flags(command, o.training);
}

void complete(ComparisonOptions& o) {
  const int64_t quarter = std::max<int64_t>(o.model.context / 4, 1);
  if (o.window.empty()) o.window = {quarter};
  if (o.model.topk == 0) o.model.topk = quarter;
  if (o.arms == std::vector<std::string>{"indexers"}) o.arms = indexer_arms();
  o.training.seed = o.seed;
  o.training.threads = o.threads;
  training::check(o.training);
}

namespace {

struct NamedArm {
  training::Arm arm;
  bool wide = false;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ':');) words.push_back(word);
  return words;
}

// What a word is for: every model, those with simplicial layers, or those that choose keys.
enum class WordFor { all, simplicial, choosing };

bool suits(WordFor models, const LanguageModelOptions& model) {
  if (models == WordFor::all) return true;
  if (model.every == 0) return false;
  return models == WordFor::simplicial || model.sparse == Sparsity::topk ||
         model.sparse == Sparsity::path;
}

NamedArm named_arm(const std::string& name, const LanguageModelOptions& base) {
  using Change = std::function<void(NamedArm&)>;
  const auto sparse = [](Sparsity sparsity) -> Change {
    return [sparsity](NamedArm& a) { a.arm.model.sparse = sparsity; };
  };
  static const std::map<std::string, Change> kKinds = {
      {"ordinary", [](NamedArm& a) { a.arm.model.every = 0; }},
      {"window", sparse(Sparsity::window)},
      {"topk", sparse(Sparsity::topk)},
      {"path", sparse(Sparsity::path)},
      {"linear", sparse(Sparsity::linear)}};
  const auto set = [](auto LanguageModelOptions::* member, auto value) -> Change {
    return [member, value](NamedArm& a) { a.arm.model.*member = value; };
  };
  using Options = LanguageModelOptions;
  const std::map<std::string, std::pair<WordFor, Change>> words = {
      {"reuse", {WordFor::choosing, set(&Options::indexer, IndexSource::reuse)}},
      {"light", {WordFor::choosing, set(&Options::indexer, IndexSource::light)}},
      {"relu", {WordFor::choosing, set(&Options::indexer_scores, IndexScores::relu)}},
      {"softmax", {WordFor::choosing, set(&Options::indexer_scores, IndexScores::softmax)}},
      {"loss", {WordFor::choosing, set(&Options::indexer_loss, base.indexer_loss)}},
      {"determinant", {WordFor::simplicial, set(&Options::form, Form::determinant)}},
      {"rotary", {WordFor::simplicial, set(&Options::rotary, true)}},
      {"unit", {WordFor::simplicial, set(&Options::scale, ScalePreset::unit)}},
      {"augment", {WordFor::simplicial, set(&Options::augment, true)}},
      {"sink", {WordFor::simplicial, set(&Options::normalizer, Normalizer::softmax_sink)}},
      {"wide", {WordFor::all, [](NamedArm& a) { a.wide = true; }}}};

  NamedArm arm{{name, base}};
  arm.arm.model.indexer = IndexSource::reuse;
  arm.arm.model.indexer_scores = IndexScores::softmax;
  arm.arm.model.indexer_loss = 0.0;
  const std::vector<std::string> parts = split(name);
  const auto kind = parts.empty() ? kKinds.end() : kKinds.find(parts[0]);
  if (kind == kKinds.end()) {
    throw InputError(
        fmt::format("--arms: expected ordinary, window, topk, path or linear, got '{}'", name));
  }
  kind->second(arm);
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto word = words.find(parts[i]);
    if (word == words.end()) {
      throw InputError(
          fmt::format("--arms: '{}': expected reuse, light, relu, softmax, loss, determinant, "
                      "rotary, unit, augment, sink or wide, got '{}'",
                      name, parts[i]));
    }
    const auto& [models, change] = word->second;
    if (!suits(models, arm.arm.model)) {
      throw InputError(fmt::format(
          "--arms: '{}': '{}' is only for {}", name, parts[i],
          models == WordFor::choosing ? "topk and path" : "models with simplicial layers"));
    }
    change(arm);
  }
  return arm;
}

// Adds hidden units to the MLPs until the model has about as many weights as requested.
void widen(LanguageModelOptions& model, int64_t weights) {
  const int64_t unit =
      model.layers * model.dim * (model.mlp == Activation::swiglu ? 3 : 2);  // weights of one
  const int64_t now = training::parameter_count(*LanguageModel(model));
  const FeedForward mlp(
      FeedForwardOptions{.dim = model.dim,
                         .hidden = std::llround(model.mlp_ratio * static_cast<double>(model.dim)),
                         .activation = model.mlp});
  const int64_t hidden = mlp->options().hidden + (weights - now + unit / 2) / unit;
  model.mlp_ratio = static_cast<double>(hidden) / static_cast<double>(model.dim);
}

}  // namespace

std::vector<training::Arm> comparison_arms(const std::vector<std::string>& names,
                                           const LanguageModelOptions& base) {
  std::set<std::string> seen;
  std::vector<NamedArm> named;
  int64_t most = 0;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      throw InputError(fmt::format("--arms: expected different models, got '{}' twice", name));
    }
    named.push_back(named_arm(name, base));
    if (!named.back().wide) {
      const LanguageModel model(named.back().arm.model);  // throws for an invalid model
      most = std::max(most, training::parameter_count(*model));
    }
  }
  std::vector<training::Arm> arms;
  for (NamedArm& each : named) {
    if (each.wide) widen(each.arm.model, most);
    arms.push_back(std::move(each.arm));
  }
  return arms;
}

std::vector<std::string> indexer_arms() {
  std::vector<std::string> names;
  for (const char* scores : {"relu", "softmax"}) {
    for (const char* source : {"reuse", "light"}) {
      for (const char* loss : {"", ":loss"}) {
        names.push_back(fmt::format("topk:{}:{}{}", scores, source, loss));
      }
    }
  }
  return names;
}

std::vector<training::ArmResult> train_arms_shown(
    const std::string& label, const std::vector<training::Arm>& arms,
    const training::TrainingOptions& training, const training::Corpus& corpus,
    const CommonOptions& options, const std::function<void(const training::ArmPoint&)>& on_point) {
  int64_t total = 0;
  for (const training::Arm& arm : arms) total += arm.steps > 0 ? arm.steps : training.steps;
  ProgressBar bar(label, total, options.json);
  training::ComparisonEvents events;
  events.point = on_point;
  events.step = [&](int64_t done, double loss) {
    interrupt::check();
    bar.update(done, fmt::format("loss {:.3f}", loss));
  };
  return training::train_arms(arms, training, corpus, options.torch_device(), events);
}

}  // namespace nsimplex::cli
