#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "cli/process.h"

namespace nsimplex::cli::testing {

/// The objects of a text, one a line.
inline std::vector<nlohmann::json> json_of(const std::string& text) {
  std::vector<nlohmann::json> objects;
  for (const std::string& line : lines_of(text)) objects.push_back(nlohmann::json::parse(line));
  return objects;
}

}  // namespace nsimplex::cli::testing
