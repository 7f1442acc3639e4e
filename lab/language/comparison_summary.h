#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_folder.h"
#include "lab/language/comparison.h"

// Figures of "Fast and simplex: 2-simplicial attention in Triton" (Roy et al. 2025, arXiv
// 2507.02754, Tables 2 and 3): ordinary and 2-simplicial transformers of 1, 2 and 3.5 billion
// active weights.
namespace nsimplex::cli {

inline constexpr std::array<double, 3> kPublishedSizes = {1e9, 2e9, 3.5e9};

struct PublishedLosses {
  std::string_view task, arm;
  std::array<double, 3> losses;  ///< negative log-likelihoods, one a size
  double alpha, beta;            ///< as printed, of -log L = alpha log N + beta
};

extern const std::array<PublishedLosses, 8> kPublishedLosses;

/// All arms trained once, with one seed.
struct ComparedSeed {
  std::string equal;  ///< what the arms had as much of: tokens or time
  uint64_t seed = 0;
  std::vector<training::ArmResult> results;  ///< one an arm
};

Json to_json(const training::Arm& arm, const ComparedSeed& run, const training::ArmPoint& point);
Json to_json(const training::Arm& arm, const ComparedSeed& run, const training::ArmResult& result);

/// What pairs of arms differ by over the seeds: the loss at the end with its 95 % interval, and for
/// equal tokens the batch-wise speed-up, averaged over the steps of the smoothed curves, and that
/// by the clock. Every arm over every earlier one; of more than three arms, over the first alone.
/// Lines go to the log; the text has a table for people.
std::string summarize(const std::vector<training::Arm>& arms, const std::vector<ComparedSeed>& runs,
                      RunLog& log);

}  // namespace nsimplex::cli
