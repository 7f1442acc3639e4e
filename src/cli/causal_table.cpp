#include "cli/causal_table.h"

#include "causal/graphs/graph_file.h"
#include "causal/tables/names.h"
#include "cli/causal_files.h"
#include "io/mapped_file.h"
#include "io/table.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

constexpr std::string_view kHdf5Magic = "\x89HDF";

}  // namespace

void add_table_options(CLI::App& command, CausalTableOptions& o) {
  command
      .add_option("table", o.path, "Observations in rows, columns with names: csv, tsv, npy, npz")
      ->type_name("TABLE")
      ->required();
  const auto add = option_adder(command, "Table");
  add("--key", o.key, "Array of an npz that has several")->type_name("NAME");
  add("--missing", o.missing,
      "Missing values: refuse; rows, which leaves rows out; means of the column's others")
      ->check(CLI::IsMember(causal::names_of(causal::kMissingNames)));
  command.add_flag("--drop", o.drop, "Leave out constant columns and copies instead of refusing")
      ->group("Table");
}

CausalTable read_causal_table(const CausalTableOptions& o) {
  const io::MappedFile file(o.path);
  const io::Source source{o.path, file.bytes()};
  if (source.starts_with(kHdf5Magic)) {
    source.fail("HDF5: python -m nsimplex.causal.cells turns an h5ad file into a table");
  }
  const io::Table table = io::parse_table(source, {io::HeaderLine::detect, true, o.key});
  CausalTable result;
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

causal::Matrix CausalTable::graph(const std::string& path) const {
  const causal::Matrix all =
      causal::graph_over(causal::read_graph(path), all_names, all_columns, path);
  return all(observations.columns, observations.columns);
}

}  // namespace nsimplex::cli
