#pragma once

#include <string>

#include "cli/options.h"

namespace nsimplex::cli {

/// Name of the file with the options of a run.
inline constexpr char kConfigFile[] = "config.toml";

/// What config.toml of a run holds: the command that was typed as a comment, then every option.
std::string config_file(const CommonOptions& options);

/// Creates the run directory and proves that it can be written; InputError otherwise.
void make_run_directory(const std::string& path);

/// Whether the run that `folder` holds can be continued by the command of `options`.
bool can_continue(const CommonOptions& options, const std::string& folder);

/// Tells on standard error how a run that was interrupted goes on, where it can.
void say_how_to_continue(const CommonOptions& options);

}  // namespace nsimplex::cli
