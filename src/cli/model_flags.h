// Declares the options that describe a language model.

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
  std::vector<int64_t> window;  ///< keys of each axis; empty: the default of the order
  std::string sparse = "window", indexer = "reuse", indexer_scores = "softmax";
  std::string preset = "standard", norm = "none", mlp = "swiglu";
  std::string form = "product", normalizer = "softmax";
  bool untied = false;
};

/// Adds width, depth, windows and numbers of keys, which compared models share. `window` describes
/// the default of --window.
void add_shape_flags(CLI::App& command, ModelFlags& flags, const std::string& window);

/// Adds what the simplicial layers compute from their tuples.
void add_layer_flags(CLI::App& command, ModelFlags& flags);

/// Adds the choice of tuples of the simplicial layers, their scale, and add_layer_flags().
void add_choice_flags(CLI::App& command, ModelFlags& flags);

/// The model that the options describe.
LanguageModelOptions language_model_options(const ModelFlags& flags, int64_t vocabulary);

}  // namespace nsimplex::cli
