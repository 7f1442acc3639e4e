#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_folder.h"
#include "lab/language/comparison.h"

// Results of "Fast and simplex: 2-simplicial attention in Triton" (Roy et al. 2025, arXiv
// 2507.02754, Tables 2 and 3): ordinary and 2-simplicial transformers with 1, 2 and 3.5 billion
// active weights.
namespace nsimplex::cli {

inline constexpr std::array<double, 3> kPublishedSizes = {1e9, 2e9, 3.5e9};

struct PublishedLosses {
  std::string_view task, arm;
  std::array<double, 3> losses;  ///< negative log-likelihoods, one per size
  double alpha, beta;            ///< as printed, of -log L = alpha log N + beta
};

extern const std::array<PublishedLosses, 8> kPublishedLosses;

/// All models, trained once with one seed.
struct ComparedSeed {
  std::string equal;  ///< the equal quantity: tokens or time
  uint64_t seed = 0;
  std::vector<training::ArmResult> results;  ///< one per model
};

Json to_json(const training::Arm& arm, const ComparedSeed& run, const training::ArmPoint& point);
Json to_json(const training::Arm& arm, const ComparedSeed& run, const training::ArmResult& result);

/// Compares pairs of models over the seeds: the final loss with its 95 % interval, and for equal
/// tokens the batch-wise speed-up, averaged over the steps of the smoothed curves, and the
/// wall-clock speed-up. Every model is compared with every earlier one; with more than three
/// models, only with the first one. Lines go to the log; the returned text has a table.
std::string summarize(const std::vector<training::Arm>& arms, const std::vector<ComparedSeed>& runs,
                      RunLog& log);

}  // namespace nsimplex::cli
