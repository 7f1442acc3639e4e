// `nsimplex analyze model` as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "cli/json_of.h"
#include "cli/lm_place.h"
#include "cli/process.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<std::string> model(const Place& place, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all{"analyze", "model", place.run(), "--threads", "1",
                               "--steps", "8",     "--windows", "2",         "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(AnalyzeModel, ReadsEveryLayerOfARun) {
  const Place place;
  ASSERT_EQ(run(place.train({"--out", place.run(), "--norm", "qkv", "--scale", "unit"})).code, 0);
  const Finished finished = run(model(place, {"--out", place / "reading"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto lines = json_of(finished.out);
  ASSERT_EQ(lines.size(), 4u);  // the embedding, two layers, a statement
  EXPECT_EQ(lines[0]["kind"], "layer");
  EXPECT_EQ(lines[0]["layer_kind"], "embedding");
  EXPECT_TRUE(lines[0]["logit_range"].is_null());
  EXPECT_EQ(lines[1]["layer_kind"], "order 1");
  EXPECT_EQ(lines[2]["layer_kind"], "order 2");
  for (const json& line : {lines[0], lines[1], lines[2]}) {
    EXPECT_GT(line["ratio"], 0);
    EXPECT_LE(line["ratio"], 2);
    EXPECT_GE(line["effective_rank"], 1);
    EXPECT_LE(line["effective_rank"], 16);
    EXPECT_LE(std::abs(line["mean_cosine"].get<double>()), 1);
    EXPECT_GT(line["dirichlet_energy"], 0);
  }
  for (const json& line : {lines[1], lines[2]}) {
    EXPECT_GT(line["logit_range"], 0);
    EXPECT_GT(line["alignment"], 0);
    EXPECT_LE(line["alignment"], 1 + 1e-12);
    EXPECT_GT(line["relative_entropy"], 0);
    EXPECT_LE(line["relative_entropy"], 1 + 1e-12);
    EXPECT_GT(line["block_jacobian"], 0);
    EXPECT_GT(line["attention_jacobian"], 0);
    EXPECT_GT(line["sensitivity"], 0);
  }
  // Unit scales and normalised heads: the bound is 1, up to what the norm's epsilon takes.
  EXPECT_NEAR(lines[2]["sensitivity_bound"], 1, 1e-3);
  EXPECT_EQ(lines[3]["statement"], "sensitivity <= bound for the norms of q, k and v");
  EXPECT_EQ(lines[3]["draws"], 4);
  EXPECT_EQ(lines[3]["violations"], 0);
  EXPECT_EQ(test::read_file(place / "reading/metrics.jsonl"), finished.out);
}

TEST(AnalyzeModel, LayersThatChooseHaveNoWeightsOfAllTuples) {
  const Place place;
  ASSERT_EQ(run(place.train({"--out", place.run(), "--sparse", "topk", "--topk", "4"}, "5")).code,
            0);
  const Finished finished = run(model(place));
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json layer = json_of(finished.out)[2];
  EXPECT_THAT(layer["layer_kind"].get<std::string>(), HasSubstr("chosen"));
  EXPECT_TRUE(layer["entropy"].is_null());
  EXPECT_TRUE(layer["sensitivity"].is_null());
  EXPECT_GT(layer["block_jacobian"], 0);
}

TEST(AnalyzeModel, IsATableAndRefusesWhatItCannotRead) {
  const Place place;
  ASSERT_EQ(run(place.train({"--out", place.run()}, "5")).code, 0);
  const Finished finished = run(
      {"analyze", "model", place.run(), "--threads", "1", "--windows", "1", "--skip-derivatives"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("embedding"));
  expect_bad_input(model(place, {"--context", "100000"}), "--context");
  expect_bad_input({"analyze", "model", place / "absent", "--json"}, "absent");
}

}  // namespace
}  // namespace nsimplex::cli::testing
