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
  bool untied = false;
};

/// Adds the flags of NSIMPLEX_LANGUAGE_MODEL_OPTIONS, but those `without`, which compared models
/// differ in. `window` describes the default of --window.
void add_model_flags(CLI::App& command, ModelFlags& flags, const std::string& window,
                     const std::vector<std::string>& without = {});

/// Throws InputError for a flag without effect beside --sparse. Defaults in config.toml do not count
/// as given.
void refuse_unused(const ModelFlags& flags);

/// A message of the model with flags in place of the names of its options.
std::string with_flags(std::string message);

/// The model that the options describe.
LanguageModelOptions language_model_options(const ModelFlags& flags, int64_t vocabulary);

}  // namespace nsimplex::cli
