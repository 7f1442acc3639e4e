// Declares the options of the Match commands and the models that they name.

#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "lab/match/match_training.h"

namespace nsimplex::cli {

struct MatchCommandOptions : CommonOptions {
  training::MatchOptions task;
  std::vector<int64_t> orders = {1, 2}, depths = {1}, topk = {4};
  std::vector<int64_t> beside = {0};  // 0 is not an order
  std::vector<std::string> sparse = {"dense"}, forms = {"product"};
  bool rotary = false;
  int64_t seeds = 1;
  std::string labels = "balanced", norm = "none", equal = "parameters";
};

/// The models that the options define, in the order in which they take turns.
std::vector<training::MatchArm> match_arms(const MatchCommandOptions& options);

/// Trains them and returns the exit code.
int run_match(const MatchCommandOptions& options);

}  // namespace nsimplex::cli
