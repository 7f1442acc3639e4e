#include "cli/suggestions.h"

#include <algorithm>
#include <numeric>

namespace nsimplex::cli {
namespace {

// Levenshtein's distance with one row of state.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substitution = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitution, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// The candidate that `word` was probably meant to be; empty when nothing is near. Words far longer
// than any name are not looked at: each would cost time that grows with its length.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 100;
  std::string best;
  if (word.size() > kLongest) return best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace

CLI::App& typed_command(CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : typed_command(*parsed.back());
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::vector<std::string> option_names(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

std::string with_suggestion(std::string message, const std::string& word,
                            const std::vector<std::string>& candidates, size_t skipped) {
  const std::string suggestion = nearest(word, candidates);
  if (!suggestion.empty()) message += "; did you mean " + suggestion.substr(skipped) + "?";
  return message;
}

}  // namespace nsimplex::cli
