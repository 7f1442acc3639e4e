// The top-k kernel against the definition, at every SIMD level.

#include "kernels/cpu/topk/topk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "kernels/cpu/shared/simd.h"
#include "kernels/drive.h"

namespace nsimplex::kernels::testing {
namespace {

struct Case {
  std::string name;
  int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, dim = 8, k = 1;
  bool causal = false, softmax = false, weights = false, adjacency = false;
  std::vector<int64_t> lengths;
  int64_t distinct_keys = 0;  ///< keys repeat with this period: ties
};

std::vector<Case> cases() {
  return {
      {.name = "one_pair"},
      {.name = "no_keys", .queries = 3, .keys = 0, .k = 2},
      {.name = "odd_channels", .queries = 9, .keys = 33, .dim = 5, .k = 4},
      {.name = "more_than_all", .queries = 33, .keys = 31, .k = 50},
      {.name = "groups",
       .batch = 2,
       .heads = 6,
       .kv_heads = 2,
       .queries = 31,
       .keys = 64,
       .dim = 16,
       .k = 7,
       .weights = true},
      {.name = "causal", .heads = 2, .queries = 70, .keys = 70, .k = 9, .causal = true},
      {.name = "causal_before_all_keys", .queries = 70, .keys = 20, .k = 9, .causal = true},
      {.name = "decode",
       .heads = 4,
       .queries = 1,
       .keys = 3000,
       .dim = 16,
       .k = 20,
       .causal = true},
      {.name = "softmax",
       .heads = 4,
       .kv_heads = 2,
       .queries = 40,
       .keys = 65,
       .k = 11,
       .softmax = true,
       .weights = true},
      {.name = "prunings", .queries = 65, .keys = 2500, .k = 5},
      {.name = "ties", .queries = 40, .keys = 700, .k = 130, .distinct_keys = 3},
      {.name = "all_equal", .queries = 3, .keys = 900, .k = 33, .distinct_keys = 1},
      {.name = "lengths",
       .batch = 3,
       .queries = 33,
       .keys = 50,
       .k = 6,
       .causal = true,
       .lengths = {0, 50, 17}},
      {.name = "adjacency",
       .batch = 2,
       .heads = 2,
       .queries = 45,
       .keys = 100,
       .k = 8,
       .adjacency = true},
  };
}

template <class R>
struct Data {
  explicit Data(const Case& c) : shape(c) {
    std::mt19937 generator(5);
    std::normal_distribution<R> normal;
    const auto draw = [&](int64_t count) {
      std::vector<R> values(count);
      for (R& value : values) value = normal(generator);
      return values;
    };
    query = draw(c.batch * c.heads * c.queries * c.dim);
    key = draw(c.batch * c.kv_heads * c.keys * c.dim);
    const int64_t row = c.dim;
    for (int64_t r = 0; c.distinct_keys > 0 && r < c.batch * c.kv_heads * c.keys; ++r) {
      const int64_t first = r / c.keys * c.keys + r % c.keys % c.distinct_keys;
      std::copy_n(key.begin() + first * row, row, key.begin() + r * row);
    }
    if (c.weights) weights = draw(c.batch * c.heads * c.queries);
    if (c.softmax) {
      lse = draw(c.batch * c.heads * c.queries);
      lse[0] = -std::numeric_limits<R>::infinity();
    }
    if (c.adjacency) {
      for (const R value : draw(c.batch * c.queries * c.keys)) adjacency.push_back(value > 0.5);
    }
    // Keys that nobody may see: never read into a product.
    for (int64_t b = 0; b < static_cast<int64_t>(c.lengths.size()); ++b) {
      for (int64_t i = c.lengths[b] * row; i < c.keys * row; ++i) {
        key[b * c.keys * row + i] = std::numeric_limits<R>::quiet_NaN();
      }
    }
    indices.assign(c.batch * c.queries * c.k, -7);
    scores.assign(indices.size(), R{-7});
  }

  TopkProblem<R> problem() {
    const Case& c = shape;
    flags.reset(new bool[adjacency.size() + 1]);
    std::copy(adjacency.begin(), adjacency.end(), flags.get());
    TopkProblem<R> p;
    p.batch = c.batch;
    p.heads = c.heads;
    p.kv_heads = c.kv_heads;
    p.queries = c.queries;
    p.dim = c.dim;
    p.k = c.k;
    p.logit_scale = 0.4;
    p.query = {query.data(), c.heads * c.queries * c.dim, c.queries * c.dim, c.dim};
    p.key = {key.data(), c.kv_heads * c.keys * c.dim, c.keys * c.dim, c.dim};
    p.visible = {.length = c.keys,
                 .offset = c.keys - c.queries,
                 .causal = c.causal,
                 .lengths = c.lengths.empty() ? nullptr : shape.lengths.data()};
    if (c.weights) p.weights = weights.data();
    if (c.softmax) p.lse = lse.data();
    if (c.adjacency) {
      p.adjacency = flags.get();
      p.adjacency_query_stride = c.keys;
      p.adjacency_batch_stride = c.queries * c.keys;
    }
    p.indices = indices.data();
    p.scores = scores.data();
    return p;
  }

  // The score of one pair from the formula, -infinity where it is not admissible.
  double score(const TopkProblem<R>& p, int64_t b, int64_t i, int64_t j) const {
    const Range range = p.visible.of(b, i);
    if (j < range.begin || j >= range.end || (p.adjacency && !p.admissible(b, i)[j])) {
      return -std::numeric_limits<double>::infinity();
    }
    double sum = 0.0;
    for (int64_t h = 0; h < p.heads; ++h) {
      const R *const q = p.query.row(b, h, i), *const k =
                                                   p.key.row(b, h / (p.heads / p.kv_heads), j);
      double logit = 0.0;
      for (int64_t c = 0; c < p.dim; ++c) logit += static_cast<double>(q[c]) * k[c];
      logit *= p.logit_scale;
      const int64_t entry = (b * p.heads + h) * p.queries + i;
      double act = std::max(logit, 0.0);
      if (p.lse) act = std::isinf(p.lse[entry]) ? 0.0 : std::exp(logit - p.lse[entry]);
      sum += (p.weights ? p.weights[entry] : 1.0) * act;
    }
    return sum;
  }

  Case shape;
  std::vector<R> query, key, weights, lse, scores;
  std::vector<char> adjacency;
  std::unique_ptr<bool[]> flags;
  std::vector<int64_t> indices;
};

template <class R>
void run(const TopkProblem<R>& problem, Drive drive = {}) {
  const TopkPlan plan = plan_topk(problem);
  drive_plan(plan, drive, [&](int phase, int64_t task, void* workspace, void* scratch) {
    run_topk(problem, phase, task, workspace, scratch);
  });
}

class TopkTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(""); }
};

// Where rounding may exchange neighbours, what is chosen must have the scores of the exact choice.
template <class R>
void expect_definition(const Case& shape, double precision) {
  SCOPED_TRACE(shape.name);
  Data<R> data(shape);
  const TopkProblem<R> problem = data.problem();
  run(problem);
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t i = 0; i < shape.queries; ++i) {
      std::vector<std::pair<double, int64_t>> exact;
      for (int64_t j = 0; j < shape.keys; ++j) {
        const double score = data.score(problem, b, i, j);
        if (score > -std::numeric_limits<double>::infinity()) exact.emplace_back(-score, j);
      }
      std::sort(exact.begin(), exact.end());
      const int64_t* const indices = problem.indices + (b * shape.queries + i) * shape.k;
      const R* const scores = problem.scores + (b * shape.queries + i) * shape.k;
      std::vector<int64_t> seen;
      for (int64_t c = 0; c < shape.k; ++c) {
        if (c >= static_cast<int64_t>(exact.size())) {
          EXPECT_EQ(indices[c], -1) << b << " " << i << " " << c;
          EXPECT_EQ(scores[c], -std::numeric_limits<R>::infinity());
          continue;
        }
        ASSERT_GE(indices[c], 0) << b << " " << i << " " << c;
        const double tolerance = precision * (1.0 + std::abs(exact[c].first));
        EXPECT_NEAR(scores[c], -exact[c].first, tolerance);
        EXPECT_NEAR(data.score(problem, b, i, indices[c]), scores[c], tolerance);
        seen.push_back(indices[c]);
        if (c > 0) {
          EXPECT_TRUE(scores[c] < scores[c - 1] ||
                      (scores[c] == scores[c - 1] && indices[c] > indices[c - 1]));
        }
        // Equal keys have the same bits as scores: the choice among them is exact.
        if (shape.distinct_keys == 1) {
          EXPECT_EQ(indices[c], c);
        }
      }
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "a key came twice";
    }
  }
}

TEST_P(TopkTest, IsTheDefinition) {
  for (const Case& shape : cases()) {
    expect_definition<float>(shape, 2e-5);
    expect_definition<double>(shape, 1e-12);
  }
}

TEST_P(TopkTest, BitsDoNotDependOnHowTasksRun) {
  for (const Case& shape : cases()) {
    SCOPED_TRACE(shape.name);
    Data<float> first(shape);
    run(first.problem());
    for (const Drive drive : {Drive{1, true}, Drive{2}, Drive{3, true}}) {
      Data<float> again(shape);
      run(again.problem(), drive);
      EXPECT_EQ(again.indices, first.indices);
      EXPECT_EQ(again.scores, first.scores);
    }
  }
}

TEST_P(TopkTest, EqualScoresGoToTheLowestIndex) {
  const Case shape{.name = "", .queries = 40, .keys = 700, .k = 130, .distinct_keys = 3};
  Data<float> data(shape);
  run(data.problem());
  for (int64_t i = 0; i < shape.queries; ++i) {
    const int64_t* const indices = data.indices.data() + i * shape.k;
    // 233 or 234 keys are equal: all 130 are the first ones of the best kind, unless relu makes
    // several kinds zero, and then the first ones of those.
    const float best = data.scores[i * shape.k];
    int64_t next = 0;
    for (int64_t c = 0; c < shape.k; ++c) {
      EXPECT_EQ(data.scores[i * shape.k + c], best);
      const auto of_kind = [&](int64_t j) {
        return std::abs(data.score(data.problem(), 0, i, j) - best) < 1e-5;
      };
      while (!of_kind(next)) ++next;
      EXPECT_EQ(indices[c], next++);
    }
  }
}

TEST_P(TopkTest, WhatIsNotFiniteIsNeverChosen) {
  const Case shape{.name = "", .queries = 20, .keys = 60, .k = 30};
  Data<float> data(shape);
  for (int64_t j = 0; j < 60; j += 2) {
    for (int64_t c = 0; c < 8; ++c) data.key[j * 8 + c] = std::nanf("");
  }
  run(data.problem());
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t c = 0; c < 30; ++c) EXPECT_EQ(data.indices[i * 30 + c] % 2, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, TopkTest, ::testing::ValuesIn(simd_levels()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace nsimplex::kernels::testing
