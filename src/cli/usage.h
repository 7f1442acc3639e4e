#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace nsimplex::cli {

/// One line about a command line that could not be parsed; an unknown option or command is named
/// first, with the nearest one that exists.
std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error);

/// Help with the default behind the description, so that the columns stay short.
std::shared_ptr<CLI::Formatter> help_formatter();

/// TOML of CLI11 in which a name without a section belongs to the command that was typed:
/// `steps = 100` in the file of `nsimplex lm train --config FILE` is --steps.
std::shared_ptr<CLI::Config> command_config(const CLI::App& app);

}  // namespace nsimplex::cli
