// `nsimplex graph expressivity` as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <string>
#include <tuple>
#include <vector>

#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// In graph6: two triangles and a hexagon, which triples tell apart and pairs do not; a path of six
// nodes.
constexpr char kTriangles[] = "EwCW", kHexagon[] = "EhEG", kPath[] = "EhCG";

std::vector<std::string> expressivity(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"graph", "expressivity", "--threads", "1"});
  return arguments;
}

json result_of(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const Finished finished = run(expressivity(arguments));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const auto lines = lines_of(finished.out);
  EXPECT_EQ(lines.size(), 1u);
  return lines.empty() ? json() : json::parse(lines[0]);
}

std::string write_graphs(const test::TemporaryFolder& folder,
                         const std::vector<std::string>& codes) {
  std::string text;
  for (const std::string& code : codes) text += code + "\n";
  return test::write_file(folder / "graphs.g6", text);
}

TEST(GraphExpressivity, OrdersAndBothWaysOfAFamily) {
  const test::TemporaryFolder folder;
  const std::string file = write_graphs(folder, {kTriangles, kHexagon, kPath});
  for (const bool exact : {false, true}) {
    for (const auto& [order, distinguished] : {std::pair{"2", 2}, {"3", 3}}) {
      std::vector<std::string> arguments{file, "--order", order};
      if (exact) arguments.push_back("--exact");
      const json line = result_of(arguments);
      EXPECT_EQ(line["file"], file);
      EXPECT_EQ(line["pairs"], 3);
      EXPECT_EQ(line["distinguished"], distinguished) << order << exact;
      EXPECT_EQ(line["layers"].is_null(), exact);
    }
  }
}

TEST(GraphExpressivity, AttentionIsBoundedByTheSameTests) {
  const test::TemporaryFolder folder;
  const std::string file = write_graphs(folder, {kTriangles, kHexagon, kPath});
  for (const std::string form : {"softmax", "kernel"}) {
    for (const auto& [order, distinguished] : {std::pair{"2", 2}, {"3", 3}}) {
      const json line = result_of({file, "--order", order, "--form", form, "--layers", "3"});
      EXPECT_EQ(line["distinguished"], distinguished) << form << order;
      EXPECT_EQ(line["form"], form);
      EXPECT_EQ(line["layers"], 3);
    }
  }
}

TEST(GraphExpressivity, ProductsOfPairsSeeWhatTriplesSee) {
  const test::TemporaryFolder folder;
  const std::string file = write_graphs(folder, {kTriangles, kHexagon, kPath});
  const json line = result_of({file, "--form", "ppgn", "--order", "2"});
  EXPECT_EQ(line["distinguished"], 3);
  EXPECT_GE(line["layers"], 5);
}

TEST(GraphExpressivity, SimplicialAttentionSeesTriangles) {
  const test::TemporaryFolder folder;
  const std::string file = write_graphs(folder, {kTriangles, kHexagon, kPath});
  const std::vector<std::string> shared{file, "--form", "simplicial"};
  for (const auto& [order, mask, distinguished] : {std::tuple{"1", "cliques", 2},
                                                   {"2", "cliques", 3},
                                                   {"3", "cliques", 2},
                                                   {"3", "neighbours", 2},
                                                   {"3", "patterns", 3}}) {
    std::vector<std::string> arguments = shared;
    arguments.insert(arguments.end(), {"--order", order, "--mask", mask});
    const json line = result_of(arguments);
    EXPECT_EQ(line["distinguished"], distinguished) << order << mask;
    EXPECT_EQ(line["form"], "simplicial");
    EXPECT_EQ(line["mask"], mask);
    EXPECT_EQ(line["reduce"], "softmax");
    EXPECT_TRUE(line["layers"].is_null());
  }
}

TEST(GraphExpressivity, ConsecutivePairs) {
  const test::TemporaryFolder folder;
  const std::string file = write_graphs(folder, {kTriangles, kHexagon, kPath, kPath});
  const json line = result_of({file, "--pairs", "consecutive"});
  EXPECT_EQ(line["pairs"], 2);
  EXPECT_EQ(line["distinguished"], 1);
  EXPECT_EQ(result_of({file})["pairs"], 6);
}

TEST(GraphExpressivity, AllControlPairsAreToldApart) {
  const json line = result_of({"--control", "100", "--order", "2"});
  EXPECT_EQ(line["file"], "control");
  EXPECT_EQ(line["pairs"], 100);
  EXPECT_EQ(line["distinguished"], 100);
}

TEST(GraphExpressivity, LayersAreCounted) {
  EXPECT_EQ(result_of({"--control", "3", "--layers", "9"})["layers"], 9);
}

// One of 259 nodes is a neighbour of all others: 258^3 + 258 tuples.
std::string star() {
  std::string bits;
  for (int64_t j = 1; j < 259; ++j) bits += "1" + std::string(j - 1, '0');
  bits.resize((bits.size() + 5) / 6 * 6, '0');
  std::string code = "~?CB";  // 259 = 4 * 64 + 3, 63 above each
  for (size_t at = 0; at < bits.size(); at += 6) {
    code += static_cast<char>(63 + std::stoi(bits.substr(at, 6), nullptr, 2));
  }
  return code;
}

TEST(GraphExpressivity, FilesThatCannotBeCompared) {
  const test::TemporaryFolder folder;
  const auto error = [&](const std::vector<std::string>& codes,
                         const std::vector<std::string>& more) {
    std::vector<std::string> arguments{write_graphs(folder, codes)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run(expressivity(arguments));
    EXPECT_EQ(finished.code, 2);
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(lines_of(finished.err).size(), 1u);
    return finished.err;
  };
  EXPECT_THAT(error({}, {}), HasSubstr("holds no graph"));
  EXPECT_THAT(error({kPath}, {}), HasSubstr("expected two graphs or more, got 1"));
  EXPECT_THAT(error({kPath, kPath, kPath}, {"--pairs", "consecutive"}), HasSubstr("got 3 graphs"));
  EXPECT_THAT(error({kPath, "E!"}, {}), HasSubstr("line 2"));
  // 600 nodes: a size of four characters and (600 * 599 / 2 + 5) / 6 more.
  const std::string large = "~?HW" + std::string(29950, '?');
  EXPECT_THAT(error({kPath, large}, {}), HasSubstr("512 nodes at most, got 600 in graph 1"));
  EXPECT_THAT(error({kPath, large}, {"--form", "softmax"}), HasSubstr("20 nodes at most"));
  EXPECT_THAT(error({kPath, kPath}, {"--form", "softmax", "--exact"}), HasSubstr("--exact"));
  EXPECT_THAT(error({kPath, kPath}, {"--order", "1"}), HasSubstr("expected 2 or 3 with --form"));
  EXPECT_THAT(error({kPath, kPath}, {"--form", "ppgn"}),
              HasSubstr("--form ppgn: expected --order 2"));
  EXPECT_THAT(error({kPath, kPath}, {"--mask", "patterns"}), HasSubstr("--form simplicial"));
  EXPECT_THAT(error({kPath, star()}, {"--form", "simplicial"}),
              HasSubstr("16777216 tuples of neighbours at most, got 17173770 in graph 1"));
}

TEST(GraphExpressivity, InterruptedKeepsTheFilesThatAreWhole) {
  const test::TemporaryFolder folder;
  const std::string small = write_graphs(folder, {kTriangles, kHexagon});
  // 300 nodes without an edge: minutes of layers.
  const std::string empty = "~?Ck" + std::string(7475, '?') + "\n";
  const std::string large = test::write_file(folder / "large.g6", empty + empty);
  Process process(expressivity({small, large, "--layers", "1000"}));
  ASSERT_TRUE(process.wait_for_error_output("graphs.g6 2/2"));
  process.send(SIGINT);
  const Finished finished = process.wait();
  EXPECT_EQ(finished.code, 130);
  EXPECT_THAT(finished.out, HasSubstr("graphs.g6"));
  EXPECT_THAT(finished.out, ::testing::Not(HasSubstr("large.g6")));
}

}  // namespace
}  // namespace nsimplex::cli::testing
