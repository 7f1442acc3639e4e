#include "cli/comparison_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "support/error.h"
#include "training/parameters.h"

namespace nsimplex::cli {
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

bool chooses(const LanguageModelOptions& model) {
  return model.every > 0 && (model.sparse == Sparsity::topk || model.sparse == Sparsity::path);
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
  const std::map<std::string, Change> words = {
      {"reuse", [](NamedArm& a) { a.arm.model.indexer = IndexSource::reuse; }},
      {"light", [](NamedArm& a) { a.arm.model.indexer = IndexSource::light; }},
      {"relu", [](NamedArm& a) { a.arm.model.indexer_scores = IndexScores::relu; }},
      {"softmax", [](NamedArm& a) { a.arm.model.indexer_scores = IndexScores::softmax; }},
      {"loss", [&](NamedArm& a) { a.arm.model.indexer_loss = base.indexer_loss; }},
      {"wide", [](NamedArm& a) { a.wide = true; }}};

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
          fmt::format("--arms: '{}': expected reuse, light, relu, softmax, loss or wide, got '{}'",
                      name, parts[i]));
    }
    if (parts[i] != "wide" && !chooses(arm.arm.model)) {
      throw InputError(
          fmt::format("--arms: '{}': '{}' is for topk and path alone", name, parts[i]));
    }
    word->second(arm);
  }
  return arm;
}

// Adds hidden units to the MLPs until the model has as many weights as asked for, or nearly.
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
      throw InputError(fmt::format("--arms: '{}' is named twice", name));
    }
    named.push_back(named_arm(name, base));
    if (!named.back().wide) {
      const LanguageModel model(named.back().arm.model);  // refuses what cannot be built
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

}  // namespace nsimplex::cli
