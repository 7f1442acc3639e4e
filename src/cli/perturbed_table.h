#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/text_flags.h"
#include "train/perturbed_rows.h"

/// The table of `nsimplex causal perturb`, where one is given.
namespace nsimplex::cli {

struct PerturbedTableOptions {
  std::string path, key;      ///< empty path: no table
  std::string perturbations;  ///< a file, or a column of the table
  std::string control;        ///< a label; empty: those that are usual
  bool counts = false;
  int64_t columns = 100;
  TextFlags text;
};

/// Adds TABLE, --perturbations, --control, --counts, --columns, --key and how a text is read.
void add_perturbed_table_options(CLI::App& command, PerturbedTableOptions& options);

/// Throws InputError where options of a table are given and no table is.
void check_without_table(const PerturbedTableOptions& options);

struct PerturbedTable {
  training::PerturbedRows rows;
  training::PerturbationKinds kinds;
  Json read;  ///< what was decided to read files
};

/// Says on standard error how files were read. InputError of one line for what cannot be used.
PerturbedTable read_perturbed_table(const PerturbedTableOptions& options);

}  // namespace nsimplex::cli
