// Declares how nsimplex starts nsimplex-lab.

#pragma once

#include <optional>
#include <string>
#include <vector>

// Experiments are commands of a second program, nsimplex-lab. `nsimplex lab NAME` runs it.
namespace nsimplex::cli {

/// The words for nsimplex-lab if the words after nsimplex name an experiment, otherwise nothing.
std::optional<std::vector<std::string>> lab_arguments(std::vector<std::string> words);

/// Replaces this process by nsimplex-lab. It returns, with the exit code, only if that fails. It
/// then has reported on standard error how to build the program.
int start_lab(std::vector<std::string> arguments);

}  // namespace nsimplex::cli
