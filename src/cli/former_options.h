// Declares how former names of options are read.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/cli11.h"

namespace nsimplex::cli {

/// The place of the first command among words, from `from` on: --config and --json may precede it.
size_t first_command(const std::vector<std::string>& words, size_t from = 0);

/// Replaces the former name of the command that begins there by its present one, and returns what
/// to say of it; empty for a present name.
std::string use_current_command(std::vector<std::string>& words, size_t from = 0);

/// Words of a command line with the present names of options in place of their former ones.
/// Standard error says once per name how it is called now. Throws InputError if an option is given
/// by both of its names.
std::vector<std::string> with_current_options(CLI::App& app, std::vector<std::string> words);

/// The present name of an option that a config file calls `name`, without dashes; `name` itself if
/// it is not a former one.
std::string current_option(const CLI::App& command, const std::string& name);

/// The name under which config.toml of a run holds an option. It stays when the option is renamed,
/// so that versions before and after read the same files.
std::string saved_option(const CLI::App& command, const std::string& name);

/// The present name, with dashes, of what other commands, former versions or Python call `word`;
/// empty if the command has no such option.
std::string option_like(const CLI::App& command, std::string_view word);

}  // namespace nsimplex::cli
