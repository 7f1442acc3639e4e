// Hostile inputs: NaN where nobody may look, non-finite values where somebody does, extreme logits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/dense_case.h"
#include "kernels/dense_oracle.h"

namespace nsimplex::kernels::testing {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class DenseRobustnessTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { take_way(GetParam()); }
  void TearDown() override { take_way(""); }
};

void fill_row(Array& array, int64_t batch, int64_t head, int64_t row, float value) {
  for (int64_t c = 0; c < array.channels; ++c) array.at(batch, head, row, c) = value;
}

void expect_finite(const std::vector<float>& values, const char* what) {
  for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << what;
}

// Whether some tuple of some query of the batch entry holds key `row` of axis m.
bool ever_admissible(const DenseProblem<float>& problem, int64_t batch, int m, int64_t row) {
  for (int64_t query = 0; query < problem.queries; ++query) {
    bool seen = true;
    for (int a = 0; a < problem.order; ++a) {  // by position: the other masks only take away
      const Range range = problem.axes[a].visible.of(batch, query);
      seen &= a == m ? row >= range.begin && row < range.end : range.size() > 0;
    }
    if (seen) return true;
  }
  return false;
}

TEST_P(DenseRobustnessTest, RowsThatNobodyMaySeeNeverShow) {
  std::vector<DenseCase> shapes = dense_cases();
  for (DenseCase& shape : option_cases()) shapes.push_back(std::move(shape));
  for (const DenseCase& shape : shapes) {
    SCOPED_TRACE(shape.name);
    DenseData clean(shape), dirty(shape);
    const DenseForward<float> problem = dirty.forward();
    for (int m = 0; m < shape.order(); ++m) {
      for (int64_t b = 0; b < shape.batch; ++b) {
        for (int64_t row = 0; row < shape.lengths[m]; ++row) {
          if (ever_admissible(problem, b, m, row)) continue;
          for (int64_t h = 0; h < shape.kv_heads; ++h) {
            fill_row(dirty.keys[m], b, h, row, kNaN);
            fill_row(dirty.values[m], b, h, row, kInfinity);
          }
        }
      }
    }
    for (DenseData* data : {&clean, &dirty}) {
      run_forward(data->forward());
      run_backward(data->backward());
    }
    EXPECT_EQ(dirty.out.values(), clean.out.values());
    EXPECT_EQ(dirty.lse, clean.lse);
    EXPECT_EQ(dirty.grad_query.values(), clean.grad_query.values());
    for (int m = 0; m < shape.order(); ++m) {
      EXPECT_EQ(dirty.grad_keys[m].values(), clean.grad_keys[m].values());
      EXPECT_EQ(dirty.grad_values[m].values(), clean.grad_values[m].values());
    }
  }
}

// NaNs of several bit patterns: an exponential by bit tricks must not turn one into a number.
TEST_P(DenseRobustnessTest, NonFiniteKeysAndValuesReachTheirQueriesAndNoOtherHead) {
  const DenseCase shape{.name = "",
                        .batch = 2,
                        .heads = 4,
                        .kv_heads = 2,
                        .queries = 70,
                        .dim = 16,
                        .value_dim = 16,
                        .lengths = {70, 70},
                        .window = {{3, 0}, {40, 0}},
                        .causal = true};
  float patterns[4] = {kNaN, -kNaN, kInfinity, 0.0f};
  const uint32_t all_ones = 0xffffffffu;
  std::memcpy(&patterns[3], &all_ones, sizeof all_ones);
  for (const float pattern : patterns) {
    for (const bool in_values : {false, true}) {
      for (int m = 0; m < 2; ++m) {
        DenseData clean(shape), data(shape);
        const int64_t row = 33;
        Array& target = in_values ? data.values[m] : data.keys[m];
        // A whole row: an infinite channel alone could be a logit of minus infinity, a weight of 0.
        for (int64_t c = 0; c < 16; ++c) target.at(1, 0, row, c) = pattern;
        run_forward(clean.forward());
        run_forward(data.forward());
        const DenseForward<float> problem = data.forward();
        for (int64_t b = 0; b < 2; ++b) {
          for (int64_t h = 0; h < 4; ++h) {
            for (int64_t i = 0; i < 70; ++i) {
              const Range range = problem.axes[m].visible.of(b, i);
              const bool sees = b == 1 && h < 2 && row >= range.begin && row < range.end;
              if (sees) {
                bool finite = true;
                for (int64_t c = 0; c < 16; ++c) finite &= std::isfinite(data.out.at(b, h, i, c));
                EXPECT_FALSE(finite) << b << " " << h << " " << i;
              }
              if (b == 1 && h < 2) continue;
              for (int64_t c = 0; c < 16; ++c) {
                EXPECT_EQ(data.out.at(b, h, i, c), clean.out.at(b, h, i, c));
              }
            }
          }
        }
      }
    }
  }
}

TEST_P(DenseRobustnessTest, LogitsOfTenThousandStayExact) {
  for (const float sign : {1.0f, -1.0f}) {
    DenseCase shape{.name = "",
                    .heads = 2,
                    .kv_heads = 1,
                    .queries = 50,
                    .dim = 4,
                    .value_dim = 8,
                    .lengths = {50, 90},
                    .window = {{4, 0}, {64, 3}}};
    DenseData data(shape);
    // Small integers times 1e4 / 64: every logit and every partial sum is exact in fp32.
    auto to_integers = [](Array& array, int bound) {
      for (int64_t b = 0; b < array.batch; ++b)
        for (int64_t h = 0; h < array.heads; ++h)
          for (int64_t r = 0; r < array.rows; ++r)
            for (int64_t c = 0; c < array.channels; ++c) {
              array.at(b, h, r, c) =
                  static_cast<float>((r * 7 + c * 3 + h) % (2 * bound + 1) - bound);
            }
    };
    to_integers(data.query, 2);
    for (Array& array : data.keys) to_integers(array, 2);
    DenseForward<float> problem = data.forward();
    problem.logit_scale = sign * 1.0e4 / 32.0;
    run_forward(problem);
    const DenseOracle oracle = dense_oracle<float>(problem, nullptr, nullptr);
    // fp32 keeps 1e4 log2(e) to 5e-4: neighbouring logits differ by hundreds or are equal.
    EXPECT_LE(relative_error(data.out.values(), oracle.out), 2e-3);
    EXPECT_LE(relative_error(data.lse, oracle.lse), 2e-6);
    DenseBackward<float> backward = data.backward();
    backward.logit_scale = problem.logit_scale;
    run_backward(backward);
    expect_finite(data.grad_query.values(), "query");
    for (int m = 0; m < 2; ++m) {
      expect_finite(data.grad_keys[m].values(), "keys");
      expect_finite(data.grad_values[m].values(), "values");
    }
  }
}

// Keys in ascending order of score: the running maximum has to be raised again and again, in the
// middle of blocks whose rows belong to several queries.
TEST_P(DenseRobustnessTest, RisingScoresRaiseTheMaximumAgainAndAgain) {
  for (const float step : {0.05f, 0.4f, 3.0f}) {
    DenseCase shape{.name = "",
                    .heads = 1,
                    .kv_heads = 1,
                    .queries = 30,
                    .dim = 1,
                    .value_dim = 5,
                    .lengths = {30, 600},
                    .window = {{5, 0}, {500, 0}}};
    DenseData data(shape);
    for (int64_t i = 0; i < 30; ++i) data.query.at(0, 0, i, 0) = 1.0f + 0.01f * i;
    for (int64_t j = 0; j < 30; ++j) data.keys[0].at(0, 0, j, 0) = 1.0f + 0.1f * (j % 3);
    for (int64_t j = 0; j < 600; ++j) data.keys[1].at(0, 0, j, 0) = step * j;
    const DenseForward<float> problem = data.forward();
    run_forward(problem);
    run_backward(data.backward());
    const DenseOracle oracle = dense_oracle<float>(problem, nullptr, nullptr);
    // The largest logit is about 600 step: that times eps is the error of a weight.
    EXPECT_LE(relative_error(data.out.values(), oracle.out), 2e-6 + 1e-4 * step);
    EXPECT_LE(relative_error(data.lse, oracle.lse), 1e-6);
  }
}

TEST_P(DenseRobustnessTest, EqualLogitsGiveTheMean) {
  DenseCase shape{.name = "", .queries = 40, .lengths = {40, 100}, .causal = true};
  DenseData data(shape);
  for (int64_t i = 0; i < 40; ++i) fill_row(data.query, 0, 0, i, 0.0f);
  const DenseForward<float> problem = data.forward();
  run_forward(problem);
  const DenseOracle oracle = dense_oracle<float>(problem, nullptr, nullptr);
  EXPECT_LE(relative_error(data.out.values(), oracle.out), 1e-6);
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_NEAR(data.lse[i], std::log((i + 1.0) * (i + 61.0)), 1e-5);
  }
}

TEST_P(DenseRobustnessTest, QueriesWithoutTuplesGiveZeroAndMinusInfinity) {
  DenseCase shape{.name = "",
                  .batch = 2,
                  .queries = 9,
                  .lengths = {9, 4},
                  .causal = true,
                  .key_lengths = {{9, 0}, {4, 4}}};
  DenseData data(shape);
  run_forward(data.forward());
  run_backward(data.backward());
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 9; ++i) {
      if (b == 0 && i >= 5) continue;  // sees keys on both axes
      EXPECT_EQ(data.lse[b * 9 + i], -kInfinity);
      for (int64_t c = 0; c < 8; ++c) {
        EXPECT_EQ(data.out.at(b, 0, i, c), 0.0f);
        EXPECT_EQ(data.grad_query.at(b, 0, i, c), 0.0f);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, DenseRobustnessTest, ::testing::ValuesIn(kernel_ways()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace nsimplex::kernels::testing
