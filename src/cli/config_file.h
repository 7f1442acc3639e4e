#pragma once

#include <memory>
#include <string>

#include "cli/cli11.h"

namespace nsimplex::cli {

/// Reads --config files: every name is an option or an argument of the command that was typed,
/// whose own values on the command line win. Errors name the file, the line and, for an unknown
/// name, the nearest one.
std::shared_ptr<CLI::Config> command_config(CLI::App& app);

/// Every option and argument of a command after parsing, one `name = value` a line, as --config
/// reads it back to the same values: what was given, else the default. What has neither is left
/// out, and so are options that tell about this one call (CLI::Option::configurable(false)).
std::string config_text(const CLI::App& command);

/// Whether a config.toml, whose first line is the command that was typed, is of the command that is
/// called `name`, "nsimplex lab chains" for example.
bool is_command(const std::string& name, const std::string& config);

/// Gives a command the options that the run in `folder` has in its config.toml. The folder, the
/// number of threads and --json are this call's own. Throws CLI::ValidationError where there is no
/// such run, it is another command's, or the command line asks for something else than it has.
void continue_run(CLI::App& command, const std::string& folder);

}  // namespace nsimplex::cli
