#pragma once

#include <memory>
#include <string>

#include "cli/cli11.h"

namespace nsimplex::cli {

/// One line about a command line that could not be parsed; an unknown option or command is named
/// first, with the nearest one that exists.
std::string describe_usage_error(CLI::App& app, const CLI::ParseError& error);

/// Help with the default behind the description, so that the columns stay short.
std::shared_ptr<CLI::Formatter> help_formatter();

}  // namespace nsimplex::cli
