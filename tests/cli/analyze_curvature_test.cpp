// `nsimplex analyze curvature` as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/json_of.h"
#include "cli/process.h"
#include "io/safetensors.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json statement(const std::vector<json>& lines, const std::string& name) {
  for (const json& line : lines) {
    if (line.value("statement", "") == name) return line;
  }
  ADD_FAILURE() << "no statement " << name;
  return {};
}

// A path of three nodes, whose line graph is one edge; a cycle of six, whose line graph is one as
// well; one edge, whose line graph has none.
constexpr char kGraphs[] = "Bg\nEhEG\nA_\n";

TEST(AnalyzeCurvature, SaysOfEachStatementHowItFared) {
  const test::TemporaryFolder folder;
  const std::string file = test::write_file(folder / "graphs.g6", kGraphs), out = folder / "run";
  const Finished finished =
      run({"analyze", "curvature", file, "--threads", "1", "--json", "--out", out});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const auto lines = json_of(finished.out);
  ASSERT_EQ(lines.size(), 13u);  // a summary; three curvatures, two figures, strictly and not
  EXPECT_EQ(lines[0]["graphs"], 3);
  EXPECT_EQ(lines[0]["compared"], 2);
  EXPECT_EQ(lines[0]["edges"], 9);
  EXPECT_NEAR(lines[0]["density"], (2. / 3 + 0.4 + 1) / 3, 1e-12);
  EXPECT_NEAR(lines[0]["tokens_ratio"], (2. / 3 + 1 + 0.5) / 3, 1e-12);

  // The path: 1 on both edges, 2 on that of its line graph. The cycle: 0 and 0.
  const json strict = statement(lines, "mean plain curvature: line graph > graph");
  EXPECT_EQ(strict["draws"], 2);
  EXPECT_EQ(strict["violations"], 1);
  EXPECT_EQ(strict["holds"], false);
  EXPECT_EQ(strict["share"], 0.5);
  EXPECT_EQ(strict["median_slack"], 0.0);
  EXPECT_EQ(strict["graph"], 0.5);
  EXPECT_EQ(strict["line_graph"], 1.0);
  const json lax = statement(lines, "mean plain curvature: line graph >= graph");
  EXPECT_EQ(lax["violations"], 0);
  EXPECT_EQ(lax["holds"], true);

  const io::Safetensors graphs = io::read_safetensors(out + "/curvatures.safetensors");
  ASSERT_NE(graphs.find("balanced"), nullptr);
  const at::Tensor& plain = *graphs.find("plain");
  EXPECT_EQ(plain.sizes(), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(plain[0][1][0].item<double>(), 2.0);
  EXPECT_TRUE(plain[2][1].isnan().all().item<bool>());
}

TEST(AnalyzeCurvature, IsATableForPeople) {
  const test::TemporaryFolder folder;
  const Finished finished =
      run({"analyze", "curvature", test::write_file(folder / "edges.csv", "a,b\nb,c\nc,a\n")});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("1 graphs, 1 with a line graph"));
  EXPECT_THAT(finished.out, HasSubstr("balanced"));
}

// Graphs without edges, or with edges that never meet, have nothing to compare.
TEST(AnalyzeCurvature, SaysThatThereIsNothingToCompare) {
  const test::TemporaryFolder folder;
  for (const char* graphs : {"@\n", "B?\n", "A_\n", "@\nB?\n"}) {
    const std::string file = test::write_file(folder / "graphs.g6", graphs);
    const Finished finished = run({"analyze", "curvature", file});
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr("nothing to compare"));
    EXPECT_THAT(finished.out, Not(HasSubstr("nan")));
    const auto lines = json_of(run({"analyze", "curvature", file, "--json"}).out);
    EXPECT_EQ(lines.at(0)["compared"], 0);
    EXPECT_EQ(lines.size(), 13U);
  }
}

TEST(AnalyzeCurvature, RefusesWhatHoldsNoGraphs) {
  const test::TemporaryFolder folder;
  expect_refused({"analyze", "curvature", test::write_file(folder / "graphs.g6", "B!\n")},
                 folder / "run", "graphs.g6");
  expect_refused({"analyze", "curvature", "absent"}, folder / "run", "absent");
}

}  // namespace
}  // namespace nsimplex::cli::testing
