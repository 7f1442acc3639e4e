#pragma once

#include <string>
#include <vector>

#include "cli/run_log.h"
#include "training/comparison.h"

namespace nsimplex::cli {

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
