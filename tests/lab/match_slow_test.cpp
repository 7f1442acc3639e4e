// What the task is for, at the size of `nsimplex lab match3`: minutes.
#include <gtest/gtest.h>

#include "lab/match/match_training.h"

namespace nsimplex::training {
namespace {

TEST(MatchSlow, OneLayerOfOrder2SolvesMatch3AndOneOfOrder1DoesNot) {
  MatchOptions options;
  options.evaluate_every = options.steps;
  const auto results = train_match(options, {{1}, {2}}, 1, [](size_t, const MatchPoint&) {});
  EXPECT_GT(results[1].accuracy, 0.98);
  EXPECT_LT(results[0].accuracy, 0.85);
  EXPECT_EQ(results[0].parameters, results[1].parameters);
}

}  // namespace
}  // namespace nsimplex::training
