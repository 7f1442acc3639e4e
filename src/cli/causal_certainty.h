#pragma once

#include <nsimplex/causal.h>

#include "cli/causal_fit_report.h"
#include "cli/run_folder.h"

/// `nsimplex causal fit --confidence` and `--limits`: how sure the edges of a graph are, and what the
/// table cannot tell.
namespace nsimplex::cli {

/// Adds --confidence, --resampling and --limits.
void add_certainty_options(CLI::App& command, FitOptions& options);

/// InputError for options that do not go together, before a long fit.
void check_certainty(const FitOptions& options);

/// Measures what the options ask for, if anything: lines for the log, tables for a terminal, and
/// confidence.csv in the run folder. `fitted` are the options of the fit.
void measure_certainty(const FitOptions& options, const CausalFitOptions& fitted,
                       const CausalTable& table, const CausalFit& fit, RunLog& log);

}  // namespace nsimplex::cli
