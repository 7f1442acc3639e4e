#pragma once

#include <optional>

#include "causal/tables/observations.h"
#include "cli/options.h"

/// What the commands of `nsimplex causal` that read tables have in common.
namespace nsimplex::cli {

struct CausalTableOptions {
  std::string path, key, missing = "refuse";
  bool drop = false;
};

/// Adds TABLE, --key, --missing and --drop.
void add_table_options(CLI::App& command, CausalTableOptions& options);

struct CausalTable {
  causal::Observations observations;
  std::vector<std::string> names;      ///< one a column: the file's, or x0, x1, ..
  std::vector<std::string> all_names;  ///< of the columns left out, too; the file's, or none
  int64_t all_columns = 0;

  /// A graph file over the columns that are kept. InputError where it does not fit.
  causal::Matrix graph(const std::string& path) const;
};

/// InputError of one line for what cannot be used.
CausalTable read_causal_table(const CausalTableOptions& options);

}  // namespace nsimplex::cli
