// `nsimplex lab attenuation`, `robustness`, `synthetic` and `complexity` as a user meets
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/json_of.h"
#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Finished run_causal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "lab");
  arguments.insert(arguments.end(), {"--threads", "1"});
  return run(arguments);
}

// The lines that have all of these values.
std::vector<json> having(const std::vector<json>& lines, const json& values) {
  std::vector<json> found;
  std::ranges::copy_if(lines, std::back_inserter(found), [&](const json& line) {
    return std::ranges::all_of(values.items(), [&](const auto& each) {
      return line.contains(each.key()) && line[each.key()] == each.value();
    });
  });
  return found;
}

TEST(CausalAttenuation, SaysWhatHoldsAndWhatDoesNot) {
  const test::TemporaryFolder folder;
  const Finished finished = run_causal(
      {"attenuation", "--planes", "3", "--draws", "200", "--json", "--out", folder / "run"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const auto lines = json_of(finished.out);
  EXPECT_TRUE(having(lines, {{"source", "Eq. A.59"}}).at(0)["holds"]);
  EXPECT_TRUE(having(lines, {{"source", "Prop. 4.1, both norms held"}}).at(0)["holds"]);
  const json printed = having(lines, {{"source", "Prop. 4.1"}}).at(0);
  EXPECT_FALSE(printed["holds"]);
  EXPECT_EQ(printed["draws"], 200);
  EXPECT_DOUBLE_EQ(printed["share"], 1 - printed["violations"].get<double>() / 200);
  const auto path = having(lines, {{"row", "path"}});
  EXPECT_NEAR(path.front()["gap"], 1.270, 1e-3);
  EXPECT_NEAR(path.back()["gap"], 0.905, 1e-3);
  EXPECT_GT(path.back()["bound"], path.front()["bound"]);
  EXPECT_EQ(lines_of(test::read_file(folder / "run/metrics.jsonl")).size(), lines.size());
}

TEST(CausalRobustness, ShowsTheLimitThatIsNotZero) {
  const std::vector<std::string> arguments{"robustness", "--planes",  "2", "--sigmas",
                                           "0.3",        "--pairs",   "4", "--draws",
                                           "500",        "--repeats", "5"};
  std::vector<std::string> as_json = arguments;
  as_json.push_back("--json");
  const Finished finished = run_causal(as_json);
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto lines = json_of(finished.out);
  EXPECT_FALSE(having(lines, {{"source", "Fig. S1"}}).at(0)["holds"]);
  EXPECT_FALSE(having(lines, {{"source", "Prop. A.10 as printed, sigma = 0.3"}}).at(0)["holds"]);
  const json bias = having(lines, {{"row", "bias"}}).back();
  EXPECT_NEAR(bias["limit"].get<double>(), -0.054 * bias["score"].get<double>(),
              0.001 * std::abs(bias["score"].get<double>()));
  EXPECT_EQ(having(lines, {{"row", "distinction"}}).size(), 8U);
  const Finished shown = run_causal(arguments);
  EXPECT_THAT(shown.out, HasSubstr("mean bias"));
  EXPECT_EQ(json_of(run_causal(as_json).out), lines);  // the same seed, the same draws
}

TEST(CausalSynthetic, JudgesTheTrueAndTheLearnedGraph) {
  const test::TemporaryFolder folder;
  const Finished finished = run_causal({"synthetic", "--seeds", "2", "--rows", "300", "--mechanism",
                                        "linear", "--linear", "--all-hops", "1", "--generalities",
                                        "3", "--steps", "100", "--json", "--out", folder / "run"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto lines = json_of(finished.out);
  // The fit, then 0.7 and 3 with k = 1 and 2 and as printed of both.
  EXPECT_EQ(having(lines, {{"seed", 1}}).size(), 11U);
  for (const char* graph : {"true", "learned"}) {
    const auto means = having(lines, {{"graph", graph}, {"graphs", 2}});
    ASSERT_EQ(means.size(), 5U);
    const auto judged = having(means, {{"judged", true}});
    ASSERT_EQ(judged.size(), 2U);
    EXPECT_EQ(judged[0]["hops"], 1);
    EXPECT_EQ(judged[1]["hops"], 2);
    EXPECT_EQ(judged[0]["generality"], 0.7);
    EXPECT_EQ(judged[0]["passes"],
              judged[0]["edge_area"] >= 0.8 && judged[0]["generality_correlation"] >= 0.4);
    const auto one = having(lines, {{"seed", 1}, {"graph", graph}, {"generality", 0.7}}).at(0);
    const auto two = having(lines, {{"seed", 2}, {"graph", graph}, {"generality", 0.7}}).at(0);
    const double sum = one["edge_area"].get<double>() + two["edge_area"].get<double>();
    EXPECT_NEAR(judged[0]["edge_area"], sum / 2, 1e-12);
  }
  for (const char* file : {"ball.csv", "edges.tsv", "embedding.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / (std::string("run/") + file))) << file;
  }
  expect_refused({"lab", "synthetic", "--degree", "0"}, folder / "none", "degree");
}

TEST(CausalComplexity, FitsExponents) {
  const Finished finished = run_causal({"complexity", "--rows", "200,400", "--columns", "5,10",
                                        "--fixed-columns", "5", "--fixed-rows", "200", "--repeats",
                                        "2", "--steps", "2", "--dimension", "2", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto lines = json_of(finished.out);
  const json size = having(lines, {{"over", "rows"}, {"rows", 400}}).at(0);
  EXPECT_EQ(size["columns"], 5);
  EXPECT_EQ(size["batches"], 4);
  EXPECT_EQ(size["timed"], 4);
  for (const char* figure : {"step_one", "step_two", "order"}) {
    EXPECT_GT(size[figure], 0);
    const json small = having(lines, {{"over", "rows"}, {"rows", 200}}).at(0);
    const json fit = having(lines, {{"over", "rows"}, {"figure", figure}}).at(0);
    EXPECT_NEAR(fit["exponent"],
                std::log2(size[figure].get<double>() / small[figure].get<double>()), 1e-9);
  }
  EXPECT_EQ(having(lines, {{"over", "columns"}, {"figure", "step_two"}}).at(0)["paper"], 2);
}

}  // namespace
}  // namespace nsimplex::cli::testing
