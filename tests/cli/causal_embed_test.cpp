// `nsimplex causal embed` and `encode` as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/json_of.h"
#include "cli/process.h"
#include "io/safetensors.h"
#include "support/infinity.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Kinds of animals with all that they are, the kind first.
constexpr const char* kAnimals =
    "dog\tanimal\ndog\tmammal\ncat\tanimal\ncat\tmammal\nmammal\tanimal\nbird\tanimal\n"
    "owl\tbird\nowl\tanimal\n";

Finished embed(const std::vector<std::string>& more) {
  std::vector<std::string> all{"causal", "embed"};
  all.insert(all.end(), more.begin(), more.end());
  all.insert(all.end(), {"--threads", "1", "--json"});
  return run(all);
}

TEST(CausalEmbed, PlacesAHierarchyAndEncodesIt) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "animals.tsv", kAnimals);
  const Finished finished =
      embed({folder / "animals.tsv", "--dimension", "4", "--out", folder / "run"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err,
              HasSubstr("animals.tsv: read 6 nodes and 8 edges; first row taken as data"));
  const json line = json_of(finished.out).at(0);
  EXPECT_EQ(line["nodes"], 6);
  EXPECT_EQ(line["edges"], 8);
  EXPECT_EQ(line["pairs"], "effect-cause");
  EXPECT_EQ(line["hops"], 1);
  EXPECT_EQ(line["side"], "causes");
  // Every seed tried gives 1.25 to 1.88 and 0.62 to 0.93; after one step they are at 2.6 to 4.0 and
  // 0.29 to 0.51. The good place is asked for below.
  EXPECT_LE(line["mean_rank"], 2.0);
  EXPECT_GE(line["map"], 0.6);
  EXPECT_GE(line["seconds"], 0);
  const auto ball = lines_of(test::read_file(folder / "run/ball.csv"));
  ASSERT_EQ(ball.size(), 7U);
  EXPECT_EQ(ball[0], "name,generality,radius,e0,e1,e2,e3");
  EXPECT_THAT(ball[1], StartsWith("dog,"));

  const Finished encoded =
      run({"causal", "encode", folder / "run/embedding.safetensors", "--heads", "2", "--leading",
           "1", "--format", "csv", "--json", "--out", folder / "angles"});
  ASSERT_EQ(encoded.code, 0) << encoded.err;
  EXPECT_EQ(json_of(encoded.out).at(0)["planes"], 2);
  const auto angles = lines_of(test::read_file(folder / "angles/angles.csv"));
  ASSERT_EQ(angles.size(), 8U);
  EXPECT_EQ(angles[0], ",head0_plane0,head0_plane1,head1_plane0,head1_plane1");
  EXPECT_EQ(angles[1], "<leading1>,0,0,0,0");
  EXPECT_THAT(angles[2], StartsWith("dog,"));
  const Finished tensors = run({"causal", "encode", folder / "run/embedding.safetensors", "--heads",
                                "2", "--json", "--out", folder / "tensors"});
  ASSERT_EQ(tensors.code, 0) << tensors.err;
  const io::Safetensors file = io::read_safetensors(folder / "tensors/angles.safetensors");
  EXPECT_THAT(file.metadata.at("names"), StartsWith("[\"dog\",\"animal\""));
  expect_refused({"causal", "encode", folder / "run/embedding.safetensors", "--heads", "3"},
                 folder / "none", "heads: expected 0 or a divisor of the dimension 4, got 3");
}

// Six nodes settle in one of several places, which one by the seed and the machine's rounding: the
// best of four seeds is the good one.
TEST(CausalEmbed, RanksTheCausesOfAHierarchyFirst) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "animals.tsv", kAnimals);
  std::pair<double, double> best{kInfinity, 0};  // mean rank, -MAP
  for (const char* seed : {"1", "2", "3", "4"}) {
    const Finished finished = embed({folder / "animals.tsv", "--dimension", "4", "--seed", seed});
    ASSERT_EQ(finished.code, 0) << finished.err;
    const json line = json_of(finished.out).at(0);
    best = std::min(best, {line["mean_rank"].get<double>(), -line["map"].get<double>()});
  }
  EXPECT_LE(best.first, 1.25);
  EXPECT_GE(-best.second, 0.9);
}

TEST(CausalEmbed, TakesAMatrixAsItStands) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "graph.csv", "a,b,c\n0,0.5,0\n0,0,-2\n0,0,0\n");
  const Finished finished = embed({folder / "graph.csv", "--steps", "5", "--optimiser", "radam"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json line = json_of(finished.out).at(0);
  EXPECT_EQ(line["pairs"], "cause-effect");
  EXPECT_EQ(line["hops"], 2);
  EXPECT_EQ(line["side"], "both");
  EXPECT_EQ(line["without_negatives"], 3);  // of two hops, all reach all
}

// A list whose header says where edges begin is never turned round, whatever its shape.
TEST(CausalEmbed, TakesItsOwnListsCauseFirst) {
  const test::TemporaryFolder folder;
  const std::string pairs = "a\toutcome\t1\nb\toutcome\t1\na\tb\t0.5\nc\toutcome\t2\n";
  for (const char* header :
       {"source\ttarget\tweight", "Source\tTarget\tWeight", "from\tto\tscore"}) {
    test::write_file(folder / "graph.tsv", std::string(header) + "\n" + pairs);
    const Finished finished = embed({folder / "graph.tsv", "--steps", "5"});
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(json_of(finished.out).at(0)["pairs"], "cause-effect") << header;
    const Finished turned =
        embed({folder / "graph.tsv", "--steps", "5", "--pairs", "effect-cause"});
    EXPECT_EQ(json_of(turned.out).at(0)["pairs"], "effect-cause");
  }
  const Finished quiet = run({"causal", "embed", folder / "graph.tsv", "--steps", "5"});
  EXPECT_THAT(quiet.err, Not(HasSubstr("--pairs")));

  // Three causes of one outcome are no hierarchy, with a header or without.
  for (const char* header : {"source\ttarget\n", ""}) {
    test::write_file(folder / "star.tsv", std::string(header) + "a\to\nb\to\nc\to\n");
    const json line = json_of(embed({folder / "star.tsv", "--steps", "5"}).out).at(0);
    EXPECT_EQ(line["pairs"], "cause-effect");
    EXPECT_EQ(line["side"], "both");
  }
}

TEST(CausalEmbed, SaysWhatItGuessesOfAHierarchy) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "animals.tsv", kAnimals);
  const Finished guessed = run({"causal", "embed", folder / "animals.tsv", "--steps", "5"});
  ASSERT_EQ(guessed.code, 0);
  EXPECT_THAT(guessed.err,
              HasSubstr("\"dog\" is the effect of \"animal\"; use --pairs cause-effect "));
  const Finished told =
      run({"causal", "embed", folder / "animals.tsv", "--steps", "5", "--pairs", "effect-cause"});
  EXPECT_THAT(told.err, Not(HasSubstr("--pairs")));
}

TEST(CausalEmbed, WarnsWhereAnEmbeddingCarriesNothing) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "chain.csv",
                   "a,b,c,d,e\n0,0.1,0,0,0\n0,0,0.1,0,0\n0,0,0,0.1,0\n0,0,0,0,0.1\n0,0,0,0,0\n");
  const Finished flat = embed({folder / "chain.csv", "--given-weights", "--absolute",
                               "--generality", "100", "--out", folder / "flat"});
  ASSERT_EQ(flat.code, 0) << flat.err;
  EXPECT_THAT(flat.err, HasSubstr("warning: embedding: 5 of 5 nodes with edges lie within 0.05"));
  const Finished angles = run({"causal", "encode", folder / "flat/embedding.safetensors", "--json",
                               "--out", folder / "angles"});
  EXPECT_THAT(angles.err, HasSubstr("warning: angles: 5 of 5 points lie within 0.05"));
  const Finished apart = embed({folder / "chain.csv"});
  EXPECT_THAT(apart.err, Not(HasSubstr("warning")));
  EXPECT_TRUE(json_of(apart.out).at(0)["warning"].is_null());
}

TEST(CausalEmbed, NamesWhatCannotBe) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "animals.tsv", kAnimals);
  expect_refused({"causal", "embed", folder / "animals.tsv", "--decay", "2"}, folder / "out",
                 "decay: expected a number in (0, 1], got 2");
  test::write_file(folder / "text.safetensors", "nothing");
  expect_refused({"causal", "encode", folder / "text.safetensors"}, folder / "out", "cannot read");
}

}  // namespace
}  // namespace nsimplex::cli::testing
