#include "cli/results.h"

#include <gmock/gmock.h>

#include <cmath>

namespace nsimplex::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Results three_seeds() {
  Results results;
  for (uint64_t seed = 9; seed <= 11; ++seed) {
    const auto value = static_cast<double>(seed);
    results.add("ours", Results::trial_of(seed), {{"loss", value}, {"steps", 4}});
    results.add("theirs", Results::trial_of(seed), {{"loss", 2 * value}});
  }
  return results;
}

TEST(Results, RowsAreModelsAndColumnsMetrics) {
  const Results results = three_seeds();
  EXPECT_THAT(results.models(), ElementsAre("ours", "theirs"));
  EXPECT_THAT(results.metrics("ours"), ElementsAre("loss", "steps"));
  EXPECT_EQ(results.trials("ours"), 3u);
  EXPECT_FALSE(results.has("others"));
  EXPECT_THAT(results.values("ours", "loss"), ElementsAre(9, 10, 11));  // by seed, not by letters
  EXPECT_EQ(results.spread("ours", "loss").mean, 10);
  EXPECT_EQ(results.spread("ours", "loss").deviation, 1);
}

TEST(Results, DifferencesAreOfTheSameTrials) {
  Results results = three_seeds();
  EXPECT_THAT(results.differences("ours", "theirs", "loss"), ElementsAre(-9, -10, -11));
  EXPECT_THAT(results.differences("ours", "others", "loss"), IsEmpty());
  results.add("split", "1/1", {{"loss", 5}});
  results.add("split", "2/1", {{"loss", 6}});
  results.add("reference", "1", {{"loss", 3}});  // of all seeds of the split
  EXPECT_THAT(results.differences("split", "reference", "loss"), ElementsAre(2));
}

TEST(Results, AreWrittenAsJsonAndForPeople) {
  Results results = three_seeds();
  Json line;
  results.write(line, "ours", "loss", "loss_mean");
  EXPECT_EQ(line.dump(), R"({"loss_mean":10.0,"loss_deviation":1.0})");
  EXPECT_EQ(results.cell("ours", "loss", 2), "10.00 ± 1.00");
  EXPECT_EQ(results.cell("ours", "loss", 1, 100), "1000.0 ± 100.0");
  EXPECT_EQ(results.cell("theirs", "steps", 1), "-");
  results.add("alone", "1", {{"loss", 0.5}});
  EXPECT_EQ(results.cell("alone", "loss", 3), "0.500");
}

TEST(Results, ALineHasTheScoresThatWereAddedToIt) {
  Json line{{"task", "chains"}, {"seed", 3}, {"stopped", false}};
  add_scores(line, {{"f1", 0.5}, {"loss", std::nan("")}}, "last_");
  const training::Scores scores = scores_of(Json::parse(line.dump()));
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[0], (std::pair<std::string, double>("last_f1", 0.5)));
  EXPECT_EQ(scores[1].first, "last_loss");
  EXPECT_TRUE(std::isnan(scores[1].second));  // JSON has null for it
  EXPECT_EQ(value_of(scores, "last_f1"), 0.5);
  EXPECT_TRUE(std::isnan(value_of(scores, "f1")));
}

}  // namespace
}  // namespace nsimplex::cli
