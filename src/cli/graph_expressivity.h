#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace nsimplex::cli {

struct ExpressivityOptions : CommonOptions {
  std::vector<std::string> files;
  int64_t order = 3;
  bool exact = false;
  std::string pairs = "auto";
};

/// Counts the pairs of graphs that are told apart and returns the exit code.
int run_expressivity(const ExpressivityOptions& options);

}  // namespace nsimplex::cli
