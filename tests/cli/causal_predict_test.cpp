// nsimplex causal task classify and regress --save-models, and causal predict, as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/every_command.h"
#include "cli/json_of.h"
#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class CausalPredict : public ::testing::Test {
 protected:
  // A table of 24 rows whose classes the first two columns tell.
  CausalPredict() {
    std::string table = "a,b,c,d\n", labels = "kind\n";
    for (int row = 0; row < 24; ++row) {
      const bool high = row % 2 == 1;
      table += (high ? "4." : "1.") + std::to_string(row % 7) + (high ? ",3." : ",1.") +
               std::to_string(row % 5) + ",1." + std::to_string((row * 3) % 10) + ",2." +
               std::to_string((row * 7) % 10) + "\n";
      labels += high ? "high\n" : "low\n";
    }
    test::write_file(table_, table);
    test::write_file(labels_, labels);
  }

  static Words command(const std::string& name, const std::string& table,
                       const std::string& epochs) {
    return {"causal",           "task", name,       table,  "--seeds",       "1",
            "--width",          "8",    "--heads",  "2",    "--layers",      "1",
            "--restore-epochs", "1",    "--epochs", epochs, "--embed-steps", "5",
            "--threads",        "1"};
  }

  test::TemporaryFolder folder_;
  std::string table_ = folder_ / "table.csv", labels_ = folder_ / "labels.csv";
};

TEST_F(CausalPredict, SavedModelsAnswerForNewRowsByTheNamesOfTheirColumns) {
  const std::string out = folder_ / "run", made = folder_ / "made",
                    model = out + "/model-cape-2-1.safetensors";
  const auto words =
      joined(command("classify", table_, "40"),
             {"--labels", labels_, "--splits", "2", "--encodings", "none,cape", "--save-models"});
  // Models without --out get a new folder.
  const std::string here = folder_ / ".";
  const Finished homeless = run_after(
      [&] { std::filesystem::current_path(here); },
      joined(command("classify", table_, "1"),
             {"--labels", labels_, "--splits", "1", "--encodings", "none", "--save-models"}));
  EXPECT_EQ(homeless.code, 0) << homeless.err;
  EXPECT_THAT(homeless.err, HasSubstr("no --out was given; the run goes to runs/table-2"));
  const Finished trained = run(joined(words, {"--out", out}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const char* name : {"none-1-1", "none-2-1", "cape-1-1", "cape-2-1"}) {
    EXPECT_TRUE(std::filesystem::exists(out + "/model-" + name + ".safetensors")) << name;
  }
  // In another order, with a column more and names of rows.
  test::write_file(folder_ / "new.csv",
                   ",d,extra,c,b,a\nfirst,2.1,9,1.2,3.4,4.5\n\"second, row\",2.7,9,1.9,1.1,1.2\n");
  const Words predict{"causal", "predict", model, folder_ / "new.csv", "--threads", "1"};
  const Finished done = run(joined(predict, {"--json", "--out", made}));
  ASSERT_EQ(done.code, 0) << done.err;
  const auto lines = json_of(done.out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["row"], "first");
  EXPECT_EQ(lines[0]["label"], "high");
  EXPECT_EQ(lines[1]["row"], "second, row");
  EXPECT_EQ(lines[1]["label"], "low");
  EXPECT_NEAR(lines[0]["probabilities"]["high"].get<double>() +
                  lines[0]["probabilities"]["low"].get<double>(),
              1, 1e-6);
  const std::string csv = test::read_file(made + "/predictions.csv");
  EXPECT_THAT(csv, ::testing::StartsWith("row,label,high,low\nfirst,high,"));
  EXPECT_THAT(csv, HasSubstr("\n\"second, row\",low,"));
  EXPECT_THAT(run(predict).out, HasSubstr("second, row"));

  const auto refused = [&](const std::string& table, const std::string& says) {
    test::write_file(folder_ / "bad.csv", table);
    expect_refused({"causal", "predict", model, folder_ / "bad.csv"}, folder_ / "none", says);
  };
  refused("a,b,c\n1,2,3\n4,5,6\n", "TABLE: expected one column \"d\", as in the model;");
  refused("a,b,c,d,a\n1,2,3,4,5\n4,5,6,7,8\n", "has several");
  refused("a,b,c,d\n1,2,3,4\n4,,6,7\n", "has none in \"b\"");
  expect_refused({"causal", "predict", table_, table_}, folder_ / "none", "cannot read");
}

TEST_F(CausalPredict, SavedModelsOfNumbersAndCountsAnswerAsTheyWereTrained) {
  std::string counts = "g1,g2,g3\n", target = "y\n";
  for (int row = 0; row < 30; ++row) {
    counts += std::to_string(1 + row % 7) + "," + std::to_string(1 + row % 5) + "," +
              std::to_string(2 + row % 3) + "\n";
    target += std::to_string(100 + row % 7) + "\n";
  }
  test::write_file(folder_ / "counts.csv", counts);
  test::write_file(folder_ / "y.csv", target);
  const std::string out = folder_ / "run";
  const auto words = joined(command("regress", folder_ / "counts.csv", "2"),
                            {"--target", folder_ / "y.csv", "--splits", "1", "--encodings",
                             "learned", "--save-models", "--out", out});
  ASSERT_EQ(run(words).code, 0);
  const Finished done = run({"causal", "predict", out + "/model-learned-1-1.safetensors",
                             folder_ / "counts.csv", "--json", "--threads", "1"});
  ASSERT_EQ(done.code, 0) << done.err;
  const auto lines = json_of(done.out);
  ASSERT_EQ(lines.size(), 30U);
  EXPECT_EQ(lines[4]["row"], "5");
  for (const json& line : lines) {
    EXPECT_GT(line["number"], 90);
    EXPECT_LT(line["number"], 120);
  }
}

}  // namespace
}  // namespace nsimplex::cli::testing
