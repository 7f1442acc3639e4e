#include "cli/causal_constraints.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/causal_files.h"
#include "cli/text_flags.h"
#include "io/cells.h"
#include "io/file_bytes.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

bool is_name(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The ways to read "CAUSE:EFFECT" with two names, which may hold colons.
std::vector<CausalEdge> named_edges(const std::string& option, const std::string& text,
                                    const std::vector<std::string>& names) {
  std::vector<CausalEdge> edges;
  for (size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1)) {
    const std::string cause = unquoted(text.substr(0, at)), effect = unquoted(text.substr(at + 1));
    if (!is_name(cause, names) || !is_name(effect, names)) continue;
    edges.push_back({find_column(option, cause, names), find_column(option, effect, names)});
  }
  return edges;
}

// One "CAUSE:EFFECT", by names, in quotes or not, or by numbers.
CausalEdge parse_edge(const std::string& option, const std::string& text,
                      const std::vector<std::string>& names) {
  const std::vector<CausalEdge> edges = named_edges(option, text, names);
  if (edges.size() > 1) {
    throw InputError(
        fmt::format("{}: {} can be read as two edges; write names that hold colons in "
                    "double quotes",
                    option, quoted_name(text)));
  }
  if (edges.size() == 1) return edges[0];
  const std::vector<std::string> ends = split_names(text, ':');
  if (ends.size() < 2) {
    throw InputError(
        fmt::format("{}: expected CAUSE:EFFECT, got {} (write names that hold commas in "
                    "double quotes)",
                    option, quoted_name(text)));
  }
  const std::string cause = unquoted(ends[0]);
  const std::string effect = unquoted(text.substr(ends[0].size() + 1));
  return {find_column(option, cause, names), find_column(option, effect, names)};
}

// Edges between commas; names in double quotes, and names of a single edge, may hold commas.
std::vector<CausalEdge> parse_edges(const std::string& option,
                                    const std::vector<std::string>& lists,
                                    const std::vector<std::string>& names) {
  std::vector<CausalEdge> edges;
  for (const std::string& list : lists) {
    if (named_edges(option, list, names).size() == 1) {
      edges.push_back(parse_edge(option, list, names));
      continue;
    }
    for (const std::string& edge : split_names(list)) {
      edges.push_back(parse_edge(option, edge, names));
    }
  }
  return edges;
}

// Lines of columns, the first tier first.
std::vector<int64_t> read_tiers(const std::string& path, const std::vector<std::string>& names) {
  const io::FileBytes file(path);
  const io::Source source{path, file.bytes()};
  const io::Cells cells(source, {.detect_blanks = false});
  std::vector<int64_t> tiers(names.size(), -1);
  for (int64_t tier = 0; tier < cells.rows(); ++tier) {
    for (const std::string_view cell : cells.row(tier)) {
      if (cell.empty()) continue;
      const int64_t column = find_column("--tiers", std::string(cell), names);
      if (tiers[column] >= 0) {
        throw InputError(fmt::format("--tiers: {} stands in two places, the second in line {}",
                                     quoted_name(cell), cells.line(tier)));
      }
      tiers[column] = tier;
    }
  }
  const auto without = std::find(tiers.begin(), tiers.end(), -1);
  if (without != tiers.end()) {
    throw InputError(fmt::format("--tiers: {} is in no line of {}",
                                 quoted_name(names[without - tiers.begin()]), path));
  }
  return tiers;
}

}  // namespace

void add_constraint_options(CLI::App& command, ConstraintFlags& flags) {
  const std::string group = "What is known";
  command.add_option("--forbid", flags.forbidden, "Edges that are not there")
      ->type_name("CAUSE:EFFECT,...")
      ->group(group);
  command.add_option("--require", flags.required, "Edges that are there")
      ->type_name("CAUSE:EFFECT,...")
      ->group(group);
  command
      .add_option("--tiers", flags.tiers,
                  "Lines of columns: nothing of a later line causes anything of an earlier one")
      ->type_name("FILE")
      ->group(group);
}

EdgeConstraints constraints_of(const ConstraintFlags& flags,
                               const std::vector<std::string>& names) {
  EdgeConstraints constraints;
  constraints.forbidden = parse_edges("--forbid", flags.forbidden, names);
  constraints.required = parse_edges("--require", flags.required, names);
  if (!flags.tiers.empty()) constraints.tiers = read_tiers(flags.tiers, names);
  return constraints;
}

}  // namespace nsimplex::cli
