// Reads tables and edge constraints for the causal commands, and writes their graphs.

#include "cli/causal_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "causal/graph/weighted_graph.h"
#include "causal/option_names.h"
#include "causal/tables/screen_columns.h"
#include "cli/text_flags.h"
#include "io/cells.h"
#include "io/input_file.h"
#include "io/output_file.h"
#include "io/table.h"
#include "io/text.h"
#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::cli {

std::string size_of_graph(const causal::GraphFile& graph) {
  const auto edges = std::ssize(graph.edges);
  return fmt::format("{} node{} and {} edge{}", graph.nodes, graph.nodes == 1 ? "" : "s", edges,
                     edges == 1 ? "" : "s");
}

int64_t find_column(const std::string& option, const std::string& column,
                    const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), column);
  if (found != names.end()) return found - names.begin();
  const std::optional<int64_t> number = io::parse_integer(column);
  if (number && *number >= 0 && *number < std::ssize(names)) return *number;
  throw InputError(fmt::format("{}: expected one of the {} columns, {} to {}, got {}", option,
                               names.size(), printable(names.front()), printable(names.back()),
                               quoted_name(column)));
}

void write_graph(const std::string& folder, const std::string& stem,
                 const causal::NamedGraph& graph) {
  const std::string path = fmt::format("{}/{}", folder, stem);
  io::write_text(path + ".csv", causal::adjacency_csv(graph));
  io::write_text(path + ".tsv", causal::edge_list_tsv(graph));
  io::write_text(path + ".graphml", causal::graphml(graph));
  io::write_text(path + ".dot", causal::dot(graph));
  io::write_text(path + ".gml", causal::gml(graph));
}

namespace {

bool is_name(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// All ways to read "CAUSE:EFFECT" as two names, which may contain colons.
std::vector<CausalEdge> named_edges(const std::string& option, const std::string& text,
                                    const std::vector<std::string>& names) {
  std::vector<CausalEdge> edges;
  for (size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1)) {
    const std::string cause = unquoted(text.substr(0, at)), effect = unquoted(text.substr(at + 1));
    if (!is_name(cause, names) || !is_name(effect, names)) continue;
    edges.push_back({find_column(option, cause, names), find_column(option, effect, names)});
  }
  return edges;
}

// Parses one "CAUSE:EFFECT", by names, in quotes or not, or by numbers.
CausalEdge parse_edge(const std::string& option, const std::string& text,
                      const std::vector<std::string>& names) {
  const std::vector<CausalEdge> edges = named_edges(option, text, names);
  if (edges.size() > 1) {
    throw InputError(
        fmt::format("{}: {} can be read as two edges; write names that hold colons in "
                    "double quotes",
                    option, quoted_name(text)));
  }
  if (edges.size() == 1) return edges[0];
  const std::vector<std::string> ends = split_names(text, ':');
  if (ends.size() < 2) {
    throw InputError(
        fmt::format("{}: expected CAUSE:EFFECT, got {} (write names that hold commas in "
                    "double quotes)",
                    option, quoted_name(text)));
  }
  const std::string cause = unquoted(ends[0]);
  const std::string effect = unquoted(text.substr(ends[0].size() + 1));
  return {find_column(option, cause, names), find_column(option, effect, names)};
}

// Edges separated by commas. Names in double quotes, and names of a single edge, may contain
// commas.
std::vector<CausalEdge> parse_edges(const std::string& option,
                                    const std::vector<std::string>& lists,
                                    const std::vector<std::string>& names) {
  std::vector<CausalEdge> edges;
  for (const std::string& list : lists) {
    if (named_edges(option, list, names).size() == 1) {
      edges.push_back(parse_edge(option, list, names));
      continue;
    }
    for (const std::string& edge : split_names(list)) {
      edges.push_back(parse_edge(option, edge, names));
    }
  }
  return edges;
}

// Columns separated by commas. Names in double quotes may contain commas.
std::vector<int64_t> named_columns(const std::string& option, const std::vector<std::string>& lists,
                                   const std::vector<std::string>& names) {
  std::vector<int64_t> columns;
  for (const std::string& list : lists) {
    for (const std::string& name : split_names(list)) {
      columns.push_back(find_column(option, unquoted(name), names));
    }
  }
  return columns;
}

// Lines of columns, the first tier first. Columns of no line come last.
std::vector<int64_t> read_tiers(const std::string& path, const std::vector<std::string>& names) {
  const io::FileBytes file(path);
  const io::Source source{path, file.bytes()};
  const io::Cells cells(source, {.detect_blanks = false});
  std::vector<int64_t> tiers(names.size(), -1);
  for (int64_t tier = 0; tier < cells.rows(); ++tier) {
    for (const std::string_view cell : cells.row(tier)) {
      if (cell.empty()) continue;
      const int64_t column = find_column("--tiers", std::string(cell), names);
      if (tiers[column] >= 0) {
        throw InputError(fmt::format(
            "--tiers: expected each column once; {} appears twice, the second time in line {}",
            quoted_name(cell), cells.line(tier)));
      }
      tiers[column] = tier;
    }
  }
  std::ranges::replace(tiers, -1, cells.rows());
  return tiers;
}

}  // namespace

void add_constraint_options(CLI::App& command, ConstraintFlags& flags) {
  const std::string group = "Prior knowledge";
  command.add_option("--forbid", flags.forbidden, "Forbidden edges")
      ->type_name("CAUSE:EFFECT,...")
      ->group(group);
  command.add_option("--require", flags.required, "Required edges")
      ->type_name("CAUSE:EFFECT,...")
      ->group(group);
  command
      .add_option("--require-path", flags.paths,
                  "Required directed paths; one that is not found becomes an edge")
      ->type_name("CAUSE:EFFECT,...")
      ->group(group);
  command.add_option("--exogenous", flags.exogenous, "Columns that no other column causes")
      ->type_name("NAME,...")
      ->group(group);
  command.add_option("--sinks", flags.sinks, "Columns that cause no other column")
      ->type_name("NAME,...")
      ->group(group);
  command
      .add_option("--tiers", flags.tiers,
                  "A file with lines of columns; columns of a later line never cause those of an "
                  "earlier one, and columns of no line come last")
      ->type_name("FILE")
      ->group(group);
}

EdgeConstraints constraints_of(const ConstraintFlags& flags,
                               const std::vector<std::string>& names) {
  EdgeConstraints constraints;
  constraints.forbidden = parse_edges("--forbid", flags.forbidden, names);
  constraints.required = parse_edges("--require", flags.required, names);
  constraints.paths = parse_edges("--require-path", flags.paths, names);
  constraints.exogenous = named_columns("--exogenous", flags.exogenous, names);
  constraints.sinks = named_columns("--sinks", flags.sinks, names);
  if (!flags.tiers.empty()) constraints.tiers = read_tiers(flags.tiers, names);
  return constraints;
}

void add_table_options(CLI::App& command, CausalTableOptions& o) {
  add_argument(command, "TABLE", o.path, "Observations in rows: csv or another text, npy, npz");
  const auto add = option_adder(command, "Table");
  add("--key", o.key, "Array to read from an npz with several")->type_name("NAME");
  add("--missing", o.missing,
      "Missing values: refuse, rows (leave out these rows), means (use the column's mean) or "
      "likelihood (use all values that are present)");
  add("--drop", o.drop, "Leave out constant columns and copies instead of refusing");
  add("--screen", o.screen,
      "Keep the N most promising columns, by --screen-by, and learn a graph of these; 0: keep all")
      ->check(within(int64_t{0}, int64_t{1} << 40));
  add("--screen-by", o.screen_by,
      "Columns that --screen keeps: correlation (those that correlate most with another column) "
      "or variance (those that vary most, for columns of one unit)");
  add_row_options(command, o.rows);
  add_text_options(command, o.text, /*table=*/true);
}

namespace {

// Keeps the columns that --screen asks for, and returns the number of the others.
int64_t screen(causal::UsableTable& table, const CausalTableOptions& o) {
  const int64_t before = std::ssize(table.columns);
  try {
    causal::screen_table(table, o.screen, o.screen_by);
  } catch (const c10::ValueError& error) {
    throw InputError(fmt::format("cannot use {}: {}", o.path, error.what_without_backtrace()));
  }
  return before - std::ssize(table.columns);
}

}  // namespace

void require_plain_rows(const std::string& place, const CausalTableOptions& options) {
  const auto refuse = [&](bool given, const std::string& expected, const std::string& got) {
    if (given) throw InputError(place + ": expected " + expected + ", got " + got);
  };
  const CausalRowFlags& rows = options.rows;
  refuse(options.missing == MissingValues::likelihood, "a table without gaps",
         "--missing likelihood");
  refuse(!rows.groups.empty(), "rows of one group", "--groups");
  refuse(!rows.targets.empty(), "rows without interventions", "--targets");
  refuse(!rows.kinds.empty(), "continuous columns", "--kind");
}

CausalTable read_causal_table(const CausalTableOptions& o) {
  if (o.screen == 1) throw InputError("--screen: expected 0 or at least 2, got 1");
  if (o.screen == 0 && o.screen_by != CausalTableOptions().screen_by) {
    throw InputError(
        fmt::format("--screen-by: expected --screen with it, got {} alone", name_of(o.screen_by)));
  }
  if (o.screen > 0 && !o.rows.kinds.empty()) {
    throw InputError("--screen: expected numbers in all columns, got --kind");
  }
  CausalRowReader rows(o.rows);
  io::Table table = io::read_table(
      o.path,
      {.text = text_options(o.text), .key = o.key, .texts = [&](const auto& names, int64_t width) {
         return rows.texts(names, width);
       }});
  say_reading(o.text, o.path, size_of_table(table.rows, table.width), table.reading, o.key);
  rows.take(table);
  if (o.missing == MissingValues::means) rows.check_means(table);
  CausalTable result;
  result.reading = table.reading;
  result.all_names = table.columns;
  result.all_columns = table.width;
  result.observations = causal::usable_table(table, {o.missing, o.drop}, o.path);
  result.screened_out = screen(result.observations, o);
  result.names = result.observations.names;
  if (result.names.empty()) {
    const std::vector<std::string> names = column_names(table.width);
    for (const int64_t column : result.observations.columns) result.names.push_back(names[column]);
  }
  result.rows = rows.of(result.observations, result.names,
                        table.columns.empty() ? column_names(table.width) : table.columns);
  return result;
}

causal::Matrix CausalTable::graph(const std::string& path, Json& read) const {
  const causal::GraphFile file = causal::read_graph(path);
  say_reading(path, size_of_graph(file), file.reading);
  read = to_json(file.reading);
  // Columns without names are called x0, x1, .. in a list, as in this program.
  const bool named = file.complete || !all_names.empty();
  const causal::Matrix all =
      causal::graph_over(file, named ? all_names : column_names(all_columns), all_columns, path);
  return all(observations.columns, observations.columns);
}

}  // namespace nsimplex::cli
