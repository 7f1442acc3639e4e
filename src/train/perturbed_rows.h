#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/perturbation_task.h"

/// The task of perturbation_task.h on a table of one's own, as Perturb-seq gives it.
namespace nsimplex::training {

/// Observations in rows, and what was done to each of them.
struct PerturbedRows {
  at::Tensor table;                           ///< float64 [N, M]
  std::vector<std::string> features;          ///< names of the columns
  std::vector<std::vector<int64_t>> targets;  ///< of each row, ascending: no, one or two columns
};

/// Which interventions there are: targets of rows, each once, in ascending order.
struct PerturbationKinds {
  int64_t control_rows = 0;
  std::vector<std::vector<int64_t>> singles, doubles;
};
PerturbationKinds perturbation_kinds(const PerturbedRows& rows);

/// The rows with fewer columns: the `count` that vary most among the unperturbed rows, and every
/// target. Columns that are constant there are left out.
///
/// Throws InputError where there are fewer than two unperturbed rows or four single interventions,
/// and where a target is constant among the unperturbed rows.
PerturbedRows with_varying_columns(const PerturbedRows& rows, int64_t count);

/// What is learned and what is asked for.
struct PerturbationSplit {
  std::vector<std::vector<int64_t>> learned, singles, doubles;
};

/// A share `unseen` of the single interventions, drawn by `seed`, is asked for. So is every double
/// one with a target whose single intervention is not learned, and the same share of the others.
/// Throws InputError where the share leaves no single intervention to learn from.
PerturbationSplit split_perturbations(const PerturbedRows& rows, double unseen, uint64_t seed);

/// The task of a split. Unperturbed and perturbed rows are not paired: each row of an intervention
/// is learned from one unperturbed row, and these are taken in turn. The dose is the mean of what
/// the targets have in the rows to learn from, in deviations of the unperturbed rows.
PerturbationData arrange_perturbations(const PerturbedRows& rows, const PerturbationSplit& split);

/// "a" or "a+b".
std::string perturbation_name(const PerturbedRows& rows, const std::vector<int64_t>& targets);

}  // namespace nsimplex::training
