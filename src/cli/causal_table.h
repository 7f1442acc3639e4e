// Declares how the causal commands read tables and constraints and write graphs.

#pragma once

#include <nsimplex/causal_options.h>

#include <optional>
#include <string>
#include <vector>

#include "causal/graph/graph_text.h"
#include "causal/graph/weighted_graph.h"
#include "causal/tables/usable_table.h"
#include "cli/causal_rows.h"
#include "cli/options.h"
#include "cli/text_flags.h"

namespace nsimplex::cli {

using causal::column_names;

/// "3 nodes and 2 edges".
std::string size_of_graph(const causal::GraphFile& graph);

/// Finds a column by name, or by index if no column has that name. Otherwise InputError "OPTION:
/// ..".
int64_t find_column(const std::string& option, const std::string& column,
                    const std::vector<std::string>& names);

/// Writes STEM.csv (the matrix), STEM.tsv (the edges), STEM.graphml, STEM.dot and STEM.gml into
/// a folder.
/// Each file is written completely or not at all.
void write_graph(const std::string& folder, const std::string& stem,
                 const causal::NamedGraph& graph);

struct ConstraintFlags {
  std::vector<std::string> forbidden, required, paths, exogenous, sinks;
  std::string tiers;
};

/// Adds --forbid, --require, --require-path, --exogenous, --sinks and --tiers.
void add_constraint_options(CLI::App& command, ConstraintFlags& flags);

/// Looks up the names of columns. InputError that names the option.
EdgeConstraints constraints_of(const ConstraintFlags& flags, const std::vector<std::string>& names);

/// Shared code of the commands of `nsimplex causal` that read tables.

struct CausalTableOptions {
  std::string path, key;
  MissingValues missing = MissingValues::refuse;
  TextFlags text;
  CausalRowFlags rows;
  bool drop = false;
  int64_t screen = 0;  ///< number of columns to keep; 0: all
  ScreenCriterion screen_by = ScreenCriterion::correlation;
};

/// Adds TABLE, --key, --missing, --drop, --screen, --screen-by, the options for rows and kinds of
/// columns, and those for reading a text.
void add_table_options(CLI::App& command, CausalTableOptions& options);

/// Refuses gaps, groups, interventions and kinds of columns, of which what is called `place` knows
/// nothing: InputError "PLACE: expected rows of one group, got --groups".
void require_plain_rows(const std::string& place, const CausalTableOptions& options);

struct CausalTable {
  causal::UsableTable observations;
  std::vector<std::string> names;      ///< one per column: the file's, or x0, x1, ..
  std::vector<std::string> all_names;  ///< also of the columns left out; the file's, or none
  int64_t all_columns = 0;
  int64_t screened_out = 0;  ///< number of columns that --screen left out
  io::TextReading reading;   ///< decisions made while reading a text
  CausalRows rows;

  /// Reads a graph file over the kept columns, reports how it was read, and stores this in `read`.
  /// InputError if it does not fit.
  causal::Matrix graph(const std::string& path, Json& read) const;
};

/// Reports on standard error how a text was read. InputError with one line for an unusable file.
CausalTable read_causal_table(const CausalTableOptions& options);

}  // namespace nsimplex::cli
