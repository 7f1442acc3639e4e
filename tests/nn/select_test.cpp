#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/sparse_layers.h>

#include <cmath>
#include <string>
#include <vector>

#include "nn/module_checks.h"

namespace nsimplex {
namespace {

using at::Tensor;
using test::error;
using test::layer_options;
using test::names;
using test::project;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr int64_t kLength = 9;

SimplicialAttention make_layer(const SimplicialAttentionOptions& options) {
  at::manual_seed(3);
  SimplicialAttention layer(options);
  layer->to(at::kDouble);
  if (layer->named_parameters().contains("sink")) {
    const at::NoGradGuard no_grad;
    layer->named_parameters()["sink"].normal_();
  }
  return layer;
}

// A dense layer with the weights of a layer that selects.
SimplicialAttention dense_of(const SimplicialAttention& layer) {
  SimplicialAttentionOptions options = layer->options();
  options.select = {};
  SimplicialAttention dense = make_layer(options);
  const at::NoGradGuard no_grad;
  for (auto& item : dense->named_parameters()) {
    item.value().copy_(layer->named_parameters()[item.key()]);
  }
  return dense;
}

// The mask of all tuples whose keys are all linked to the query.
Tensor tuples_mask(const Tensor& linked, int64_t order) {
  Tensor mask = at::ones({1}, at::kBool);
  for (int64_t m = 0; m < order; ++m) {
    std::vector<int64_t> shape(3 + order, 1);
    shape[0] = linked.dim() == 3 ? linked.size(0) : 1;
    shape[2] = shape[3 + m] = linked.size(-1);
    mask = mask & linked.reshape(shape);
  }
  return mask;
}

Tensor tokens(int64_t batch = 2) {
  at::manual_seed(4);
  return at::randn({batch, kLength, 24}, at::kDouble);
}

Tensor random_graph() {
  at::manual_seed(5);
  return at::rand({kLength, kLength}) < 0.3;
}

TEST(Select, NeighboursAreTheDenseMask) {
  const Tensor x = tokens(), graph = random_graph();
  for (const int64_t order : {1, 2, 3}) {
    for (const bool loops : {true, false}) {
      SimplicialAttentionOptions options = layer_options(order);
      options.select = Neighbours{graph, loops};
      SimplicialAttention layer = make_layer(options), dense = dense_of(layer);
      const Tensor linked = loops ? graph | at::eye(kLength, at::kBool) : graph;
      const Tensor expected = dense->forward_masked(x, {.mask = tuples_mask(linked, order)});
      EXPECT_LT(error(layer->forward(x), expected), 1e-12) << order << loops;

      options.select = Neighbours{graph.nonzero(), loops, kLength};  // edges
      EXPECT_LT(error(make_layer(options)->forward(x), expected), 1e-12) << order << loops;
      options.select = Neighbours{std::nullopt, loops};
      EXPECT_LT(error(make_layer(options)->forward_masked(x, {.adjacency = graph.to_sparse_csr()}),
                      expected),
                1e-12)
          << order << loops;
    }
  }
}

TEST(Select, AUnionHasTheKeysOfAllPartsOnce) {
  const Tensor x = tokens(), graph = random_graph();
  SimplicialAttentionOptions options = layer_options(2);
  options.causal = true;
  options.normalizer = Normalizer::softmax_sink;
  options.select = Union{{Window::last(3), Sinks{2}, Neighbours{graph}}};
  SimplicialAttention layer = make_layer(options), dense = dense_of(layer);
  const Tensor place = at::arange(kLength), distance = place - place.unsqueeze(1);  // j - i
  const Tensor linked = ((distance > -3) | (place < 2) | graph) & (distance <= 0);
  const Tensor expected = dense->forward_masked(x, {.mask = tuples_mask(linked, 2)});
  EXPECT_LT(error(layer->forward(x), expected), 1e-12);
}

TEST(Select, TopKTakesAsManyKeysPerAxisAsItSays) {
  const Tensor x = tokens(1);
  SimplicialAttentionOptions options = layer_options(2);
  options.causal = true;
  TopK best{{2, 4}, {.heads = 2, .index_dim = 6}, 0.5};
  options.select = best;
  SimplicialAttention layer = make_layer(options), dense = dense_of(layer);
  EXPECT_THAT(names(*layer),
              UnorderedElementsAre("qkv.weight", "output.weight", "indexer.query.weight",
                                   "indexer.key.weight", "indexer.weight.weight"));
  IndexerOptions chooser = best.indexer;
  chooser.dim = 24;
  Indexer indexer(chooser);
  indexer->to(at::kDouble);
  {
    const at::NoGradGuard no_grad;
    for (auto& item : indexer->named_parameters()) {
      item.value().copy_(layer->named_parameters()["indexer." + item.key()]);
    }
  }
  const Tensor table = indexer->forward(x, 4, {.causal = true}).indices;
  Tensor mask = at::zeros({1, 1, kLength, kLength, kLength}, at::kBool);
  for (int64_t i = 0; i < kLength; ++i) {
    for (int64_t a = 0; a < 2; ++a) {
      for (int64_t b = 0; b < 4; ++b) {
        const int64_t j = table[0][i][a].item<int64_t>(), k = table[0][i][b].item<int64_t>();
        if (j >= 0 && k >= 0) mask[0][0][i][j][k].fill_(true);
      }
    }
  }
  EXPECT_LT(error(layer->forward(x), dense->forward_masked(x, {.mask = mask})), 1e-12);
  EXPECT_GT(layer->auxiliary_loss().item<double>(), 0.0);
}

std::vector<std::pair<std::string, Select>> selections() {
  const IndexerOptions light{.heads = 2, .index_dim = 6, .rotary = true};
  return {{"topk", TopK{{3}, light}},
          {"topk per axis", TopK{{2, 4}, light}},
          {"path", Path{3, light}},
          {"union", Union{{Window::last(3), Sinks{1}, TopK{{2}, light}}}},
          {"union per axis", Union{{Window::last(2), TopK{{1, 3}, light}}}},
          {"fixed union", Union{{Window::last(3), Sinks{2}}}},
          {"linear", Linear{}}};
}

TEST(Select, PaddingIsNotSeen) {
  const Tensor x = tokens(), lengths = at::tensor({9, 5}, at::kLong);
  const Tensor real = at::arange(kLength) < lengths.unsqueeze(1);
  for (const auto& [name, select] : selections()) {
    SimplicialAttentionOptions options = layer_options(2);
    options.select = select;
    SimplicialAttention layer = make_layer(options);
    const Tensor y = layer->forward(x, {}, lengths);
    EXPECT_LT(error(y[1].slice(0, 0, 5), layer->forward(x.slice(1, 0, 5))[1]), 1e-11) << name;
    EXPECT_LT(error(layer->forward_masked(x, {.key_masks = {real}})[1].slice(0, 0, 5),
                    y[1].slice(0, 0, 5)),
              1e-11)
        << name;
  }
}

TEST(Select, PackedDocumentsAreAlone) {
  const Tensor x = tokens(1), bounds = at::tensor({0, 4, 9}, at::kLong);
  for (const auto& [name, select] : selections()) {
    SimplicialAttentionOptions options = layer_options(2);
    options.select = select;
    SimplicialAttention layer = make_layer(options);
    if (name == "linear") {
      EXPECT_THROW(layer->forward_masked(x, {.cu_seqlens = bounds}), c10::ValueError);
      continue;
    }
    const Tensor y = layer->forward_masked(x, {.cu_seqlens = bounds});
    EXPECT_LT(error(y.slice(1, 4), layer->forward(x.slice(1, 4))), 1e-11) << name;
  }
}

TEST(Select, PackedDocumentsHavePositionsOfTheirOwn) {
  const Tensor x = tokens(1), bounds = at::tensor({0, 4, 9}, at::kLong);
  auto ways = selections();
  ways.emplace_back("every tuple", Select{});
  for (const auto& [name, select] : ways) {
    if (name == "linear") continue;  // takes no documents
    SimplicialAttentionOptions options = layer_options(2);
    options.select = select;
    options.rotary = options.allow_non_invariant = true;
    SimplicialAttention layer = make_layer(options);
    const Tensor y = layer->forward_masked(x, {.cu_seqlens = bounds});
    EXPECT_LT(error(y.slice(1, 4), layer->forward(x.slice(1, 4))), 1e-11) << name;
  }
}

TEST(Select, ABatchMayBeEmpty) {
  const Tensor none = tokens().slice(0, 0, 0);
  for (const auto& [name, select] : selections()) {
    SimplicialAttentionOptions options = layer_options(2);
    options.select = select;
    SimplicialAttention layer = make_layer(options);
    EXPECT_EQ(layer->forward(none).sizes(), none.sizes()) << name;
    if (name == "linear") continue;  // takes no adjacency
    const Tensor pairs = at::ones({0, kLength, kLength}, at::kBool);
    EXPECT_EQ(layer->forward_masked(none, {.adjacency = pairs}).sizes(), none.sizes()) << name;
  }
}

TEST(Select, AmongAllTokensIsTheSequence) {
  const Tensor x = tokens(), all = at::arange(kLength).expand({2, -1});
  const Tensor pairs = at::ones({kLength, kLength}, at::kBool);
  for (const auto& [name, select] : selections()) {
    SimplicialAttentionOptions options = layer_options(2);
    options.select = select;
    options.causal = true;
    SimplicialAttention layer = make_layer(options);
    const Tensor expected = layer->forward(x);
    EXPECT_LT(error(layer->forward_masked(x, {.positions = all}), expected), 1e-11) << name;
    if (name == "linear") continue;
    EXPECT_LT(error(layer->forward_masked(x, {.adjacency = pairs}), expected), 1e-11) << name;
  }
}

TEST(Select, DecodingIsTheWholeSequence) {
  const at::NoGradGuard no_grad;
  const Tensor x = tokens();
  for (const auto& [name, select] : selections()) {
    SimplicialAttentionOptions options = layer_options(2);
    options.select = select;
    options.causal = true;
    SimplicialAttention layer = make_layer(options);
    const auto cache = layer->make_cache();
    std::vector<Tensor> steps = {layer->forward(x.slice(1, 0, 4), *cache)};
    for (int64_t t = 4; t < kLength; ++t) {
      steps.push_back(layer->forward(x.slice(1, t, t + 1), *cache));
    }
    EXPECT_LT(error(at::cat(steps, 1), layer->forward(x)), 1e-10) << name;
  }
}

TEST(Select, LearnedReducersOwnTheirWeights) {
  const Tensor x = tokens();
  for (const TupleReduce reduce : {TupleReduce::mlp, TupleReduce::mlp_symmetric}) {
    SimplicialAttentionOptions options = layer_options(2);
    options.kv_heads = 2;
    options.reduce = reduce;
    options.select = Neighbours{random_graph()};
    SimplicialAttention layer = make_layer(options);
    SparseAttentionOptions expected{.pattern = TuplePattern::product, .reduce = reduce};
    for (const char* name : {"w1", "b1", "w2", "b2", "w3", "b3"}) {
      const std::string key = std::string("reducer_") + name;
      if (!layer->named_parameters().contains(key)) continue;
      Tensor weight = layer->named_parameters()[key];
      const at::NoGradGuard no_grad;
      if (name[0] == 'b') {
        EXPECT_EQ(weight.abs().max().item<double>(), 0.0);
      }
      weight.normal_();
      expected.reducer_weights.push_back(weight);
    }
    ASSERT_EQ(expected.reducer_weights.size(), reduce == TupleReduce::mlp ? 4u : 6u);
    const std::vector<Tensor> parts = project(layer, x);
    const at::TensorList all(parts);
    const Tensor out =
        sparse_attention(all[0], all.slice(1, 2), all.slice(3),
                         neighbours(random_graph()).unsqueeze(1), std::nullopt, expected)
            .out;
    const Tensor weight = layer->named_parameters()["output.weight"];
    EXPECT_LT(error(layer->forward(x), at::matmul(out.transpose(1, 2).flatten(2), weight.t())),
              1e-12);
    layer->forward(x).square().sum().backward();
    for (const auto& item : layer->named_parameters()) {
      EXPECT_GT(item.value().grad().abs().max().item<double>(), 0.0) << item.key();
    }
  }
}

TEST(SimplicialAttention, FacesHaveASoftmaxEach) {
  const Tensor x = tokens();
  SimplicialAttentionOptions options = layer_options(2);
  options.face = options.causal = true;
  options.window = {Window::last(4)};
  SimplicialAttention layer = make_layer(options);
  const std::vector<Tensor> parts = project(layer, x);
  const at::TensorList all(parts);
  const Tensor out = face_attention(all[0], all.slice(1, 2), all.slice(3),
                                    {.causal = true, .window = {Window::last(4)}})
                         .out;
  const Tensor weight = layer->named_parameters()["output.weight"];
  EXPECT_LT(error(layer->forward(x), at::matmul(out.transpose(1, 2).flatten(2), weight.t())),
            1e-12);
}

TEST(Orders, EqualOneOutputProjectionOfAllHeads) {
  const Tensor x = tokens();
  SimplicialAttentionOptions options = layer_options(2);
  options.orders = {2, 1, 1, 2};
  options.causal = true;
  options.window = {Window::last(5)};
  SimplicialAttention layer = make_layer(options);
  EXPECT_THAT(names(*layer), UnorderedElementsAre("groups.0.qkv.weight", "groups.0.output.weight",
                                                  "groups.1.qkv.weight", "groups.1.output.weight"));
  EXPECT_EQ(layer->options().order, 2);
  Tensor expected = at::zeros_like(x);
  for (const int64_t order : {1, 2}) {
    SimplicialAttentionOptions part = layer_options(order);
    part.heads = 2;
    part.head_dim = 6;
    part.causal = true;
    part.window = options.window;
    SimplicialAttention group = make_layer(part);
    const at::NoGradGuard no_grad;
    for (auto& item : group->named_parameters()) {
      const std::string name = "groups." + std::to_string(order - 1) + "." + item.key();
      item.value().copy_(layer->named_parameters()[name]);
    }
    expected = expected + group->forward(x);
  }
  EXPECT_LT(error(layer->forward(x), expected), 1e-12);

  const at::NoGradGuard no_grad;
  const auto cache = layer->make_cache();
  const Tensor first = layer->forward(x.slice(1, 0, 4), *cache);
  const auto copy = layer->make_cache();
  copy->load_state(cache->state());
  const Tensor last = layer->forward(x.slice(1, 4), *cache);
  EXPECT_LT(error(at::cat({first, last}, 1), expected), 1e-10);
  EXPECT_LT(error(layer->forward(x.slice(1, 4), *copy), last), 1e-12);
  EXPECT_EQ(copy->position(), kLength);
  SimplicialAttentionOptions other = layer_options(2);
  other.causal = true;
  EXPECT_THROW(layer->forward(x, *make_layer(other)->make_cache()), c10::Error);
}

TEST(Orders, StartWithTheVariancesOfOneProjection) {
  SimplicialAttentionOptions options;
  options.dim = 96;
  options.heads = 4;
  options.orders = {1, 1, 1, 2};
  SimplicialAttention layer(options);
  layer->reset_parameters({std::nullopt, 0.5});
  for (const int64_t group : {0, 1}) {
    const std::string name = "groups." + std::to_string(group) + ".output.weight";
    const double deviation = layer->named_parameters()[name].std().item<double>();
    EXPECT_NEAR(deviation, 0.5 / std::sqrt(3.0 * 96), 0.004) << group;
  }
}

TEST(Select, MasksThatDoNotFitAreNamed) {
  const Tensor x = tokens();
  SimplicialAttentionOptions options = layer_options(2);
  options.select = Neighbours{};
  SimplicialAttention layer = make_layer(options);
  const auto message = [&](const AttentionMasks& masks) -> std::string {
    try {
      layer->forward_masked(x, masks);
    } catch (const c10::Error& raised) {
      return raised.what_without_backtrace();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(message({}), HasSubstr("adjacency: expected the graph of select Neighbours"));
  EXPECT_THAT(message({.adjacency = at::ones({4, 4}, at::kBool)}),
              HasSubstr("adjacency: expected bool of shape [9, 9] or [2, 9, 9], got Bool"));
  EXPECT_THAT(message({.adjacency = at::tensor({0, 12}, at::kLong).view({1, 2})}),
              HasSubstr("[Neighbours] adjacency: expected nodes 0 to 8, got 0 to 12"));
  const Tensor ring = at::ones({kLength, kLength}, at::kBool);
  EXPECT_THAT(message({.key_lengths = at::ones({2, 2}, at::kLong), .adjacency = ring}),
              HasSubstr("key_lengths: expected int64 of shape [2] beside select Neighbours"));
  EXPECT_THAT(message({.cu_seqlens = at::tensor({0, 4}, at::kLong), .adjacency = ring}),
              HasSubstr("cu_seqlens: expected 0 <= .. <= 9"));
  EXPECT_THAT(message({.mask = ring, .adjacency = ring}),
              HasSubstr("mask: expected none beside select Neighbours; use adjacency"));
  EXPECT_THAT(message({.positions = at::zeros({1, 2}, at::kLong)}),
              HasSubstr("positions: expected int64 of shape [2, 9], got Long of shape [1, 2]"));
}

}  // namespace
}  // namespace nsimplex
