#pragma once

#include <nsimplex/causal_embedding_options.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "support/error.h"

/// The enums of embeddings as commands and Python name them.
namespace nsimplex::causal {

template <class Value, size_t count>
Value parse_one(const std::array<std::pair<std::string_view, Value>, count>& names,
                const char* argument, std::string_view name) {
  std::string all;
  for (const auto& [known, value] : names) {
    if (known == name) return value;
    all.append(all.empty() ? "\"" : ", \"").append(known).append("\"");
  }
  throw InputError(std::string(argument)
                       .append(": expected one of ")
                       .append(all)
                       .append(", got \"")
                       .append(name)
                       .append("\""));
}

inline EmbeddingOptimiser parse_optimiser(std::string_view name) {
  using enum EmbeddingOptimiser;
  return parse_one<EmbeddingOptimiser, 3>(
      {{{"tangent", tangent}, {"radam", radam}, {"rsgd", rsgd}}}, "optimiser", name);
}

inline AttractionSide parse_side(std::string_view name) {
  using enum AttractionSide;
  return parse_one<AttractionSide, 2>({{{"both", both}, {"causes", causes}}}, "side", name);
}

inline std::string_view name_of(AttractionSide side) {
  return side == AttractionSide::both ? "both" : "causes";
}

inline AttractionWeight parse_weight(std::string_view name) {
  using enum AttractionWeight;
  return parse_one<AttractionWeight, 2>({{{"paths", paths}, {"direct", direct}}}, "weight", name);
}

inline DanglingRule parse_dangling(std::string_view name) {
  using enum DanglingRule;
  return parse_one<DanglingRule, 2>({{{"uniform", uniform}, {"eigenvector", eigenvector}}},
                                    "dangling", name);
}

}  // namespace nsimplex::causal
