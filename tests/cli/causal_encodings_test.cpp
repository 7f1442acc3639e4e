// nsimplex causal task classify, cluster, regress and perturb, as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/json_of.h"
#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class CausalEncodings : public ::testing::Test {
 protected:
  // A table of 24 rows whose classes the first two columns tell, with a missing value.
  CausalEncodings() {
    std::string table = ",a,b,c,d\n", labels = ",kind\n";
    for (int row = 0; row < 24; ++row) {
      const bool high = row % 2 == 1;
      const std::string name = std::string("r").append(std::to_string(row));
      table += name + (high ? ",4." : ",1.") + std::to_string(row % 7) + (high ? ",3." : ",1.") +
               std::to_string(row % 5) + ",1." + std::to_string((row * 3) % 10) + "," +
               (row == 5 ? std::string() : "2." + std::to_string((row * 7) % 10)) + "\n";
      labels += name + (high ? ",high\n" : ",low\n");
    }
    test::write_file(table_, table);
    test::write_file(labels_, labels);
  }

  std::vector<std::string> command(const std::string& name) const {
    return {"causal",        "task", name,        table_, "--seeds",          "1", "--width",  "8",
            "--heads",       "2",    "--layers",  "1",    "--restore-epochs", "1", "--epochs", "2",
            "--embed-steps", "5",    "--threads", "1"};
  }

  // The trials' lines and those of the summary, by encoding.
  static std::vector<json> lines_with(const std::vector<json>& lines, const char* key) {
    std::vector<json> found;
    for (const json& line : lines) {
      if (line.contains(key)) found.push_back(line);
    }
    return found;
  }

  test::TemporaryFolder folder_;
  std::string table_ = folder_ / "table.csv", labels_ = folder_ / "labels.csv";
};

TEST_F(CausalEncodings, ClassifyComparesEveryEncoding) {
  const Finished done =
      run(with(command("classify"), {"--labels", labels_, "--splits", "2", "--json"}));
  ASSERT_EQ(done.code, 0) << done.err;
  const auto lines = json_of(done.out);
  EXPECT_EQ(lines_with(lines, "trial").size(), 2u * 13u);  // logistic regression is one of them
  const auto summary = lines_with(lines, "trials");
  ASSERT_EQ(summary.size(), 13u);
  EXPECT_EQ(summary[0]["encoding"], "logistic regression");
  EXPECT_EQ(summary[0]["accuracy"], 100);
  for (const json& line : lines_with(lines, "strength")) {
    EXPECT_EQ(line["encoding"], "logistic regression");
    EXPECT_EQ(line["columns"], 4);
    EXPECT_FALSE(line.contains("edges"));
  }
  for (const json& line : summary) {
    EXPECT_EQ(line["trials"], 2);
    EXPECT_GE(line["accuracy"], 0);
    EXPECT_EQ(line.contains("cape_better_by_accuracy"), line["encoding"] != "cape");
  }
  EXPECT_THAT(done.err,
              HasSubstr("table.csv: read 24 rows of 4 columns; first row taken as names"));
}

// A model that no seed changes has one trial a split, which all seeds of the split are compared with.
TEST_F(CausalEncodings, ClassifyComparesCapeWithLogisticRegressionSplitBySplit) {
  auto words = with(command("classify"),
                    {"--labels", labels_, "--splits", "2", "--json", "--encodings", "cape"});
  words[5] = "2";  // seeds
  const Finished done = run(words);
  ASSERT_EQ(done.code, 0) << done.err;
  const auto lines = json_of(done.out);
  std::map<std::string, double> accuracies;
  for (const json& line : lines_with(lines, "trial")) {
    accuracies[line["encoding"].get<std::string>() + line["trial"].get<std::string>()] =
        line["accuracy"];
  }
  ASSERT_EQ(accuracies.size(), 6U);
  double gain = 0;
  for (const char* trial : {"1/1", "1/2", "2/1", "2/2"}) {
    gain += accuracies.at(std::string("cape") + trial) -
            accuracies.at(std::string("logistic regression") + trial[0]);
  }
  const json summary = lines_with(lines, "trials")[0];
  EXPECT_EQ(summary["encoding"], "logistic regression");
  EXPECT_EQ(summary["trials"], 2);
  EXPECT_NEAR(summary["cape_better_by_accuracy"][0].get<double>(), gain / 4, 1e-9);
}

TEST_F(CausalEncodings, ClusterHasKMeansBeside) {
  const Finished done =
      run(with(command("cluster"), {"--labels", labels_, "--encodings", "none,cape"}));
  ASSERT_EQ(done.code, 0) << done.err;
  for (const char* row : {"k-means raw", "k-means imputed", "k-means PCA", "none", "cape"}) {
    EXPECT_THAT(done.out, HasSubstr(row));
  }
}

TEST_F(CausalEncodings, RegressOnWhatIsGivenOrMade) {
  std::string target = "y\n";
  for (int row = 0; row < 24; ++row) target += std::to_string(row % 2) + "\n";
  const std::string path = folder_ / "target.csv";
  test::write_file(path, target);
  for (const std::string& each : {std::string("synthetic"), path}) {
    const Finished done = run(with(
        command("regress"), {"--target", each, "--splits", "1", "--encodings", "cape", "--json"}));
    ASSERT_EQ(done.code, 0) << done.err;
    const auto lines = json_of(done.out);
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines[0]["encoding"], "ridge regression");
    EXPECT_TRUE(lines[0].contains("strength"));
    for (const json& line : lines) EXPECT_GT(line["medae"], 0);
  }
}

TEST_F(CausalEncodings, PerturbWritesTrialsAndSimpleAnswers) {
  const std::string out = folder_ / "run";
  const Finished done = run({"causal",    "task",
                             "perturb",   "--nodes",
                             "8",         "--degree",
                             "1",         "--control-rows",
                             "60",        "--rows",
                             "8",         "--doubles",
                             "2",         "--asked",
                             "2",         "--most-changed",
                             "4",         "--encodings",
                             "none,cape", "--seeds",
                             "2",         "--restore-epochs",
                             "1",         "--epochs",
                             "1",         "--width",
                             "8",         "--heads",
                             "2",         "--layers",
                             "1",         "--threads",
                             "1",         "--out",
                             out,         "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  const auto lines = json_of(done.out);
  EXPECT_EQ(lines_with(lines, "seed").size(), 2u * 6u);
  EXPECT_EQ(lines_with(lines, "trials").size(), 6u);
  EXPECT_TRUE(std::filesystem::exists(out + "/metrics.jsonl"));
}

TEST_F(CausalEncodings, NamesWhatCannotBe) {
  const std::string out = folder_ / "none";
  const auto classify = with(command("classify"), {"--labels", labels_});
  expect_refused(with(command("classify"), {"--labels", folder_ / "absent.csv"}), out,
                 "absent.csv");
  expect_refused(with(classify, {"--encodings", "rope"}), out, "rope");
  expect_refused({"causal", "task", "classify", table_, "--labels", labels_, "--heads", "5"}, out,
                 "dim: expected a multiple of heads 5, got 32");
  expect_refused(with(classify, {"--backbone", "performer", "--encodings", "relative"}), out,
                 "relative needs backbone softmax");
  const std::string text = folder_ / "text.csv";
  test::write_file(text, "a,b\n1,2\n3,x\n");
  expect_refused({"causal", "task", "classify", text, "--labels", labels_}, out, "text.csv");
}

TEST_F(CausalEncodings, NamesATargetOrLabelsOfWhichNothingIsLearned) {
  const std::string out = folder_ / "none";
  std::string constant = "y\n", own = ",kind\n", same = ",kind\n";
  for (int row = 0; row < 24; ++row) {
    constant += "2.5\n";
    const std::string name = "r" + std::to_string(row);
    own += name + "," + name + "\n";
    same += name + ",one\n";
  }
  expect_refused(
      with(command("regress"), {"--target", test::write_file(folder_ / "c.csv", constant)}), out,
      "the target is constant: it is 2.5 in all of the 24 rows");
  for (const char* name : {"classify", "cluster"}) {
    expect_refused(with(command(name), {"--labels", test::write_file(folder_ / "own.csv", own)}),
                   out, "24 different labels for the 24 rows");
    expect_refused(with(command(name), {"--labels", test::write_file(folder_ / "one.csv", same)}),
                   out, "different labels, got 1");
  }
  expect_refused(with(command("classify"), {"--labels", labels_, "--train", "1"}), out,
                 "--train: expected a share that leaves rows for testing, got 1");
}

TEST_F(CausalEncodings, OneRunHasNoIntervalForPeople) {
  const Finished done = run(with(
      command("classify"), {"--labels", labels_, "--splits", "1", "--encodings", "none,cape"}));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("(one run)"));
  EXPECT_THAT(done.out, Not(HasSubstr("inf")));
  EXPECT_THAT(done.out, Not(HasSubstr("±")));
}

TEST_F(CausalEncodings, CtrlCKeepsWhatWasReached) {
  Process process(
      {"causal", "task", "perturb", "--encodings", "none,cape", "--threads", "1", "--seeds", "50"});
  ASSERT_TRUE(process.wait_for_error_output("perturb none"));
  process.send(SIGINT);
  const Finished done = process.wait();
  EXPECT_EQ(done.code, 130) << done.err;
  EXPECT_THAT(done.out, HasSubstr("unchanged"));
}

TEST_F(CausalEncodings, PresetsAreDefaultsOfWhatIsNotAskedFor) {
  const Finished done =
      run(with(command("classify"), {"--labels", labels_, "--splits", "1", "--encodings", "cape",
                                     "--preset", "paper-scgpt", "--json", "--out", folder_ / "p"}));
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string config = test::read_file(folder_ / "p/config.toml");
  for (const char* line :
       {"dim=8", "layers=1", "embed-steps=5", "bins=51", "batch=5", "lr=0.0001", "embed-batch=32",
        "embed-lr=0.001", "hops=2", "threshold=0.2", "generality=0.1", "estimator=\"paper\""}) {
    EXPECT_THAT(config, HasSubstr(std::string("\n").append(line).append("\n")));
  }
}

}  // namespace
}  // namespace nsimplex::cli::testing
