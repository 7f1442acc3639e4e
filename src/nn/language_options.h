// What the one list of options of a language model says of each, for checks, files and flags.

#pragma once

#include <nsimplex/language_model.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "nn/model_names.h"

namespace nsimplex {

struct LanguageOption {
  std::string_view name, flag;
  std::vector<Sparsity> used_with;  ///< empty: all
};

/// In the order of the list.
inline const std::vector<LanguageOption>& language_options() {
  using enum Sparsity;
#define NSIMPLEX_LANGUAGE_OPTION(type, name, initial, flag, text, ...) {#name, flag, {__VA_ARGS__}},
  static const std::vector<LanguageOption> all = {
      NSIMPLEX_LANGUAGE_MODEL_OPTIONS(NSIMPLEX_LANGUAGE_OPTION)};
#undef NSIMPLEX_LANGUAGE_OPTION
  return all;
}

/// Options that differ from their default though they have no effect beside `sparse`.
inline std::vector<LanguageOption> unused_options(const LanguageModelOptions& options) {
  std::vector<LanguageOption> unused;
  const auto given = to_map(options), usual = to_map({});
  for (const LanguageOption& each : language_options()) {
    const std::string name(each.name);
    const bool used = each.used_with.empty() || std::ranges::count(each.used_with, options.sparse);
    if (!used && given.at(name) != usual.at(name)) unused.push_back(each);
  }
  return unused;
}

/// Whether "window", "sinks" or "topk" is a part of a Union or the whole selection.
inline bool has_part(Sparsity sparse, std::string_view part) {
  std::string_view left = name_of(sparse);
  while (!left.empty()) {
    const size_t end = std::min(left.find('+'), left.size());
    if (left.substr(0, end) == part) return true;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

namespace detail {

/// The largest order of a simplicial layer's heads.
inline int64_t most_axes(const LanguageModelOptions& options) {
  const auto& orders = options.orders;
  return orders.empty() ? options.order : *std::max_element(orders.begin(), orders.end());
}

/// Throws InputError with one line for options of a model that do not fit. The layers check theirs.
void check_model(const LanguageModelOptions& options);

}  // namespace detail
}  // namespace nsimplex
