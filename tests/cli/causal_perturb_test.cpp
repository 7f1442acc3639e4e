// nsimplex causal task perturb on a table of one's own, as a user meets it.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/causal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/json_of.h"
#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kGenes = 10;

std::string gene(int64_t number) { return std::string("g").append(std::to_string(number)); }

class CausalPerturb : public ::testing::Test {
 protected:
  // 40 unperturbed rows and 12 of each of 8 single and 6 double interventions on ten genes.
  CausalPerturb() {
    add_rows({}, 40);
    for (int64_t a = 0; a < 8; ++a) add_rows({a}, 12);
    for (int64_t a = 0; a < 6; ++a) add_rows({a, a + 1}, 12);
    write();
  }

  void add_rows(const std::vector<int64_t>& targets, int64_t count) {
    CausalSimulationOptions options{.nodes = kGenes,
                                    .degree = 2,
                                    .observations = count,
                                    .seed = 7,
                                    .sample_seed = static_cast<int64_t>(rows_.size())};
    std::string label;
    for (const int64_t target : targets) {
      options.interventions.push_back({target, 4.0});
      label += (label.empty() ? "" : "+") + gene(target);
    }
    const at::Tensor table = simulate_causal(options).table;
    for (int64_t row = 0; row < count; ++row) {
      std::string text;
      for (int64_t column = 0; column < kGenes; ++column) {
        text += "," + std::to_string(table[row][column].item<double>());
      }
      rows_.push_back(text);
      labels_.push_back(label.empty() ? "control" : label);
    }
  }

  void write(const std::string& extra_column = "") {
    std::string table, labels = "cell,guide\n";
    for (int64_t column = 0; column < kGenes; ++column) table += "," + gene(column);
    table += extra_column.empty() ? "\n" : "," + extra_column + "\n";
    for (size_t row = 0; row < rows_.size(); ++row) {
      const std::string name = "cell" + std::to_string(row);
      table += name + rows_[row];
      table += extra_column.empty() ? "\n" : "," + labels_[row] + "\n";
    }
    for (size_t row = rows_.size(); row-- > 0;) {  // names join them, in any order
      labels += "cell" + std::to_string(row) + "," + labels_[row] + "\n";
    }
    test::write_file(table_, table);
    test::write_file(guides_, labels);
  }

  // The labels become what `change` makes of each.
  template <class Change>
  void relabel(Change change) {
    for (std::string& label : labels_) label = change(label);
    write();
  }

  std::vector<std::string> command(const std::vector<std::string>& more,
                                   const std::string& perturbations = "") const {
    std::vector<std::string> words{
        "causal",           "task",
        "perturb",          table_,
        "--perturbations",  perturbations.empty() ? guides_ : perturbations,
        "--most-changed",   "5",
        "--seeds",          "2",
        "--width",          "8",
        "--heads",          "2",
        "--layers",         "1",
        "--restore-epochs", "1",
        "--epochs",         "1",
        "--embed-steps",    "5",
        "--threads",        "1",
        "--encodings",      "none,cape"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Trials without what two equal runs do not share, and without how files were read.
  static std::vector<json> trials_of(const std::string& text) {
    std::vector<json> lines;
    for (json line : json_of(text)) {
      if (!line.contains("seed")) continue;
      line.erase("seconds");
      line.erase("read");
      lines.push_back(line);
    }
    return lines;
  }

  void expect_no(const std::vector<std::string>& words, const std::string& says) const {
    expect_refused(words, folder_ / "none", says);
  }

  test::TemporaryFolder folder_;
  std::string table_ = folder_ / "cells.csv", guides_ = folder_ / "guides.csv";
  std::vector<std::string> rows_, labels_;
};

TEST_F(CausalPerturb, ATableOfOnesOwnHasModelsAndSimpleAnswersInOneTable) {
  const Finished done = run(command({"--json"}));
  ASSERT_EQ(done.code, 0) << done.err;
  std::map<std::string, int> trials;
  std::set<std::string> held_out[2];
  for (const json& line : trials_of(done.out)) {
    const int64_t seed = line["seed"];
    if (!line.contains("encoding")) {
      EXPECT_EQ(line["control_rows"], 40);
      EXPECT_EQ(line["columns"], kGenes);
      EXPECT_EQ(line["learned"].get<int>() + std::ssize(line["held_out"]), 14);
      for (const json& name : line["held_out"]) held_out[seed - 1].insert(name);
      continue;
    }
    ++trials[line["encoding"]];
    EXPECT_GT(line["single"], 0);
    EXPECT_GT(line["double"], 0);
    EXPECT_TRUE(line.contains("double_seen2") || line.contains("double_seen1"));
  }
  EXPECT_NE(held_out[0], held_out[1]);
  EXPECT_EQ(std::ranges::count_if(held_out[0],
                                  [](const auto& name) { return name.find('+') == name.npos; }),
            2);
  for (const char* name : {"unchanged", "mean response", "additive", "linear", "none", "cape"}) {
    EXPECT_EQ(trials[name], 2) << name;
  }
  EXPECT_THAT(done.err, AllOf(HasSubstr("cells.csv: read 208 rows of 10 columns"),
                              HasSubstr("guides.csv: read 40 control rows, 8 single perturbations "
                                        "and 6 double ones"),
                              HasSubstr("joined with the rows of the table by name")));
}

TEST_F(CausalPerturb, NamesOfRowsLabelsAndAColumnSayTheSame) {
  const Finished by_file = run(command({"--json"}));
  ASSERT_EQ(by_file.code, 0) << by_file.err;
  const auto expected = trials_of(by_file.out);
  write("guide");
  const Finished by_column = run(command({"--json"}, "guide"));
  ASSERT_EQ(by_column.code, 0) << by_column.err;
  EXPECT_EQ(trials_of(by_column.out), expected);
  EXPECT_THAT(by_column.err, HasSubstr("column guide of"));

  // As other programs write them: A+ctrl, ctrl+A, the two in any order.
  int64_t count = 0;
  relabel([&](const std::string& label) -> std::string {
    const size_t plus = label.find('+');
    const bool odd = ++count % 2 == 1;
    if (label == "control") return odd ? "ctrl" : "non-targeting";
    if (plus == std::string::npos) return odd ? label + "+ctrl" : "ctrl + " + label;
    return odd ? label : label.substr(plus + 1) + "+" + label.substr(0, plus);
  });
  EXPECT_EQ(trials_of(run(command({"--json"})).out), expected);
  relabel([](const std::string& label) {
    return label.find('g') == std::string::npos || label == "non-targeting" ? "NT" : label;
  });
  count = 0;
  relabel([&](const std::string& label) {
    const size_t ctrl = label.find("ctrl");
    return ctrl == std::string::npos ? label : std::string(label).replace(ctrl, 4, "NT");
  });
  EXPECT_EQ(trials_of(run(command({"--json", "--control", "NT"})).out), expected);
}

TEST_F(CausalPerturb, WithoutPairsThereIsNoFigureOfThem) {
  rows_.resize(40 + 8 * 12);
  labels_.resize(40 + 8 * 12);
  write();
  const Finished done = run(command({}));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("single"), HasSubstr("linear"), Not(HasSubstr("double")),
                              Not(HasSubstr("nan")), Not(HasSubstr("paper"))));
}

TEST_F(CausalPerturb, ColumnsAreTheTargetsAndTheMostVariable) {
  const Finished done = run(command({"--json", "--columns", "1"}));
  ASSERT_EQ(done.code, 0) << done.err;
  const int64_t columns = json_of(done.out).front()["columns"];
  EXPECT_GE(columns, 8);
  EXPECT_LE(columns, 9);
}

TEST_F(CausalPerturb, AStoppedRunGoesOnAsItBegan) {
  const std::string out = folder_ / "run", file = out + "/metrics.jsonl";
  const Finished first = run(command({"--out", out}));
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string whole = test::read_file(file);
  const auto expected = trials_of(whole);
  size_t cut = 0;
  for (int line = 0; line < 7; ++line) cut = whole.find('\n', cut) + 1;
  for (const size_t end : {cut + 20, whole.find("\"learned\"", cut) - 5}) {
    test::write_file(file, whole.substr(0, end));
    const Finished resumed = run({"causal", "task", "perturb", "--resume", out});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(resumed.out, first.out);
    EXPECT_EQ(trials_of(test::read_file(file)), expected);
  }
  const Finished again = run({"causal", "task", "perturb", "--resume", out});
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.err, HasSubstr("had been finished"));
}

TEST_F(CausalPerturb, NamesWhatIsMissingOrDoesNotBelong) {
  expect_no({"causal", "task", "perturb", table_},
            "--perturbations: expected the perturbation of each row");
  expect_no({"causal", "task", "perturb", "--perturbations", guides_},
            "--perturbations: expected a TABLE");
  expect_no({"causal", "task", "perturb", "--control", "NT"}, "--control: expected a TABLE");
  expect_no(command({}, "absent.csv"),
            "--perturbations: expected a file or a column of " + table_ + ", got \"absent.csv\"");
  expect_no(command({"--nodes", "12"}), "--nodes: expected no TABLE, got one");
  expect_no(command({"--test", "0.99"}), "--test: expected a share that leaves perturbations");
  expect_no({"causal", "task", "perturb", table_, "--perturbations", guides_},
            "--most-changed: expected 1 to 8 of the features, got 20");
  expect_no({"causal", "task", "perturb", folder_ / "absent.csv", "--perturbations", guides_},
            "absent.csv");
}

TEST_F(CausalPerturb, NamesALabelThatIsNone) {
  const auto plain = labels_;
  const auto with_last = [&](const std::string& label) {
    labels_ = plain;
    labels_.back() = label;  // of the second line, since the file goes backwards
    write();
    return command({});
  };
  expect_no(with_last("g77"), "guides.csv: line 2: no column is called \"g77\"; expected a column");
  expect_no(with_last("g1+g77"), "line 2: no column is called \"g77\"");
  expect_no(with_last("g1+g2+g3"), "line 2: expected one column or two different ones");
  expect_no(with_last("g1+g1"), "line 2: expected one column or two different ones");
  expect_no(with_last("NT"),
            "line 2: no column is called \"NT\"; expected a column, two columns "
            "joined by +, or control, ctrl, non-targeting");
  labels_ = plain;
  relabel([](const std::string& label) { return label == "control" ? "g0" : label; });
  expect_no(command({}), "guides.csv: expected at least two control rows, got 0");
  labels_ = plain;
  relabel([](const std::string& label) {
    return label == "g1" || label == "g2" || label.find('+') != label.npos ? label : "control";
  });
  expect_no(command({}), "guides.csv: expected at least 4 single perturbations, got 2");
}

TEST_F(CausalPerturb, NamesTablesThatCannotBeUsed) {
  const std::string plain = rows_.front();
  rows_.front() = ",," + plain.substr(plain.find(',', 1) + 1);
  write();
  expect_no(command({}), "line 2, column g0: expected a number, got a missing value");
  rows_.front() = plain;
  for (size_t row = 0; row < 40; ++row) {
    rows_[row] = ",5" + rows_[row].substr(rows_[row].find(',', 1));
  }
  write();
  expect_no(command({}), "column \"g0\" is a target and has the same value in all control rows");
  test::write_file(guides_, "cell,guide\ncell0,control\n");
  expect_no(command({}), "guides.csv: no label of row \"cell1\"");
}

}  // namespace
}  // namespace nsimplex::cli::testing
