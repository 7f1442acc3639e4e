// `nsimplex analyze model` and `analyze transfer` as a user meets them.
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
#include "lab/language/transfer_command.h"

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
  ASSERT_EQ(run(place.train({"--out", place.run(), "--norm", "qkv", "--preset", "unit"})).code, 0);
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

TEST(AnalyzeTransfer, TrainsEveryModelAtEveryRate) {
  const Place place;
  const Finished finished =
      run({"lab",    "transfer",  "--text",    place / "text", "--threads",
           "1",          "--factors", "2",         "--rates",      "0.001,0.01,1e30",
           "--head-dim", "4",         "--context", "16",           "--steps",
           "10",         "--batch",   "2",         "--warmup",     "1",
           "--clip",     "0",         "--json",    "--out",        place.run()});
  ASSERT_EQ(finished.code, 0) << finished.err;
  int64_t trials = 0, best = 0, statements = 0;
  for (const json& line : json_of(finished.out)) {
    if (line.contains("rate")) {
      ++trials;
      const bool wild = line["rate"] == 1e30;
      EXPECT_EQ(line["val_loss"].is_null(), line["diverged"].get<bool>());
      EXPECT_FALSE(wild && line["stable"].get<bool>());
      if (wild) continue;
      EXPECT_GE(line["gradient_kurtosis"], 1);
      EXPECT_GT(line["int8_error"], 0);
      EXPECT_LT(line["val_loss"], 6);
      EXPECT_GT(line["alignment"], 0);
      EXPECT_LE(line["sensitivity"].get<double>(),
                line["sensitivity_bound"].get<double>() * (1 + 1e-9));
      EXPECT_GT(line["early_sensitivity"], 0);
      EXPECT_NE(line["early_sensitivity"], line["sensitivity"]);
    } else if (line.contains("best_rate")) {
      ++best;
      EXPECT_EQ(line["best_rate"], 0.01);
      EXPECT_EQ(line["dim"], line["heads"].get<int64_t>() * line["head_dim"].get<int64_t>());
    } else {
      ++statements;
      EXPECT_EQ(line["draws"], 1);
    }
  }
  EXPECT_EQ(trials, 18);  // two scales, three models, three rates
  EXPECT_EQ(best, 6);
  EXPECT_EQ(statements, 4);
}

TEST(TransferSummary, BestRateStableRateAndSteps) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const TransferCell small{"unit", kTransferBase, 2, 16}, wide{"unit", "head-dim", 2, 32},
      other{"unit", "head-dim", 2, 64}, many{"unit", "heads", 4, 16};
  // Two seeds of `small`: means 3, 2.5, 2.6; the last rate has one that is not stable.
  const std::vector<TransferPoint> points = {
      {small, 0.1, 3.1, true}, {small, 0.1, 2.9, true},   {small, 0.2, 2.5, true},
      {small, 0.2, 2.5, true}, {small, 0.4, 2.2, true},   {small, 0.4, 3.0, false},
      {wide, 0.1, 3, true},    {wide, 0.2, 2.9, true},    {wide, 0.4, 2, true},
      {other, 0.1, 1, true},   {other, 0.2, kNan, false}, {other, 0.4, kNan, false},
      {many, 0.1, 3, true},    {many, 0.2, 2.9, true},    {many, 0.4, kNan, false}};
  const TransferSummary summary = summarize(points);
  ASSERT_EQ(summary.best.size(), 4u);
  EXPECT_EQ(summary.best[0].rate, 0.2);
  EXPECT_NEAR(summary.best[0].val_loss, 2.5, 1e-12);
  EXPECT_EQ(summary.best[0].largest_stable, 0.2);
  EXPECT_TRUE(summary.best[0].bracketed);
  EXPECT_EQ(summary.best[1].rate, 0.4);
  EXPECT_FALSE(summary.best[1].bracketed);
  EXPECT_EQ(summary.best[1].moved, 1);
  EXPECT_EQ(summary.best[2].moved, -1);
  EXPECT_EQ(summary.best[3].moved, 0);
  ASSERT_EQ(summary.statements.size(), 2u);
  EXPECT_EQ(summary.statements[0].draws(), 2);
  EXPECT_EQ(summary.statements[0].violations(), 0);
  EXPECT_THAT(text_of(summary), HasSubstr("(end)"));

  std::vector<TransferPoint> moved = points;
  for (TransferPoint& point : moved) {
    if (point.cell == small) point.val_loss = point.rate;  // best at 0.1
  }
  const TransferSummary after = summarize(moved);
  EXPECT_EQ(after.best[1].moved, 2);
  EXPECT_EQ(after.statements[0].violations(), 1);
}

}  // namespace
}  // namespace nsimplex::cli::testing
