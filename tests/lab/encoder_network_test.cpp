// Networks of higher-order transformer layers: shapes, symmetry, what reaches what.
#include "lab/graphs/encoder_network.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include <set>

#include "input_error_of.h"

namespace nsimplex::training {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

EncoderNetworkOptions small(int64_t input, int64_t output, AttentionForm form) {
  EncoderNetworkOptions options{.input = {.order = input},
                                .output = {.order = output},
                                .in_channels = 2,
                                .hidden = 8,
                                .layers = 1,
                                .heads = 2,
                                .form = form,
                                .head = {.out_channels = 3, .normalised = true}};
  return options;
}

GraphBatch sets(const Tensor& features, int64_t points) {
  const Tensor nodes = at::full({features.size(0) / points}, points, at::kLong);
  return {complete_tuples(nodes, 1), features, complete_tuples(nodes, 2), {}, {}};
}

TEST(EncoderNetwork, SetsDoNotSeeEachOtherNorTheOrderOfPoints) {
  for (const auto form : {AttentionForm::softmax, AttentionForm::kernel}) {
    at::manual_seed(1);
    EncoderNetwork network(small(1, 2, form));
    network.eval();
    const Tensor features = at::randn({10, 2});
    const Tensor both = network.prepare(sets(features, 5))();
    ASSERT_EQ(both.sizes(), (std::vector<int64_t>{50, 3}));
    const Tensor second = network.prepare(sets(features.slice(0, 5), 5))();
    EXPECT_TRUE(at::allclose(both.slice(0, 25), second, 1e-4, 1e-5));
    const Tensor order = at::tensor({3, 0, 4, 1, 2}, at::kLong);
    const Tensor moved = network.prepare(sets(features.slice(0, 5).index_select(0, order), 5))();
    EXPECT_TRUE(at::allclose(moved.view({5, 5, 3}),
                             second.view({5, 5, 3}).index_select(0, order).index_select(1, order),
                             1e-4, 1e-5));
  }
}

TEST(EncoderNetwork, SymmetricPairsAreTheSameInBothOrders) {
  EncoderNetworkOptions options = small(1, 2, AttentionForm::softmax);
  options.symmetric = true;
  EncoderNetwork network(options);
  const Tensor out = network.prepare(sets(at::randn({4, 2}), 4))().view({4, 4, 3});
  EXPECT_TRUE(out.equal(out.transpose(0, 1)));
  options.symmetric = false;
  EncoderNetwork other(options);
  const Tensor free = other.prepare(sets(at::randn({4, 2}), 4))().view({4, 4, 3});
  EXPECT_FALSE(at::allclose(free, free.transpose(0, 1)));
}

// A chain of six nodes whose first loop carries `value`.
GraphBatch chain(float value) {
  const Tensor nodes = at::tensor({6}, at::kLong);
  const TupleBatch input = with_loops(all_orders(chain_graphs(nodes)).batch).batch;
  Tensor features = at::zeros({input.size(), 2});
  features[0][0] = value;
  return {input, features, complete_tuples(nodes, 1), {}, {}};
}

TEST(EncoderNetwork, GlobalClassesReachTheFarEnd) {
  for (const auto form : {AttentionForm::softmax, AttentionForm::kernel}) {
    for (const bool global : {true, false}) {
      at::manual_seed(2);
      EncoderNetworkOptions options = small(2, 1, form);
      options.classes.global = global;
      EncoderNetwork network(options);
      const Tensor change = (network.prepare(chain(1))() - network.prepare(chain(5))()).abs();
      EXPECT_GT(change[1].max().item<float>(), 0);
      EXPECT_EQ(change[5].max().item<float>() > 0, global);
    }
  }
}

TEST(EncoderNetwork, RandomDirectionsAreNewWhenRedrawnAndKeptBetween) {
  EncoderNetwork kernel(small(2, 1, AttentionForm::kernel));
  const auto forward = kernel.prepare(chain(1));
  const Tensor first = forward();
  EXPECT_TRUE(first.equal(forward()));
  kernel.redraw_features();
  EXPECT_FALSE(first.equal(forward()));
  for (const Tensor& each : kernel.buffers()) {  // one for all layers
    EXPECT_EQ(each.const_data_ptr(), kernel.buffers().front().const_data_ptr());
  }
  EncoderNetwork softmax(small(2, 1, AttentionForm::softmax));
  softmax.redraw_features();
  EXPECT_TRUE(softmax.buffers().empty());
}

TEST(EncoderNetwork, AReadoutHasItsOwnFormAndHeads) {
  EncoderNetworkOptions kernel = small(2, 1, AttentionForm::kernel);
  kernel.layers = 0;  // the read-out alone
  kernel.readout = {.form = AttentionForm::softmax, .heads = 3, .head_dim = 5};
  EncoderNetworkOptions softmax = small(2, 1, AttentionForm::softmax);
  softmax.layers = 0;
  softmax.heads = 3;
  softmax.head_dim = 5;
  const auto out = [](const EncoderNetworkOptions& options) {
    at::manual_seed(4);
    EncoderNetwork network(options);
    at::manual_seed(5);  // directions of the kernel were drawn in between
    for (at::Tensor& each : network.parameters()) {
      at::NoGradGuard none;
      each.normal_();
    }
    return network.prepare(chain(1))();
  };
  EXPECT_TRUE(out(kernel).equal(out(softmax)));
  kernel.readout.form = std::nullopt;
  EXPECT_FALSE(at::allclose(out(kernel), out(softmax)));
}

TEST(EncoderNetwork, HeadsOfOneWidthShareTheirDirections) {
  const auto buffers = [](EncoderNetworkOptions options, const ReadoutOptions& readout) {
    options.readout = readout;
    EncoderNetwork network(options);
    std::vector<Tensor> before, found;
    for (const Tensor& each : network.buffers()) before.push_back(each.clone());
    network.redraw_features();
    for (const Tensor& each : network.buffers()) {
      EXPECT_FALSE(each.equal(before[found.size()]));
      found.push_back(each);
    }
    return found;
  };
  const EncoderNetworkOptions kernel = small(2, 1, AttentionForm::kernel);
  const EncoderNetworkOptions softmax = small(2, 1, AttentionForm::softmax);
  const auto widths = [&](const EncoderNetworkOptions& options, const ReadoutOptions& readout) {
    std::set<int64_t> found;
    for (const Tensor& each : buffers(options, readout)) found.insert(each.size(0));
    return found;
  };
  EXPECT_EQ(widths(kernel, {.heads = 3}), (std::set<int64_t>{4}));
  EXPECT_EQ(widths(kernel, {.head_dim = 6}), (std::set<int64_t>{4, 6}));
  EXPECT_EQ(widths(kernel, {.form = AttentionForm::softmax, .head_dim = 6}),
            (std::set<int64_t>{4}));
  EXPECT_EQ(widths(softmax, {.form = AttentionForm::kernel}), (std::set<int64_t>{4}));
  EXPECT_TRUE(widths(softmax, {}).empty());
}

TEST(EncoderNetwork, FeaturesAreOfTheMapAndAsManyAsWanted) {
  EncoderNetworkOptions options = small(2, 1, AttentionForm::kernel);
  options.features.count = 7;
  const auto out = [&](FeatureMap map) {
    at::manual_seed(3);
    options.features.map = map;
    EncoderNetwork network(options);
    EXPECT_EQ(network.buffers().front().sizes(), (std::vector<int64_t>{4, 7}));
    return network.prepare(chain(1))();
  };
  EXPECT_FALSE(at::allclose(out(FeatureMap::relu), out(FeatureMap::exponential)));
}

TEST(LaplacianTransformer, EncodingsTellNodesApart) {
  EncoderNetworkOptions options = small(1, 1, AttentionForm::softmax);
  options.in_channels = 1 + 3;
  LaplacianTransformer network(1, 3, options);
  GraphBatch batch = chain(0);
  network.eval();
  const Tensor out = network.prepare(batch)();
  ASSERT_EQ(out.size(0), 6);
  EXPECT_FALSE(at::allclose(out[0], out[2], 1e-3, 1e-4));  // all features are zero
  EXPECT_TRUE(out.equal(network.prepare(batch)()));
  network.train();  // signs are random
  bool differs = false;
  for (int draw = 0; draw < 8; ++draw) differs = differs || !out.equal(network.prepare(batch)());
  EXPECT_TRUE(differs);
  EXPECT_THAT(test::input_error_of([&] { LaplacianTransformer(2, 3, options); }),
              HasSubstr("expected nodes with 5 channels"));
}

}  // namespace
}  // namespace nsimplex::training
