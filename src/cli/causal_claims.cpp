#include "cli/causal_claims.h"

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/statements.h"

namespace nsimplex::cli {

void add_angle_options(CLI::App& command, AngleOptions& o) {
  const auto add = option_adder(command, "Angles");
  add("--planes", o.planes, "Coordinates of a point, pairs of channels of a query")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 16));
  add("--scale", o.scale, "Radians of a coordinate of 1")->check(CLI::PositiveNumber);
  command
      .add_flag("--by-dimension", o.by_dimension,
                "--scale times the root of the planes, which keeps the angles' size")
      ->group("Angles");
}

void report_claims(RunLog& log, const CommonOptions& options, const std::string& task,
                   const std::vector<causal::Claim>& claims) {
  Table table({"source", "statement", "draws", "violations", "median slack", "holds"});
  for (const causal::Claim& claim : claims) {
    analysis::Statement statement(claim.text);
    for (const double slack : claim.slacks) statement.add(causal::Claim::holds(slack), slack);
    Json line{{"task", task}, {"source", claim.source}};
    line.update(to_json(statement));
    line["share"] = statement.share();
    log.write(task, line);
    table.add({claim.source, claim.text, fmt::format("{}", statement.draws()),
               fmt::format("{}", statement.violations()),
               fmt::format("{:.3g}", statement.median_slack()), statement.holds() ? "yes" : "NO"});
  }
  if (!options.json) print(table.text());
}

}  // namespace nsimplex::cli
