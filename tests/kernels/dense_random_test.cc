// Random shapes with random options against the definition, at the best SIMD level.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "kernels/dense_case.h"
#include "kernels/dense_oracle.h"

namespace nsimplex::kernels::testing {
namespace {

template <class Value>
Value one_of(std::initializer_list<Value> values) {
  return *rc::gen::elementOf(std::vector<Value>(values));
}

// The whole range from the first case on.
int64_t between(int64_t low, int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int64_t>(low, high + 1));
}

DenseCase random_case() {
  DenseCase shape;
  const int order = static_cast<int>(between(1, 3));
  shape.form = one_of({Form::product, Form::determinant});
  shape.batch = between(1, 2);
  shape.kv_heads = between(1, 2);
  shape.heads = shape.kv_heads * between(1, 3);
  shape.dim = shape.form == Form::determinant ? (order + 1) * between(1, 18) : between(1, 40);
  shape.value_dim = between(1, 40);
  shape.strided = one_of({false, true});
  shape.causal = one_of({false, true});
  shape.reduce = one_of({ValueReduce::product, ValueReduce::sum, ValueReduce::mean});
  shape.softcap = one_of({0.0, 0.0, 0.7, 20.0});
  shape.slopes = one_of({false, false, true});
  shape.normalizer = one_of({Normalizer::softmax, Normalizer::softmax, Normalizer::softmax_sink,
                             Normalizer::sigmoid, Normalizer::relu});
  for (int m = 0; m < shape.order() && one_of({false, true}); ++m) {
    shape.pair_masks.push_back(one_of({MaskKind::none, MaskKind::boolean, MaskKind::additive}));
  }
  shape.distinct = one_of({Distinct::none, Distinct::axes, Distinct::with_query});
  shape.dropout = one_of({0.0, 0.0, 0.3});
  shape.key_masks = one_of({false, true});
  shape.mask = one_of({MaskKind::none, MaskKind::boolean, MaskKind::additive});
  for (int d = 0; d < 3 + order; ++d) {
    if (one_of({false, true})) shape.mask_broadcast.push_back(d);
  }
  const int64_t most = order == 1 ? 90 : order == 2 ? 24 : 9;
  if (one_of({false, true})) {  // packed documents
    shape.documents = {0};
    for (int64_t left = between(1, 4); left > 0; --left) {
      shape.documents.push_back(shape.documents.back() + between(0, most / 2));
    }
    shape.queries = shape.documents.back();
    shape.lengths.assign(order, shape.queries);
  } else {
    shape.queries = between(1, most);
    for (int m = 0; m < order; ++m) shape.lengths.push_back(between(0, most));
    if (one_of({false, false, true})) shape.lengths[between(0, order - 1)] *= 6;
  }
  for (int m = 0; m < order; ++m) {
    shape.window.push_back({one_of<int64_t>({-1, 3, 8}), one_of<int64_t>({-1, 0, 4})});
    shape.key_lengths.emplace_back();
    if (one_of({false, true})) continue;
    for (int64_t b = 0; b < shape.batch; ++b) {
      shape.key_lengths[m].push_back(between(0, shape.lengths[m]));
    }
  }
  return shape;
}

// Where gradients nearly cancel (a query with one tuple has none), rounding remains: it is compared
// with at least a tenth of what ordinary gradients are.
bool close(const std::vector<float>& value, const std::vector<double>& expected, double gate) {
  double norm = 0.0;
  for (const double x : expected) norm += x * x;
  const double error = relative_error(value, expected) * (norm > 0.0 ? std::sqrt(norm) : 1.0);
  if (error > gate * std::max(std::sqrt(norm), 0.1)) {
    RC_LOG() << "error " << error << " of norm " << std::sqrt(norm);
    return false;
  }
  return true;
}

TEST(DenseRandom, MatchesTheDefinition) {
  const bool passed = rc::check([] {
    DenseData data(random_case());
    const DenseBackward<float> problem = data.backward();
    run_forward(data.forward(), {.threads = 2});
    run_backward(problem, {.threads = 2, .reversed = true});
    const DenseOracle oracle = dense_oracle<float>(problem, &problem.grad_out, problem.grad_lse);
    // Rounding may take a logit over relu's kink, and 1 / sum magnifies rounding where all is
    // small.
    double magnified = 1.0;
    if (data.shape.normalizer == Normalizer::relu) {
      if (oracle.smallest_logit < 1e-5) return;
      for (const double lse : oracle.lse) {
        if (!std::isinf(lse)) magnified = std::max(magnified, std::exp(-lse));
      }
    }
    RC_ASSERT(close(data.out.values(), oracle.out, 4e-6 * magnified));
    for (size_t i = 0; i < data.lse.size(); ++i) {
      const double error = std::abs(data.lse[i] - oracle.lse[i]);
      RC_ASSERT(data.lse[i] == oracle.lse[i] ||
                error <= 1e-5 * (magnified + std::abs(oracle.lse[i])));
    }
    RC_ASSERT(close(data.grad_query.values(), oracle.grad_query, 4e-5 * magnified));
    RC_ASSERT(close(data.grad_sink, oracle.grad_sink, 4e-5 * magnified));
    for (size_t k = 0; k < oracle.grad_masks.size(); ++k) {
      RC_ASSERT(close(data.grad_masks[k], oracle.grad_masks[k], 4e-5 * magnified));
    }
    for (int m = 0; m < problem.order; ++m) {
      RC_ASSERT(close(data.grad_keys[m].values(), oracle.grad_key[m], 4e-5 * magnified));
      RC_ASSERT(close(data.grad_values[m].values(), oracle.grad_value[m], 4e-5 * magnified));
    }
  });
  EXPECT_TRUE(passed);
}

}  // namespace
}  // namespace nsimplex::kernels::testing
