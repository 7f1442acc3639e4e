// The command `causal fit`: a causal graph learned from a table, turned by noises if asked.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nsimplex/causal.h>

#include "causal/option_names.h"
#include "causal/structure/fit_arguments.h"
#include "causal/structure/fit_watch.h"
#include "causal/structure/noise_input.h"
#include "causal/tables/few_rows.h"
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
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

using causal::Matrix;

CausalFitOptions options_of(const FitOptions& o, const CausalTable& table) {
  CausalFitOptions options = o.fit;
  options.seed = static_cast<int64_t>(o.seed);
  for (const std::string& name : table.names) options.names.push_back(quoted_name(name));
  options.constraints = constraints_of(o.constraints, table.names);
  set_rows(options, table.rows, o.table.rows.soft);
  if (o.table.missing == MissingValues::likelihood) options.missing = o.table.missing;
  options.orient_by_noise = o.orient_by_noise;
  return options;
}

// Before a table is read.
void check_estimator(const FitOptions& o) {
  try {
    causal::check_estimator_options(o.fit);
  } catch (const InputError& error) {
    throw InputError(command_line_message(error.what()));
  }
}

void check_orientation(const FitOptions& o) {
  if (!o.orient_by_noise) return;
  const CausalRowFlags& rows = o.table.rows;
  const auto refused =
      causal::refused_by_noise({.nonlinear = o.fit.nonlinear,
                                .groups = !rows.groups.empty(),
                                .targets = !rows.targets.empty(),
                                .kinds = !rows.kinds.empty(),
                                .likelihood = o.table.missing == MissingValues::likelihood});
  if (!refused) return;
  // Only --kind has another name than the argument, since each gives one.
  const std::string option = refused->argument == "kinds" ? "kind" : refused->argument;
  throw InputError(fmt::format("--orient-by-noise: expected {}, got --{}{}{}", refused->expected,
                               option, refused->value.empty() ? "" : " ", refused->value));
}

void warn_of_few_rows(const CausalTable& table) {
  std::vector<std::string> shown;
  for (const std::string& name : table.names) shown.push_back(quoted_name(name));
  const Matrix& values = table.observations.values;
  const std::string warning =
      causal::few_rows_warning({values.data(), values.rows(), values.cols()}, shown);
  if (!warning.empty()) log_warning_once("few rows", warning);
}

CausalFit fit(const FitOptions& o, CausalFitOptions options, const CausalTable& table) {
  ProgressBar bar("fit", causal::steps_of(options, table.observations.values.rows()), o.json);
  int64_t done = 0;
  const bool keeps = causal::keeps_graph(options.estimator);
  if (keeps) options.stop = interrupt::requested;
  options.checkpoint = [&, keeps] {
    if (done == 0) warn_of_few_rows(table);  // not of a fit that is refused
    if (!keeps) interrupt::check();
    bar.update(done++);
  };
  try {
    CausalFit found = causal_fit(causal::to_tensor(table.observations.values), options);
    warn_of_few_rows(table);  // of a fit of one step
    return found;
  } catch (const c10::ValueError& error) {
    throw InputError(command_line_message(error.what_without_backtrace()));
  }
}

void report_choices(const FitOptions& o, const CausalFit& fit, RunLog& log) {
  const std::vector<std::string>& found = fit.choices.findings;
  if (found.empty()) return;
  log.write("causal_choices", {{"findings", found}});
  if (o.json) return;
  for (const std::string& sentence : found) print(sentence + "\n");
}

void report_turned(const FitOptions& o, const NoiseDirections& found, const CausalTable& table,
                   RunLog& log) {
  const std::vector<std::string> turned = edge_names(found.turned, table.names);
  Json said = Json::array();  // or it is one of the choices of auto
  if (o.orient_by_noise) said.push_back(found.finding);
  log.write(
      "noise_directions",
      {{"p_value", found.p_value}, {"gain", found.gain}, {"turned", turned}, {"findings", said}});
  if (o.json) return;
  for (const std::string& edge : turned) print(fmt::format("turned {}\n", printable(edge)));
  if (o.orient_by_noise) print(found.finding + "\n");
}

// Says on standard error what the table has that the fit does not assume.
void warn_of_table(const CausalTable& table, const CausalFit& fit, CausalFitOptions options,
                   RunLog& log) {
  if (fit.interrupted) return;
  options.names.clear();
  for (const std::string& name : table.names) options.names.push_back(quoted_name(name));
  const std::vector<std::string> found =
      causal_warnings(causal::to_tensor(table.observations.values), fit, options);
  for (const std::string& sentence : found) log_warning(sentence);
  log.write("causal_warnings", {{"findings", found}});
}

int run_fit(const FitOptions& o) {
  check_certainty(o);
  check_orientation(o);
  check_estimator(o);
  const CausalTable table = read_causal_table(o.table);
  Json read{{"table", to_json(table.reading)}};
  std::optional<Matrix> truth;  // reports a fault of the truth before a long fit
  if (!o.truth.empty()) truth = table.graph(o.truth, read["truth"]);
  CausalFitOptions options = options_of(o, table);
  if (causal::keeps_graph(options.estimator)) interrupt::defer();
  CausalFit result = fit(o, options, table);
  options = causal::settled_options(options, result.choices);
  const std::optional<EdgeConfidence> sure = remove_rare_edges(o, options, table, result);
  const FitReport report(o, table, result, std::move(truth), std::move(read));
  RunLog log(o);
  log.write("fit", report.json());
  for (const FoundEdge& edge : report.edges()) {
    log.write("edge", {{"cause", table.names[edge.cause]},
                       {"effect", table.names[edge.effect]},
                       {"weight", edge.weight},
                       {"score", edge.score}});
  }
  if (!o.json) print(report.text());
  if (!o.json && o.confidence == 0) print("\n" + report.edges_text());
  warn_of_table(table, result, options, log);
  report_choices(o, result, log);
  if (result.noise) report_turned(o, *result.noise, table, log);
  if (!o.out.empty()) {
    write_graph(o.out, "graph", {table.names, report.graph()});
    io::write_text(o.out + "/scores.csv",
                   causal::table_csv(table.names, causal::view_matrix(result.scores)));
    if (report.truth()) write_graph(o.out, "truth", {table.names, *report.truth()});
  }
  if (!result.interrupted) measure_certainty(o, options, table, result, sure, log);
  if (!o.out.empty() && !o.json) {
    print(fmt::format("graph: {}/graph.csv, .tsv, .graphml, .dot, .gml\n", o.out));
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
                   "nsimplex causal fit table.csv --standardise --orient-by-noise\n"
                   "nsimplex causal fit table.csv --confidence 100 --limits --out runs/sure",
       .files = {"graph.csv", "graph.tsv", "graph.graphml", "graph.dot", "graph.gml", "scores.csv",
                 "confidence.csv", "truth.csv", "truth.tsv", "truth.graphml", "truth.dot",
                 "truth.gml"}},
      options, run_fit);
  add_table_options(command, options->table);
  const auto add = option_adder(command, "Estimator");
#define NSIMPLEX_FLAG(type, name, initial, flag, text, ...) add(flag, options->fit.name, text);
  NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_FLAG)
#undef NSIMPLEX_FLAG
  add("--orient-by-noise", options->orient_by_noise,
      "Reverse edges while non-Gaussian noise supports this");
  add_constraint_options(command, options->constraints);
  add_certainty_options(command, *options);
  command
      .add_option("--truth", options->truth,
                  "Known graph to compare with: adjacency matrix (csv, tsv, npy) or edge list")
      ->type_name("FILE");
}

}  // namespace nsimplex::cli
