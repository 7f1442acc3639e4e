#pragma once

#include <vector>

#include "analysis/statement.h"
#include "cli/options.h"
#include "cli/run_folder.h"

/// Shared code of the commands that test statements of CAPE's paper.
namespace nsimplex::cli {

struct AngleOptions : CommonOptions {
  int64_t planes = 64;
  double scale = 0.78539816339744831;
  bool by_dimension = false;
};

/// Adds --planes, --scale and --by-dimension.
void add_angle_options(CLI::App& command, AngleOptions& options);

/// A test's own options, with planes, scale, by_dimension and seed from the command line.
template <class Test>
Test with_angles(Test test, const AngleOptions& options) {
  test.planes = options.planes;
  test.scale = options.scale;
  test.by_dimension = options.by_dimension;
  test.seed = options.seed;
  return test;
}

/// Writes one line per statement: task, source, statement, draws, holds, violations, median_slack,
/// share. Without --json it also prints a table of all.
void report_claims(RunLog& log, const CommonOptions& options, const std::string& task,
                   const std::vector<analysis::Statement>& claims);

}  // namespace nsimplex::cli
