// `nsimplex lab transfer` as a user meets it.
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

TEST(AnalyzeTransfer, TrainsEveryModelAtEveryRate) {
  const Place place;
  const Finished finished = run({"lab",          "transfer",
                                 "--text",       place / "text",
                                 "--threads",    "1",
                                 "--factors",    "2",
                                 "--rates",      "0.001,0.01,1e30",
                                 "--head-width", "4",
                                 "--context",    "16",
                                 "--steps",      "10",
                                 "--batch",      "2",
                                 "--warmup",     "1",
                                 "--clip",       "0",
                                 "--json",       "--out",
                                 place.run()});
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

TEST(AnalyzeTransfer, RoundsGradients) {
  const Place place;
  std::vector<double> losses;
  for (const bool rounded : {false, true}) {
    std::vector<std::string> words = {"lab",       "transfer", "--text",       place / "text",
                                      "--threads", "1",        "--rates",      "0.01",
                                      "--factors", "1",        "--axes",       "heads",
                                      "--scales",  "unit",     "--steps",      "10",
                                      "--batch",   "2",        "--head-width", "4",
                                      "--context", "16",       "--warmup",     "1",
                                      "--json",    "--out",    place.run(),    "--skip-readings",
                                      "--seeds",   "1"};
    if (rounded) words.push_back("--bf16-gradients");
    const Finished finished = run(words);
    ASSERT_EQ(finished.code, 0) << finished.err;
    for (const json& line : json_of(finished.out)) {
      if (line.contains("gradient_peak")) losses.push_back(line["val_loss"]);
    }
    std::filesystem::remove_all(place.run());
  }
  ASSERT_EQ(losses.size(), 4u);  // the smallest model, and the same one again
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[2], losses[3]);
  EXPECT_NE(losses[0], losses[2]);
  EXPECT_NEAR(losses[0], losses[2], 0.05);  // 8 bits of each gradient remain
}

TEST(AnalyzeTransfer, OneLayerIsReadIfItIsSimplicial) {
  const Place place;
  const std::vector<std::string> words = {"lab",       "transfer", "--text",       place / "text",
                                          "--layers",  "1",        "--rates",      "0.01",
                                          "--factors", "2",        "--axes",       "heads",
                                          "--scales",  "unit",     "--steps",      "1",
                                          "--batch",   "1",        "--head-width", "4",
                                          "--context", "8",        "--threads",    "1",
                                          "--json",    "--out",    place.run()};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    std::filesystem::remove_all(place.run());
    return run(all);
  };
  const Finished refused = with({});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            "nsimplex: --layers: expected a simplicial layer to read, got --layers 1 --every 2; "
            "--skip-readings needs none\n");
  EXPECT_FALSE(std::filesystem::exists(place.run()));
  for (const bool read : {true, false}) {
    const Finished finished = read ? with({"--every", "1"}) : with({"--skip-readings"});
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(finished.out.find("\"sensitivity\"") != std::string::npos, read);
  }
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
