// Declares --confidence and --limits of `causal fit`.

#pragma once

#include <nsimplex/causal.h>

#include <optional>

#include "cli/causal_fit_report.h"
#include "cli/run_folder.h"

/// `nsimplex causal fit --confidence` and `--limits`: how sure the edges of a graph are, and what the
/// table cannot tell.
namespace nsimplex::cli {

/// Adds --confidence, --min-frequency, --resampling and --limits.
void add_certainty_options(CLI::App& command, FitOptions& options);

/// InputError for options that do not go together, before a long fit.
void check_certainty(const FitOptions& options);

/// With --min-frequency, removes the edges of a fit that fewer samples have, and returns what the
/// samples say. A signal during the samples leaves the graph of all rows, and the fit is then
/// interrupted. `fitted` are the options of the fit.
std::optional<EdgeConfidence> remove_rare_edges(const FitOptions& options,
                                                const CausalFitOptions& fitted,
                                                const CausalTable& table, CausalFit& fit);

/// Measures what the options ask for, if anything: lines for the log, tables for a terminal, and
/// confidence.csv in the run folder. `known` is what remove_rare_edges() returned.
void measure_certainty(const FitOptions& options, const CausalFitOptions& fitted,
                       const CausalTable& table, const CausalFit& fit,
                       const std::optional<EdgeConfidence>& known, RunLog& log);

}  // namespace nsimplex::cli
