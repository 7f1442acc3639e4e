#include "data/tokens.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "support/error.h"
#include "support/random.h"

namespace nsimplex::data {
namespace {

Tokens bytes(const std::vector<std::string>& texts) {
  static const auto tokenizer = byte_tokenizer();
  std::vector<Text> all;
  for (const std::string& text : texts) {
    const auto owner = std::make_shared<std::string>(text);
    all.push_back({"", {reinterpret_cast<const uint8_t*>(owner->data()), owner->size()}, owner});
  }
  return Tokens(all, *tokenizer);
}

// 0, 1, 2, ... 255, 0, 1, ... : a token says where it was.
std::string counting(size_t size) {
  std::string text(size, '\0');
  std::iota(text.begin(), text.end(), '\0');
  return text;
}

TEST(Tokens, EveryRangeAcrossTexts) {
  const Tokens tokens = bytes({"ab", "c", "defg"});
  const std::string whole = "abcdefg";
  ASSERT_EQ(tokens.size(), 7);
  for (int64_t begin = 0; begin < 7; ++begin) {
    for (int64_t count = 1; begin + count <= 7; ++count) {
      std::vector<int64_t> out(static_cast<size_t>(count) + 1, -1);
      tokens.copy(begin, count, out.data());
      EXPECT_EQ(out.back(), -1);
      EXPECT_EQ(std::string(out.begin(), out.end() - 1), whole.substr(begin, count));
    }
  }
}

TEST(Tokens, FingerprintSeesEveryTokenButNotTheFiles) {
  EXPECT_EQ(bytes({"ab", "cd"}).fingerprint(), bytes({"a", "bcd"}).fingerprint());
  EXPECT_NE(bytes({"abcd"}).fingerprint(), bytes({"abce"}).fingerprint());
  EXPECT_NE(bytes({"abcd"}).fingerprint(), bytes({"bacd"}).fingerprint());
  EXPECT_NE(bytes({"abcd"}).fingerprint(), bytes({"abcda"}).fingerprint());
}

TEST(Split, LastTenthValidates) {
  for (const int64_t size : {10, 11, 19, 20, 999, 1000}) {
    const Split s = split(bytes({std::string(static_cast<size_t>(size), 'x')}));
    EXPECT_EQ(s.train.begin, 0);
    EXPECT_EQ(s.train.end, s.validation.begin);
    EXPECT_EQ(s.validation.end, size);
    EXPECT_EQ(s.validation.size(), size / 10);
  }
}

TEST(BatchSampler, TargetsAreTheNextTokensOfWindowsInTheSlice) {
  const Tokens tokens = bytes({counting(100), counting(100).substr(0, 56)});
  BatchSampler sampler(tokens, {10, 40}, 5, 8, 1);
  std::set<int64_t> starts;
  for (int round = 0; round < 100; ++round) {
    const Batch batch = sampler.next();
    ASSERT_EQ(batch.inputs.sizes(), (std::vector<int64_t>{5, 8}));
    EXPECT_TRUE(at::equal(batch.targets, batch.inputs.add(1)));
    for (int row = 0; row < 5; ++row) starts.insert(batch.inputs[row][0].item<int64_t>());
  }
  // Every window that fits [10, 40) with its last target, and no other: starts 10 to 31.
  EXPECT_EQ(starts.size(), 22u);
  EXPECT_EQ(*starts.begin(), 10);
  EXPECT_EQ(*starts.rbegin(), 31);
  EXPECT_EQ(sampler.position(), 500);
}

TEST(BatchSampler, ThePositionIsAllItsState) {
  const Tokens tokens = bytes({counting(250)});
  const Slice all{0, 250};
  BatchSampler first(tokens, all, 3, 8, 7);
  first.next();
  first.next();
  BatchSampler second(tokens, all, 3, 8, 7);
  second.seek(first.position());
  EXPECT_TRUE(at::equal(first.next().inputs, second.next().inputs));
  BatchSampler other(tokens, all, 3, 8, 8);
  other.seek(6);
  EXPECT_FALSE(at::equal(other.next().inputs, BatchSampler(tokens, all, 3, 8, 7).next().inputs));
}

TEST(BatchSampler, RefusesATextShorterThanAWindow) {
  const Tokens tokens = bytes({counting(64)});
  EXPECT_NO_THROW(BatchSampler(tokens, {0, 9}, 1, 8, 1).next());
  EXPECT_THROW(BatchSampler(tokens, {0, 8}, 1, 8, 1), InputError);
}

TEST(Random, IsUniformAndSeedsDiffer) {
  std::vector<int> counts(10);
  for (uint64_t i = 0; i < 100'000; ++i) ++counts[random_below(10, random_bits(1, i))];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);  // 5 standard deviations
  // Seeds one apart must not give one stream shifted by one.
  EXPECT_NE(random_bits(1, 1), random_bits(2, 0));
  EXPECT_GE(random_unit(0), 0.0);
  EXPECT_LT(random_unit(~uint64_t{0}), 1.0);
}

}  // namespace
}  // namespace nsimplex::data
