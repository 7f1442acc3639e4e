// What the public functions do with tensors and lists that do not belong together: one line that
// names the function, the argument, what is expected and what came.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/causal.h>
#include <nsimplex/causal_embedding.h>
#include <nsimplex/causal_pipeline.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace nsimplex {
namespace {

using at::Tensor;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Refused {
  std::string place;  // "[function] argument"
  std::function<void()> call;
};

// "" if the call is accepted.
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const std::vector<Refused>& table) {
  for (const Refused& each : table) {
    const std::string message = message_of(each.call);
    EXPECT_THAT(message, ::testing::MatchesRegex(".*: expected .*, got .*"));
    EXPECT_THAT(message, ::testing::StartsWith(each.place));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

Tensor table_of(int64_t rows = 20) {
  return simulate_causal({.nodes = 4, .degree = 1, .observations = rows}).table;
}

Tensor chain() { return at::diag(at::ones({3}, at::kDouble), 1); }

Tensor with(Tensor matrix, double value) {
  matrix[0][2] = value;
  return matrix;
}

TEST(CausalArguments, BelongToTheRowsAndColumnsOfTheTable) {
  const Tensor table = table_of(), graph = chain();
  for (const int64_t count : {1, 3, 19, 21, 100'000}) {
    const auto rows = static_cast<size_t>(count);
    const std::vector<CausalFitOptions> wrong{
        {.groups = std::vector<int64_t>(rows)},
        {.targets = std::vector<std::vector<int64_t>>(rows)},
        {.kinds = std::vector<ColumnKind>(rows)},
        {.constraints = {.tiers = std::vector<int64_t>(rows)}}};
    const std::vector<std::string> names{"groups", "targets", "kinds", "tiers"};
    for (size_t each = 0; each < wrong.size(); ++each) {
      const CausalFitOptions& options = wrong[each];
      std::vector<Refused> calls{
          {"[causal_fit] " + names[each], [&] { causal_fit(table, options); }}};
      for (const Resampling resampling : {Resampling::halves, Resampling::bootstrap}) {
        calls.push_back({"[edge_confidence] " + names[each], [&, resampling] {
                           edge_confidence(table, graph, options,
                                           {.replicates = 2, .resampling = resampling});
                         }});
      }
      expect_refused(calls);
    }
    expect_refused(
        {{"[orient_by_noise] tiers",
          [&] {
            orient_by_noise(table, graph, {.constraints = {.tiers = std::vector<int64_t>(rows)}});
          }},
         {"[causal_limits] names",
          [&] { causal_limits(table, graph, {.names = std::vector<std::string>(rows, "a")}); }},
         {"[CausalPipeline] groups",
          [&] {
            CausalPipeline({.steps = 1}).fit(table, {}, {}, {.groups = std::vector<int64_t>(rows)});
          }},
         {"[CausalPipeline] targets",
          [&] {
            CausalPipeline({.steps = 1})
                .fit(table, {}, {}, {.targets = std::vector<std::vector<int64_t>>(rows)});
          }},
         {"[CausalPipeline] kinds",
          [&] { CausalPipeline({.kinds = std::vector<ColumnKind>(rows), .steps = 1}).fit(table); }},
         {"[CausalPipeline] names",
          [&] { CausalPipeline({.steps = 1}).fit(table, std::vector<std::string>(rows, "a")); }}});
  }
  for (const int64_t column : {int64_t{-1}, int64_t{4}, std::numeric_limits<int64_t>::max()}) {
    CausalFitOptions targets{.targets = std::vector<std::vector<int64_t>>(20)};
    targets.targets[3] = {column};
    const CausalFitOptions forbidden{.constraints = {.forbidden = {{0, column}}}};
    const CausalFitOptions required{.constraints = {.required = {{column, 0}}}};
    expect_refused(
        {{"[causal_fit] targets", [&] { causal_fit(table, targets); }},
         {"[causal_fit] forbidden", [&] { causal_fit(table, forbidden); }},
         {"[causal_fit] required", [&] { causal_fit(table, required); }},
         {"[edge_confidence] targets", [&] { edge_confidence(table, graph, targets, {}); }},
         {"[edge_confidence] forbidden", [&] { edge_confidence(table, graph, forbidden, {}); }},
         {"[edge_confidence] required", [&] { edge_confidence(table, graph, required, {}); }},
         {"[simulate_causal] interventions",
          [&] { simulate_causal({.nodes = 4, .interventions = {{column, 1.0}}}); }}});
  }
}

TEST(CausalArguments, AreFiniteNumbers) {
  const Tensor table = table_of(), graph = chain();
  for (const double bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    const Tensor odd = with(graph.clone(), bad), holes = with(table.clone(), bad);
    expect_refused({{"[causal_fit] table", [&] { causal_fit(holes); }},
                    {"[edge_confidence] graph", [&] { edge_confidence(table, odd, {}, {}); }},
                    {"[edge_confidence] table", [&] { edge_confidence(holes, graph, {}, {}); }},
                    {"[causal_metrics] graph", [&] { causal_metrics(odd, graph); }},
                    {"[causal_metrics] truth", [&] { causal_metrics(graph, odd); }},
                    {"[edge_curves] truth", [&] { edge_curves(graph, odd); }},
                    {"[causal_sortability] table", [&] { causal_sortability(holes, graph); }},
                    {"[causal_sortability] graph", [&] { causal_sortability(table, odd); }},
                    {"[variance_order] table", [&] { variance_order(holes, graph); }},
                    {"[variance_order] graph", [&] { variance_order(table, odd); }},
                    {"[causal_limits] table", [&] { causal_limits(holes, graph); }},
                    {"[causal_limits] graph", [&] { causal_limits(table, odd); }},
                    {"[causal_baselines] table", [&] { causal_baselines(holes); }},
                    {"[orient_by_noise] table", [&] { orient_by_noise(holes, graph); }},
                    {"[orient_by_noise] graph", [&] { orient_by_noise(table, odd); }},
                    {"[simulate_causal] graph", [&] { simulate_causal(odd, {}); }},
                    {"[simulate_causal] weights", [&] { simulate_causal({.weight_high = bad}); }},
                    {"[simulate_causal] interventions",
                     [&] { simulate_causal({.interventions = {{0, bad}}}); }},
                    {"[causal_embed] adjacency", [&] { causal_embed(odd); }},
                    {"[causal_embed] adjacency", [&] { causal_embed(odd.to_sparse()); }},
                    {"[causal_ranking] tangents", [&] { causal_ranking(odd, graph); }},
                    {"[causal_ranking] adjacency", [&] { causal_ranking(graph, odd); }},
                    {"[causal_embedding_warning] tangents", [&] { causal_embedding_warning(odd); }},
                    {"[hyperbolic_distances] tangents", [&] { hyperbolic_distances(odd); }},
                    {"[causal_angles] ball", [&] { causal_angles(odd); }},
                    {"[causal_angles] scale", [&] { causal_angles(graph, {.scale = bad}); }},
                    {"[causal_angles] head_scale",
                     [&] {
                       causal_angles(graph,
                                     {.heads = 2, .head_scale = at::full({2}, bad, at::kDouble)});
                     }},
                    {"[CausalPipeline] table", [&] {
                       CausalPipeline pipeline({.steps = 1});
                       pipeline.fit(table);
                       Tensor infinite = with(table.clone(), std::isnan(bad) ? kInfinity : bad);
                       pipeline.transform(infinite);
                     }}});
  }
  EXPECT_NO_THROW(edge_curves(with(graph.clone(), kInfinity), graph));  // a score
  EXPECT_NE(message_of([&] { edge_curves(with(graph.clone(), kNan), graph); }), "");
}

TEST(CausalArguments, AreDenseMatricesOfFloat64) {
  const Tensor table = table_of(), graph = chain();
  const std::vector<Tensor> wrong{graph.to(at::kFloat),
                                  graph.to(at::kLong),
                                  graph.to(at::kComplexDouble),
                                  graph.to_sparse(),
                                  graph[0],
                                  graph.unsqueeze(0),
                                  at::Tensor()};
  for (const Tensor& odd : wrong) {
    expect_refused({{"[causal_fit] table", [&] { causal_fit(odd); }},
                    {"[edge_confidence] graph", [&] { edge_confidence(table, odd, {}, {}); }},
                    {"[causal_metrics] graph", [&] { causal_metrics(odd, graph); }},
                    {"[edge_curves] scores", [&] { edge_curves(odd, graph); }},
                    {"[causal_sortability] table", [&] { causal_sortability(odd, graph); }},
                    {"[variance_order] graph", [&] { variance_order(table, odd); }},
                    {"[causal_limits] graph", [&] { causal_limits(table, odd); }},
                    {"[causal_baselines] table", [&] { causal_baselines(odd); }},
                    {"[orient_by_noise] graph", [&] { orient_by_noise(table, odd); }},
                    {"[simulate_causal] graph", [&] { simulate_causal(odd, {}); }},
                    {"[screen_columns] table", [&] { screen_columns(odd, 2); }},
                    {"[CausalPipeline] table", [&] { CausalPipeline().fit(odd); }}});
  }
  expect_refused({{"[causal_embed] adjacency", [&] { causal_embed(table); }},
                  {"[causal_embed] adjacency", [&] { causal_embed(graph.to(at::kLong)); }},
                  {"[causal_ranking] tangents", [&] { causal_ranking(graph.to_sparse(), graph); }},
                  {"[causal_angles] ball", [&] { causal_angles(graph.to(at::kLong)); }}});
}

TEST(CausalArguments, StateTheirLimitBeforeTheyTakeMemory) {
  constexpr int64_t kHuge = int64_t{1} << 31;
  const Tensor number = at::ones({1, 1}, at::kDouble);
  expect_refused(
      {{"[simulate_causal] nodes", [&] { simulate_causal({.nodes = kHuge}); }},
       {"[simulate_causal] observations", [&] { simulate_causal({.observations = kHuge}); }},
       {"[causal_embed] dimension", [&] { causal_embed(chain(), {.dimension = kHuge}); }},
       {"[causal_angles] leading", [&] { causal_angles(chain(), {.leading = kHuge}); }},
       {"[causal_fit] table", [&] { causal_fit(number.expand({kHuge, 4})); }},
       {"[causal_fit] table", [&] { causal_fit(at::rand({2, 100'000}, at::kDouble)); }},
       {"[hyperbolic_distances] tangents",
        [&] { hyperbolic_distances(at::zeros({100'000, 2}, at::kDouble)); }}});
  EXPECT_NO_THROW(simulate_causal({.nodes = 5, .degree = int64_t{1} << 62}));
}

TEST(CausalArguments, MayBeNegatedViewsAndOtherStrides) {
  const Tensor table = table_of(), graph = chain();
  const auto views = [](const Tensor& matrix) {
    return std::vector<Tensor>{at::_neg_view(-matrix), matrix.t().contiguous().t(),
                               at::cat({matrix, matrix}, 1).slice(1, 0, matrix.size(1))};
  };
  const Tensor fitted = causal_fit(table).adjacency;
  const CausalEmbedding embedded = causal_embed(graph, {.steps = 3});
  for (const Tensor& view : views(table)) {
    EXPECT_TRUE(causal_fit(view).adjacency.equal(fitted));
    EXPECT_EQ(causal_sortability(view, graph).variance, causal_sortability(table, graph).variance);
  }
  const Tensor distances = hyperbolic_distances(embedded.tangents);
  for (const Tensor& view : views(embedded.tangents)) {
    EXPECT_TRUE(hyperbolic_distances(view).equal(distances));
  }
  for (const Tensor& view : views(graph)) {
    EXPECT_TRUE(causal_embed(view, {.steps = 3}).tangents.equal(embedded.tangents));
    EXPECT_EQ(edge_curves(view, graph).auroc, 1);
    EXPECT_EQ(edge_curves(-view, graph).auroc, 0);
  }
}

}  // namespace
}  // namespace nsimplex
