#pragma once

#include <cstdint>

/// How long the estimator of paper.h goes on, for those who count its steps without running it.
namespace nsimplex::causal {

inline constexpr int64_t kPaperBatch = 128;   ///< rows of a batch
inline constexpr int64_t kPaperEpochs = 100;  ///< for each value of alpha and rho
inline constexpr int64_t kPaperLoops = 20;    ///< such values at most

/// Batches of an epoch over a table of so many rows.
constexpr int64_t paper_batches(int64_t rows) { return (rows + kPaperBatch - 1) / kPaperBatch; }

}  // namespace nsimplex::causal
