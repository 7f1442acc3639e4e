#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/causal.h>
#include <nsimplex/causal_embedding.h>
#include <nsimplex/causal_pipeline.h>

#include <limits>

#include "input_error_of.h"
#include "io/safetensors.h"
#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CausalSimulation made() {
  return simulate_causal({.nodes = 6, .degree = 1, .observations = 1500, .seed = 4});
}

TEST(CausalPipeline, GoesFromATableToAngles) {
  const CausalSimulation simulated = made();
  CausalPipeline pipeline({.dimension = 8, .steps = 60});
  pipeline.fit(simulated.table);
  EXPECT_EQ(causal_metrics(pipeline.state().adjacency, simulated.weights).shd, 0);
  const at::Tensor angles = pipeline.encode(4, 1);
  EXPECT_EQ(angles.sizes(), (std::vector<int64_t>{7, 4, 2}));
  const at::Tensor ball = ball_points(pipeline.state().tangents);
  EXPECT_TRUE(at::equal(angles, causal_angles(ball, {.heads = 4, .leading = 1})));
  EXPECT_TRUE(at::equal(pipeline.transform(simulated.table), simulated.table));
}

TEST(CausalPipeline, KeepsTheColumnsThatItHasSeen) {
  const CausalSimulation simulated = made();
  const at::Tensor table =
      at::cat({simulated.table.narrow(1, 0, 2), at::ones({1500, 1}, at::kDouble),
               simulated.table.narrow(1, 2, 4)},
              1);
  CausalPipeline pipeline({.standardise = true, .drop = true, .steps = 10});
  pipeline.fit(table, {"a", "b", "c", "d", "e", "f", "g"});
  EXPECT_THAT(pipeline.state().columns, ElementsAre(0, 1, 3, 4, 5, 6));
  EXPECT_THAT(pipeline.state().names, ElementsAre("a", "b", "d", "e", "f", "g"));
  const at::Tensor values = pipeline.transform(table);
  EXPECT_LT(values.mean(0).abs().max().item<double>(), 1e-9);
  EXPECT_LT((values.std(0, false) - 1).abs().max().item<double>(), 1e-9);
  EXPECT_THROW(pipeline.transform(table.narrow(1, 0, 6)), c10::ValueError);
}

TEST(CausalPipeline, ReadsWhatItWrote) {
  const test::TemporaryFolder folder;
  const CausalSimulation simulated = made();
  CausalPipeline pipeline({.standardise = true,
                           .threshold = 0.1,
                           .missing = MissingValues::means,
                           .dimension = 4,
                           .optimiser = EmbeddingOptimiser::radam,
                           .steps = 20,
                           .by_dimension = true,
                           .seed = 7});
  pipeline.fit(simulated.table);
  pipeline.save(folder / "p");
  const CausalPipeline again = CausalPipeline::load(folder / "p");
  EXPECT_EQ(again.options().threshold, 0.1);
  EXPECT_EQ(again.options().missing, MissingValues::means);
  EXPECT_EQ(again.options().optimiser, EmbeddingOptimiser::radam);
  EXPECT_EQ(again.options().seed, 7);
  EXPECT_EQ(again.state().model, pipeline.state().model);
  EXPECT_TRUE(at::equal(again.encode(2), pipeline.encode(2)));
  EXPECT_TRUE(at::equal(again.transform(simulated.table), pipeline.transform(simulated.table)));
  EXPECT_TRUE(at::equal(again.state().scores, pipeline.state().scores));
}

TEST(CausalPipeline, LearnsAsCausalFitDoesFromRowsOfSeveralKinds) {
  const CausalSimulation simulated = made();
  const at::Tensor table = simulated.table.clone();
  TableRows rows;
  for (int64_t row = 0; row < 1500; ++row) {
    rows.groups.push_back(row % 3);
    rows.targets.push_back(row % 5 == 0 ? std::vector<int64_t>{2} : std::vector<int64_t>{});
  }
  table[7][1] = std::numeric_limits<double>::quiet_NaN();  // the row is left out
  CausalPipelineOptions options{.missing = MissingValues::rows, .steps = 5};
  CausalPipeline pipeline(options);
  pipeline.fit(table, {}, {}, rows);
  const at::Tensor whole = at::cat({table.narrow(0, 0, 7), table.narrow(0, 8, 1492)});
  CausalFitOptions expected;
  expected.groups = rows.groups;
  expected.targets = rows.targets;
  expected.groups.erase(expected.groups.begin() + 7);
  expected.targets.erase(expected.targets.begin() + 7);
  EXPECT_TRUE(at::equal(pipeline.state().adjacency, causal_fit(whole, expected).adjacency));
  rows.groups.pop_back();
  EXPECT_THROW(pipeline.fit(table, {}, {}, rows), c10::ValueError);

  const at::Tensor counts = simulated.table.clone();
  counts.select(1, 3).copy_((counts.select(1, 3) * 2).exp().clamp_max(50).floor());
  options.kinds.assign(6, ColumnKind::continuous);
  options.kinds[3] = ColumnKind::count;
  CausalFitOptions mixed;
  mixed.kinds = options.kinds;
  EXPECT_TRUE(at::equal(CausalPipeline(options).fit(counts).state().adjacency,
                        causal_fit(counts, mixed).adjacency));

  CausalPipeline gaps({.missing = MissingValues::likelihood, .steps = 5});
  gaps.fit(table);
  EXPECT_TRUE(gaps.state().mean.isfinite().all().item<bool>());
  EXPECT_EQ(causal_metrics(gaps.state().adjacency, simulated.weights).shd, 0);
}

TEST(CausalPipeline, KeepsEdgesThatSamplesHaveAndTurnsOthersByNoise) {
  const CausalSimulation simulated = made();
  CausalPipeline pipeline({.steps = 5, .confidence = 8, .min_frequency = 0.9, .seed = 2});
  pipeline.fit(simulated.table.narrow(0, 0, 60));
  const EdgeConfidence& sure = *pipeline.state().confidence;
  EXPECT_EQ(sure.replicates, 8);
  EXPECT_TRUE(at::equal(pipeline.state().adjacency, sure.stable(0.9)));
  pipeline.embed(simulated.weights);
  EXPECT_FALSE(pipeline.state().confidence);

  CausalSimulationOptions exponential{.nodes = 6, .degree = 1, .observations = 1500};
  exponential.noise = CausalNoise::exponential;
  const at::Tensor table = simulate_causal(exponential).table;
  const at::Tensor standard = (table - table.mean(0)) / table.std(0, false);
  CausalPipeline turned({.standardise = true, .orient_by_noise = true, .steps = 5});
  turned.fit(table);
  const at::Tensor plain = causal_fit(table, {.standardise = true}).adjacency;
  const NoiseDirections found = orient_by_noise(standard, plain);
  const at::Tensor& expected = found.gain > 0 ? found.adjacency : plain;
  EXPECT_TRUE(at::equal(turned.state().adjacency != 0, expected != 0));
}

TEST(CausalPipeline, KeepsTheOptionsOfTheFit) {
  const test::TemporaryFolder folder;
  CausalPipelineOptions options;
  options.sparsity = 0.3;
  options.rank = 7;
  options.sample = options.soft = options.orient_by_noise = true;
  options.kinds = {ColumnKind::count, ColumnKind::category};
  options.confidence = 20;
  options.resampling = Resampling::bootstrap;
  options.min_frequency = 0.7;
  CausalPipeline(options).save(folder / "p");
  const CausalPipelineOptions read = CausalPipeline::load(folder / "p").options();
  EXPECT_EQ(read.sparsity, 0.3);
  EXPECT_EQ(read.rank, 7);
  EXPECT_TRUE(read.sample && read.soft && read.orient_by_noise);
  EXPECT_EQ(read.kinds, options.kinds);
  EXPECT_EQ(read.confidence, 20);
  EXPECT_EQ(read.resampling, Resampling::bootstrap);
  EXPECT_EQ(read.min_frequency, 0.7);
}

// Kinds of some columns, as the file of Python's pipeline has them too.
TEST(CausalPipeline, TakesKindsOfSomeColumns) {
  at::Tensor counts = made().table.clone();
  counts.select(1, 3).copy_((counts.select(1, 3) * 2).exp().clamp_max(50).floor());
  counts = at::cat(
      {counts.narrow(1, 0, 1), at::ones({counts.size(0), 1}, at::kDouble), counts.narrow(1, 1, 5)},
      1);  // a column that is dropped
  const std::vector<std::string> names{"a", "one", "b", "c", "d", "e", "f"};
  CausalPipelineOptions options{.drop = true, .steps = 5};
  options.kinds.assign(7, ColumnKind::continuous);
  options.kinds[4] = ColumnKind::count;
  const at::Tensor expected = CausalPipeline(options).fit(counts, names).state().adjacency;
  options.kinds.clear();
  EXPECT_FALSE(at::equal(CausalPipeline(options).fit(counts, names).state().adjacency, expected));
  const test::TemporaryFolder folder;
  for (const char* column : {"d", "4"}) {
    options.kinds_by_name = {{column, ColumnKind::count}, {"one", ColumnKind::count}};
    CausalPipeline(options).save(folder / "p");
    CausalPipeline read = CausalPipeline::load(folder / "p");
    EXPECT_EQ(read.options().kinds_by_name, options.kinds_by_name);
    EXPECT_TRUE(at::equal(read.fit(counts, names).state().adjacency, expected)) << column;
  }
}

TEST(CausalPipeline, NamesOptionsThatDoNotGoTogether) {
  const at::Tensor table = made().table;
  const auto error_of = [&](CausalPipelineOptions options) {
    try {
      CausalPipeline(std::move(options)).fit(table);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  EXPECT_EQ(error_of({.confidence = 1}),
            "[CausalPipeline] confidence: expected 0 or at least 2, got 1");
  EXPECT_EQ(error_of({.min_frequency = 0.5}),
            "[CausalPipeline] min_frequency: expected a number of samples, confidence, too");
  EXPECT_EQ(error_of({.nonlinear = true, .orient_by_noise = true}),
            "[CausalPipeline] orient_by_noise: expected linear effects, got nonlinear");
  EXPECT_EQ(error_of({.kinds = {ColumnKind::count}}),
            "[CausalPipeline] kinds: expected 6, one per column, got 1");
  EXPECT_EQ(error_of({.kinds_by_name = {{"6", ColumnKind::count}}}),
            "[CausalPipeline] kinds: expected columns 0 to 5 or their names, got \"6\"");
  EXPECT_EQ(error_of({.kinds = {ColumnKind::count}, .kinds_by_name = {{"1", ColumnKind::count}}}),
            "[CausalPipeline] kinds_by_name: expected no kinds with it");
  EXPECT_EQ(error_of({.kinds_by_name = {{"1", ColumnKind::count}}, .screen = 3}),
            "[CausalPipeline] screen: expected continuous columns alone, got kinds");
  EXPECT_EQ(error_of({.kinds_by_name = {{"1", ColumnKind::count}}, .orient_by_noise = true}),
            "[CausalPipeline] orient_by_noise: expected continuous columns, got kinds");
  EXPECT_EQ(error_of({.orient_by_noise = true, .missing = MissingValues::likelihood}),
            "[CausalPipeline] orient_by_noise: expected a table without gaps, got missing "
            "likelihood");
}

TEST(CausalPipeline, EmbedsAGivenGraphAndFitsAFile) {
  const test::TemporaryFolder folder;
  CausalPipeline pipeline({.steps = 20});
  pipeline.embed(made().weights);
  EXPECT_EQ(pipeline.encode().sizes(), (std::vector<int64_t>{6, 3}));
  pipeline.save(folder / "p");
  EXPECT_TRUE(at::equal(CausalPipeline::load(folder / "p").encode(), pipeline.encode()));
  std::string text = "a,b\n";
  for (int row = 0; row < 20; ++row) {
    text += std::to_string(row % 7).append(",").append(std::to_string(2 * (row % 7) + row % 3));
    text += "\n";
  }
  pipeline.fit(test::write_file(folder / "t.csv", text));
  EXPECT_THAT(pipeline.state().names, ElementsAre("a", "b"));
}

TEST(CausalPipeline, NamesTheFileThatItCannotUse) {
  const test::TemporaryFolder folder;
  const std::string path = test::write_file(folder / "t.csv", "a,b\n1,2\n1,3\n1,5\n");
  EXPECT_EQ(test::input_error_of([&] { CausalPipeline().fit(path); }),
            "cannot use " + path + ": column \"a\" is constant");
}

TEST(CausalPipeline, SaysWhatIsMissing) {
  const test::TemporaryFolder folder;
  CausalPipeline pipeline;
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { pipeline.encode(); }, [&] { pipeline.embed(); },
           [&] { pipeline.transform(at::zeros({2, 2}, at::kDouble)); }}) {
    try {
      call();
      ADD_FAILURE();
    } catch (const c10::ValueError& error) {
      EXPECT_THAT(error.what(), HasSubstr("call fit first"));
    }
  }
  at::Tensor holes = at::rand({9, 2}, at::kDouble);
  holes[3][1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(pipeline.fit(holes), c10::ValueError);
  test::write_file(folder / "q", "nothing");
  EXPECT_THROW(CausalPipeline::load(folder / "q"), InputError);
  io::write_safetensors(folder / "r", {{{"mean", at::zeros({2})}}, {{"format", "other"}}});
  EXPECT_THROW(CausalPipeline::load(folder / "r"), InputError);
}

// As json.dumps writes get_params() and what was fitted.
const std::string kFromPython =
    R"({"parameters": {"estimator": "logdet", "nonlinear": false, "standardise": true, )"
    R"("threshold": null, "missing": "rows", "drop": false, "dimension": 2, )"
    R"("optimiser": "tangent", "steps": 300, "generality": 3.0, "scale": 0.5, )"
    R"("by_dimension": false, "seed": 3}, "names": ["a", "b"], "columns": [0, 2], )"
    R"("model": "logdet"})";

TEST(CausalPipeline, ReadsWhatPythonWrote) {
  const test::TemporaryFolder folder;
  const at::Tensor points = at::tensor({0.5, 0.0, 0.0, 1.0}, at::kDouble).view({2, 2});
  const at::Tensor pair = at::tensor({1.0, 2.0}, at::kDouble);
  io::write_safetensors(folder / "p",
                        {{{"tangents", points}, {"mean", pair}, {"deviation", pair}},
                         {{"format", "nsimplex causal pipeline 2"}, {"pipeline", kFromPython}}});
  const CausalPipeline pipeline = CausalPipeline::load(folder / "p");
  EXPECT_EQ(pipeline.options().estimator, StructureEstimator::logdet);
  EXPECT_FALSE(pipeline.options().threshold);
  EXPECT_TRUE(pipeline.options().balanced);  // of a file that knows no such option
  EXPECT_FALSE(pipeline.options().hops);
  EXPECT_THAT(pipeline.state().names, ElementsAre("a", "b"));
  EXPECT_TRUE(at::allclose(pipeline.encode(), 0.5 * ball_points(points)));
  const at::Tensor table = at::tensor({3.0, 9.0, 4.0}, at::kDouble).view({1, 3});
  EXPECT_TRUE(
      at::equal(pipeline.transform(table), at::tensor({2.0, 1.0}, at::kDouble).view({1, 2})));
}

TEST(CausalPipeline, ReadsTheKindsThatPythonWrote) {
  const test::TemporaryFolder folder;
  const auto options_of = [&](const std::string& kinds) {
    std::string text = kFromPython;
    const std::string word = "\"seed\"";
    text.replace(text.find(word), word.size(), "\"kinds\": " + kinds + ", \"seed\"");
    io::write_safetensors(folder / "p",
                          {{}, {{"format", "nsimplex causal pipeline 2"}, {"pipeline", text}}});
    return CausalPipeline::load(folder / "p").options();
  };
  using Kinds = std::map<std::string, ColumnKind>;
  const Kinds expected{{"4", ColumnKind::count}, {"b", ColumnKind::binary}};
  EXPECT_EQ(options_of(R"({"b": "binary", "4": "count"})").kinds_by_name, expected);
  EXPECT_EQ(options_of(R"([[4, "count"], ["b", "binary"]])").kinds_by_name, expected);
  EXPECT_THAT(options_of(R"(["count", "binary"])").kinds,
              ElementsAre(ColumnKind::count, ColumnKind::binary));
  EXPECT_TRUE(options_of("null").kinds_by_name.empty());
  for (const char* wrong : {R"({"b": "number"})", R"([[4]])", R"({"b": 4})"}) {
    EXPECT_THAT(test::input_error_of([&] { options_of(wrong); }),
                StartsWith("cannot read " + (folder / "p")))
        << wrong;
  }
}

TEST(CausalPipeline, KeepsTheOptionsOfTheEmbedding) {
  const test::TemporaryFolder folder;
  CausalPipelineOptions options;
  options.hops = 3;
  options.side = AttractionSide::causes;
  options.weight = AttractionWeight::direct;
  options.relative = options.balanced = false;
  options.restart = 0.25;
  options.dangling = DanglingRule::eigenvector;
  CausalPipeline(options).save(folder / "p");
  const CausalPipelineOptions read = CausalPipeline::load(folder / "p").options();
  EXPECT_EQ(read.hops, 3);
  EXPECT_EQ(read.side, AttractionSide::causes);
  EXPECT_EQ(read.weight, AttractionWeight::direct);
  EXPECT_FALSE(read.relative || read.balanced);
  EXPECT_EQ(read.restart, 0.25);
  EXPECT_EQ(read.dangling, DanglingRule::eigenvector);
  EXPECT_FALSE(read.learning_rate || read.negatives);
}

TEST(CausalPipeline, NamesTheFileWhereItsTextIsWrong) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "p";
  const auto load = [&](const std::string& word, const std::string& other) {
    std::string text = kFromPython;
    text.replace(text.find(word), word.size(), other);
    io::write_safetensors(path,
                          {{}, {{"format", "nsimplex causal pipeline 2"}, {"pipeline", text}}});
    return nsimplex::test::input_error_of([&] { CausalPipeline::load(path); });
  };
  const std::string cannot = "cannot read " + path + ": ";
  EXPECT_THAT(load("logdet", "guess"),
              AllOf(StartsWith(cannot + "estimator: expected one of"), EndsWith("got \"guess\"")));
  EXPECT_THAT(load("rows", "holes"), StartsWith(cannot + "missing: expected one of"));
  EXPECT_THAT(load("tangent", "luck"), StartsWith(cannot + "optimiser: expected one of"));
  EXPECT_THAT(load("\"steps\": 300", "\"steps\": \"300\""), StartsWith(cannot));
  EXPECT_THAT(load("parameters", "others"), StartsWith(cannot));
}

}  // namespace
}  // namespace nsimplex
