#include "cli/causal_table.h"

#include "causal/graphs/graph_file.h"
#include "causal/tables/names.h"
#include "cli/causal_files.h"
#include "io/file_bytes.h"
#include "io/table.h"
#include "support/error.h"

namespace nsimplex::cli {

void add_table_options(CLI::App& command, CausalTableOptions& o) {
  command.add_option("table", o.path, "Observations in rows: csv or another text, npy, npz")
      ->type_name("TABLE")
      ->required();
  const auto add = option_adder(command, "Table");
  add("--key", o.key, "Array of an npz that has several")->type_name("NAME");
  add("--missing", o.missing,
      "Missing values: refuse; rows, which leaves rows out; means of the column's others")
      ->check(CLI::IsMember(causal::names_of(causal::kMissingNames)));
  command.add_flag("--drop", o.drop, "Leave out constant columns and copies instead of refusing")
      ->group("Table");
  add_text_options(command, o.text, /*table=*/true);
}

CausalTable read_causal_table(const CausalTableOptions& o) {
  const io::FileBytes file(o.path);
  const io::Source source{o.path, file.bytes()};
  const io::Table table = io::parse_table(source, {.text = text_options(o.text), .key = o.key});
  say_reading(o.path, size_of_table(table.rows, table.width), table.reading);
  CausalTable result;
  result.reading = table.reading;
  result.all_names = table.columns;
  result.all_columns = table.width;
  result.observations = causal::observations_of(
      causal::TableView(table.values.data(), table.rows, table.width), table.columns,
      {causal::parse_name(causal::kMissingNames, "--missing", o.missing), o.drop}, o.path);
  result.names = result.observations.names;
  if (result.names.empty()) {
    const std::vector<std::string> names = column_names(table.width);
    for (const int64_t column : result.observations.columns) result.names.push_back(names[column]);
  }
  return result;
}

causal::Matrix CausalTable::graph(const std::string& path, Json& read) const {
  const causal::GraphFile file = causal::read_graph(path);
  say_reading(path, size_of_graph(file), file.reading);
  read = to_json(file.reading);
  // A list names columns that have no name as this program does: x0, x1, ..
  const bool named = file.complete || !all_names.empty();
  const causal::Matrix all =
      causal::graph_over(file, named ? all_names : column_names(all_columns), all_columns, path);
  return all(observations.columns, observations.columns);
}

}  // namespace nsimplex::cli
