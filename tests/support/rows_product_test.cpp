#include "support/rows_product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <tuple>

namespace nsimplex {
namespace {

using at::Tensor;

// Rows of any number, few and many channels, in one piece or as columns of something wider.
class RowsProduct
    : public ::testing::TestWithParam<std::tuple<int64_t, int64_t, bool, at::ScalarType>> {
 protected:
  RowsProduct() {
    at::manual_seed(7);
    const auto [count, channels, apart, type] = GetParam();
    const auto options = at::TensorOptions(type);
    rows = apart ? at::randn({count, 3 * channels}, options).narrow(1, channels, channels)
                 : at::randn({count, channels}, options);
    matrix = at::randn({channels, kWidth}, options);
    bias = at::randn({kWidth}, options);
    grad = at::randn({count, kWidth}, options);
    tolerance = (type == at::kFloat ? 1e-6 : 1e-14) * static_cast<double>(channels + count);
  }

  static Tensor wide(const Tensor& x) { return x.to(at::kDouble); }
  void expect_near(const Tensor& found, const Tensor& expected) const {
    ASSERT_EQ(found.sizes(), expected.sizes());
    EXPECT_TRUE(at::allclose(wide(found), expected, 0, tolerance))
        << (wide(found) - expected).abs().max().item<double>();
  }

  static constexpr int64_t kWidth = 64;
  Tensor rows, matrix, bias, grad;
  double tolerance;
};

TEST_P(RowsProduct, IsWrittenWithAndWithoutABias) {
  const Tensor expected = at::mm(wide(rows), wide(matrix));
  Tensor to = at::full({rows.size(0), kWidth}, NAN, rows.options());
  rows_product(rows, matrix, std::nullopt, to);
  expect_near(to, expected);
  rows_product(rows, matrix, bias, to);
  expect_near(to, expected + wide(bias));
}

// A transposed matrix, and a place among other columns.
TEST_P(RowsProduct, IsAddedInPlace) {
  const Tensor turned = matrix.t().contiguous().t();
  const Tensor all = at::ones({rows.size(0), kWidth + 8}, rows.options());
  Tensor to = all.narrow(1, 4, kWidth);
  add_rows_product(rows, turned, to);
  expect_near(to, 1 + at::mm(wide(rows), wide(matrix)));
  EXPECT_TRUE(at::equal(all.narrow(1, 0, 4), at::ones({rows.size(0), 4}, rows.options())));
  EXPECT_TRUE(at::equal(all.narrow(1, kWidth + 4, 4), at::ones({rows.size(0), 4}, rows.options())));
}

TEST_P(RowsProduct, TakesColumnsOfSomethingWider) {
  const auto columns = [](const Tensor& x) {
    return at::cat({x, x, x}, 1).narrow(1, x.size(1), x.size(1));
  };
  Tensor to = at::empty({rows.size(0), kWidth}, rows.options());
  rows_product(rows, columns(matrix), std::nullopt, to);
  expect_near(to, at::mm(wide(rows), wide(matrix)));
  expect_near(transposed_product(rows, columns(grad)), at::mm(wide(rows).t(), wide(grad)));
}

TEST_P(RowsProduct, TransposedSumsAllRowsWithAnyThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Tensor alone = transposed_product(rows, grad);
  at::set_num_threads(4);
  const Tensor together = transposed_product(rows, grad);
  at::set_num_threads(before);
  expect_near(alone, at::mm(wide(rows).t(), wide(grad)));
  EXPECT_TRUE(at::equal(alone, together));
}

INSTANTIATE_TEST_SUITE_P(Shapes, RowsProduct,
                         ::testing::Combine(::testing::Values(0, 1, 127, 128, 640, 4097, 9000),
                                            ::testing::Values(1, 64, 200), ::testing::Bool(),
                                            ::testing::Values(at::kFloat, at::kDouble)));

TEST(ProductRows, AreAMultipleWhereThatIsFast) {
  EXPECT_EQ(product_rows(0), 1);
  EXPECT_EQ(product_rows(127), 127);
  EXPECT_EQ(product_rows(128), 128);
  EXPECT_EQ(product_rows(700), 640);
}

}  // namespace
}  // namespace nsimplex
