#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

// Experiments are commands of a second program, nsimplex-lab. `nsimplex lab NAME` runs it, and so
// do the names that experiments had when they were commands of nsimplex.
namespace nsimplex::cli {

/// The arguments for nsimplex-lab if the arguments of nsimplex name an experiment, else nothing.
/// A former name is reported on standard error, together with the name to use instead.
std::optional<std::vector<std::string>> lab_arguments(std::span<char* const> arguments);

/// Runs nsimplex-lab in place of this process. It returns only if that fails, with the exit code,
/// after it has said on standard error how to build the program.
int start_lab(std::vector<std::string> arguments);

/// The words of a command line, with the former name of an experiment replaced by its name now.
std::vector<std::string> with_current_name(std::vector<std::string> words);

}  // namespace nsimplex::cli
