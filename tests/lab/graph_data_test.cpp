// nsimplex lab hyperedges and molecules, as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "cli/json_of.h"
#include "cli/process.h"
#include "io/samples.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// The results of each model and seed among lines of JSON.
std::vector<json> results_in(const std::string& text) {
  std::vector<json> found;
  for (json& line : json_of(text)) {
    if (line.contains("best_epoch")) found.push_back(std::move(line));
  }
  return found;
}

// Those results without what a clock says.
std::vector<json> figures_of(const std::string& text) {
  std::vector<json> results = results_in(text);
  for (json& line : results) {
    for (const char* name : {"seconds", "step_seconds"}) line.erase(name);
  }
  return results;
}

class GraphData : public ::testing::Test {
 protected:
  // Triples i, j, k of 12 nodes whose parities agree, every third one to judge by.
  void write_triples() {
    std::string train, test;
    int count = 0;
    for (int i = 0; i < 12; ++i) {
      for (int j = i + 2; j < 12; j += 2) {
        for (int k = j + 2; k < 12; k += 2) {
          (count++ % 3 == 0 ? test : train) +=
              std::to_string(i) + "," + std::to_string(j) + "," + std::to_string(k) + "\n";
        }
      }
    }
    test::write_file(train_, train);
    test::write_file(test_, test);
  }

  // Chains of 1 to 5 atoms, their number of atoms to be told.
  void write_molecules() {
    using io::npy_file;
    using io::raw;
    std::vector<int64_t> atom_offsets{0}, bond_offsets{0};
    std::vector<int32_t> bonds;
    std::vector<double> targets;
    for (int b = 0; b < 60; ++b) {
      const int atoms = 1 + b % 5;
      for (int i = 0; i + 1 < atoms; ++i) bonds.insert(bonds.end(), {i, i + 1});
      atom_offsets.push_back(atom_offsets.back() + atoms);
      bond_offsets.push_back(bond_offsets.back() + atoms - 1);
      targets.push_back(atoms);
    }
    const auto shape = [](int64_t rows, int columns) {
      return std::string("(").append(std::to_string(rows)) + ", " + std::to_string(columns) + ")";
    };
    const std::vector<uint8_t> codes(1000, 0);
    const auto zeros = [&](int64_t rows) {
      return npy_file("|u1", shape(rows, 1),
                      raw(std::vector<uint8_t>(codes.begin(), codes.begin() + rows)));
    };
    const auto longs = [](const std::vector<int64_t>& values) {
      return npy_file("<i8", std::string("(").append(std::to_string(values.size())) + ",)",
                      raw(values));
    };
    test::write_file(
        molecules_,
        io::zip_file({{"atoms.npy", zeros(atom_offsets.back())},
                      {"atom_offsets.npy", longs(atom_offsets)},
                      {"atom_categories.npy", longs({2})},
                      {"bonds.npy", npy_file("<i4", shape(bond_offsets.back(), 2), raw(bonds))},
                      {"bond_types.npy", zeros(bond_offsets.back())},
                      {"bond_offsets.npy", longs(bond_offsets)},
                      {"bond_categories.npy", longs({1})},
                      {"targets.npy", npy_file("<f8", "(60,)", raw(targets))},
                      {"fingerprints.npy", zeros(60)}},
                     true));
  }

  // The results of a run of one thread.
  static std::vector<json> results_of(const std::vector<std::string>& words) {
    const Finished finished = run(with(words, {"--threads", "1", "--json"}));
    EXPECT_EQ(finished.code, 0) << finished.err;
    return results_in(finished.out);
  }

  // The result of a small model of molecules after an epoch.
  json result_of(const std::string& model, const std::vector<std::string>& more) const {
    return results_of(with({"lab", "molecules", molecules_, "--models", model, "--epochs", "1",
                            "--width", "8", "--layers", "1"},
                           more))
        .at(0);
  }

  test::TemporaryFolder folder_;
  std::string train_ = folder_ / "train.csv", test_ = folder_ / "test.csv",
              molecules_ = folder_ / "molecules.npz";
};

TEST_F(GraphData, HyperedgesGiveTheirFiguresForEveryModel) {
  write_triples();
  const auto results =
      results_of({"lab", "hyperedges", "--train", train_, "--test", test_, "--epochs", "2"});
  ASSERT_EQ(results.size(), 4u);
  for (const json& line : results) {
    EXPECT_EQ(line["task"], "hyperedges");
    for (const char* name : {"auc", "aupr", "last_auc", "last_aupr", "validation_auc"}) {
      EXPECT_GE(line[name], 0.0) << name;
      EXPECT_LE(line[name], 1.0) << name;
    }
    EXPECT_FALSE(line.contains("auc_unseen"));
    EXPECT_GT(line["parameters"], 0);
    EXPECT_GT(line["seconds"], 0.0);
  }
}

TEST_F(GraphData, HyperedgesAreLearned) {
  write_triples();
  const auto results = results_of({"lab", "hyperedges", "--train", train_, "--test", test_,
                                   "--models", "kernel", "--epochs", "60", "--eval-every", "20"});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_GT(results[0]["auc"], 0.9);  // chance: 0.5
}

TEST_F(GraphData, TheTestTuplesMayChooseTheEpochOfHyperedges) {
  write_triples();
  const auto results = [&](const std::string& select) {
    return results_of({"lab", "hyperedges", "--train", train_, "--test", test_, "--models",
                       "s2g-plus", "--epochs", "1", "--select", select})
        .at(0);
  };
  const json by_test = results("test"), by_validation = results("validation");
  EXPECT_GT(by_test["validation_auc"], 0.0);
  const json published = results("published");
  EXPECT_EQ(published["auc"], by_test["auc"]);  // one epoch: the same model
  EXPECT_NE(published["validation_auc"], by_test["validation_auc"]);
  EXPECT_NE(by_test["auc"], by_validation["auc"]);  // more tuples to learn from
}

TEST_F(GraphData, HyperedgesRefuseFilesThatDoNotFit) {
  write_triples();
  test::write_file(test_, "0,1\n");
  const Finished finished = run({"lab", "hyperedges", "--train", train_, "--test", test_});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("test: expected tuples of 3 nodes as in train, got 2"));
}

TEST_F(GraphData, MoleculesGiveTheErrorOfEveryModel) {
  write_molecules();
  const auto results = results_of(
      {"lab", "molecules", molecules_, "--epochs", "2", "--width", "8", "--layers", "2"});
  ASSERT_EQ(results.size(), 17u);
  for (const json& line : results) {
    EXPECT_EQ(line["task"], "molecules");
    EXPECT_GE(line["mae"], 0.0);
    EXPECT_GT(line["parameters"], 0);
  }
}

TEST_F(GraphData, AtomsOfMoleculesMayKnowSizes) {
  write_molecules();
  const auto parameters_of = [&](const std::string& model, const std::vector<std::string>& more) {
    return result_of(model, more)["parameters"].get<int64_t>();
  };
  EXPECT_EQ(parameters_of("softmax", {"--sizes"}), parameters_of("softmax", {}) + 2 * 8);
  EXPECT_EQ(parameters_of("fingerprint", {"--sizes"}), parameters_of("fingerprint", {}));
}

TEST_F(GraphData, HeadsAndReadoutsOfMoleculesAreOptions) {
  write_molecules();
  const json kernel = result_of("kernel", {}), softmax = result_of("softmax", {});
  const json mixed = result_of("kernel", {"--readout", "softmax"});
  EXPECT_EQ(mixed["parameters"], kernel["parameters"]);
  EXPECT_NE(mixed["mae"], kernel["mae"]);
  EXPECT_NE(mixed["mae"], softmax["mae"]);
  EXPECT_EQ(result_of("kernel", {"--heads", "4", "--head-width", "2"})["mae"], kernel["mae"]);
  const auto more = [&](const std::string& model, const std::vector<std::string>& options) {
    return result_of(model, options)["parameters"].get<int64_t>() >
           result_of(model, {})["parameters"].get<int64_t>();
  };
  for (const std::string model : {"kernel", "laplacian"}) {
    EXPECT_TRUE(more(model, {"--heads", "12", "--head-width", "2"})) << model;
    EXPECT_TRUE(more(model, {"--readout-heads", "12"})) << model;
    EXPECT_TRUE(more(model, {"--readout-head-width", "6"})) << model;
  }
  const Finished wide = run({"lab", "molecules", molecules_, "--width", "8", "--heads", "12"});
  EXPECT_EQ(wide.code, 2);
  EXPECT_THAT(wide.err,
              HasSubstr("--heads: expected at most the width, 8, or a --head-width, got 12"));
}

TEST_F(GraphData, MoleculesAreLearned) {
  write_molecules();
  // Every link counts its bonds: sums over messages tell chains apart, fingerprints without bits
  // do not.
  const auto results =
      results_of({"lab", "molecules", molecules_, "--models", "fingerprint,kernel", "--epochs",
                  "60", "--batch", "16", "--width", "16", "--layers", "2"});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_GT(results[0]["mae"], 0.5);
  EXPECT_LT(results[1]["mae"], 0.3);
}

// A run of a former name is one of today, whose folder names the command as it was.
TEST_F(GraphData, RunsOfFormerNamesGoOn) {
  write_triples();
  write_molecules();
  const std::string out = folder_ / "run", config = folder_ / "run/config.toml";
  const std::vector<std::vector<std::string>> commands{
      {"hyperedges", "--train", train_, "--test", test_, "--models", "s2g-plus"},
      {"molecules", molecules_, "--models", "mlp", "--width", "8", "--layers", "1"}};
  for (const std::vector<std::string>& words : commands) {
    const auto now = [&](const std::string& group, const std::vector<std::string>& more) {
      return run(with(with({group}, more), {"--threads", "1", "--json"}));
    };
    const std::vector<std::string> whole = with(words, {"--epochs", "2", "--seeds", "2"});
    const Finished before = now("graph", with(whole, {"--overwrite", "--out", out}));
    ASSERT_EQ(before.code, 0) << before.err;
    EXPECT_THAT(before.err, HasSubstr("nsimplex graph " + words.front() +
                                      " is now called nsimplex lab " + words.front()));
    std::string text = test::read_file(config);
    ASSERT_TRUE(text.starts_with("# nsimplex lab " + words.front())) << text;
    text.replace(0, text.find(words.front()), "# nsimplex graph ");
    test::write_file(config, text);
    // The second seed of the run is missing.
    std::string lines = test::read_file(folder_ / "run/metrics.jsonl");
    const size_t kept = lines.find("\"seed\":2");
    ASSERT_NE(kept, std::string::npos);
    test::write_file(folder_ / "run/metrics.jsonl", lines.substr(0, lines.rfind('\n', kept) + 1));
    for (const char* group : {"lab", "graph"}) {
      const Finished after = now(group, {words.front(), "--resume", out});
      ASSERT_EQ(after.code, 0) << after.err;
      EXPECT_EQ(figures_of(after.out), figures_of(before.out)) << group;
    }
  }
}

}  // namespace
}  // namespace nsimplex::cli::testing
