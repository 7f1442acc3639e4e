// Declares the summary of a comparison of language models.

#pragma once

#include <string>
#include <vector>

#include "cli/run_folder.h"
#include "lab/language/comparison.h"

namespace nsimplex::cli {

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
