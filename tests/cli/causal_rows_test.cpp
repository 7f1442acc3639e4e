// `nsimplex causal fit` with groups, interventions, kinds of columns and gaps, and its end by Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/json_of.h"
#include "cli/process.h"
#include "io/npy.h"
#include "support/random.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kTrialRows = 600;

// dose -> growth, with offsets of growth on fridays, and growth set from outside in every third row;
// sick depends on dose, and visits counts.
class CausalFitRows : public ::testing::Test {
 protected:
  CausalFitRows() {
    RandomStream random(1);
    std::string text = "dose,growth,batch,set,sick,visits\n";
    for (int row = 0; row < kTrialRows; ++row) {
      const double dose = random.normal();
      const bool friday = random.below(2) == 1, set = row % 3 == 0;
      double growth = 1.2 * dose + random.normal();
      if (set) growth = 3 * random.normal();
      if (friday) growth += 5;
      const bool sick = dose + random.normal() > 0;
      const int64_t visits = random.below(4) + (sick ? 3 : 0);
      text += fmt_row(dose, growth) + (friday ? ",friday," : ",monday,") + (set ? "growth" : "") +
              (sick ? ",yes," : ",no,") + std::to_string(visits) + "\n";
      for (const double value : {dose, growth, friday ? 1.0 : 0.0, set ? 1.0 : -1.0}) {
        values_.push_back(value);
      }
    }
    table_ = test::write_file(folder_ / "trial.csv", text);
  }

  static std::string fmt_row(double one, double other) {
    return std::to_string(one) + "," + std::to_string(other);
  }

  static Finished fit(const std::string& table, const std::vector<std::string>& more) {
    return run(with({"causal", "fit", table, "--threads", "1"}, more));
  }

  // The edges of a run, and its line.
  std::vector<std::string> edges(const std::string& table, const std::vector<std::string>& more) {
    const std::string out = folder_ / "run";
    const Finished done = fit(table, with(more, {"--json", "--overwrite", "--out", out}));
    EXPECT_EQ(done.code, 0) << done.err;
    if (done.code != 0) return {};
    line_ = json_of(done.out).at(0);
    std::vector<std::string> found;
    for (const std::string& line : lines_of(test::read_file(out + "/graph.tsv"))) {
      found.push_back(line.substr(0, line.find('\t', line.find('\t') + 1)));
    }
    found.erase(found.begin());
    return found;
  }

  const test::TemporaryFolder folder_;
  std::string table_;
  std::vector<double> values_;
  json line_;
};

const std::vector<std::string> kTwo{"--use-columns", "dose,growth,batch,set", "--standardise"};

TEST_F(CausalFitRows, GroupsAndTargetsLeaveTheGraph) {
  EXPECT_EQ(edges(table_, with(kTwo, {"--groups", "batch", "--targets", "set"})),
            std::vector<std::string>{"dose\tgrowth"});
  EXPECT_EQ(line_["features"], 2);
  EXPECT_EQ(line_["groups"], 2);
  EXPECT_EQ(line_["targets"], json({{"growth", kTrialRows / 3}}));
  EXPECT_EQ(line_["soft"], false);
  EXPECT_EQ(line_["interrupted"], false);
  EXPECT_TRUE(line_["kinds"].is_null());
  // The same numbers in an array: columns x0 to x3, targets by number.
  const std::string array = test::write_file(
      folder_ / "trial.npy", io::npy_bytes(values_, std::vector<int64_t>{kTrialRows, 4}));
  const json named = line_;
  EXPECT_EQ(edges(array, {"--standardise", "--groups", "x2", "--targets", "3"}),
            std::vector<std::string>{"x0\tx1"});
  EXPECT_EQ(line_["targets"], json({{"x1", kTrialRows / 3}}));
  const Finished text =
      fit(table_, with(kTwo, {"--groups", "batch", "--targets", "set", "--soft"}));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("2 groups of rows\n"));
  EXPECT_THAT(text.out, HasSubstr("columns with soft interventions (rows): growth (200)\n"));
}

TEST_F(CausalFitRows, RowsThatAreLeftOutTakeTheirTargetsWithThem) {
  std::string text = test::read_file(table_);
  const size_t first = text.find('\n') + 1;
  text = text.substr(0, first) + ",1,saturday,growth,no,0\n" + text.substr(first);
  const std::string path = test::write_file(folder_ / "gap.csv", text);
  EXPECT_EQ(edges(path, with(kTwo, {"--groups", "batch", "--targets", "set", "--missing", "rows"})),
            std::vector<std::string>{"dose\tgrowth"});
  EXPECT_EQ(line_["groups"], 2);
  EXPECT_EQ(line_["targets"]["growth"], kTrialRows / 3);
  EXPECT_EQ(line_["dropped_rows"], 1);
  edges(path, {"--use-columns", "dose,growth,visits", "--missing", "likelihood"});
  EXPECT_EQ(line_["gaps"], 1);
  EXPECT_EQ(line_["observations"], kTrialRows + 1);
  EXPECT_TRUE(line_["baselines"].contains("variance_sort"));
}

TEST_F(CausalFitRows, KindsReadWords) {
  const auto found = edges(table_, {"--use-columns", "dose,sick,visits", "--kind", "sick=binary",
                                    "--kind", "visits=count", "--standardise"});
  EXPECT_EQ(line_["model"], "mixed");
  EXPECT_EQ(line_["kinds"],
            json({{"dose", "continuous"}, {"sick", "binary"}, {"visits", "count"}}));
  EXPECT_EQ(line_["words"], json({{"sick", {"no", "yes"}}}));
  EXPECT_EQ(found.size(), 2U);
  // Numbers in place of the words give the same graph.
  std::string text = test::read_file(table_);
  for (const auto& [word, number] : {std::pair{",no,", ",0,"}, std::pair{",yes,", ",1,"}}) {
    for (size_t at = 0; (at = text.find(word)) != std::string::npos;) {
      text.replace(at, std::string(word).size(), number);
    }
  }
  const json words = line_;
  EXPECT_EQ(edges(test::write_file(folder_ / "numbers.csv", text),
                  {"--use-columns", "dose,sick,visits", "--kind", "1=binary", "--kind",
                   "visits=count", "--standardise"}),
            found);
  EXPECT_TRUE(line_["words"].is_null());
}

TEST_F(CausalFitRows, BadRowsAndKindsAreToldInOneLine) {
  const auto file = [&](const char* name, const std::string& text) {
    return test::write_file(folder_ / name, text);
  };
  const std::string small = "a,b,g,t\n1,2,u,\n3,1,u,b\n0,1,v,\n2,5,v,a;b\n4,1,u,\n";
  const std::string good = file("good.csv", small);
  const std::string both = file("both.csv", "a,b,t\n1,2,b\n3,1,b\n0,1,b\n2,5,b\n");
  const std::string single = file("single.csv", "a,b,g\n1,2,u\n3,1,v\n0,1,w\n2,5,x\n");
  const std::string twice = file("twice.csv", "a,b,t\n1,2,\n3,1,b;b\n0,1,\n2,5,\n");
  const std::string array = folder_ / "simulated/table.npy";
  ASSERT_EQ(run({"causal", "simulate", "--nodes", "3", "--rows", "20", "--format", "npy", "--out",
                 folder_ / "simulated"})
                .code,
            0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{good}, "line 2, column g: expected a number, got \"u\""},
      {{good, "--groups", "z"}, "--groups: expected one of the 4 columns, a to t, got \"z\""},
      {{good, "--targets", "9"}, "--targets: expected one of the 4 columns"},
      {{good, "--groups", "g", "--targets", "g"},
       "--targets: expected another column than --groups, got \"g\" for both"},
      {{good, "--targets", "g", "--leave-out", "t"},
       "--targets: expected names of columns, or numbers from 0 to 1, got \"u\" in row 1"},
      {{good, "--groups", "t", "--leave-out", "g"},
       "--groups: expected a group in row 1, got nothing"},
      {{good, "--groups", "g", "--targets", "t", "--estimator", "notears"},
       "--targets: expected estimator auto or order without nonlinear, which has interventions, "
       "got "
       "notears"},
      {{good, "--groups", "g", "--targets", "t", "--nonlinear"}, "got auto with nonlinear"},
      {{good, "--groups", "g", "--leave-out", "t", "--soft"},
       "--soft: expected targets, the interventions that are soft"},
      {{both, "--targets", "t"},
       "--targets: expected rows without an intervention on column \"b\" in which it varies, got 0 "
       "rows"},
      {{single, "--groups", "g"},
       "--groups: expected at least two rows more than groups, got 4 groups of 4 rows"},
      {{good, "--kind", "a"}, "--kind: expected COLUMN=KIND, got \"a\""},
      {{twice, "--targets", "t"}, "--targets: expected each column once, got \"b\" twice in row 2"},
      {{good, "--use-columns", "a,a,b"},
       "--use-columns: expected different names, got \"a\" twice"},
      {{good, "--leave-out", "g,t", "--leave-out", "t"},
       "--leave-out: expected different names, got \"t\" twice"},
      {{good, "--groups", "g", "--leave-out", "t", "--key", "x"}, "--key: expected an npz, got "},
      {{array, "--na-values", "-1"}, "--na-values: expected a text of rows and columns, got "},
      {{array, "--header", "no"}, "--header: expected a text of rows and columns, got "},
      {{array, "--delimiter", "tab"}, "--delimiter: expected a text of rows and columns, got "},
      {{array, "--comment", "%"}, "--comment: expected a text of rows and columns, got "},
      {{array, "--use-columns", "x0"}, "--use-columns: expected a text of rows and columns, got "},
      {{array, "--index", "no"}, "--index: expected a text of rows and columns, got "},
      {{array, "--key", "x"}, "--key: expected an npz, got "},
      {{good, "--kind", "a=odd"}, "--kind: expected one of \"continuous\", \"binary\""},
      {{good, "--kind", "z=count"}, "--kind: expected one of the 4 columns"},
      {{good, "--kind", "a=count", "--kind", "a=binary"},
       "--kind: expected each column once, got \"a\" twice"},
      {{good, "--groups", "g", "--kind", "g=binary"},
       "--kind: expected a column of the graph, got \"g\""},
      {{good, "--leave-out", "t", "--kind", "g=count"},
       "line 2, column g: expected a number, got \"u\""},
      {{good, "--leave-out", "g,t", "--kind", "a=binary"},
       "--kind: expected two values in column \"a\", got 5"},
      {{file("m.csv", "a,b\nx,2\ny,1\n,1\nx,7\n"), "--kind", "a=binary", "--missing", "means"},
       "--missing: expected refuse or rows for column \"a\" of kind binary, which has no mean, got "
       "means"},
      {{file("l.csv", "a,b\n1,2\n3,\n0,1\n4,7\n"), "--missing", "likelihood", "--estimator",
        "logdet"},
       "--missing: expected estimator auto or order without nonlinear for likelihood, got logdet"}};
  for (const auto& [more, says] : cases) {
    expect_refused(with({"causal", "fit"}, more), folder_ / "none", says);
  }
}

TEST(CausalFitStop, CtrlCKeepsTheBestGraphSoFar) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(run({"causal", "simulate", "--nodes", "400", "--rows", "390", "--degree", "2", "--out",
                 folder / "made", "--threads", "1"})
                .code,
            0);
  for (const std::string estimator : {"order", "spectral"}) {
    const std::string out = folder / estimator;
    Process process({"causal", "fit", folder / "made/table.csv", "--json", "--threads", "1",
                     "--estimator", estimator, "--out", out});
    ASSERT_TRUE(process.wait_for_error_output("390 rows for 400 columns"));
    process.send(SIGINT);
    const Finished finished = process.wait();
    EXPECT_EQ(finished.code, 130) << finished.err;
    const json line = json_of(finished.out).at(0);
    EXPECT_EQ(line["interrupted"], true);
    EXPECT_FALSE(line.contains("baselines"));
    EXPECT_GT(line["edges"], 0);
    for (const char* name :
         {"graph.csv", "graph.tsv", "graph.graphml", "graph.dot", "scores.csv"}) {
      EXPECT_TRUE(std::filesystem::exists(out + "/" + name)) << name;
    }
  }
}

}  // namespace
}  // namespace nsimplex::cli::testing
