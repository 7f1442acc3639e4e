// The public C++ functions of routing: their arguments reach what the Python tests hold against the
// definitions; and how much memory they take.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/attention.h>
#include <nsimplex/routing.h>

#include "attention/counting_allocator.h"
#include "error_of.h"

namespace nsimplex {
namespace {

using at::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Layer {
  Tensor query, key, other;

  explicit Layer(int64_t length = 12) {
    at::manual_seed(1);
    query = at::randn({2, 4, length, 6}, at::kDouble);
    key = at::randn({2, 2, length, 6}, at::kDouble);
    other = at::randn({2, 2, length, 6}, at::kDouble);
  }
};

TEST(TopkKeys, EveryOptionReachesTheOperator) {
  const Layer in;
  TopkOptions options{.weights = at::rand({2, 4, 12}, at::kDouble),
                      .scores = IndexScores::softmax,
                      .causal = true,
                      .scale = 0.3,
                      .key_lengths = at::tensor({5, 12}, at::kLong)};
  const Tensor flags = at::rand({12, 12}) > 0.4;
  options.adjacency = flags;
  const TopkKeys kernel = topk_keys(in.query, in.key, 4, options);
  const TopkKeys plain = topk_keys_reference(in.query, in.key, 4, options);
  EXPECT_TRUE(at::equal(kernel.indices, plain.indices));
  EXPECT_TRUE(at::allclose(kernel.scores, plain.scores));

  options.adjacency = flags.to_sparse_csr();
  EXPECT_TRUE(at::equal(topk_keys(in.query, in.key, 4, options).indices, plain.indices));
  options.adjacency.reset();
  options.candidates = neighbours(flags, /*self_loops=*/false);
  EXPECT_TRUE(at::equal(topk_keys(in.query, in.key, 4, options).indices, plain.indices));

  // Each option changes something.
  const auto changed = [&](auto&& change) {
    TopkOptions other = options;
    change(other);
    return !at::equal(topk_keys(in.query, in.key, 4, other).scores, plain.scores);
  };
  EXPECT_TRUE(changed([](TopkOptions& o) { o.weights.reset(); }));
  EXPECT_TRUE(changed([](TopkOptions& o) { o.scores = IndexScores::relu; }));
  EXPECT_TRUE(changed([](TopkOptions& o) { o.causal = false; }));
  EXPECT_TRUE(changed([](TopkOptions& o) { o.scale.reset(); }));
  EXPECT_TRUE(changed([](TopkOptions& o) { o.key_lengths.reset(); }));
  EXPECT_TRUE(changed([](TopkOptions& o) { o.candidates.reset(); }));
  EXPECT_THAT(error_of([&] { topk_keys(in.query, in.key, 0); }), HasSubstr("k: expected at least"));
}

TEST(TupleLists, OfTablesAndHyperedges) {
  const Tensor table = at::tensor({0, -1, 1, 0, 2, 1}, at::kLong).view({1, 3, 2});
  const TupleList product = product_list(table, 2);
  EXPECT_TRUE(at::equal(product.offsets, at::tensor({0, 1, 5, 9}, at::kLong).view({1, 1, 4})));
  EXPECT_TRUE(at::equal(product.indices.slice(0, 1, 5),
                        at::tensor({1, 1, 1, 0, 0, 1, 0, 0}, at::kLong).view({4, 2})));
  const TupleList path = path_list(table, 2, 1);  // 2 -> {2, 1}, 2 -> {2, 1}, 1 -> {1, 0}
  EXPECT_TRUE(at::equal(path.offsets, at::tensor({0, 4}, at::kLong).view({1, 1, 2})));
  EXPECT_TRUE(
      at::equal(path.indices, at::tensor({2, 2, 2, 1, 1, 1, 1, 0}, at::kLong).view({4, 2})));
  const Tensor edge = at::tensor({2, 0, 1}, at::kLong).view({1, 3});
  EXPECT_EQ(hyperedge_list(edge, 3).indices.size(0), 6);
  EXPECT_TRUE(at::equal(hyperedge_list(edge, 3, false).indices,
                        at::tensor({0, 1}, at::kLong).view({1, 2})));
}

TEST(TopkTuples, KeepsTheHeaviest) {
  const Layer in;
  AttentionOptions options{.causal = true};
  const TupleList list = topk_tuples(in.query, {in.key, in.other}, 4, std::nullopt, options);
  EXPECT_THAT(list.offsets.sizes(), ElementsAre(2, 1, 13));
  // Each list is shared by the heads; what is kept is what each query scores best, so its own dense
  // weights, summed over heads by relu, cannot all lie outside.
  EXPECT_EQ(list.offsets[0][0][1].item<int64_t>(), 1);  // the first query has one tuple
  EXPECT_EQ(list.indices.size(0), 2 * (1 + 11 * 4));
  EXPECT_TRUE((list.indices >= 0).all().item<bool>());
}

TEST(RetainedMass, IsTheShareOfTheWeights) {
  const Layer in;
  const Tensor mask = at::rand({2, 1, 12, 12, 12}) > 0.5;
  const Tensor dense_lse = attention(in.query, {in.key, in.other}, {in.key, in.other}).lse;
  const Tensor sparse_lse =
      attention(in.query, {in.key, in.other}, {in.key, in.other}, {.mask = mask}).lse;
  const Tensor weights = attention_weights(in.query, {in.key, in.other});
  const Tensor kept = (weights * mask).sum({3, 4}).mean();
  EXPECT_TRUE(at::allclose(retained_mass(sparse_lse, dense_lse), kept));
}

TEST(IndexerLoss, EveryOptionReachesTheOperator) {
  const Layer in;
  const Tensor query = at::randn({2, 3, 12, 4}, at::kDouble).requires_grad_(true);
  const Tensor key = at::randn({2, 1, 12, 4}, at::kDouble).requires_grad_(true);
  IndexerLossOptions options{.weights = at::rand({2, 3, 12}, at::kDouble),
                             .scores = IndexScores::softmax,
                             .causal = true,
                             .scale = 0.4,
                             .form = Form::determinant,
                             .attention_scale = Scale{0.7, 1.0}};
  const auto loss = [&](const IndexerLossOptions& o) {
    return indexer_loss(query, key, in.query, {in.key, in.other}, o).item<double>();
  };
  const double whole = loss(options);
  EXPECT_GT(whole, 0.0);
  const auto changes = [&](auto&& change) {
    IndexerLossOptions other = options;
    change(other);
    return loss(other) != whole;
  };
  EXPECT_TRUE(changes([](IndexerLossOptions& o) { o.weights.reset(); }));
  EXPECT_TRUE(changes([](IndexerLossOptions& o) { o.scores = IndexScores::relu; }));
  EXPECT_TRUE(changes([](IndexerLossOptions& o) { o.causal = false; }));
  EXPECT_TRUE(changes([](IndexerLossOptions& o) { o.scale.reset(); }));
  EXPECT_TRUE(changes([](IndexerLossOptions& o) { o.form = Form::product; }));
  EXPECT_TRUE(changes([](IndexerLossOptions& o) { o.attention_scale.reset(); }));
  EXPECT_TRUE(changes([&](IndexerLossOptions& o) { o.lse = at::zeros({2, 3, 12}); }));
  options.indices = topk_keys(query, key, 3, {.causal = true}).indices;
  const double product = loss(options);
  options.path = true;
  EXPECT_NE(loss(options), product);
  EXPECT_NE(product, whole);
  const Tensor total = indexer_loss(query, key, in.query, {in.key, in.other}, options);
  total.backward();
  EXPECT_GT(query.grad().abs().max().item<double>(), 0.0);
  EXPECT_GT(key.grad().abs().max().item<double>(), 0.0);
}

int64_t topk_peak(int64_t length, const TopkOptions& options, bool reference) {
  const Tensor query = at::randn({1, 2, length, 16}), key = at::randn({1, 1, length, 16});
  return CountingAllocator::installed().peak_of(
      [&] { (reference ? topk_keys_reference : topk_keys)(query, key, 16, options); });
}

// All scores in fp32 would be 268 MB at T = 8192. Indices and scores of the results are 1.6 MB.
TEST(RoutingMemory, TopkIsLinearInTheLength) {
  for (const IndexScores scores : {IndexScores::relu, IndexScores::softmax}) {
    const TopkOptions options{.scores = scores, .causal = true};
    const int64_t short_peak = topk_peak(1024, options, false);
    const int64_t long_peak = topk_peak(8192, options, false);
    EXPECT_LT(static_cast<double>(long_peak), 8.5 * static_cast<double>(short_peak));
    EXPECT_LT(long_peak, 8 * kMegabyte);
  }
  // A tile of the reference is sorted whole.
  EXPECT_LT(topk_peak(4096, {.causal = true}, true), 60 * kMegabyte);
}

// Marginals of the whole layer would be 67 MB a head at T = 4096, gathered keys 134 MB.
TEST(RoutingMemory, LossIsLinearInTheLength) {
  const auto peak = [](int64_t length, bool chosen) {
    const Tensor query = at::randn({1, 2, length, 16}).requires_grad_(true);
    const Tensor key = at::randn({1, 1, length, 16}).requires_grad_(true);
    const Tensor q = at::randn({1, 2, length, 16}), k = at::randn({1, 2, length, 16});
    IndexerLossOptions options{.causal = true};
    if (chosen) options.indices = topk_keys(query, key, 32, {.causal = true}).indices;
    return CountingAllocator::installed().peak_of(
        [&] { indexer_loss(query, key, q, {k}, options).backward(); });
  };
  for (const bool chosen : {false, true}) {
    EXPECT_LT(peak(4096, chosen), peak(1024, chosen) + 60 * kMegabyte) << chosen;
    EXPECT_LT(peak(4096, chosen), 200 * kMegabyte) << chosen;
  }
}

}  // namespace
}  // namespace nsimplex
