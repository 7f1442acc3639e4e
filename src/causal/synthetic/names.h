#pragma once

#include <nsimplex/causal_synthetic_options.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/error.h"

/// The enums of simulations as commands and Python name them.
namespace nsimplex::causal {

template <class Value, size_t count>
using Names = std::array<std::pair<std::string_view, Value>, count>;

inline constexpr Names<CausalGraph, 2> kGraphNames{
    {{"er", CausalGraph::erdos_renyi}, {"sf", CausalGraph::scale_free}}};
inline constexpr Names<CausalMechanism, 3> kMechanismNames{{{"linear", CausalMechanism::linear},
                                                            {"mlp", CausalMechanism::mlp},
                                                            {"gp", CausalMechanism::additive_gp}}};
inline constexpr Names<CausalNoise, 3> kNoiseNames{{{"gaussian", CausalNoise::gaussian},
                                                    {"exponential", CausalNoise::exponential},
                                                    {"gumbel", CausalNoise::gumbel}}};

/// The names alone.
template <class Value, size_t count>
std::vector<std::string> names_of(const Names<Value, count>& names) {
  std::vector<std::string> only;
  for (const auto& [name, value] : names) only.emplace_back(name);
  return only;
}

/// Throws InputError "ARGUMENT: expected one of .., got NAME".
template <class Value, size_t count>
Value parse_name(const Names<Value, count>& names, const char* argument, std::string_view name) {
  std::string all;
  for (const auto& [known, value] : names) {
    if (name == known) return value;
    all.append(all.empty() ? "" : ", ").append(known);
  }
  throw InputError(std::string(argument)
                       .append(": expected one of ")
                       .append(all)
                       .append(", got \"")
                       .append(name)
                       .append("\""));
}

}  // namespace nsimplex::causal
