#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/error.h"

/// Enums under their names in commands and Python. The table of each enum is beside its definition.
namespace nsimplex::causal {

template <class Value, size_t count>
using Names = std::array<std::pair<std::string_view, Value>, count>;

/// Only the names.
template <class Value, size_t count>
std::vector<std::string> names_of(const Names<Value, count>& names) {
  std::vector<std::string> only;
  for (const auto& [name, value] : names) only.emplace_back(name);
  return only;
}

/// The name of a value.
template <class Value, size_t count>
std::string_view name_of(const Names<Value, count>& names, Value value) {
  for (const auto& [name, known] : names) {
    if (known == value) return name;
  }
  return {};
}

/// Throws InputError "ARGUMENT: expected one of .., got NAME".
template <class Value, size_t count>
Value parse_name(const Names<Value, count>& names, const char* argument, std::string_view name) {
  std::string all;
  for (const auto& [known, value] : names) {
    if (name == known) return value;
    all.append(all.empty() ? "\"" : ", \"").append(known).append("\"");
  }
  throw InputError(std::string(argument)
                       .append(": expected one of ")
                       .append(all)
                       .append(", got \"")
                       .append(name)
                       .append("\""));
}

}  // namespace nsimplex::causal
