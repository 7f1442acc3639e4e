#pragma once

#include <string>
#include <vector>

#include "cli/attention_case.h"

namespace nsimplex::cli {

struct NamedCase {
  std::string name;
  AttentionCase shape;  ///< completed
};

/// The tables of bench/cases, which the build puts into the executable.
std::vector<NamedCase> verification_cases();
std::vector<NamedCase> speed_cases();

/// Looks a name up in both tables; InputError when there is none.
AttentionCase find_case(const std::string& name);

}  // namespace nsimplex::cli
