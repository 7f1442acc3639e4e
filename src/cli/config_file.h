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

}  // namespace nsimplex::cli
