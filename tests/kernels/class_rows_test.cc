// What happens to rows before and after the loops of attention, beside the definition.

#include "kernels/cpu/equivariant/class_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "class_row_case.h"

namespace nsimplex::kernels::testing {
namespace {

constexpr int64_t kHeads = 3, kStride = 60;  // beyond all heads

template <class T>
class ClassRows : public ::testing::Test {
 protected:
  static constexpr double kError = std::is_same_v<T, float> ? 1e-5 : 1e-13;
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ClassRows, Types);

TYPED_TEST(ClassRows, RowsOfProductsThatAreSeen) {
  using T = TypeParam;
  constexpr int64_t kRows = 50, kColumns = 3, kSeen = 7;
  for (const int64_t width : {1, 8, 37}) {
    const auto products = draw_rows<T>(kSeen * width, 1), before = draw_rows<T>(kRows * width, 2);
    std::vector<int32_t> places(kRows * kColumns);
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int32_t>(i * 5 % 8) - 1;
    std::vector<T> to = before;
    add_seen_rows(SeenRows<T>{kRows, kColumns, width, products.data(), places.data(), to.data()});
    for (int64_t i = 0; i < kRows * width; ++i) {
      double expected = before[i];
      for (int64_t column = 0; column < kColumns; ++column) {
        const int32_t place = places[i / width * kColumns + column];
        if (place >= 0) expected += products[place * width + i % width];
      }
      ASSERT_NEAR(to[i], expected, 5 * TestFixture::kError) << i;
    }
  }
}

TYPED_TEST(ClassRows, OutputAndGradientsOfSums) {
  using T = TypeParam;
  constexpr int64_t kRows = 300, kValues = 8, kWide = kValues + 1, kFeatures = 3;
  auto sums = draw_rows<double>(kRows * kHeads * kWide, 1);
  for (int64_t i = 0; i < kRows * kHeads; ++i) {
    double& all = sums[i * kWide + kValues];
    all = i % 5 != 0 ? 1 + std::abs(all) : i % 2 != 0 ? 0 : -1e-17;  // what a difference may leave
  }
  std::vector<int32_t> counts(kRows, 4);
  for (int64_t row = 0; row < kRows; row += 7) counts[row] = 0;
  const auto grad_out = draw_rows<T>(kRows * kStride, 2);
  const auto of_values = draw_rows<double>(kRows * kHeads * kFeatures, 3);
  const auto key_sums = draw_rows<double>(kRows * kHeads * kFeatures, 4);
  for (const bool counted : {false, true}) {
    for (const bool normalise : {false, true}) {
      for (const bool shares : {false, true}) {
        std::vector<T> out(kRows * kStride), grad(sums.size());
        auto grad_query = of_values;
        const ClassOutput<T> problem{
            kRows,          kHeads, kValues,     sums.data(), counted ? counts.data() : nullptr,
            normalise,      2,      out.data(),  kStride,     grad_out.data(),
            kStride,        shares, grad.data(), kFeatures,   grad_query.data(),
            key_sums.data()};
        run_all(problem, [](const auto& own, int64_t task) { run_class_output(own, task); });
        for (int64_t i = 0; i < kRows * kHeads; ++i) {
          const int64_t row = i / kHeads, place = row * kStride + i % kHeads * kValues;
          const double all = sums[i * kWide + kValues];
          const bool empty = (counted ? counts[row] == 0 : all == 0) || (normalise && all <= 0);
          const double factor = empty ? 0 : normalise ? 1 / all : 2;
          double of_weights = 0;
          for (int64_t c = 0; c < kValues; ++c) {
            const double expected = sums[i * kWide + c] * factor;
            ASSERT_NEAR(out[place + c], expected, 5 * TestFixture::kError);
            const double own = grad_out[place + c] * (shares ? 1 : factor);
            ASSERT_NEAR(grad[i * kWide + c], own, 5 * TestFixture::kError);
            of_weights -= own * expected;
          }
          if (!normalise) of_weights = 0;
          ASSERT_NEAR(grad[i * kWide + kValues], of_weights, 100 * TestFixture::kError);
          for (int64_t f = i * kFeatures; f < (i + 1) * kFeatures; ++f) {
            const double expected = of_values[f] * (shares ? 1 : factor) + of_weights * key_sums[f];
            ASSERT_NEAR(grad_query[f], expected, 100 * TestFixture::kError);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace nsimplex::kernels::testing
