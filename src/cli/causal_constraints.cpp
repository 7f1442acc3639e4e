#include "cli/causal_constraints.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/causal_files.h"
#include "io/cells.h"
#include "io/mapped_file.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

// "CAUSE:EFFECT". Names may hold colons: the first one that stands between two names counts.
CausalEdge parse_edge(const std::string& option, const std::string& text,
                      const std::vector<std::string>& names) {
  const auto is_name = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const size_t first = text.find(':');
  if (first == std::string::npos) {
    throw InputError(fmt::format("{}: expected CAUSE:EFFECT, got {}", option, io::quoted(text)));
  }
  size_t colon = first;
  for (size_t at = first; at != std::string::npos; at = text.find(':', at + 1)) {
    if (!is_name(text.substr(0, at)) || !is_name(text.substr(at + 1))) continue;
    colon = at;
    break;
  }
  return {find_column(option, text.substr(0, colon), names),
          find_column(option, text.substr(colon + 1), names)};
}

// Lines of columns, the first tier first.
std::vector<int64_t> read_tiers(const std::string& path, const std::vector<std::string>& names) {
  const io::MappedFile file(path);
  const io::Source source{path, file.bytes()};
  const io::Cells cells(source);
  std::vector<int64_t> tiers(names.size(), -1);
  for (int64_t tier = 0; tier < cells.rows(); ++tier) {
    for (const std::string_view cell : cells.row(tier)) {
      if (cell.empty()) continue;
      const int64_t column = find_column("--tiers", std::string(cell), names);
      if (tiers[column] >= 0) {
        throw InputError(fmt::format("--tiers: {} stands in two places, the second in line {}",
                                     io::quoted(cell), cells.line(tier)));
      }
      tiers[column] = tier;
    }
  }
  const auto without = std::find(tiers.begin(), tiers.end(), -1);
  if (without != tiers.end()) {
    throw InputError(fmt::format("--tiers: {} is in no line of {}",
                                 io::quoted(names[without - tiers.begin()]), path));
  }
  return tiers;
}

}  // namespace

void add_constraint_options(CLI::App& command, ConstraintFlags& flags) {
  const std::string group = "What is known";
  command.add_option("--forbid", flags.forbidden, "Edges that are not there")
      ->delimiter(',')
      ->type_name("CAUSE:EFFECT,...")
      ->group(group);
  command.add_option("--require", flags.required, "Edges that are there")
      ->delimiter(',')
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
  for (const std::string& edge : flags.forbidden) {
    constraints.forbidden.push_back(parse_edge("--forbid", edge, names));
  }
  for (const std::string& edge : flags.required) {
    constraints.required.push_back(parse_edge("--require", edge, names));
  }
  if (!flags.tiers.empty()) constraints.tiers = read_tiers(flags.tiers, names);
  return constraints;
}

}  // namespace nsimplex::cli
