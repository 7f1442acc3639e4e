#include "cli/statements.h"

#include <fmt/format.h>

#include "cli/output.h"

namespace nsimplex::cli {

Json to_json(const analysis::Statement& statement) {
  return {{"statement", statement.name()},
          {"draws", statement.draws()},
          {"holds", statement.holds()},
          {"violations", statement.violations()},
          {"median_slack", statement.median_slack()}};
}

std::string statements_table(const std::vector<analysis::Statement>& statements) {
  Table table({"statement", "draws", "violations", "median slack", "holds"});
  for (const analysis::Statement& each : statements) {
    table.add({each.name(), fmt::format("{}", each.draws()), fmt::format("{}", each.violations()),
               fmt::format("{:.3g}", each.median_slack()), each.holds() ? "yes" : "NO"});
  }
  return table.text();
}

}  // namespace nsimplex::cli
