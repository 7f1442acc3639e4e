#pragma once

#include <nsimplex/language_model.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cli11.h"

namespace nsimplex::cli {

/// The language model that a command line describes.
struct ModelFlags {
  LanguageModelOptions model;
  std::vector<int64_t> window;  ///< keys of each axis; empty: by order
  std::string sparse = "window", indexer = "reuse", indexer_scores = "softmax";
  std::string preset = "standard", norm = "none", mlp = "swiglu";
  bool untied = false;
};

/// Width, depth, windows, numbers of keys: what models that are compared have in common.
/// `window` says what an absent --window means.
void add_shape_flags(CLI::App& command, ModelFlags& flags, const std::string& window);

/// Which tuples the simplicial layers compute, and their scale.
void add_choice_flags(CLI::App& command, ModelFlags& flags);

/// The model that was asked for.
LanguageModelOptions language_model_options(const ModelFlags& flags, int64_t vocabulary);

}  // namespace nsimplex::cli
