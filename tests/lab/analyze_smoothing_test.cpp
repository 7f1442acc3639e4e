// `nsimplex lab smoothing` as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include <map>
#include <utility>

#include "cli/json_of.h"
#include "cli/process.h"
#include "io/safetensors.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// One run for all tests of this suite: lines by their statement, or by curve and order.
class AnalyzeSmoothing : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    const Finished finished =
        run({"lab", "smoothing", "--draws", "30", "--order", "2", "--layers", "8", "--width", "8",
             "--threads", "1", "--json", "--out", out()});
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(finished.err, "");
    for (const json& line : json_of(finished.out)) {
      if (line.contains("statement")) statements_[line["statement"]] = line;
      if (!line.contains("curve")) continue;
      ++stacks_;
      if (line["dtype"] == "float64") curves_[{line["curve"], line["order"]}] = line;
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string out() { return *folder_ / "run"; }

  static inline test::TemporaryFolder* folder_ = nullptr;
  static inline int stacks_ = 0;
  static inline std::map<std::string, json> statements_;
  static inline std::map<std::pair<std::string, int64_t>, json> curves_;
};

TEST_F(AnalyzeSmoothing, TestsEveryStatement) {
  for (const std::string order : {"1", "2"}) {
    const json& line = statements_["Theorem 3.1, N = " + order];
    EXPECT_TRUE(line["holds"].get<bool>()) << line;
    EXPECT_GT(line["draws"], 5);
    EXPECT_GT(line["median_slack"], 1.0);
    EXPECT_TRUE(
        statements_["Theorem 3.1 with an output projection, N = " + order]["holds"].get<bool>());
  }
  for (const std::string name : {"Corollary 3.2, N = 1", "Corollary 3.2, N = 2", "Lemma C.1",
                                 "Lemma C.2, N + 1", "Lemma C.2's logits, N + 1"}) {
    EXPECT_TRUE(statements_[name]["holds"].get<bool>()) << name;
  }
  EXPECT_EQ(statements_["||1 u^T|| <= ||X||, u the mean"]["violations"], 0);
  EXPECT_EQ(statements_["Lemma A.1: first-order logits are sums over axes"]["violations"], 0);
  const json& rows = statements_["Lemma A.2: separable weights make equal rows"];
  EXPECT_EQ(rows["draws"], 60);
  EXPECT_TRUE(rows["holds"].get<bool>());
  const json& graphs = statements_["rad <= diam <= 96 ln(n) / lambda_2, graphs"];
  EXPECT_EQ(graphs["draws"], 36);  // nine families of four sizes
  EXPECT_TRUE(graphs["holds"].get<bool>());
}

TEST_F(AnalyzeSmoothing, KeepsACounterexampleOfWhatIsViolated) {
  // Information goes one way, while the gap is that of a graph that goes both.
  ASSERT_FALSE(statements_["rad <= 96 ln(n) / lambda_2, one-way masks"]["holds"].get<bool>());
  // The paper counts N of the N + 1 factors.
  EXPECT_FALSE(statements_["Lemma C.2's logits: |dB| <= sqrt(d) N K^(N+1) R^N"]["holds"]);
  for (const auto& [name, line] : statements_) {
    EXPECT_EQ(line["violations"] == 0, line["counterexample"].is_null()) << name;
    if (line["counterexample"].is_null()) continue;
    const auto file = io::read_safetensors(out() + "/" + line["counterexample"].get<std::string>());
    EXPECT_FALSE(file.tensors.empty()) << name;
  }
}

TEST_F(AnalyzeSmoothing, WatchesEveryStack) {
  EXPECT_EQ(curves_.size(), 37u);
  EXPECT_EQ(stacks_, 37 + 10 + 12);  // again in float32 and bfloat16
  EXPECT_EQ(curves_.count({"determinant", 1}), 1u);
  EXPECT_EQ(curves_.count({"determinant", 2}), 0u);  // 8 channels cannot be cut into threes
  for (const auto& [key, line] : curves_) {
    const size_t layers = line["ratio"].size();
    EXPECT_GE(layers, 2u) << line;
    for (const char* list :
         {"log10_residual", "effective_rank", "mean_cosine", "dirichlet_energy"}) {
      EXPECT_EQ(line[list].size(), layers);
    }
  }
  // Attention alone collapses; beside a skip connection and normalised it does not.
  const json plain = curves_[{"plain", 1}]["ratio"];
  EXPECT_TRUE(plain.size() < 9 || plain.back() < 1e-3) << plain;
  const json kept = curves_[{"skip + layer norm", 1}]["ratio"];
  ASSERT_EQ(kept.size(), 9u);
  EXPECT_GT(kept.back(), 0.1);
  EXPECT_GT((curves_[{"window 16 + rms norm", 1}]["rate"]),
            (curves_[{"window 2 + rms norm", 1}]["rate"]));
  EXPECT_EQ((curves_[{"window 2", 2}]["radius"]), 15);
  const json best = curves_[{"4 best keys, paths + rms norm", 2}];
  EXPECT_TRUE(best["masked"]);
  EXPECT_TRUE(best["radius"].is_null() && best["lambda_2"].is_null());  // tokens choose
  EXPECT_NE(best["ratio"], (curves_[{"4 best keys + rms norm", 2}]["ratio"]));
  EXPECT_EQ(curves_.count({"4 best keys, paths", 1}), 0u);
  EXPECT_EQ((curves_[{"window 16 + rms norm", 1}]["radius"]), 1);
}

TEST_F(AnalyzeSmoothing, WritesEveryDrawDown) {
  int theorems = 0, masks = 0;
  for (const json& line : json_of(test::read_file(out() + "/metrics.jsonl"))) {
    const std::string draw = line.value("draw", "");
    theorems += draw == "theorem";
    masks += draw == "mask";
    if (draw == "theorem" && line["assumption"] && !line["floor"]) {
      EXPECT_LE(line["next_residual"], line["bound"].get<double>() * (1 + 1e-6));
    }
  }
  EXPECT_EQ(theorems, 60);
  EXPECT_GT(masks, 36);
}

TEST_F(AnalyzeSmoothing, IsTablesForPeople) {
  const Finished finished = run({"lab", "smoothing", "--draws", "5", "--order", "1", "--layers",
                                 "4", "--width", "4", "--tokens", "8", "--threads", "1"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("Theorem 3.1, N = 1"));
  EXPECT_THAT(finished.out, HasSubstr("skip + layer norm"));
  EXPECT_THAT(finished.out, ContainsRegex("4 best keys +- "));  // no radius
}

TEST_F(AnalyzeSmoothing, StopsWhenAsked) {
  Process process(
      {"lab", "smoothing", "--draws", "1000000", "--threads", "1", "--out", *folder_ / "stopped"});
  ASSERT_TRUE(process.wait_for_error_output("draws"));
  process.send(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  EXPECT_FALSE(json_of(test::read_file(*folder_ / "stopped/metrics.jsonl")).empty());
}

TEST_F(AnalyzeSmoothing, RefusesWhatItCannotDo) {
  expect_refused({"lab", "smoothing", "--order", "5"}, *folder_ / "none", "--order");
  expect_refused({"lab", "smoothing", "--draws", "0"}, *folder_ / "none", "--draws");
  expect_refused({"lab", "smoothing", "--tokens", "4"}, *folder_ / "none", "--tokens");
}

}  // namespace
}  // namespace nsimplex::cli::testing
