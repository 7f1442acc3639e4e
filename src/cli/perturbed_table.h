// Declares the table of `causal task perturb`.

#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/text_flags.h"
#include "train/perturbed_rows.h"

/// The table of `nsimplex causal task perturb`, if one is given.
namespace nsimplex::cli {

struct PerturbedTableOptions {
  std::string path, key;      ///< empty path: no table
  std::string perturbations;  ///< a file, or a column of the table
  std::string control;        ///< a label; empty: the usual ones
  bool counts = false;
  int64_t columns = 100;
  TextFlags text;
};

/// Adds TABLE, --perturbations, --control, --counts, --columns, --key and the options for reading a
/// text.
void add_perturbed_table_options(CLI::App& command, PerturbedTableOptions& options);

/// Throws InputError if options of a table are given without a table.
void check_without_table(const PerturbedTableOptions& options);

struct PerturbedTable {
  training::PerturbedRows rows;
  training::PerturbationKinds kinds;
  Json read;  ///< decisions made while reading files
};

/// Reports on standard error how files were read. InputError with one line for unusable files.
PerturbedTable read_perturbed_table(const PerturbedTableOptions& options);

}  // namespace nsimplex::cli
