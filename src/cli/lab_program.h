// Declares how nsimplex starts nsimplex-lab.

#pragma once

#include <optional>
#include <string>
#include <vector>

// Experiments are commands of a second program, nsimplex-lab. `nsimplex lab NAME` runs it. So do
// the former names of experiments, from when they were commands of nsimplex.
namespace nsimplex::cli {

/// The words for nsimplex-lab if the words after nsimplex name an experiment, otherwise nothing. A
/// former name is reported on standard error, together with the name to use instead.
std::optional<std::vector<std::string>> lab_arguments(std::vector<std::string> words);

/// Replaces this process by nsimplex-lab. It returns, with the exit code, only if that fails. It
/// then has reported on standard error how to build the program.
int start_lab(std::vector<std::string> arguments);

/// The words of a command line, with the former name of an experiment replaced by its current name.
std::vector<std::string> with_current_name(std::vector<std::string> words);

}  // namespace nsimplex::cli
