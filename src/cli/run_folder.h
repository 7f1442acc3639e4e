#pragma once

#include <string>

#include "cli/options.h"

namespace nsimplex::cli {

/// What config.toml of a run holds: the command that was typed as a comment, then every option.
std::string config_file(const CommonOptions& options);

/// Creates the run directory and proves that it can be written; InputError otherwise.
void make_run_directory(const std::string& path);

}  // namespace nsimplex::cli
