#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/separable_attention.h>

namespace nsimplex {
namespace {

using at::Tensor;

struct SeparableInputs {
  Tensor query = at::rand({1, 4, 50, 6}, at::kDouble);
  std::vector<Tensor> keys{at::rand({1, 2, 50, 6}, at::kDouble),
                           at::rand({1, 2, 50, 6}, at::kDouble)};
  std::vector<Tensor> values{at::randn({1, 2, 50, 3}, at::kDouble),
                             at::randn({1, 2, 50, 3}, at::kDouble)};

  SeparableInputs part(int64_t begin, int64_t count) const {
    const auto cut = [&](const Tensor& tensor) { return tensor.narrow(2, begin, count); };
    return {cut(query), {cut(keys[0]), cut(keys[1])}, {cut(values[0]), cut(values[1])}};
  }
};

TEST(Separable, OneWindowStandsForEveryAxis) {
  const SeparableInputs x;
  const SeparableOptions one{.causal = true, .window = {Window::last(5)}};
  const SeparableOptions two{.causal = true, .window = {Window::last(5), Window::last(5)}};
  const SeparableOutput ours = separable_attention(x.query, x.keys, x.values, one);
  const SeparableOutput exact = separable_attention_reference(x.query, x.keys, x.values, two);
  EXPECT_TRUE(at::allclose(ours.out, exact.out));
  EXPECT_TRUE(at::allclose(ours.normalizer, exact.normalizer));
  const SeparableOptions three{.causal = true, .window = std::vector<Window>(3)};
  EXPECT_THROW(separable_attention(x.query, x.keys, x.values, three), c10::ValueError);
}

TEST(Separable, FeaturesByEnumerator) {
  const Tensor x = at::randn({3, 8});
  EXPECT_TRUE(at::allclose(feature_map(x), at::elu(x) + 1, 1e-6, 1e-6));
  // exp far below 0, where 1 + expm1 is 0.
  const Tensor deep = at::linspace(-80, -15, 66);
  EXPECT_TRUE(at::allclose(feature_map(deep), deep.to(at::kDouble).exp().to(at::kFloat), 1e-6, 0));
  EXPECT_TRUE(at::equal(feature_map(x, {.kind = Feature::relu}), at::relu(x)));
  const Tensor random = feature_map(x, {.kind = Feature::random, .features = 5, .seed = 2});
  EXPECT_EQ(random.sizes(), at::IntArrayRef({3, 5}));
  EXPECT_GT(random.min().item<float>(), 0.0f);
}

TEST(SeparableCache, CopiesShareOneCacheAndGoOnWhereItIs) {
  const SeparableInputs x;
  SeparableCache cache({-1, 7});
  SeparableCache copy = cache;
  const SeparableInputs first = x.part(0, 49), last = x.part(49, 1);
  cache.attend(first.query, first.keys, first.values);
  EXPECT_EQ(copy.position(), 49);
  const Tensor out = copy.attend(last.query, last.keys, last.values).out;
  const SeparableOptions options{.causal = true, .window = {Window{}, Window::last(7)}};
  const Tensor whole = separable_attention(x.query, x.keys, x.values, options).out;
  EXPECT_TRUE(at::allclose(out, whole.narrow(2, 49, 1)));
}

}  // namespace
}  // namespace nsimplex
