#include "train/inference.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include "support/error.h"
#include "train/small_run.h"

namespace nsimplex::training {
namespace {

// Loss of every token by a forward pass of its window alone.
Evaluation plain(LanguageModel& model, const data::Tokens& tokens, data::Slice slice,
                 int64_t context) {
  const at::NoGradGuard no_grad;
  double sum = 0;
  int64_t count = 0;
  for (int64_t begin = slice.begin; begin + 1 < slice.end; begin += context) {
    const int64_t width = std::min(context, slice.end - 1 - begin);
    const data::Batch batch = data::gather(tokens, std::vector<int64_t>{begin}, width);
    sum += model->loss(batch.inputs, batch.targets).item<double>() * static_cast<double>(width);
    count += width;
  }
  return {sum / static_cast<double>(count), count, 0};
}

TEST(Evaluate, EveryTokenOfTheSliceOnce) {
  LanguageModel model(test::small_model());
  const data::Tokens tokens = test::small_tokens();
  for (const data::Slice slice :
       {data::Slice{0, 65}, data::Slice{7, 70}, data::Slice{3, 5}, data::Slice{0, 1500}}) {
    const Evaluation result = evaluate(model, tokens, slice, 8);
    const Evaluation expected = plain(model, tokens, slice, 8);
    EXPECT_EQ(result.tokens, slice.size() - 1);
    EXPECT_EQ(result.tokens, expected.tokens);
    EXPECT_NEAR(result.loss, expected.loss, 1e-5);
  }
}

TEST(Evaluate, ALimitTakesWindowsSpreadOverTheSlice) {
  LanguageModel model(test::small_model());
  const data::Tokens tokens = test::small_tokens();
  int64_t total = 0;
  const auto progress = [&](int64_t done, int64_t all) {
    EXPECT_LE(done, all);
    total = all;
  };
  const Evaluation some = evaluate(model, tokens, {0, 801}, 8, 80, progress);
  EXPECT_EQ(some.tokens, 80);
  EXPECT_EQ(total, 80);
  double sum = 0;  // the first window of each tenth
  for (int64_t i = 0; i < 10; ++i) sum += plain(model, tokens, {80 * i, 80 * i + 9}, 8).loss;
  EXPECT_NEAR(some.loss, sum / 10, 1e-5);
  EXPECT_EQ(evaluate(model, tokens, {0, 801}, 8, 1'000'000).tokens, 800);
}

TEST(Evaluate, NeedsTwoTokens) {
  LanguageModel model(test::small_model());
  const data::Tokens tokens = test::small_tokens();
  EXPECT_THROW(evaluate(model, tokens, {0, 1}, 8), InputError);
  EXPECT_EQ(evaluate(model, tokens, {0, 2}, 8).tokens, 1);
}

}  // namespace
}  // namespace nsimplex::training
