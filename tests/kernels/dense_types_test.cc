// Every storage type on every SIMD level, against the definition on the same rounded inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/shared/simd.h"
#include "kernels/dense_case.h"
#include "kernels/dense_oracle.h"

namespace nsimplex::kernels::testing {
namespace {

/// A contiguous [batch, head, row, channel] array of T.
template <class T>
struct TypedArray {
  explicit TypedArray(const Array& source) : shape(source) {
    for (const float value : source.values()) data.push_back(from_accum<T>(value));
  }

  Rows<T> view() {
    const int64_t head = shape.rows * shape.channels;
    return {data.data(), shape.heads * head, head, shape.channels};
  }
  Rows<const T> view() const {
    const int64_t head = shape.rows * shape.channels;
    return {data.data(), shape.heads * head, head, shape.channels};
  }

  double error(const std::vector<double>& expected) const {
    double difference = 0.0, norm = 0.0;
    for (size_t i = 0; i < data.size(); ++i) {
      const double apart = to_accum(data[i]) - expected[i];
      difference += apart * apart;
      norm += expected[i] * expected[i];
    }
    return std::sqrt(norm > 0.0 ? difference / norm : difference);
  }

  const Array& shape;
  std::vector<T> data;
};

/// The inputs of a case rounded to T, and room for results of type T.
template <class T>
struct TypedData {
  using R = Accum<T>;

  explicit TypedData(DenseData& source)
      : source(source),
        query(source.query),
        out(source.out),
        grad_out(source.grad_out),
        grad_query(source.grad_query),
        lse(source.lse.size()),
        grad_lse(source.grad_lse.begin(), source.grad_lse.end()),
        grad_sink(source.grad_sink.size()) {
    for (int m = 0; m < source.shape.order(); ++m) {
      keys.emplace_back(source.keys[m]);
      values.emplace_back(source.values[m]);
      grad_keys.emplace_back(source.grad_keys[m]);
      grad_values.emplace_back(source.grad_values[m]);
    }
  }

  void fill(DenseProblem<T>& problem) const {
    const DenseProblem<float> other = source.forward();
    problem.order = other.order;
    problem.reduce = other.reduce;
    problem.batch = other.batch;
    problem.heads = other.heads;
    problem.kv_heads = other.kv_heads;
    problem.queries = other.queries;
    problem.dim = other.dim;
    problem.value_dim = other.value_dim;
    problem.logit_scale = other.logit_scale;
    problem.output_scale = other.output_scale;
    problem.softcap = other.softcap;
    problem.query = query.view();
    for (int m = 0; m < other.order; ++m) {
      problem.axes[m].key = keys[m].view();
      problem.axes[m].value = values[m].view();
      problem.axes[m].visible = other.axes[m].visible;
      problem.axes[m].mask = other.axes[m].mask;
    }
    problem.form = other.form;
    problem.normalizer = other.normalizer;
    problem.distinct = other.distinct;
    problem.dropout = other.dropout;
    if constexpr (std::is_same_v<R, float>) {
      problem.sink = other.sink;
      problem.slopes = other.slopes;
      problem.masks = other.masks;
      for (int k = 0; k < other.masks; ++k) {
        static_cast<TuplePlaces&>(problem.mask[k]) = other.mask[k];
        problem.mask[k].admissible = other.mask[k].admissible;
        problem.mask[k].logits = other.mask[k].logits;
      }
    }
  }

  DenseForward<T> forward() {
    DenseForward<T> problem;
    fill(problem);
    problem.out = out.view();
    problem.lse = lse.data();
    return problem;
  }

  DenseBackward<T> backward() {
    DenseBackward<T> problem;
    fill(problem);
    problem.out = std::as_const(out).view();
    problem.grad_out = std::as_const(grad_out).view();
    problem.lse = lse.data();
    problem.grad_lse = grad_lse.data();
    problem.grad_query = grad_query.view();
    if (!grad_sink.empty()) problem.grad_sink = grad_sink.data();
    for (int m = 0; m < problem.order; ++m) {
      problem.grad_key[m] = grad_keys[m].view();
      problem.grad_value[m] = grad_values[m].view();
    }
    return problem;
  }

  /// The bits of every result of a 16-bit type.
  std::vector<uint32_t> bits() const {
    std::vector<uint32_t> all;
    const auto add = [&](const TypedArray<T>& array) {
      for (const T& number : array.data) all.push_back(number.bits);
    };
    add(out);
    add(grad_query);
    for (const TypedArray<T>& array : grad_keys) add(array);
    for (const TypedArray<T>& array : grad_values) add(array);
    for (const R number : lse) all.push_back(std::bit_cast<uint32_t>(number));
    return all;
  }

  DenseData& source;
  TypedArray<T> query, out, grad_out, grad_query;
  std::vector<TypedArray<T>> keys, values, grad_keys, grad_values;
  std::vector<R> lse, grad_lse, grad_sink;
};

/// Largest errors allowed: out rounded once costs half an epsilon; gradients besides feel `out`'s
/// rounding through delta, and bf16 products may round their operands.
struct Gate {
  double out, lse, gradient;
  double of_rounded = gradient;  ///< the same for gradients where products round their operands
};

template <class T>
void expect_the_definition(const DenseCase& shape, Gate gate) {
  DenseData source(shape);
  TypedData<T> data(source);
  const DenseForward<T> problem = data.forward();
  const DenseBackward<T> backward = data.backward();
  const DenseOracle oracle = dense_oracle<T>(problem, &backward.grad_out, backward.grad_lse);
  std::vector<std::string> levels = simd_levels();
  if (std::is_same_v<T, Bf16>) {
    for (const std::string& level : emulated_simd_levels()) levels.push_back(level);
  }
  for (const std::string& level : levels) {
    SCOPED_TRACE(level);
    set_simd_level(level);
    const bool rounded = std::is_same_v<T, Bf16> && bf16_products() != Bf16Products::numbers;
    const double gradient = rounded ? gate.of_rounded : gate.gradient;
    run_forward(problem);
    EXPECT_LE(data.out.error(oracle.out), gate.out);
    for (size_t i = 0; i < data.lse.size(); ++i) {
      if (std::isinf(oracle.lse[i])) {
        EXPECT_EQ(data.lse[i], oracle.lse[i]);
      } else {
        EXPECT_NEAR(data.lse[i], oracle.lse[i], gate.lse * (1.0 + std::abs(oracle.lse[i])));
      }
    }
    run_backward(backward);
    EXPECT_LE(data.grad_query.error(oracle.grad_query), gradient);
    for (int m = 0; m < shape.order(); ++m) {
      SCOPED_TRACE(m);
      EXPECT_LE(data.grad_keys[m].error(oracle.grad_key[m]), gradient);
      EXPECT_LE(data.grad_values[m].error(oracle.grad_value[m]), gradient);
    }
  }
}

class DenseTypesTest : public ::testing::TestWithParam<DenseCase> {
 protected:
  void TearDown() override { set_simd_level(""); }
};

TEST_P(DenseTypesTest, Fp64) { expect_the_definition<double>(GetParam(), {4e-15, 4e-15, 4e-14}); }
TEST_P(DenseTypesTest, Bf16) { expect_the_definition<Bf16>(GetParam(), {0x1p-6, 0x1p-6, 0x1p-4}); }
TEST_P(DenseTypesTest, Fp16) { expect_the_definition<Fp16>(GetParam(), {0x1p-11, 1e-5, 0x1p-8}); }

class DenseTypesOptionsTest : public ::testing::TestWithParam<DenseCase> {
 protected:
  void TearDown() override { set_simd_level(""); }
};

TEST_P(DenseTypesOptionsTest, Bf16) {
  Gate gate{0x1p-6, 0x1p-6, 0x1p-4};
  if (GetParam().name == "sigmoid_steep") {
    // Logits have a deviation of 30 sqrt(12). Rounding the product of query and leading key changes
    // them by 2^-9 / sqrt(3) of that, 0.12, and a sigmoid's slope by up to as much of itself
    // (docs/numerics.md). Levels with fp32 products are as exact as for any logits.
    gate.gradient = 0x1p-7, gate.of_rounded = 0x1p-3;
  }
  expect_the_definition<Bf16>(GetParam(), gate);
}

TEST(DenseTypesThreads, EmulatedTilesGiveTheSameBitsForAnyThreads) {
  for (const std::string& level : emulated_simd_levels()) {
    for (const DenseCase& shape : dense_cases()) {
      if (shape.queries > 150) continue;  // emulation is slow
      SCOPED_TRACE(shape.name);
      DenseData source(shape);
      TypedData<Bf16> data(source), other(source);
      set_simd_level(level);
      run_forward(data.forward());
      run_backward(data.backward());
      run_forward(other.forward(), {.threads = 3, .reversed = true});
      run_backward(other.backward(), {.threads = 3, .reversed = true});
      EXPECT_EQ(data.bits(), other.bits());
    }
  }
  set_simd_level("");
}

INSTANTIATE_TEST_SUITE_P(Options, DenseTypesOptionsTest, ::testing::ValuesIn(option_cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Cases, DenseTypesTest, ::testing::ValuesIn(dense_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Half, ConversionsRoundToNearestEvenAndKeepSpecials) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const Bf16 bf16{static_cast<uint16_t>(bits)};
    const Fp16 fp16{static_cast<uint16_t>(bits)};
    const float wide = to_accum(bf16), half = to_accum(fp16);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_accum(from_accum<Bf16>(wide))));
    } else {
      EXPECT_EQ(from_accum<Bf16>(wide).bits, bits);
    }
    if (std::isnan(half)) {
      EXPECT_TRUE(std::isnan(to_accum(from_accum<Fp16>(half))));
    } else {
      EXPECT_EQ(from_accum<Fp16>(half).bits, bits);
    }
  }
  EXPECT_EQ(from_accum<Bf16>(1.0f + 0x1p-8f).bits, 0x3f80);  // ties go to even
  EXPECT_EQ(from_accum<Bf16>(1.0f + 0x3p-8f).bits, 0x3f82);
  EXPECT_EQ(from_accum<Fp16>(1.0f + 0x1p-11f).bits, 0x3c00);
  EXPECT_EQ(from_accum<Fp16>(1.0f + 0x3p-11f).bits, 0x3c02);
  EXPECT_EQ(from_accum<Fp16>(65519.0f).bits, 0x7bff);
  EXPECT_EQ(from_accum<Fp16>(65520.0f).bits, 0x7c00);
  EXPECT_EQ(from_accum<Fp16>(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(from_accum<Fp16>(0x3p-25f).bits, 0x0002);
}

}  // namespace
}  // namespace nsimplex::kernels::testing
