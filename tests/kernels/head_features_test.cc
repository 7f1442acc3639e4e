// Random features of queries and keys beside the definition.

#include "kernels/cpu/equivariant/class_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "class_row_case.h"

namespace nsimplex::kernels::testing {
namespace {

// A vector, less, more, and more features than gradients are taken at a time.
struct Widths {
  int64_t width, features;
};
constexpr Widths kWidths[] = {{8, 16}, {3, 1}, {13, 9}, {1, 70}, {16, 150}};
constexpr int64_t kHeads = 3, kStride = 60;  // beyond all heads

// matrix [rows, columns] with its rows padded.
template <class T>
std::vector<T> pad_rows(const std::vector<T>& matrix, int64_t rows, int64_t columns) {
  std::vector<T> padded(rows * padded_channels(columns), T{0});
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(&matrix[r * columns], columns, &padded[r * padded_channels(columns)]);
  }
  return padded;
}

// Rows with features of one map, as the kernels make them.
template <class T>
struct Case {
  static constexpr T kFloor = static_cast<T>(1e-3), kHalfSquare = static_cast<T>(0.2);
  static constexpr T kUntouched = 7;

  Case(HeadFeatureMap of, int64_t row_count, Widths widths)
      : map(of),
        rows(row_count),
        width(widths.width),
        features(widths.features),
        x(draw_rows<T>(rows * kStride, 1)),
        directions(draw_rows<T>(width * features, 2)),
        of_x(rows * kHeads * features, -1),
        shift(rows * kHeads),
        grad(draw_rows<double>(of_x.size(), 3)),
        grad_x(rows * kStride, kUntouched) {
    const auto padded = pad_rows(directions, width, features);
    HeadFeatures<T> problem{
        map,           rows,   kHeads,      features,    {x.data(), kStride, width},
        padded.data(), kFloor, of_x.data(), kHalfSquare, shift.data()};
    run_all(problem, [](const auto& own, int64_t task) { run_features(own, task); });
    if (map == HeadFeatureMap::exponential) {
      most = shift;
      // Not below the largest exponent, and not it.
      for (T& each : shift) each += static_cast<T>(0.5);
      run_all(problem, [](const auto& own, int64_t task) { run_exponentials(own, task); });
    }
    std::vector<T> turned(features * width);
    for (int64_t f = 0; f < features; ++f) {
      for (int64_t c = 0; c < width; ++c) turned[f * width + c] = directions[c * features + f];
    }
    const auto padded_turned = pad_rows(turned, features, width);
    const HeadFeaturesBackward<T> backward{map,
                                           rows,
                                           kHeads,
                                           features,
                                           width,
                                           of_x.data(),
                                           padded_turned.data(),
                                           kFloor,
                                           grad.data(),
                                           grad_x.data(),
                                           kStride,
                                           {x.data(), kStride, width},
                                           kHalfSquare};
    run_all(backward, [](const auto& own, int64_t task) { run_features_backward(own, task); });
  }

  double at(int64_t row, int64_t head, int64_t c) const {
    return static_cast<double>(x[row * kStride + head * width + c]);
  }
  double direction(int64_t f, int64_t c) const {
    return static_cast<double>(directions[c * features + f]);
  }
  double product(int64_t row, int64_t head, int64_t f) const {
    double sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += at(row, head, c) * direction(f, c);
    return sum;
  }
  double square(int64_t row, int64_t head) const {
    double sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += at(row, head, c) * at(row, head, c);
    return sum;
  }

  HeadFeatureMap map;
  int64_t rows, width, features;
  std::vector<T> x, directions, of_x, shift, most;
  std::vector<double> grad;
  std::vector<T> grad_x;
};

// visit(row, head) of all, then what lies between heads and rows.
template <class T, class Visit>
void for_each_head(const Case<T>& own, Visit&& visit) {
  for (int64_t row = 0; row < own.rows; ++row) {
    for (int64_t h = 0; h < kHeads; ++h) visit(row, h);
    for (int64_t c = kHeads * own.width; c < kStride; ++c) {
      ASSERT_EQ(own.grad_x[row * kStride + c], Case<T>::kUntouched);
    }
  }
}

template <class T>
class HeadFeaturesTest : public ::testing::Test {
 protected:
  static constexpr double kError = std::is_same_v<T, float> ? 1e-5 : 1e-13;
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(HeadFeaturesTest, Types);

TYPED_TEST(HeadFeaturesTest, OfTheRectifierAndTheirGradients) {
  using T = TypeParam;
  for (const Widths& widths : kWidths) {
    for (const int64_t rows : {0, 1, 300}) {
      const Case<T> own(HeadFeatureMap::relu, rows, widths);
      for_each_head(own, [&](int64_t row, int64_t h) {
        std::vector<double> expected(own.width, 0);
        for (int64_t f = 0; f < own.features; ++f) {
          const int64_t place = (row * kHeads + h) * own.features + f;
          ASSERT_NEAR(own.of_x[place], std::max(own.product(row, h, f), 0.) + 1e-3,
                      20 * TestFixture::kError);
          if (own.of_x[place] <= own.kFloor) continue;
          for (int64_t c = 0; c < own.width; ++c) {
            expected[c] += own.grad[place] * own.direction(f, c);
          }
        }
        for (int64_t c = 0; c < own.width; ++c) {
          ASSERT_NEAR(own.grad_x[row * kStride + h * own.width + c], expected[c],
                      50 * TestFixture::kError);
        }
      });
    }
  }
}

TYPED_TEST(HeadFeaturesTest, ExponentialsAndTheirGradients) {
  using T = TypeParam;
  const double half_square = Case<T>::kHalfSquare;
  for (const Widths& widths : kWidths) {
    for (const int64_t rows : {0, 1, 300}) {
      const Case<T> own(HeadFeatureMap::exponential, rows, widths);
      for_each_head(own, [&](int64_t row, int64_t h) {
        const int64_t head_row = row * kHeads + h;
        std::vector<double> expected(own.width, 0);
        double most = -std::numeric_limits<double>::infinity();
        for (int64_t f = 0; f < own.features; ++f) {
          const int64_t place = head_row * own.features + f;
          const double exponent = own.product(row, h, f) - half_square * own.square(row, h);
          const double power = std::exp(exponent - static_cast<double>(own.shift[head_row]));
          ASSERT_NEAR(own.of_x[place], power + 1e-3, 20 * TestFixture::kError);
          most = std::max(most, exponent);
          for (int64_t c = 0; c < own.width; ++c) {
            expected[c] += own.grad[place] * power *
                           (own.direction(f, c) - 2 * half_square * own.at(row, h, c));
          }
        }
        ASSERT_NEAR(own.most[head_row], most, 20 * TestFixture::kError);
        for (int64_t c = 0; c < own.width; ++c) {
          ASSERT_NEAR(own.grad_x[row * kStride + h * own.width + c], expected[c],
                      200 * TestFixture::kError);
        }
      });
    }
  }
}

TYPED_TEST(HeadFeaturesTest, OfNaNAreNaN) {
  using T = TypeParam;
  const std::vector<T> x{std::numeric_limits<T>::quiet_NaN()}, directions(padded_channels(1), 1);
  for (const auto map : {HeadFeatureMap::relu, HeadFeatureMap::exponential}) {
    T feature = 0, shift = 0;
    const HeadFeatures<T> problem{map, 1,        1,   1,     {x.data(), 1, 1}, directions.data(),
                                  1,   &feature, 0.5, &shift};
    run_features(problem, 0);
    if (map == HeadFeatureMap::exponential) run_exponentials(problem, 0);
    EXPECT_TRUE(std::isnan(feature));
  }
}

}  // namespace
}  // namespace nsimplex::kernels::testing
