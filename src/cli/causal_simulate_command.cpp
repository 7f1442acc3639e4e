// The command `causal simulate`: a random causal graph and a table drawn from it.

#include <fmt/format.h>

#include <array>

#include "causal/graph/graph_metrics.h"
#include "causal/graph/weighted_graph.h"
#include "causal/option_names.h"
#include "causal/synthetic/structural_model.h"
#include "cli/causal_table.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "cli/text_flags.h"
#include "io/npy.h"
#include "io/output_file.h"
#include "io/text.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using causal::Matrix;
using causal::TableView;

struct SimulateOptions : CommonOptions {
  std::string graph = "er", dag, mechanism = "linear", noise = "gaussian", format = "csv";
  int64_t nodes = 10, degree = 2, rows = 1000;
  std::vector<double> weights{0.5, 2.0};
  bool own_variances = false;
  int64_t sample_seed = 0;
  std::vector<std::string> interventions;
};

// Parses "COLUMN:VALUE". A column without a name is given by its number, x3 or 3.
Intervention parse_intervention(const std::string& text, const std::vector<std::string>& names) {
  const size_t colon = text.rfind(':');
  const std::string column = unquoted(text.substr(0, colon));
  const auto value =
      colon == std::string::npos ? std::nullopt : io::parse_number(text.substr(colon + 1));
  if (!value) {
    throw InputError(fmt::format("--do: expected COLUMN:VALUE, got {}", quoted_name(text)));
  }
  return {find_column("--do", column, names), *value};
}

int run_simulate(const SimulateOptions& o) {
  if (o.out.empty()) throw InputError("--out: expected a folder for the table and its graph");
  CausalSimulationOptions options;
  options.graph = parse_name<CausalGraph>("--graph", o.graph);
  options.mechanism = parse_name<CausalMechanism>("--mechanism", o.mechanism);
  options.noise = parse_name<CausalNoise>("--noise", o.noise);
  options.nodes = o.nodes;
  options.degree = o.degree;
  options.equal_variances = !o.own_variances;
  options.weight_low = o.weights[0];
  options.weight_high = o.weights[1];
  options.seed = static_cast<int64_t>(o.seed);

  std::vector<std::string> names;
  std::optional<Matrix> given;
  io::TextReading reading;
  if (!o.dag.empty()) {
    causal::GraphFile file = causal::read_graph(o.dag);
    say_reading(o.dag, size_of_graph(file), file.reading);
    reading = file.reading;
    given = causal::graph_over(file, {}, file.nodes, o.dag);
    names = std::move(file.names);
  }
  if (names.empty()) names = column_names(given ? given->rows() : o.nodes);
  std::vector<Intervention> interventions;
  for (const std::string& list : o.interventions) {
    for (const std::string& each : split_names(list)) {
      interventions.push_back(parse_intervention(each, names));
    }
  }
  const causal::StructuralModel model =
      given ? causal::StructuralModel(*given, options) : causal::StructuralModel(options);
  const Matrix table = model.sample(o.rows, o.sample_seed, interventions);

  RunLog log(o);
  const TableView view(table.data(), table.rows(), table.cols());
  const std::string path = fmt::format("{}/table.{}", o.out, o.format);
  if (o.format == "npy") {
    const std::array<int64_t, 2> shape{table.rows(), table.cols()};
    io::write_text(path, io::npy_bytes({table.data(), static_cast<size_t>(table.size())}, shape));
  } else {
    io::write_text(path, causal::table_csv(names, view));
  }
  write_graph(o.out, "truth", {names, model.weights()});
  const auto edges = (model.weights().array() != 0.0).count();
  const double variances = causal::sortability(causal::column_variances(view), model.weights());
  const double r2 = causal::sortability(causal::column_r2(view), model.weights());
  log.write("simulate", {{"task", "simulate"},
                         {"read", {{"dag", to_json(reading)}}},
                         {"nodes", table.cols()},
                         {"edges", edges},
                         {"observations", table.rows()},
                         {"seed", o.seed},
                         {"varsortability", variances},
                         {"r2_sortability", r2},
                         {"table", path},
                         {"truth", o.out + "/truth.csv"}});
  if (o.json) return 0;
  print(
      fmt::format("{} observations of {} columns, {} edges: {}\n"
                  "varsortability {:.3f}, R2-sortability {:.3f} (0.5: scales tell nothing)\n"
                  "truth: {}/truth.csv, .tsv, .graphml, .dot, .gml\n",
                  table.rows(), table.cols(), edges, path, variances, r2, o.out));
  return 0;
}

}  // namespace

void add_causal_simulate(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "simulate",
       .summary = "Generate a random causal graph and a table of observations",
       .examples =
           "nsimplex causal simulate --nodes 20 --out runs/er2\n"
           "nsimplex causal simulate --graph sf --mechanism mlp --rows 5000 --out runs/mlp\n"
           "nsimplex causal simulate --nodes 20 --do x3:2.5 --out runs/do",
       .files = {"table.csv", "table.npy", "truth.csv", "truth.tsv", "truth.graphml", "truth.dot",
                 "truth.gml"}},
      options, run_simulate);
  const auto add = option_adder(command, "Model");
  add("--graph", options->graph, "Random DAG: er (Erdos-Renyi), sf (Barabasi-Albert)")
      ->check(one_of(names_of<CausalGraph>()));
  command
      .add_option("--dag", options->dag,
                  "A graph instead of a random one: a matrix or edge list, whose weights are drawn "
                  "anew")
      ->type_name("FILE")
      ->group("Model");
  add("--nodes", options->nodes, "Columns")->check(within(int64_t{1}, int64_t{1} << 16));
  add("--degree", options->degree, "Edges per node")->check(within(int64_t{0}, int64_t{1} << 16));
  add("--mechanism", options->mechanism,
      "Mechanism: linear, mlp (100 sigmoid units per column) or gp (a sum of Gaussian processes)")
      ->check(one_of(names_of<CausalMechanism>()));
  add("--noise", options->noise, "Noise of mean 0: gaussian, exponential or gumbel")
      ->check(one_of(names_of<CausalNoise>()));
  add("--weights", options->weights, "Smallest and largest |weight| of an edge")
      ->delimiter(',')
      ->expected(2);
  command
      .add_flag("--own-variances", options->own_variances,
                "Draw noises with standard deviations 0.5 to 2 instead of 1 for all")
      ->group("Model");
  const auto add_table = option_adder(command, "Table");
  add_table("--rows", options->rows, "Rows: observations of all columns")
      ->check(within(int64_t{1}, int64_t{1} << 32));
  add_table("--sample-seed", options->sample_seed,
            "Seed of the observations only, together with --seed");
  command
      .add_option("--do", options->interventions,
                  "Set columns to a value in every row: do(x_column = value)")
      ->type_name("COLUMN:VALUE,...")
      ->group("Table");
  add_table("--format", options->format, "Format of the table: csv or npy")
      ->check(one_of({"csv", "npy"}));
}

}  // namespace nsimplex::cli
