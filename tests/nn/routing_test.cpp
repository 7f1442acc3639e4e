#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/sparse_layers.h>

#include <limits>

#include "error_of.h"
#include "nn/module_checks.h"

namespace nsimplex {
namespace {

using at::Tensor;
using test::input_error_of;
using test::names;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Indexer, ChoosesByItsProjections) {
  at::manual_seed(1);
  Indexer indexer(IndexerOptions{.dim = 12, .heads = 3, .index_dim = 4});
  EXPECT_THAT(names(*indexer), ElementsAre("query.weight", "key.weight", "weight.weight"));
  const Tensor x = at::randn({2, 9, 12});
  auto parameters = indexer->named_parameters();
  const Tensor query =
      at::matmul(x, parameters["query.weight"].t()).view({2, 9, 3, 4}).transpose(1, 2);
  const Tensor key = at::matmul(x, parameters["key.weight"].t()).unsqueeze(1);
  const Tensor weights = at::matmul(x, parameters["weight.weight"].t()).transpose(1, 2);
  const Tensor expected = topk_keys(query, key, 4, {.weights = weights, .causal = true}).indices;
  EXPECT_TRUE(at::equal(indexer->forward(x, 4, {.causal = true}).indices, expected));
}

TEST(Indexer, ReusesTheLayerBefore) {
  at::manual_seed(2);
  Indexer plain(IndexerOptions{
      .dim = 12, .heads = 4, .source = IndexSource::reuse, .scores = IndexScores::softmax});
  EXPECT_THAT(names(*plain), IsEmpty());
  Indexer learned(
      IndexerOptions{.dim = 12, .heads = 4, .source = IndexSource::reuse, .learned = true});
  EXPECT_THAT(names(*learned), ElementsAre("weight.weight"));
  const Tensor x = at::randn({2, 9, 12});
  const ReusedPairs source{at::randn({2, 4, 9, 6}), at::randn({2, 2, 9, 6})};
  const Tensor expected =
      topk_keys(source.query, source.key, 3, {.scores = IndexScores::softmax, .causal = true})
          .indices;
  EXPECT_TRUE(at::equal(plain->forward(x, 3, {.causal = true}, source).indices, expected));
  EXPECT_THROW(plain->forward(x, 3), c10::Error);
}

TEST(Indexer, ReusesWhatAnAttentionLayerLeaves) {
  at::manual_seed(1);
  const SimplicialAttentionOptions options{.dim = 12, .heads = 3, .order = 1, .causal = true};
  SimplicialAttention layer(options);
  const Tensor x = at::randn({2, 9, 12});
  layer->forward(x);
  EXPECT_FALSE(layer->pairs());
  layer->keep_pairs();
  layer->forward(x);
  ASSERT_TRUE(layer->pairs() && layer->pairs()->lse);
  EXPECT_FALSE(layer->pairs()->query.requires_grad());
  Indexer indexer(IndexerOptions{
      .dim = 12, .heads = 3, .source = IndexSource::reuse, .scores = IndexScores::softmax});
  ReusedPairs without_lse = *layer->pairs();
  without_lse.lse.reset();
  const TopkOptions causal{.causal = true};
  const TopkKeys ours = indexer->forward(x, 4, causal, layer->pairs());
  EXPECT_TRUE(at::equal(ours.indices, indexer->forward(x, 4, causal, without_lse).indices));

  const auto cache = layer->make_cache();
  const at::NoGradGuard no_grad;
  layer->forward(x.narrow(1, 0, 1), *cache);
  EXPECT_EQ(layer->pairs()->key.size(2), 1);
}

TEST(Indexer, TheLossReachesItsParametersAlone) {
  at::manual_seed(3);
  Indexer indexer(IndexerOptions{.dim = 12, .heads = 3, .index_dim = 4, .rotary = true});
  const Tensor x = at::randn({2, 9, 12}).requires_grad_(true);
  const Tensor query = at::randn({2, 2, 9, 6}).requires_grad_(true);
  const Tensor key = at::randn({2, 2, 9, 6}).requires_grad_(true);
  IndexerLossOptions options{.causal = true};
  options.indices = indexer->forward(x, 4, {.causal = true}).indices;
  indexer->loss(x, query, {key, key}, options).backward();
  for (const auto& item : indexer->named_parameters()) {
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0.0) << item.key();
  }
  for (const Tensor& other : {x, query, key}) EXPECT_FALSE(other.grad().defined());
}

ExpertChoiceOptions choice_options() {
  ExpertChoiceOptions options{.attention = {.dim = 12, .heads = 2}, .tokens = int64_t{3}};
  return options;
}

// Tokens that a share chooses, with lengths and without.
void expect_chosen(double share, int64_t length, int64_t expected) {
  ExpertChoice choice(ExpertChoiceOptions{{.dim = 4, .order = 1}, share});
  const Tensor x = at::randn({1, length, 4});
  const Tensor plain = choice->forward(x);
  const Tensor lengths = at::full({1}, length, at::kLong);
  EXPECT_TRUE(at::allclose(plain, choice->forward(x, lengths), 1e-5, 1e-6));
  EXPECT_EQ((plain != x).any(-1).sum().item<int64_t>(), expected) << share << " of " << length;
}

TEST(ExpertChoice, RoundsSharesUpAsDecimalsAre) {
  at::manual_seed(5);
  for (const int64_t parts : {7, 14, 15, 29, 35, 55, 57, 58}) {
    for (const int64_t length : {20, 50, 100, 101}) {
      expect_chosen(static_cast<double>(parts) / 100, length, (parts * length + 99) / 100);
    }
  }
}

TEST(ExpertChoice, AttendsAmongTheChosenAndPassesTheOthers) {
  at::manual_seed(4);
  ExpertChoice choice(choice_options());
  EXPECT_THAT(names(*choice),
              ElementsAre("router.weight", "attention.qkv.weight", "attention.output.weight"));
  const Tensor x = at::randn({2, 7, 12});
  const Tensor y = choice->forward(x);
  const Tensor scores = at::matmul(x, choice->named_parameters()["router.weight"].t()).squeeze(-1);
  auto layer =
      std::dynamic_pointer_cast<SimplicialAttentionImpl>(choice->named_children()["attention"]);
  for (int64_t b = 0; b < 2; ++b) {
    const Tensor chosen = std::get<0>(std::get<1>(scores[b].topk(3)).sort());
    const Tensor rows = x[b].index_select(0, chosen);
    Tensor expected = x[b].clone();
    expected.index_add_(
        0, chosen,
        layer->forward(rows.unsqueeze(0))[0] * scores[b].index_select(0, chosen).unsqueeze(-1));
    EXPECT_TRUE(at::allclose(y[b], expected, 1e-5, 1e-6));
  }
}

TEST(ExpertChoice, PaddingIsNeverChosenAndNeverRead) {
  at::manual_seed(5);
  ExpertChoiceOptions options = choice_options();
  options.tokens = 0.5;
  ExpertChoice choice(options);
  Tensor x = at::randn({2, 7, 12});
  const Tensor lengths = at::tensor({7, 3}, at::kLong);
  const Tensor clean = choice->forward(x, lengths);
  x[1].slice(0, 3).fill_(std::numeric_limits<float>::quiet_NaN());
  const Tensor y = choice->forward(x, lengths);
  EXPECT_TRUE(at::equal(y[0], clean[0]));
  EXPECT_TRUE(at::equal(y[1].slice(0, 0, 3), clean[1].slice(0, 0, 3)));
  // Half of three real tokens, rounded up.
  EXPECT_EQ((clean[1] != at::nan_to_num(x[1], 0)).any(-1).slice(0, 0, 3).sum().item<int64_t>(), 2);
  y.slice(1, 0, 3).sum().backward();
  for (const auto& item : choice->named_parameters()) {
    EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0.0) << item.key();
  }
}

TEST(ExpertChoice, ChosenTokensKeepTheirPlaces) {
  at::manual_seed(6);
  ExpertChoiceOptions options = choice_options();
  options.attention.window = {Window{2, 1}};
  options.attention.order = 1;
  options.attention.rotary = true;
  options.tokens = 1.0;  // all of them: the layer itself, by its own windows
  ExpertChoice choice(options);
  auto layer =
      std::dynamic_pointer_cast<SimplicialAttentionImpl>(choice->named_children()["attention"]);
  const Tensor x = at::randn({1, 7, 12});
  const Tensor scores = at::matmul(x, choice->named_parameters()["router.weight"].t());
  EXPECT_TRUE(at::allclose(choice->forward(x), x + scores * layer->forward(x), 1e-5, 1e-6));

  // Places 10 apart: every token is alone in its window, whatever the number of tokens between.
  const Tensor places = at::arange(7, at::kLong).mul(10).unsqueeze(0);
  const Tensor alone = layer->forward_selected(x, {places, std::nullopt, std::nullopt});
  for (int64_t i = 0; i < 7; ++i) {
    const Tensor own = layer->forward(x.slice(1, i, i + 1));
    EXPECT_TRUE(at::allclose(alone.slice(1, i, i + 1), own, 1e-5, 1e-6));
  }
  // The same by an adjacency of nothing but loops.
  const Tensor loops = at::eye(7, at::kBool);
  EXPECT_TRUE(
      at::allclose(choice->forward(x, std::nullopt, loops), x + scores * alone, 1e-5, 1e-6));
}

TEST(ExpertChoice, AroundABlockAddsItsChange) {
  at::manual_seed(7);
  const SimplicialAttentionOptions layer{.dim = 12, .heads = 2};
  TransformerBlock block(TransformerBlockOptions{layer, {}});
  ExpertChoice choice(block, RouterOptions{.tokens = 1.0});
  EXPECT_THAT(names(*choice), ::testing::Contains("attention.mlp.up.weight"));
  const Tensor x = at::randn({2, 7, 12});
  const Tensor scores = at::matmul(x, choice->named_parameters()["router.weight"].t());
  const Tensor change = block->forward(x) - x;
  EXPECT_TRUE(at::allclose(choice->forward(x), x + scores * change, 1e-5, 1e-6));
  EXPECT_TRUE(choice->attention().ptr() == block->attention().ptr());
}

TEST(ExpertChoice, AroundAModuleOfTheCaller) {
  at::manual_seed(8);
  torch::nn::Linear linear(4, 4);
  int64_t resets = 0;
  ExpertChoice choice(
      Expert{linear.ptr(), 4,
             [&](const Tensor& x, const SelectedTokens& tokens) {
               EXPECT_TRUE(at::equal(*tokens.key_lengths, at::tensor({2, 1}, at::kLong)));
               return linear->forward(x);
             },
             [&](const Initialization&) { ++resets; }},
      RouterOptions{.tokens = int64_t{2}});
  EXPECT_THAT(names(*choice), ElementsAre("router.weight", "attention.weight", "attention.bias"));
  const Tensor x = at::randn({2, 3, 4});
  const Tensor y = choice->forward(x, at::tensor({3, 1}, at::kLong));
  const Tensor whole =
      x + at::matmul(x, choice->named_parameters()["router.weight"].t()) * linear->forward(x);
  EXPECT_TRUE(at::allclose(y[1][0], whole[1][0], 1e-5, 1e-6));
  EXPECT_TRUE(at::equal(y[1].slice(0, 1), x[1].slice(0, 1)));
  choice->reset_parameters();
  EXPECT_EQ(resets, 1);
  EXPECT_THAT(input_error_of([] { ExpertChoice none(Expert{}, RouterOptions{}); }),
              HasSubstr("[ExpertChoice] attention: expected a layer or block, got none"));
}

TEST(ExpertChoice, InABlockTakesThePlaceOfTheAttention) {
  at::manual_seed(9);
  SimplicialAttention layer(SimplicialAttentionOptions{.dim = 12, .heads = 2});
  ExpertChoice choice(layer, RouterOptions{.tokens = int64_t{3}});
  TransformerBlock block(choice, FeedForwardOptions{});
  EXPECT_THAT(names(*block), ::testing::Contains("attention.attention.qkv.weight"));
  const Tensor x = at::randn({2, 7, 12});
  const Tensor lengths = at::tensor({7, 4}, at::kLong);
  auto modules = block->named_children();
  auto& norm = dynamic_cast<RMSNormImpl&>(*modules["attention_norm"]);
  auto& mlp_norm = dynamic_cast<RMSNormImpl&>(*modules["mlp_norm"]);
  auto& mlp = dynamic_cast<FeedForwardImpl&>(*modules["mlp"]);
  const Tensor rows = norm.forward(x);
  const Tensor h = x + choice->forward(rows, lengths) - rows;
  const Tensor expected = h + mlp.forward(mlp_norm.forward(h));
  EXPECT_TRUE(at::allclose(block->forward(x, {}, lengths), expected, 1e-5, 1e-5));

  // A block of a layer becomes such a block.
  TransformerBlock other(layer, FeedForwardOptions{});
  other->choose_tokens({.tokens = int64_t{3}});
  EXPECT_EQ(names(*other), names(*block));
  EXPECT_TRUE(other->attention().ptr() == layer.ptr());
  other->reset_parameters({at::make_generator<at::CPUGeneratorImpl>(3)});
  const Tensor first = other->forward(x);
  other->reset_parameters({at::make_generator<at::CPUGeneratorImpl>(3)});
  EXPECT_TRUE(at::equal(other->forward(x), first));

  const auto error = [&](const AttentionMasks& masks) {
    return error_of([&] { block->forward_masked(x, masks); });
  };
  EXPECT_THAT(error({.key_masks = {at::ones({2, 7}, at::kBool)}}),
              HasSubstr("[ExpertChoice] key_masks: expected none, got 1"));
  EXPECT_THAT(error({.mask = at::ones({7, 7, 7}, at::kBool)}),
              HasSubstr("[ExpertChoice] mask: expected none"));
  EXPECT_THAT(error({.positions = at::arange(7)}),
              HasSubstr("[ExpertChoice] positions: expected int64 of shape [2, 7], got Long of "
                        "shape [7]"));
  EXPECT_THAT(input_error_of([&] { block->make_cache(); }),
              HasSubstr("[ExpertChoice] cache: the router compares all tokens"));
  EXPECT_THAT(input_error_of([&] { other->choose_tokens({}); }),
              HasSubstr("[TransformerBlock] attention: expected none that chooses tokens"));
}

TEST(Routers, LengthsAndAdjacencyThatDoNotFitAreNamed) {
  ExpertChoice choice(choice_options());
  const Tensor x = at::rand({2, 7, choice_options().attention.dim});
  const auto lengths = [&](const Tensor& given) {
    return error_of([&] { choice->forward(x, given); });
  };
  EXPECT_THAT(lengths(at::tensor({3, 8}, at::kLong)),
              HasSubstr("[ExpertChoice] lengths: expected 0 to 7, the tokens of x, got 3 to 8"));
  EXPECT_THAT(lengths(at::tensor({3}, at::kLong)), HasSubstr("expected integers of shape [2]"));
  EXPECT_THAT(lengths(at::rand({2})), HasSubstr("expected integers of shape [2], got Float"));
  EXPECT_THAT(
      error_of([&] { choice->forward(x, std::nullopt, at::ones({6, 7}, at::kBool)); }),
      HasSubstr("[ExpertChoice] adjacency: expected bool of shape [7, 7] or [2, 7, 7], got Bool of "
                "shape [6, 7]"));
}

TEST(Routers, BadOptionsAreNamed) {
  ExpertChoiceOptions causal = choice_options();
  causal.attention.causal = true;
  EXPECT_THAT(input_error_of([&] { ExpertChoice choice(causal); }), HasSubstr("allow_leak"));
  causal.allow_leak = true;
  EXPECT_THAT(input_error_of([&] { ExpertChoice choice(causal); }),
              HasSubstr("nothing was thrown"));
  ExpertChoiceOptions none = choice_options();
  none.tokens = int64_t{0};
  EXPECT_THAT(input_error_of([&] { ExpertChoice choice(none); }), HasSubstr("tokens: expected at"));
  none.tokens = 1.5;
  EXPECT_THAT(input_error_of([&] { ExpertChoice choice(none); }), HasSubstr("share in (0, 1]"));
  EXPECT_THAT(input_error_of([] { Indexer indexer(IndexerOptions{}); }),
              HasSubstr("dim: expected"));
  EXPECT_THAT(input_error_of([] {
                Indexer indexer(IndexerOptions{.dim = 4, .index_dim = 3, .rotary = true});
              }),
              HasSubstr("even index_dim, got 3"));
}

}  // namespace
}  // namespace nsimplex
