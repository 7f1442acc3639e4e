// Declares the option --config and the text of config.toml.

#pragma once

#include <string>

#include "cli/cli11.h"

namespace nsimplex::cli {

/// Gives a program the option --config, whose file `-` is standard input. Every name in the file is
/// an option or an argument of the typed command, and values on the command line take precedence.
/// Errors name the file, the line and, for an unknown name, the nearest one.
void add_config_option(CLI::App& app);

/// Every option and argument of a command after parsing, one `name = value` per line, so that
/// --config reads back the same values. It has the given value or else the default. Options without
/// either are left out, and so are options that concern only this call
/// (CLI::Option::configurable(false)).
std::string config_text(const CLI::App& command);

/// Whether a config.toml, whose first line is the typed command, belongs to the command called
/// `name`, for example "nsimplex lab chains".
bool is_command(const std::string& name, const std::string& config);

/// Whether an option, by its name without dashes, belongs to a call and not to the run: such options
/// may be given when a run continues.
bool is_of_this_call(const std::string& option);

/// Gives a command the options from the config.toml of the run in `folder`. The folder, the number
/// of threads and --json are this call's own. Throws CLI::ValidationError if there is no such run,
/// if it belongs to another command, or if the command line contradicts it.
void continue_run(CLI::App& command, const std::string& folder);

}  // namespace nsimplex::cli
