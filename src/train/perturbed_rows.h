// Declares a user's table of perturbed rows as a task of prediction.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/perturbation_task.h"

/// The task of perturbation_task.h on a user's table, for example of Perturb-seq.
namespace nsimplex::training {

/// Observations in rows, and the intervention of each row.
struct PerturbedRows {
  at::Tensor table;                           ///< float64 [N, M]
  std::vector<std::string> features;          ///< names of the columns
  std::vector<std::vector<int64_t>> targets;  ///< per row, ascending: zero, one or two columns
};

/// The different interventions of a table: the targets of its rows, each once, ascending.
struct PerturbationKinds {
  int64_t control_rows = 0;
  std::vector<std::vector<int64_t>> singles, doubles;
};
PerturbationKinds perturbation_kinds(const PerturbedRows& rows);

/// Reduces the columns to the `count` that vary most among the unperturbed rows, and every target.
/// Columns that are constant there are left out.
///
/// Throws InputError if there are fewer than two unperturbed rows or four single interventions, or
/// if a target is constant among the unperturbed rows.
PerturbedRows with_varying_columns(const PerturbedRows& rows, int64_t count);

/// The learned and the held-out interventions.
struct PerturbationSplit {
  std::vector<std::vector<int64_t>> learned, singles, doubles;
};

/// Holds out a share `unseen` of the single interventions, drawn by `seed`. Every double
/// intervention with a target whose single intervention is held out is held out too, and the same
/// share of the other double ones. Throws InputError if no single intervention remains to learn
/// from.
PerturbationSplit split_perturbations(const PerturbedRows& rows, double unseen, uint64_t seed);

/// The task of a split. Unperturbed and perturbed rows are not paired in such a table, so each row
/// of an intervention gets one unperturbed row in turn. The dose is the mean of the targets' values
/// in the learned rows, in deviations of the unperturbed rows.
PerturbationData arrange_perturbations(const PerturbedRows& rows, const PerturbationSplit& split);

/// "a" or "a+b".
std::string perturbation_name(const PerturbedRows& rows, const std::vector<int64_t>& targets);

}  // namespace nsimplex::training
