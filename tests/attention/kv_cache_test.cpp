#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/cache.h>

#include <string>
#include <type_traits>
#include <vector>

#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex {
namespace {

using at::Tensor;
using ::testing::HasSubstr;
using ::testing::Not;

// A causal sequence in fp64, GQA 4/2, Dv != D.
struct Sequence {
  explicit Sequence(size_t order, int64_t tokens = 40) {
    at::manual_seed(order);
    query = at::randn({2, 4, tokens, 6}, at::kDouble);
    for (size_t m = 0; m < order; ++m) {
      keys.push_back(at::randn({2, 2, tokens, 6}, at::kDouble));
      values.push_back(at::randn({2, 2, tokens, 5}, at::kDouble));
    }
  }

  AttentionOutput one_shot(const std::vector<int64_t>& window,
                           AttentionOptions options = {}) const {
    options.causal = true;
    for (const int64_t w : window) options.window.push_back(w < 0 ? Window{} : Window::last(w));
    return attention(query, keys, values, options);
  }

  AttentionOutput attend(KeyValueCache& cache, int64_t first, int64_t last,
                         const AttentionOptions& options = {}) const {
    return cache.attend(query.slice(2, first, last), cut(keys, first, last),
                        cut(values, first, last), options);
  }

  static std::vector<Tensor> cut(const std::vector<Tensor>& rows, int64_t first, int64_t last) {
    std::vector<Tensor> parts;
    for (const Tensor& each : rows) parts.push_back(each.slice(2, first, last));
    return parts;
  }

  Tensor query;
  std::vector<Tensor> keys, values;
};

void expect_close(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_LT((actual - expected).abs().max().item<double>(), 1e-12);
}

template <class Exception, class Call>
void expect_error(Call&& call, const std::string& words) {
  try {
    call();
    ADD_FAILURE() << "no error: " << words;
  } catch (const Exception& error) {
    std::string text;
    if constexpr (std::is_base_of_v<c10::Error, Exception>) {
      text = error.what_without_backtrace();
    } else {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr(words));
    EXPECT_THAT(text, Not(HasSubstr("\n")));
  }
}

TEST(KeyValueCache, ChunksThenTokensEqualTheOneShotCall) {
  for (const std::vector<int64_t>& window :
       {std::vector<int64_t>{7}, {-1}, {3, 11}, {-1, 4}, {2, 3, 5}}) {
    const Sequence sequence(window.size());
    const auto [out, lse] = sequence.one_shot(window);
    KeyValueCache cache(window);
    std::vector<int64_t> cuts = {0, 1, 6, 20};
    for (int64_t t = 21; t <= 40; ++t) cuts.push_back(t);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      const auto part = sequence.attend(cache, cuts[i], cuts[i + 1]);
      expect_close(part.out, out.slice(2, cuts[i], cuts[i + 1]));
      expect_close(part.lse, lse.slice(2, cuts[i], cuts[i + 1]));
      EXPECT_EQ(cache.position(), cuts[i + 1]);
    }
  }
}

TEST(KeyValueCache, OptionsOfTheOperatorPassThrough) {
  const Sequence sequence(2);
  AttentionOptions options;
  options.reduce = Reduce::sum;
  options.scale = Scale{0.7, 0.5};
  const Tensor out = sequence.one_shot({4, 9}, options).out;
  KeyValueCache cache({4, 9});
  expect_close(sequence.attend(cache, 0, 39, options).out, out.slice(2, 0, 39));
  expect_close(sequence.attend(cache, 39, 40, options).out, out.slice(2, 39));
}

TEST(KeyValueCache, CopiesShareOneCache) {
  const Sequence sequence(1);
  KeyValueCache cache({4}), copy = cache;
  sequence.attend(cache, 0, 10);
  EXPECT_EQ(copy.position(), 10);
  EXPECT_EQ(copy.bytes(), 2 * 2 * 4 * (6 + 5) * 8);
  copy.reset();
  EXPECT_EQ(cache.position(), 0);
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(KeyValueCache, NamesTheOptionsThatNeedPlaces) {
  const Sequence sequence(1);
  KeyValueCache cache({4});
  AttentionOptions options;
  options.window = {Window::last(3)};
  expect_error<c10::ValueError>([&] { sequence.attend(cache, 0, 2, options); },
                                "[KeyValueCache] window: belongs to the cache");
  options.window.clear();
  options.causal = true;  // which is implied
  options.query_positions = at::zeros({1}, at::kLong);
  expect_error<c10::ValueError>([&] { sequence.attend(cache, 0, 2, options); },
                                "[KeyValueCache] query_positions: expected its default");
  EXPECT_EQ(cache.position(), 0);
}

KeyValueCache& layer(LayerCaches& caches, int64_t index) {
  return dynamic_cast<KeyValueCache&>(caches[index]);
}

TEST(LayerCaches, GoOnFromAFileWhereTheyStopped) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "caches.safetensors";
  const Sequence one(1), two(2);
  const auto make = [] { return LayerCaches({KeyValueCache({-1}), KeyValueCache({3, 8})}); };
  LayerCaches caches = make();
  one.attend(layer(caches, 0), 0, 25);
  two.attend(layer(caches, 1), 0, 25);
  caches.save(path);
  LayerCaches again = make();
  KeyValueCache handle = layer(again, 1);
  again.load(path);
  EXPECT_EQ(again.position(), 25);
  EXPECT_EQ(handle.position(), 25);
  for (int64_t t = 25; t < 40; ++t) {
    expect_close(one.attend(layer(again, 0), t, t + 1).out,
                 one.one_shot({-1}).out.slice(2, t, t + 1));
    expect_close(two.attend(handle, t, t + 1).out, two.one_shot({3, 8}).out.slice(2, t, t + 1));
  }
}

TEST(LayerCaches, RefuseFilesAndStatesThatDoNotFit) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "caches.safetensors";
  const Sequence sequence(1);
  LayerCaches caches({KeyValueCache({4}), KeyValueCache({4})});
  sequence.attend(layer(caches, 0), 0, 5);
  caches.save(path);
  expect_error<InputError>([&] { caches.load(path); }, "layer 1 is at position 0, layer 0 at 5");
  expect_error<InputError>([&] { LayerCaches({KeyValueCache({4})}).load(path); },
                           "tensors belong to none of 1 layers");
  expect_error<InputError>([&] { caches.load(folder / "none"); }, "cannot read");
  CacheState state = caches.state();
  state["layers.0.values.0"] = state["layers.0.values.0"].narrow(2, 0, 3);
  expect_error<c10::ValueError>([&] { caches.load_state(state); },
                                "expected values.0 [B, Hk, 4, channels] for window 4");
  EXPECT_EQ(caches.position(), 5);
}

}  // namespace
}  // namespace nsimplex
