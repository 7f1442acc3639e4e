#include "cli/commands.h"
#include "cli/graph_expressivity.h"

namespace nsimplex::cli {
namespace {

void add_graph_expressivity(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<ExpressivityOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "expressivity",
       .summary = "How many pairs of graphs are told apart on all tuples of an order",
       .examples = "nsimplex graph expressivity brec/basic.npy brec/str.npy --order 3 --exact\n"
                   "nsimplex graph expressivity sr251256.g6 --order 3 --exact --json"},
      options, run_expressivity);
  command.add_option("FILE", options->files, "Graphs in graph6: one a line, or strings of an npy")
      ->required()
      ->type_name("");
  command.add_option("--order", options->order, "2: all pairs of nodes; 3: all triples")
      ->check(CLI::Range(2, 3))
      ->capture_default_str();
  command
      .add_flag("--exact", options->exact, "By colour refinement: order 2 as 1-WL, order 3 as 3-WL")
      ->required();
  command
      .add_option(
          "--pairs", options->pairs,
          "Which graphs of a file are compared: consecutive, all (each with each), or auto: "
          "consecutive in an npy, all otherwise")
      ->check(CLI::IsMember({"auto", "consecutive", "all"}))
      ->capture_default_str();
}

}  // namespace

void add_graph_command(CLI::App& parent, Session& session) {
  CLI::App& group =
      add_group(parent, "graph", "Equivariant layers on sets, graphs and hypergraphs");
  add_graph_expressivity(group, session);
}

}  // namespace nsimplex::cli
