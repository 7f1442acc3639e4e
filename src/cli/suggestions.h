#pragma once

#include <string>
#include <vector>

#include "cli/cli11.h"

namespace nsimplex::cli {

/// The command that was typed, as far as it was understood.
CLI::App& typed_command(CLI::App& app);

/// "nsimplex lm train"
std::string full_name(const CLI::App& command);

/// Names of options of a command and of those above it: "--steps".
std::vector<std::string> option_names(const CLI::App* app);

/// `message`, and what `word` was probably meant to be where one of `candidates` is near it. The
/// suggestion is shown without its first `skipped` letters.
std::string with_suggestion(std::string message, const std::string& word,
                            const std::vector<std::string>& candidates, size_t skipped = 0);

}  // namespace nsimplex::cli
