// `nsimplex causal` as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

std::vector<std::string> causal(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"causal"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.insert(all.end(), {"--threads", "1"});
  return all;
}

TEST(CausalSimulate, WritesATableWithItsGraph) {
  const test::TemporaryFolder folder;
  const Finished finished = run(causal({"simulate", "--nodes", "6", "--rows", "40", "--seed", "3",
                                        "--json", "--out", folder / "run"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const json line = json_of(finished.out).at(0);
  EXPECT_EQ(line["edges"], 12);
  EXPECT_GT(line["varsortability"], 0.5);
  EXPECT_EQ(line["table"], folder / "run/table.csv");
  const auto table = lines_of(test::read_file(folder / "run/table.csv"));
  ASSERT_EQ(table.size(), 41U);
  EXPECT_EQ(table[0], "x0,x1,x2,x3,x4,x5");
  EXPECT_EQ(lines_of(test::read_file(folder / "run/truth.tsv")).size(), 13U);
  EXPECT_THAT(test::read_file(folder / "run/truth.dot"), HasSubstr("digraph"));
  EXPECT_THAT(test::read_file(folder / "run/truth.graphml"), HasSubstr("</graphml>"));

  // The same graph with its weights drawn anew, and a column set.
  const Finished again =
      run(causal({"simulate", "--dag", folder / "run/truth.csv", "--rows", "5", "--do", "x2:7.5",
                  "--format", "npy", "--json", "--out", folder / "again"}));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json_of(again.out).at(0)["edges"], 12);
  EXPECT_TRUE(std::filesystem::exists(folder / "again/table.npy"));
}

TEST(CausalSimulate, SaysWhatCannotBe) {
  const test::TemporaryFolder folder;
  const std::string cycle = test::write_file(folder / "cycle.csv", "0,1\n1,0\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{}, "--out: expected a folder"},
      {{"--do", "x99:1", "--out", folder / "run"},
       "--do: expected one of the 10 columns, x0 to x9"},
      {{"--do", "x1", "--out", folder / "run"}, "--do: expected COLUMN:VALUE, got \"x1\""},
      {{"--dag", cycle, "--out", folder / "run"}, "graph: expected no cycles"},
      {{"--graph", "ring", "--out", folder / "run"}, "--graph"}};
  for (const auto& [more, says] : cases) {
    std::vector<std::string> arguments{"simulate"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run(causal(arguments));
    EXPECT_EQ(finished.code, 2) << says;
    EXPECT_EQ(lines_of(finished.err).size(), 1U) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(says));
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  }
}

class CausalFit : public ::testing::Test {
 protected:
  CausalFit() {
    simulated_ = run(causal({"simulate", "--nodes", "6", "--rows", "2000", "--degree", "1",
                             "--seed", "5", "--out", folder_ / "made"}));
  }
  std::string table() const { return folder_ / "made/table.csv"; }
  std::string truth() const { return folder_ / "made/truth.tsv"; }

  const test::TemporaryFolder folder_;
  Finished simulated_;
};

TEST_F(CausalFit, FindsTheGraphAndSaysHowItCompares) {
  ASSERT_EQ(simulated_.code, 0) << simulated_.err;
  const Finished finished =
      run(causal({"fit", table(), "--truth", truth(), "--json", "--out", folder_ / "run"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err,
              HasSubstr("table.csv: read 2000 rows of 6 columns; first row taken as names"));
  const json line = json_of(finished.out).at(0);
  EXPECT_EQ(line["shd"], 0);
  EXPECT_EQ(line["sid"], 0);
  EXPECT_EQ(line["f1"], 1.0);
  EXPECT_EQ(line["auroc"], 1.0);
  EXPECT_EQ(line["auprc"], 1.0);
  EXPECT_EQ(line["edges"], 6);
  EXPECT_EQ(line["at_0.3"]["shd"], 0);
  EXPECT_EQ(line["at_best"]["shd"], 0);
  EXPECT_EQ(line["sortability_of"], "truth");
  EXPECT_GT(line["varsortability"], 0.5);
  EXPECT_EQ(line["baselines"]["empty"]["shd"], 6);
  EXPECT_TRUE(line["baselines"].contains("variance_sort") && line["baselines"].contains("r2_sort"));
  EXPECT_GT(line["seconds"], 0.0);
  EXPECT_FALSE(line["standardise"].get<bool>());
  // What is written is read as a truth, and is this answer.
  const Finished again = run(
      causal({"fit", table(), "--truth", folder_ / "run/graph.csv", "--standardise", "--json"}));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json_of(again.out).at(0)["true_edges"], 6);
  EXPECT_TRUE(json_of(again.out).at(0)["standardise"].get<bool>());
  for (const char* file :
       {"run/graph.tsv", "run/graph.graphml", "run/graph.dot", "run/scores.csv"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / file)) << file;
  }
  // The graph that it was compared with lies beside it.
  for (const char* file : {"/truth.csv", "/truth.tsv", "/truth.graphml", "/truth.dot"}) {
    EXPECT_EQ(test::read_file(folder_ / "run" + file), test::read_file(folder_ / "made" + file))
        << file;
  }
}

TEST_F(CausalFit, SaysThatRowsAreFew) {
  const std::string path = folder_ / "few.csv";
  std::ofstream(path) << "a,b,c,d\n1,2,4,3\n2,1,3,5\n4,4,1,1\n";
  const Finished finished = run(causal({"fit", path, "--json"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("3 rows for 4 columns: only strong effects can be found\n"));
  EXPECT_TRUE(json_of(finished.out).at(0)["few_rows"].get<bool>());
}

TEST_F(CausalFit, SaysThatValuesOfAColumnAreFew) {
  const std::string path = folder_ / "gaps.csv";
  std::ofstream file(path);
  file << "a,b,c\n";
  for (int row = 0; row < 30; ++row) {
    file << row * 7 % 11 << ',' << (row < 9 ? std::to_string(row * 5 % 7) : "") << ','
         << row * row % 13 << '\n';
  }
  file.close();
  const Finished finished = run(causal({"fit", path, "--missing", "likelihood"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err,
              HasSubstr("column \"b\" has 9 values for 3 columns: with fewer than 18, its edges "
                        "may be found by chance\n"));
}

TEST_F(CausalFit, RefusesWhatNoisesDoNotTakeIntoAccount) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"--nonlinear"}, "linear effects, got --nonlinear"},
      {{"--groups", "x0"}, "rows of one group, got --groups"},
      {{"--targets", "x0"}, "rows without interventions, got --targets"},
      {{"--kind", "x0=count"}, "continuous columns, got --kind"},
      {{"--missing", "likelihood"}, "a table without gaps, got --missing likelihood"}};
  for (const auto& [options, says] : refused) {
    std::vector<std::string> words{"fit", table(), "--orient-by-noise"};
    words.insert(words.end(), options.begin(), options.end());
    const Finished finished = run(causal(words));
    EXPECT_EQ(finished.code, 2);
    EXPECT_EQ(finished.err, "nsimplex: --orient-by-noise: expected " + says + "\n");
  }
}

TEST_F(CausalFit, WithoutATruthFiguresAreNull) {
  const Finished finished = run(causal({"fit", table(), "--json", "--out", folder_ / "run"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/truth.csv"));
  const json line = json_of(finished.out).at(0);
  EXPECT_TRUE(line["shd"].is_null() && line["auroc"].is_null());
  EXPECT_EQ(line["sortability_of"], "fit");
  EXPECT_EQ(line["baselines"]["empty"]["edges"], 0);
  const Finished text = run(causal({"fit", table()}));
  EXPECT_THAT(text.out, HasSubstr("variance_sort"));
  EXPECT_THAT(text.out, HasSubstr("R2-sortability"));
}

TEST_F(CausalFit, KeepsToWhatIsKnown) {
  const auto edges = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"fit", table(), "--overwrite", "--out", folder_ / "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run(causal(arguments));
    EXPECT_EQ(finished.code, 0) << finished.err;
    return test::read_file(folder_ / "run/graph.tsv");
  };
  const std::string first = lines_of(test::read_file(truth())).at(1);
  const std::string cause = first.substr(0, 2), effect = first.substr(3, 2);
  const std::string edge = cause + "\t" + effect + "\t", back = effect + "\t" + cause + "\t";
  EXPECT_THAT(edges({}), HasSubstr(edge));
  EXPECT_THAT(edges({"--forbid", cause + ":" + effect}), ::testing::Not(HasSubstr(edge)));
  EXPECT_THAT(edges({"--require", effect + ":" + cause}), HasSubstr(back));
  std::string others;
  for (char digit = '0'; digit < '6'; ++digit) {
    const std::string name = std::string("x") + digit;
    if (name != effect) others += "," + name;
  }
  const std::string tiers = test::write_file(folder_ / "tiers.csv", effect + "\n" + others + "\n");
  EXPECT_THAT(edges({"--tiers", tiers}), ::testing::Not(HasSubstr(edge)));
}

TEST_F(CausalFit, BadTablesAndGraphsAreToldInOneLine) {
  const auto file = [&](const char* name, const std::string& text) {
    return test::write_file(folder_ / name, text);
  };
  const std::string good = file("good.csv", "a,b\n1,2\n3,1\n0,1\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{file("m.csv", "a,b\n1,2\n3,\n0,1\n")},
       "1 value is missing, the first in row 2, column \"b\""},
      {{file("c.csv", "a,b\n1,2\n3,2\n")}, "column \"b\" is constant"},
      {{file("d.csv", "a,b,c\n1,2,1\n3,1,3\n")}, "column \"c\" equals \"a\""},
      {{file("n.csv", "a,b\n1,2\n3,oops\n")}, "line 3, column b: expected a number, got \"oops\""},
      {{file("1.csv", "a\n1\n3\n")}, "expected at least two columns, got 1"},
      {{file("r.csv", "a,b\n1,2\n")}, "expected at least two rows"},
      {{file("h.h5ad", "\x89HDF\r\n")}, "nsimplex.causal.cells"},
      {{folder_ / "absent.csv"}, "absent.csv"},
      {{good, "--truth", file("t.tsv", "a\tz\n")}, "\"z\" is no column of the table"},
      {{good, "--forbid", "a"}, "--forbid: expected CAUSE:EFFECT, got \"a\""},
      {{good, "--require", "a:z"}, "--require: expected one of the 2 columns"},
      {{good, "--require", "a:b,b:a"}, "--require[0]: expected edges without a cycle"},
      {{good, "--require-path", "a:b,b:a"}, "--require-path[0]: expected paths without a cycle"},
      {{good, "--sinks", "z"}, "--sinks: expected one of the 2 columns"},
      {{good, "--tiers", file("t.txt", "a\na\n")}, "--tiers: expected each column once"},
      {{good, "--threshold", "-1"}, "threshold"},
      {{good, "--estimator", "magic"}, "--estimator"}};
  for (const auto& [more, says] : cases) {
    std::vector<std::string> arguments{"fit"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--out", folder_ / "none"});
    const Finished finished = run(causal(arguments));
    EXPECT_EQ(finished.code, 2) << says << finished.err;
    EXPECT_EQ(lines_of(finished.err).size(), 1U) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(says));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none")) << says;
  }
}

TEST_F(CausalFit, MendsWhatItIsToldToMend) {
  const std::string path = test::write_file(
      folder_ / "t.csv", "a,b,c,d\n1,7,1,2\n3,7,3,\n0,7,0,5\n2,7,2,4\n5,7,5,1\n4,7,4,9\n");
  const std::string truth = test::write_file(folder_ / "truth.tsv", "a\td\nb\tc\n");
  const Finished finished = run(causal({"fit", path, "--missing", "rows", "--drop", "--truth",
                                        truth, "--json", "--out", folder_ / "cut"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json line = json_of(finished.out).at(0);
  EXPECT_EQ(line["features"], 2);
  EXPECT_EQ(line["observations"], 5);
  EXPECT_EQ(line["dropped_rows"], 1);
  EXPECT_EQ(line["true_edges"], 1);
  EXPECT_EQ(line["dropped"].size(), 2U);
  // Over the columns that are kept.
  EXPECT_EQ(test::read_file(folder_ / "cut/truth.csv"), "a,d\n0,1\n0,0\n");
  const Finished filled = run(causal({"fit", path, "--missing", "means", "--drop", "--json"}));
  ASSERT_EQ(filled.code, 0) << filled.err;
  EXPECT_EQ(json_of(filled.out).at(0)["filled"], 1);
}

}  // namespace
}  // namespace nsimplex::cli::testing
