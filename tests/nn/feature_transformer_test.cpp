#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/feature_transformer.h>
#include <nsimplex/rotary.h>
#include <nsimplex/separable_attention.h>

#include <cmath>

#include "error_of.h"
#include "module_checks.h"

namespace nsimplex {
namespace {

using at::Tensor;
using test::input_error_of;

FeatureTransformerOptions small(FeatureEncoding encoding = FeatureEncoding::none,
                                FeatureBackbone backbone = FeatureBackbone::softmax) {
  return {.features = 5,
          .dim = 24,
          .heads = 2,
          .layers = 2,
          .backbone = backbone,
          .bins = 3,
          .encoding = encoding};
}

FeatureTransformer model_of(const FeatureTransformerOptions& options) {
  FeatureTransformer model(options, at::detail::createCPUGenerator(3));
  model->to(at::kDouble);
  return model;
}

Tensor some_bins() { return at::arange(10, at::kLong).remainder(4).view({2, 5}); }

TEST(FeatureTransformer, KeepsShapesOfEveryEncodingAndBackbone) {
  for (const auto backbone :
       {FeatureBackbone::softmax, FeatureBackbone::performer, FeatureBackbone::simplicial}) {
    for (const auto encoding :
         {FeatureEncoding::none, FeatureEncoding::sinusoidal, FeatureEncoding::learned,
          FeatureEncoding::additive, FeatureEncoding::relative, FeatureEncoding::rotary}) {
      if (encoding == FeatureEncoding::relative && backbone != FeatureBackbone::softmax) continue;
      auto options = small(encoding, backbone);
      options.outputs = 3;
      FeatureTransformer model = model_of(options);
      const Tensor hidden = model->forward(some_bins());
      EXPECT_EQ(hidden.sizes(), at::IntArrayRef({2, 6, 24}));
      EXPECT_EQ(model->reconstruct(hidden).sizes(), at::IntArrayRef({2, 5, 4}));
      EXPECT_EQ(model->predict(hidden).sizes(), at::IntArrayRef({2, 3}));
      EXPECT_TRUE(hidden.isfinite().all().item<bool>());
    }
  }
}

// Without an encoding a permutation of the columns permutes the answers; with one it must not.
TEST(FeatureTransformer, EncodingsTellColumnsApart) {
  const Tensor order = at::tensor({3, 0, 4, 1, 2}, at::kLong);
  const Tensor x = some_bins();
  for (const auto backbone :
       {FeatureBackbone::softmax, FeatureBackbone::performer, FeatureBackbone::simplicial}) {
    for (const auto encoding :
         {FeatureEncoding::none, FeatureEncoding::sinusoidal, FeatureEncoding::learned,
          FeatureEncoding::additive, FeatureEncoding::relative, FeatureEncoding::rotary}) {
      if (encoding == FeatureEncoding::relative && backbone != FeatureBackbone::softmax) continue;
      FeatureTransformer model = model_of(small(encoding, backbone));
      const int64_t planes = feature_planes(model->options());
      at::manual_seed(5);
      if (encoding == FeatureEncoding::rotary) model->set_table(at::randn({5, 2, planes}));
      if (encoding == FeatureEncoding::additive) model->set_table(at::randn({5, 24}));
      const Tensor straight = model->forward(x).narrow(1, 1, 5).index_select(1, order);
      const Tensor permuted = model->forward(x.index_select(1, order)).narrow(1, 1, 5);
      const double apart = (straight - permuted).abs().max().item<double>();
      if (encoding == FeatureEncoding::none) {
        EXPECT_LT(apart, 1e-12);
      } else {
        EXPECT_GT(apart, 1e-6) << static_cast<int>(encoding);
      }
    }
  }
}

// Logits see differences of angles alone, and the extra token stands at 0: a table of zeros leaves
// all of them as they are.
TEST(FeatureTransformer, RotaryTableOfZerosIsNoEncoding) {
  for (const auto backbone :
       {FeatureBackbone::softmax, FeatureBackbone::performer, FeatureBackbone::simplicial}) {
    FeatureTransformer plain = model_of(small(FeatureEncoding::none, backbone));
    FeatureTransformer turned = model_of(small(FeatureEncoding::rotary, backbone));
    const Tensor expected = plain->forward(some_bins());
    EXPECT_LT((turned->forward(some_bins()) - expected).abs().max().item<double>(), 1e-12);
  }
}

TEST(FeatureTransformer, HeadsMayShareATable) {
  FeatureTransformer shared = model_of(small(FeatureEncoding::rotary));
  FeatureTransformer own = model_of(small(FeatureEncoding::rotary));
  const Tensor table = at::randn({5, 6}, at::kDouble);
  shared->set_table(table);
  own->set_table(table.unsqueeze(1).repeat({1, 2, 1}));
  EXPECT_TRUE(at::equal(shared->forward(some_bins()), own->forward(some_bins())));
}

TEST(FeatureTransformer, LearnedScaleTurnsByMultiplesOfTheTable) {
  auto options = small(FeatureEncoding::rotary);
  FeatureTransformer fixed = model_of(options);
  options.learned_scale = true;
  FeatureTransformer learned = model_of(options);
  const Tensor table = at::randn({5, 2, 6}, at::kDouble);
  fixed->set_table(table * at::tensor({2.0, 0.5}, at::kDouble).view({1, 2, 1}));
  learned->set_table(table);
  {
    const at::NoGradGuard no_grad;
    learned->named_parameters()["positions.scale"].copy_(at::tensor({2.0, 0.5}));
  }
  const Tensor hidden = learned->forward(some_bins());
  EXPECT_LT((hidden - fixed->forward(some_bins())).abs().max().item<double>(), 1e-12);
  hidden.square().sum().backward();
  // A norm's output has a constant sum of squares; ask something that is not.
  learned->zero_grad();
  learned->forward(some_bins()).select(1, 2).sum().backward();
  EXPECT_GT(learned->named_parameters()["positions.scale"].grad().abs().min().item<double>(), 0.0);
}

// F.110 entry by entry.
TEST(FeatureAttention, RelativeTermsAreTransformerXls) {
  auto options = small(FeatureEncoding::relative);
  options.dim = 8;
  FeaturePositions positions(options);
  FeatureAttentionImpl layer(options, positions, 0);
  layer.to(at::kDouble);
  at::manual_seed(1);
  const at::NoGradGuard no_grad;
  for (Tensor& parameter : layer.parameters()) parameter.normal_();
  const auto parameters = layer.named_parameters();
  const Tensor x = at::randn({1, 6, 8}, at::kDouble);
  const Tensor qkv = x[0].matmul(parameters["qkv.weight"].t()).view({6, 3, 2, 4});
  Tensor joined = at::empty({6, 8}, at::kDouble);
  for (int64_t head = 0; head < 2; ++head) {
    const Tensor q = qkv.select(1, 0).select(1, head), k = qkv.select(1, 1).select(1, head);
    const Tensor u = parameters["content_bias"][head], v = parameters["position_bias"][head];
    Tensor logits = at::empty({6, 6}, at::kDouble);
    for (int64_t m = 0; m < 6; ++m) {
      for (int64_t n = 0; n < 6; ++n) {
        Tensor apart = at::empty({8}, at::kDouble);
        for (int64_t c = 0; c < 4; ++c) {
          const double angle = static_cast<double>(m - n) * std::pow(10000.0, -2.0 * c / 8.0);
          apart[2 * c] = std::sin(angle);
          apart[2 * c + 1] = std::cos(angle);
        }
        const Tensor r = parameters["relative.weight"].matmul(apart).view({2, 4})[head];
        logits[m][n] = ((q[m] + u).dot(k[n]) + (q[m] + v).dot(r)) / 2.0;
      }
    }
    joined.narrow(1, 4 * head, 4).copy_(logits.softmax(1).matmul(qkv.select(1, 2).select(1, head)));
  }
  const Tensor expected = joined.matmul(parameters["output.weight"].t());
  EXPECT_LT((layer.forward(x)[0] - expected).abs().max().item<double>(), 1e-12);
}

// A performer's numerator turns, its denominator does not (Su et al., equation 19).
TEST(FeatureAttention, PerformerDividesByWhatDoesNotTurn) {
  auto options = small(FeatureEncoding::rotary, FeatureBackbone::performer);
  FeaturePositions positions(options);
  positions->to(at::kDouble);
  const Tensor table = at::randn({5, 2, 6}, at::kDouble);
  positions->set_table(table);
  FeatureAttentionImpl layer(options, positions, 4);
  layer.to(at::kDouble);
  const Tensor x = at::randn({1, 6, 24}, at::kDouble);
  const auto parameters = layer.named_parameters();
  const Tensor qkv = x.matmul(parameters["qkv.weight"].t()).view({1, 6, 3, 2, 12}).transpose(1, 3);
  const auto features = [&](int64_t part) {
    return feature_map(qkv.select(2, part).contiguous(),
                       {.kind = Feature::random, .seed = 4, .orthogonal = true});
  };
  const Tensor query = features(0), key = features(1);
  const Tensor angles = at::constant_pad_nd(table, {0, 0, 0, 0, 1, 0});
  const Tensor turned_query = rotary(query, {.angles = angles});
  const Tensor turned_key = rotary(key, {.angles = angles});
  const Tensor weights = turned_query.matmul(turned_key.transpose(2, 3)) /
                         query.matmul(key.transpose(2, 3)).sum(3, true);
  const Tensor out = weights.matmul(qkv.select(2, 2)).transpose(1, 2).flatten(2);
  const Tensor expected = out.matmul(parameters["output.weight"].t());
  EXPECT_LT((layer.forward(x) - expected).abs().max().item<double>(), 1e-12);
}

TEST(FeatureTransformer, MaskedValuesAreNotSeen) {
  FeatureTransformer model = model_of(small(FeatureEncoding::learned));
  const Tensor masked = at::zeros({2, 5}, at::kBool);
  masked.select(1, 2).fill_(true);
  const Tensor x = some_bins(), other = x.clone();
  other.select(1, 2).add_(1).remainder_(4);
  EXPECT_TRUE(at::equal(model->forward(x, masked), model->forward(other, masked)));
  EXPECT_FALSE(at::equal(model->forward(x), model->forward(other)));

  const Tensor logits = model->reconstruct(model->forward(x, masked)).select(1, 2);
  const Tensor expected = at::cross_entropy_loss(logits, x.select(1, 2));
  EXPECT_NEAR(model->reconstruction_loss(x, masked).item<double>(), expected.item<double>(), 1e-12);
}

TEST(FeatureTransformer, MarksAreSeen) {
  FeatureTransformer model = model_of(small());
  const Tensor marked = at::zeros({2, 5}, at::kBool);
  const Tensor plain = model->forward(some_bins());
  EXPECT_TRUE(at::equal(model->forward(some_bins(), std::nullopt, marked), plain));
  marked[0][1].fill_(true);
  const Tensor other = model->forward(some_bins(), std::nullopt, marked);
  EXPECT_FALSE(at::equal(other[0], plain[0]));
  EXPECT_TRUE(at::equal(other[1], plain[1]));
}

TEST(FeatureTransformer, ValuesOnOtherScales) {
  auto options = small();
  const Tensor x = at::randn({3, 5}, at::kDouble);
  for (const auto values : {FeatureValues::linear, FeatureValues::periodic}) {
    options.values = values;
    FeatureTransformer trained = model_of(options);
    EXPECT_EQ(trained->reconstruct(trained->forward(x)).sizes(), at::IntArrayRef({3, 5}));

    auto above = options;
    above.values = FeatureValues::general;
    FeatureTransformer model = model_of(above);
    EXPECT_THAT(error_of([&] { model->forward(x); }), testing::HasSubstr("set_general() first"));
    model->set_general(trained.ptr());
    const Tensor masked = at::zeros({3, 5}, at::kBool);
    masked.select(1, 0).fill_(true);
    model->reconstruction_loss(x, masked).backward();
    EXPECT_FALSE(trained->named_parameters()["value.weight"].grad().defined());
    EXPECT_THAT(test::names(*model), testing::Not(testing::Contains("value.weight")));
  }
}

TEST(FeatureTransformer, AggregatesRows) {
  auto options = small();
  const Tensor hidden = at::randn({2, 6, 24}, at::kDouble);
  options.aggregate = FeatureAggregate::mean;
  EXPECT_TRUE(at::allclose(model_of(options)->aggregate(hidden), hidden.narrow(1, 1, 5).mean(1)));
  options.aggregate = FeatureAggregate::max;
  EXPECT_TRUE(at::equal(model_of(options)->aggregate(hidden), hidden.narrow(1, 1, 5).amax(1)));
  options.aggregate = FeatureAggregate::cls;
  EXPECT_TRUE(at::equal(model_of(options)->aggregate(hidden), hidden.select(1, 0)));
}

TEST(FeatureTransformer, NamesOptionsThatCannotBe) {
  const auto error = [](auto change) {
    auto options = small();
    change(options);
    return input_error_of([&] { FeatureTransformer model(options); });
  };
  EXPECT_EQ(error([](auto& o) { o.features = 0; }),
            "[FeatureTransformer] features: expected at least 1, got 0");
  EXPECT_EQ(error([](auto& o) { o.heads = 5; }),
            "[FeatureTransformer] dim: expected a multiple of heads 5, got 24");
  EXPECT_EQ(error([](auto& o) {
              o.backbone = FeatureBackbone::simplicial;
              o.order = 4;
            }),
            "[FeatureTransformer] dim: expected a multiple of heads times order + 1 = 10 for "
            "backbone simplicial, got 24");
  EXPECT_EQ(error([](auto& o) {
              o.backbone = FeatureBackbone::performer;
              o.encoding = FeatureEncoding::relative;
            }),
            "[FeatureTransformer] encoding: relative needs backbone softmax");
  EXPECT_EQ(error([](auto& o) { o.learned_scale = true; }),
            "[FeatureTransformer] learned_scale: only of encoding rotary");
}

TEST(FeatureTransformer, NamesTensorsThatCannotBe) {
  FeatureTransformer model = model_of(small(FeatureEncoding::rotary));
  EXPECT_THAT(error_of([&] { model->forward(at::zeros({2, 4}, at::kLong)); }),
              testing::HasSubstr("x: expected shape [B, 5], got [2, 4]"));
  EXPECT_THAT(error_of([&] { model->forward(at::zeros({2, 5})); }),
              testing::HasSubstr("x: expected int64 numbers of bins, got Float"));
  EXPECT_THAT(error_of([&] { model->set_table(at::zeros({5, 7})); }),
              testing::HasSubstr("table: expected floating numbers of shape [5, 2, 6]"));
  EXPECT_THAT(error_of([&] { model_of(small())->set_table(at::zeros({5, 6})); }),
              testing::HasSubstr("only of encodings rotary and additive"));
  EXPECT_THAT(
      error_of([&] { model->reconstruction_loss(some_bins(), at::zeros({2, 5}, at::kBool)); }),
      testing::HasSubstr("masked: expected a value to restore"));
}

TEST(FeatureTransformer, PresetsHaveThePapersShapes) {
  EXPECT_EQ(feature_preset_names(), (std::vector<std::string>{"paper-scbert", "paper-scgpt"}));
  FeatureTransformerOptions options = feature_preset("paper-scbert");
  EXPECT_EQ(options.backbone, FeatureBackbone::performer);
  options.features = 3;
  options.encoding = FeatureEncoding::rotary;
  FeatureTransformer model(options, at::detail::createCPUGenerator(3));
  const Tensor bins = at::arange(6, at::kLong).remainder(options.bins + 1).view({2, 3});
  EXPECT_EQ(model->forward(bins).sizes(), (std::vector<int64_t>{2, 4, 200}));
  EXPECT_EQ(feature_planes(options), 10);
  EXPECT_EQ(feature_preset("paper-scgpt").dim, 512);
  EXPECT_THAT(input_error_of([] { feature_preset("scbert"); }),
              ::testing::HasSubstr("preset: expected paper-scbert or paper-scgpt, got scbert"));
}

}  // namespace
}  // namespace nsimplex
