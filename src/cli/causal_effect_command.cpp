// The command `causal effect`: total effects of columns on one column of a table.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nsimplex/causal_effects.h>

#include <algorithm>
#include <cmath>

#include "causal/tensors.h"
#include "cli/causal_table.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

struct EffectOptions : CommonOptions {
  CausalTableOptions table;
  std::string graph, effect;
  std::vector<std::string> causes;
  double level = 0.95;
};

struct NamedEffect {
  int64_t cause;
  CausalEffect found;
};

std::vector<std::string> names_at(const std::vector<int64_t>& columns,
                                  const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const int64_t column : columns) found.push_back(names[static_cast<size_t>(column)]);
  return found;
}

// The causes that are asked for, or all other columns.
std::vector<int64_t> causes_asked(const EffectOptions& o, const std::vector<std::string>& names,
                                  int64_t effect) {
  std::vector<int64_t> causes;
  for (const std::string& list : o.causes) {
    for (const std::string& name : split_names(list)) {
      causes.push_back(find_column("--cause", unquoted(name), names));
      if (causes.back() == effect) {
        throw InputError(
            fmt::format("--cause: expected another column than --effect, got {} for "
                        "both",
                        quoted_name(names[static_cast<size_t>(effect)])));
      }
    }
  }
  for (int64_t column = 0; o.causes.empty() && column < std::ssize(names); ++column) {
    if (column != effect) causes.push_back(column);
  }
  return causes;
}

Json line_of(const NamedEffect& each, int64_t effect, const std::vector<std::string>& names) {
  const CausalEffect& found = each.found;
  Json possible = Json::array();
  for (const PossibleEffect& own : found.possible) {
    possible.push_back({{"causes", names_at(own.causes, names)},
                        {"adjustment", names_at(own.adjustment, names)},
                        {"effect", own.effect},
                        {"error", own.error},
                        {"low", own.low},
                        {"high", own.high}});
  }
  return {{"cause", names[static_cast<size_t>(each.cause)]},
          {"affected", names[static_cast<size_t>(effect)]},
          {"effect", found.effect},
          {"low", found.low},
          {"high", found.high},
          {"least", found.least},
          {"most", found.most},
          {"possible", std::move(possible)}};
}

std::string effects_text(const std::vector<NamedEffect>& all, int64_t effect, double level,
                         const std::vector<std::string>& names) {
  Table table({"cause", fmt::format("effect on {}", printable(names[static_cast<size_t>(effect)])),
               fmt::format("{:.4g} % interval", 100 * level), "possible", "adjusted for"});
  for (const NamedEffect& each : all) {
    const CausalEffect& found = each.found;
    const bool open = found.possible.size() > 1;
    const auto beside = names_at(found.possible.front().adjustment, names);
    table.add({printable(names[static_cast<size_t>(each.cause)]),
               fmt::format("{:.4g}", found.effect),
               fmt::format("{:.4g} to {:.4g}", found.low, found.high),
               open ? fmt::format("{:.4g} to {:.4g}", found.least, found.most) : "-",
               open             ? "depends on the direction"
               : beside.empty() ? "-"
                                : printable(fmt::format("{}", fmt::join(beside, ", ")))});
  }
  return table.text();
}

int run_effect(const EffectOptions& o) {
  require_plain_rows("causal effect", o.table);
  const CausalTable table = read_causal_table(o.table);
  Json read{{"table", to_json(table.reading)}};
  const causal::Matrix graph = table.graph(o.graph, read["graph"]);
  const int64_t effect = find_column("--effect", unquoted(o.effect), table.names);
  std::vector<NamedEffect> all;
  try {
    for (const int64_t cause : causes_asked(o, table.names, effect)) {
      all.push_back(
          {cause, causal_effect(causal::to_tensor(table.observations.values),
                                causal::to_tensor(graph), cause, effect, {.level = o.level})});
    }
  } catch (const c10::ValueError& error) {
    throw InputError(command_line_message(error.what_without_backtrace()));
  }
  std::ranges::stable_sort(all, std::greater{},
                           [](const NamedEffect& each) { return std::abs(each.found.effect); });
  if (o.causes.empty()) {
    std::erase_if(all, [](const NamedEffect& each) {
      return std::ranges::all_of(each.found.possible, [](const PossibleEffect& own) {
        return own.effect == 0 && own.error == 0;
      });
    });
  }
  RunLog log(o);
  log.write("effects", {{"task", "effect"},
                        {"read", read},
                        {"table", o.table.path},
                        {"graph", o.graph},
                        {"affected", table.names[static_cast<size_t>(effect)]},
                        {"level", o.level},
                        {"observations", table.observations.values.rows()},
                        {"effects", all.size()}});
  for (const NamedEffect& each : all) {
    log.write("effect", line_of(each, effect, table.names));
  }
  if (o.json) return 0;
  print(all.empty() ? fmt::format("no column has a directed path to {}\n",
                                  printable(table.names[static_cast<size_t>(effect)]))
                    : effects_text(all, effect, o.level, table.names));
  return 0;
}

}  // namespace

void add_causal_effect(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<EffectOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "effect",
       .summary = "Total effects of columns on a column, by a causal graph of the table",
       .examples = "nsimplex causal effect table.csv --graph runs/graph/graph.csv --effect growth\n"
                   "nsimplex causal effect table.csv --graph own.tsv --cause dose --effect growth",
       .files = {}},
      options, run_effect);
  add_table_options(command, options->table);
  command
      .add_option("--graph", options->graph,
                  "The graph: a matrix (csv, tsv, npy) or a list of edges; edges in both "
                  "directions are of open direction")
      ->type_name("FILE")
      ->required()
      ->group("Effect");
  command.add_option("--effect", options->effect, "The column that is affected")
      ->type_name("NAME")
      ->required()
      ->group("Effect");
  command
      .add_option("--cause", options->causes,
                  "Columns whose effects to show; default: all with a directed path")
      ->type_name("NAME,...")
      ->group("Effect");
  option_adder(command, "Effect")("--level", options->level, "Probability of the intervals")
      ->check(within(0.0, 1.0));
}

}  // namespace nsimplex::cli
