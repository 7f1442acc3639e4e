#pragma once

#include <nsimplex/causal_options.h>

#include <optional>
#include <string>
#include <vector>

#include "causal/graph/graph_text.h"
#include "causal/graph/weighted_graph.h"
#include "causal/tables/usable_table.h"
#include "cli/options.h"
#include "cli/text_flags.h"

namespace nsimplex::cli {

/// Names of columns that have none: x0, x1, ..
std::vector<std::string> column_names(int64_t count);

/// "3 nodes and 2 edges".
std::string size_of_graph(const causal::GraphFile& graph);

/// The number of a column, by its name or, where none is called so, by its number; InputError
/// "OPTION: .." otherwise.
int64_t find_column(const std::string& option, const std::string& column,
                    const std::vector<std::string>& names);

/// Writes STEM.csv (the matrix), STEM.tsv (the edges), STEM.graphml and STEM.dot into a folder,
/// each of them whole or not at all.
void write_graph(const std::string& folder, const std::string& stem,
                 const causal::NamedGraph& graph);

struct ConstraintFlags {
  std::vector<std::string> forbidden, required;
  std::string tiers;
};

/// Adds --forbid, --require and --tiers.
void add_constraint_options(CLI::App& command, ConstraintFlags& flags);

/// By the names of columns. InputError that names the option.
EdgeConstraints constraints_of(const ConstraintFlags& flags, const std::vector<std::string>& names);

/// What the commands of `nsimplex causal` that read tables have in common.

struct CausalTableOptions {
  std::string path, key, missing = "refuse";
  TextFlags text;
  bool drop = false;
};

/// Adds TABLE, --key, --missing, --drop and how a text is read.
void add_table_options(CLI::App& command, CausalTableOptions& options);

struct CausalTable {
  causal::Observations observations;
  std::vector<std::string> names;      ///< one a column: the file's, or x0, x1, ..
  std::vector<std::string> all_names;  ///< of the columns left out, too; the file's, or none
  int64_t all_columns = 0;
  io::TextReading reading;  ///< what was decided to read a text

  /// A graph file over the columns that are kept; says how it was read, and keeps it in `read`.
  /// InputError where it does not fit.
  causal::Matrix graph(const std::string& path, Json& read) const;
};

/// Says on standard error how a text was read. InputError of one line for what cannot be used.
CausalTable read_causal_table(const CausalTableOptions& options);

}  // namespace nsimplex::cli
