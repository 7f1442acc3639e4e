#pragma once

#include <nsimplex/causal_options.h>

#include <string>
#include <vector>

#include "cli/options.h"

namespace nsimplex::cli {

struct ConstraintFlags {
  std::vector<std::string> forbidden, required;
  std::string tiers;
};

/// Adds --forbid, --require and --tiers.
void add_constraint_options(CLI::App& command, ConstraintFlags& flags);

/// By the names of columns. InputError that names the option.
EdgeConstraints constraints_of(const ConstraintFlags& flags, const std::vector<std::string>& names);

}  // namespace nsimplex::cli
