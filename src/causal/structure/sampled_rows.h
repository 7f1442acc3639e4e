// Declares samples of the rows of a table, and fits of such rows and of some columns.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>

#include <vector>

namespace nsimplex::causal {

/// The rows of each block, in the order of the blocks' first rows.
std::vector<std::vector<int64_t>> rows_of_blocks(const std::vector<int64_t>& blocks);

/// How the rows of samples are drawn; EdgeConfidenceOptions describes it. Equal numbers give equal
/// rows on every machine.
struct RowDraws {
  int64_t rows;
  std::vector<std::vector<int64_t>> blocks;  ///< their rows; none: rows are drawn one by one
  Resampling resampling;
  int64_t seed;

  at::Tensor rows_of(int64_t sample) const;  ///< int64 [k]
};

/// The options for a table of some rows only.
CausalFitOptions options_of_rows(const CausalFitOptions& options, const at::Tensor& rows);

/// The options for a table of some columns only, by their places there; -1 for the other columns.
CausalFitOptions options_among(CausalFitOptions options, const std::vector<int64_t>& place);

/// int64 [k]: the columns of a table of some rows that a fit accepts. Values that are missing and
/// rows with an intervention on a column do not count. The column must vary within groups; with
/// groups, or interventions on it, its regression needs three degrees of freedom.
at::Tensor usable_columns(const at::Tensor& table, const CausalFitOptions& options);

}  // namespace nsimplex::causal
