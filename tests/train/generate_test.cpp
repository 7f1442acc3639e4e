#include "train/inference.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cmath>

#include "support/error.h"
#include "train/small_run.h"

namespace nsimplex::training {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

// Logits of the distribution 0.1, 0.4, 0.2, 0.3.
const std::vector<double> kLogits = {std::log(0.1), std::log(0.4), std::log(0.2), std::log(0.3)};

SamplingOptions sampling(double temperature, int64_t top_k = 0, double top_p = 1.0) {
  return {.temperature = temperature, .top_k = top_k, .top_p = top_p};
}

void expect_distribution(const SamplingOptions& options, const std::vector<double>& expected) {
  EXPECT_THAT(sampling_distribution(kLogits, options), Pointwise(DoubleNear(1e-12), expected));
}

TEST(SamplingDistribution, Temperature) {
  expect_distribution(sampling(1), {0.1, 0.4, 0.2, 0.3});
  expect_distribution(sampling(0.5), {0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3});
  expect_distribution(sampling(0), {0, 1, 0, 0});
}

TEST(SamplingDistribution, TopK) {
  expect_distribution(sampling(1, 1), {0, 1, 0, 0});
  expect_distribution(sampling(1, 2), {0, 0.4 / 0.7, 0, 0.3 / 0.7});
  expect_distribution(sampling(1, 9), {0.1, 0.4, 0.2, 0.3});
}

TEST(SamplingDistribution, TopP) {
  expect_distribution(sampling(1, 0, 0.39), {0, 1, 0, 0});
  expect_distribution(sampling(1, 0, 0.41), {0, 0.4 / 0.7, 0, 0.3 / 0.7});
  expect_distribution(sampling(1, 0, 0.85), {0, 0.4 / 0.9, 0.2 / 0.9, 0.3 / 0.9});
  expect_distribution(sampling(1, 0, 0.95), {0.1, 0.4, 0.2, 0.3});
  // Of the two kept by top_k, 0.4 / 0.7 = 0.57 alone reaches 0.5.
  expect_distribution(sampling(1, 2, 0.5), {0, 1, 0, 0});
}

TEST(SamplingDistribution, OfEqualTokensTheFirstIsKept) {
  EXPECT_THAT(sampling_distribution({1, 3, 3, 3}, sampling(1, 2)), ElementsAre(0, 0.5, 0.5, 0));
  EXPECT_THAT(sampling_distribution({1, 3, 3, 3}, sampling(0)), ElementsAre(0, 1, 0, 0));
}

TEST(SamplingDistribution, ExtremeLogitsStayFinite) {
  EXPECT_THAT(sampling_distribution({1e4, -1e4, 1e4}, sampling(0.1)), ElementsAre(0.5, 0, 0.5));
}

TEST(SamplingOptions, NamesWhatIsOutOfRange) {
  EXPECT_NO_THROW(check(sampling(0)));
  EXPECT_THROW(check(sampling(-0.1)), InputError);
  EXPECT_THROW(check(sampling(NAN)), InputError);
  EXPECT_THROW(check(sampling(1, -1)), InputError);
  EXPECT_THROW(check(sampling(1, 0, 0)), InputError);
  EXPECT_THROW(check(sampling(1, 0, 1.1)), InputError);
}

std::vector<int32_t> draw(LanguageModel& model, uint64_t seed, int64_t count = 40) {
  std::vector<int32_t> tokens;
  SamplingOptions options = sampling(1);
  options.seed = seed;
  generate(model, {1, 2, 3}, count, options, [&](int32_t token) {
    tokens.push_back(token);
    return true;
  });
  return tokens;
}

TEST(Generate, TheSeedDecides) {
  LanguageModel model(test::small_model());
  EXPECT_EQ(draw(model, 1), draw(model, 1));
  EXPECT_NE(draw(model, 1), draw(model, 2));
  EXPECT_EQ(draw(model, 1, 0).size(), 0u);
}

TEST(Generate, EndsWhenToldTo) {
  LanguageModel model(test::small_model());
  int count = 0;
  generate(model, {1}, 100, {}, [&](int32_t) { return ++count < 3; });
  EXPECT_EQ(count, 3);
}

std::vector<int32_t> greedy(LanguageModel& model, const std::vector<int32_t>& prompt,
                            int64_t count) {
  std::vector<int32_t> tokens;
  generate(model, prompt, count, sampling(0), [&](int32_t token) {
    tokens.push_back(token);
    return true;
  });
  return tokens;
}

// The likeliest next token by recomputing the whole text.
int32_t recomputed(LanguageModel& model, const std::vector<int32_t>& text) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits = model->forward(at::tensor(text).unsqueeze(0));
  return static_cast<int32_t>(logits[0][-1].argmax().item<int64_t>());
}

TEST(Generate, CachedTokensAreTheRecomputedOnes) {
  LanguageModelOptions options = test::small_model();
  options.context = 60;
  options.tied = false;  // tied and untrained, the likeliest token is the last one
  LanguageModel model(options);
  model->to(at::kDouble);
  for (const std::vector<int32_t>& prompt :
       {std::vector<int32_t>{7}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
    std::vector<int32_t> text = prompt;
    const auto tokens = greedy(model, prompt, 50);
    for (const int32_t token : tokens) {
      EXPECT_EQ(token, recomputed(model, text));
      text.push_back(token);
    }
  }
}

// A prompt beyond the context is read in chunks; a layer without window sees its last `context`
// keys.
TEST(Generate, SeesTheLastTokensOfTheContext) {
  LanguageModelOptions options = test::small_model();
  options.layers = 1;
  options.tied = false;
  LanguageModel model(options);
  model->to(at::kDouble);
  EXPECT_EQ(greedy(model, {9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8}, 20),
            greedy(model, {1, 2, 3, 4, 5, 6, 7, 8}, 20));
}

// Frequencies of many draws agree with the distribution.
TEST(Generate, DrawsFromTheDistribution) {
  LanguageModel model(test::small_model());
  const at::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.zero_();  // every token equally likely
  std::vector<int> counts(256);
  SamplingOptions options = sampling(1);
  generate(model, {0}, 2560, options, [&](int32_t token) {
    ++counts[static_cast<size_t>(token)];
    return true;
  });
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 10.0) * (count - 10.0) / 10.0;
  EXPECT_LT(chi_square, 350);  // 255 degrees of freedom: beyond it with probability 7e-5
  EXPECT_GT(chi_square, 170);
}

}  // namespace
}  // namespace nsimplex::training
