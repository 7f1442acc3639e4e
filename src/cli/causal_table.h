#pragma once

#include <optional>

#include "causal/tables/observations.h"
#include "cli/options.h"
#include "cli/text_flags.h"

/// What the commands of `nsimplex causal` that read tables have in common.
namespace nsimplex::cli {

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
