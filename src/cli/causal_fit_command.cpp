#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nsimplex/causal.h>

#include "causal/option_names.h"
#include "causal/structure/cape_structure.h"
#include "causal/structure/parent_search.h"
#include "causal/tensors.h"
#include "cli/causal_certainty.h"
#include "cli/causal_fit_report.h"
#include "cli/causal_table.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "io/output_file.h"
#include "support/error.h"
#include "support/log.h"

namespace nsimplex::cli {
namespace {

using causal::Matrix;

// How often a fit calls its checkpoint, if that is known: `paper` and `paper-lowrank` go through at
// most this number of batches. The others stop at convergence.
int64_t steps_of(const CausalFitOptions& options, int64_t rows) {
  const bool in_batches = options.estimator == StructureEstimator::paper ||
                          options.estimator == StructureEstimator::paper_lowrank;
  if (!in_batches) return 0;
  return causal::kPaperLoops * causal::kPaperEpochs * causal::paper_batches(rows);
}

// Whether the estimator has a graph that an interruption keeps.
bool keeps_graph(const FitOptions& o) {
  return o.estimator == name_of(StructureEstimator::order) ||
         o.estimator == name_of(StructureEstimator::spectral);
}

CausalFitOptions options_of(const FitOptions& o, const CausalTable& table) {
  CausalFitOptions options;
  options.estimator = parse_name<StructureEstimator>("--estimator", o.estimator);
  options.nonlinear = o.nonlinear;
  options.standardise = o.standardise;
  options.threshold = o.threshold;
  options.sparsity = o.sparsity;
  options.rank = o.rank;
  options.sample = o.sample;
  options.seed = static_cast<int64_t>(o.seed);
  options.constraints = constraints_of(o.constraints, table.names);
  set_rows(options, table.rows, o.table.rows.soft);
  if (o.table.missing == name_of(MissingValues::likelihood)) {
    options.missing = MissingValues::likelihood;
  }
  return options;
}

CausalFit fit(const FitOptions& o, CausalFitOptions options, const CausalTable& table) {
  ProgressBar bar("fit", steps_of(options, table.observations.values.rows()), o.json);
  int64_t done = 0;
  if (keeps_graph(o)) options.stop = interrupt::requested;
  options.checkpoint = [&] {
    if (!keeps_graph(o)) interrupt::check();
    bar.update(done++);
  };
  try {
    return causal_fit(causal::to_tensor(table.observations.values), options);
  } catch (const c10::ValueError& error) {
    throw InputError(command_line_message(error.what_without_backtrace(), table.names));
  }
}

int run_fit(const FitOptions& o) {
  check_certainty(o);
  const CausalTable table = read_causal_table(o.table);
  Json read{{"table", to_json(table.reading)}};
  std::optional<Matrix> truth;  // reports a fault of the truth before a long fit
  if (!o.truth.empty()) truth = table.graph(o.truth, read["truth"]);
  const Matrix& values = table.observations.values;
  if (keeps_graph(o)) interrupt::defer();
  const std::string warning = causal::few_rows_warning(values.rows(), values.cols());
  if (!warning.empty()) log_warning_once("few rows", warning);
  const CausalFitOptions options = options_of(o, table);
  const CausalFit result = fit(o, options, table);
  const FitReport report(o, table, result, std::move(truth), std::move(read));
  RunLog log(o);
  log.write("fit", report.json());
  if (!o.json) print(report.text());
  if (!o.out.empty()) {
    write_graph(o.out, "graph", {table.names, report.graph()});
    io::write_text(o.out + "/scores.csv",
                   causal::table_csv(table.names, causal::view_matrix(result.scores)));
    if (report.truth()) write_graph(o.out, "truth", {table.names, *report.truth()});
  }
  if (!result.interrupted) measure_certainty(o, options, table, result, log);
  if (!o.out.empty() && !o.json) {
    print(fmt::format("graph: {}/graph.csv, .tsv, .graphml, .dot\n", o.out));
  }
  return 0;  // 130 after an interruption
}

}  // namespace

void add_causal_fit(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<FitOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "fit",
       .summary = "Learn a directed acyclic causal graph from a table of observations",
       .examples = "nsimplex causal fit table.csv --out runs/graph\n"
                   "nsimplex causal fit table.csv --truth truth.csv --standardise --json\n"
                   "nsimplex causal fit cells.csv --missing means --drop --forbid Mek:Raf\n"
                   "nsimplex causal fit trial.csv --groups batch --targets set --standardise\n"
                   "nsimplex causal fit patients.csv --kind sick=binary --kind visits=count\n"
                   "nsimplex causal fit genes.csv --screen 2000 --drop --standardise\n"
                   "nsimplex causal fit table.csv --confidence 100 --limits --out runs/sure",
       .files = {"graph.csv", "graph.tsv", "graph.graphml", "graph.dot", "scores.csv",
                 "confidence.csv", "truth.csv", "truth.tsv", "truth.graphml", "truth.dot"}},
      options, run_fit);
  add_table_options(command, options->table);
  const auto add = option_adder(command, "Estimator");
  const std::vector<std::string> names = names_of<StructureEstimator>();
  add("--estimator", options->estimator, fmt::format("Estimator: {}", fmt::join(names, ", ")))
      ->check(CLI::IsMember(names));
  const auto add_flag = [&](const char* name, bool& flag, const char* text) {
    command.add_flag(name, flag, text)->group("Estimator");
  };
  add_flag("--nonlinear", options->nonlinear, "Use nonlinear regressions (order, logdet)");
  add_flag("--standardise", options->standardise,
           "Divide columns by their standard deviation first, so that units do not matter");
  add_flag("--sample", options->sample,
           "For paper and paper-lowrank: sample latent variables instead of using their means");
  command
      .add_option("--threshold", options->threshold,
                  "Smallest |weight| of an edge; default: 0.2, none for order")
      ->group("Estimator");
  command
      .add_option("--sparsity", options->sparsity,
                  "Weight of the l1 norm; default: set by the estimator")
      ->group("Estimator");
  add("--rank", options->rank, "Columns of the factors of lowrank and paper-lowrank");
  add_constraint_options(command, options->constraints);
  add_certainty_options(command, *options);
  command
      .add_option("--truth", options->truth,
                  "Known graph to compare with: adjacency matrix (csv, tsv, npy) or edge list")
      ->type_name("FILE");
}

}  // namespace nsimplex::cli
