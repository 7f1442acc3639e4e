// The command `causal check`: a test of somebody's own graph on a table.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nsimplex/causal.h>
#include <nsimplex/causal_effects.h>

#include "causal/tensors.h"
#include "cli/causal_table.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

struct CheckOptions : CommonOptions {
  CausalTableOptions table;
  std::string graph;
  GraphCheckOptions check;
};

Json line_of(const PairTest& test, const char* finding, const std::vector<std::string>& names) {
  std::vector<std::string> given;
  for (const int64_t column : test.given) given.push_back(names[static_cast<size_t>(column)]);
  return {{"finding", finding},
          {"first", names[static_cast<size_t>(test.first)]},
          {"second", names[static_cast<size_t>(test.second)]},
          {"given", given},
          {"correlation", test.correlation},
          {"p_value", test.p_value},
          {"adjusted", test.adjusted}};
}

std::string pair_tests_text(const std::vector<PairTest>& tests, const char* between,
                            const std::vector<std::string>& names) {
  constexpr size_t kShownTests = 40;
  Table table({"pair", "given", "correlation", "p", "adjusted p"});
  for (size_t k = 0; k < std::min(tests.size(), kShownTests); ++k) {
    const PairTest& test = tests[k];
    std::vector<std::string> given;
    for (const int64_t column : test.given) given.push_back(names[static_cast<size_t>(column)]);
    table.add({printable(names[static_cast<size_t>(test.first)]) + between +
                   printable(names[static_cast<size_t>(test.second)]),
               given.empty() ? "-" : printable(fmt::format("{}", fmt::join(given, ", "))),
               fmt::format("{:.3f}", test.correlation), fmt::format("{:.2g}", test.p_value),
               fmt::format("{:.2g}", test.adjusted)});
  }
  return table.text();
}

int run_check(const CheckOptions& o) {
  require_plain_rows("causal check", o.table);
  const CausalTable table = read_causal_table(o.table);
  Json read{{"table", to_json(table.reading)}};
  const causal::Matrix graph = table.graph(o.graph, read["graph"]);
  const at::Tensor values = causal::to_tensor(table.observations.values);
  GraphCheckOptions options = o.check;
  options.seed = static_cast<int64_t>(o.seed);
  options.names = table.names;
  ProgressBar bar("check", options.permutations, o.json);
  int64_t done = 0;
  options.checkpoint = [&] {
    interrupt::check();
    bar.update(done++);
  };
  const GraphCheck found = [&] {
    try {
      options.learned =
          causal_fit(values, {.standardise = true, .checkpoint = interrupt::check}).adjacency;
      return check_causal_graph(values, causal::to_tensor(graph), options);
    } catch (const c10::ValueError& error) {
      throw InputError(command_line_message(error.what_without_backtrace()));
    }
  }();
  bar.finish();
  RunLog log(o);
  log.write("graph_check",
            {{"task", "check"},
             {"read", read},
             {"table", o.table.path},
             {"graph", o.graph},
             {"independences", found.independences},
             {"violated", found.violated.size()},
             {"edges", found.edges},
             {"superfluous", found.superfluous.size()},
             {"violations", found.violations},
             {"permuted_violations", found.permuted_violations.mean().item<double>()},
             {"bic", found.bic},
             {"learned_bic", found.learned_bic},
             {"permuted_bic", found.permuted_bic.mean().item<double>()},
             {"p_value", found.p_value},
             {"findings", found.findings}});
  for (const PairTest& test : found.violated) {
    log.write("graph_check_pair", line_of(test, "violated independence", table.names));
  }
  for (const PairTest& test : found.superfluous) {
    log.write("graph_check_pair", line_of(test, "superfluous edge", table.names));
  }
  if (o.json) return 0;
  for (const std::string& finding : found.findings) print(printable(finding) + "\n");
  if (!found.violated.empty()) {
    print("\nindependences that the table contradicts\n" +
          pair_tests_text(found.violated, ", ", table.names));
  }
  if (!found.superfluous.empty()) {
    print("\nedges that may be superfluous\n" +
          pair_tests_text(found.superfluous, " -> ", table.names));
  }
  return 0;
}

}  // namespace

void add_causal_check(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "check",
       .summary = "Test your own causal graph on a table",
       .examples = "nsimplex causal check table.csv --graph own.tsv\n"
                   "nsimplex causal check table.csv --graph own.csv --permutations 1000 --json",
       .files = {}},
      options, run_check);
  add_table_options(command, options->table);
  command
      .add_option("--graph", options->graph,
                  "The graph: a matrix (csv, tsv, npy) or a list of edges; edges in both "
                  "directions are of open direction")
      ->type_name("FILE")
      ->required()
      ->group("Check");
  const auto add = option_adder(command, "Check");
  add("--level", options->check.level, "Level of the tests")->check(within(0.0, 1.0));
  add("--permutations", options->check.permutations,
      "Number of graphs with permuted names to compare with")
      ->check(within(int64_t{1}, int64_t{100'000}));
}

}  // namespace nsimplex::cli
