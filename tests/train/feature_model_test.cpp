// A trained feature transformer is written and read: the same answers, and no file that does not fit.
#include "train/feature_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "input_error_of.h"
#include "io/safetensors.h"
#include "temporary_folder.h"
#include "train/feature_study.h"

namespace nsimplex::training {
namespace {

using at::Tensor;
using test::input_error_of;
using ::testing::HasSubstr;

FeatureStudyOptions small(FeatureBackbone backbone, FeatureValues values) {
  return {.model = {.dim = 24, .heads = 2, .layers = 1, .backbone = backbone, .values = values},
          .restoring = {.epochs = 1},
          .answering = {.epochs = 2},
          .making = {.structure = {}, .embedding = {.steps = 5}},
          .columns = 4};
}

Tensor table(int64_t rows) {
  at::manual_seed(3);
  return at::randn({rows, 5}, at::kDouble);
}

FeatureModel named(const FeatureStudy& study, const std::vector<std::string>& classes) {
  FeatureModel model = study.last();
  model.features = {"a", "b", "c", "d"};
  model.classes = classes;
  return model;
}

TEST(FeatureModelFile, HasTheAnswersOfTheModelThatWasTrained) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  const Tensor all = table(40), learn = all.narrow(0, 0, 30), judge = all.narrow(0, 30, 10);
  const Tensor classes = learn.select(1, 0).gt(0).to(at::kLong);
  for (const auto backbone :
       {FeatureBackbone::softmax, FeatureBackbone::performer, FeatureBackbone::simplicial}) {
    for (const auto values : {FeatureValues::bins, FeatureValues::linear, FeatureValues::periodic,
                              FeatureValues::general}) {
      for (const char* encoding : {"learned", "cape-scaled", "cape-additive"}) {
        FeatureStudy study(learn, judge, small(backbone, values));
        study.classify(encoding, classes, judge.select(1, 0).gt(0).to(at::kLong), 2, 1);
        FeatureModel model = named(study, {"low", "high"});
        write_feature_model(path, model);
        FeatureModel read = read_feature_model(path);
        EXPECT_EQ(read.encoding, encoding);
        EXPECT_EQ(read.features, model.features);
        EXPECT_EQ(read.classes, model.classes);
        const Tensor columns = judge.index_select(1, study.chosen());
        const Tensor answers = feature_answers(read, columns);
        EXPECT_TRUE(answers.equal(feature_answers(model, columns)));
        EXPECT_TRUE(answers.sum(1).allclose(at::ones({10}, at::kDouble)));
      }
    }
  }
}

TEST(FeatureModelFile, NumbersHaveTheScaleThatWasLearned) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  const Tensor x = table(40), target = 1000 + 50 * x.select(1, 0);
  FeatureStudy study(x, x, small(FeatureBackbone::softmax, FeatureValues::linear));
  const Scores scores = study.regress("none", target, target, 1);
  write_feature_model(path, named(study, {}));
  FeatureModel read = read_feature_model(path);
  const Tensor answers = feature_answers(read, x.index_select(1, study.chosen()));
  EXPECT_EQ(answers.sizes(), at::IntArrayRef({40}));
  EXPECT_DOUBLE_EQ((answers - target).abs().median().item<double>(), scores[0].second);
}

TEST(FeatureModelFile, WhatDoesNotFitIsToldInOneLine) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  const Tensor x = table(40), classes = x.select(1, 0).gt(0).to(at::kLong);
  FeatureStudy study(x, x, small(FeatureBackbone::softmax, FeatureValues::bins));
  study.classify("cape", classes, classes, 2, 1);
  write_feature_model(path, named(study, {"low", "high"}));
  const io::Safetensors whole = io::read_safetensors(path);
  const auto error_with = [&](const std::string& from, const std::string& to) {
    io::Safetensors changed = whole;
    std::string& model = changed.metadata.at("model");
    const size_t place = model.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    model.replace(place, from.size(), to);
    io::write_safetensors(path, changed);
    return input_error_of([&] { read_feature_model(path); });
  };
  EXPECT_THAT(error_with("\"dim\":24", "\"dim\":1000000000"), HasSubstr("dim does not belong"));
  EXPECT_THAT(error_with("\"layers\":1", "\"layers\":100000000"),
              HasSubstr("layers does not belong"));
  EXPECT_THAT(error_with("\"heads\":2", "\"heads\":7"),
              HasSubstr("dim: expected a multiple of heads"));
  EXPECT_THAT(error_with("\"bins\":5", "\"bins\":123456789"), HasSubstr("bins does not belong"));
  EXPECT_THAT(error_with("\"outputs\":2", "\"outputs\":3"), HasSubstr("expected shape"));
  EXPECT_THAT(error_with("\"hidden\":0", "\"hidden\":-1"), HasSubstr("hidden does not belong"));
  EXPECT_THAT(error_with("\"softmax\"", "\"hardmax\""), HasSubstr("backbone: expected one of"));
  EXPECT_THAT(error_with("\"c\",", ""), HasSubstr("another number of features"));
  EXPECT_THAT(error_with("\"low\",", ""), HasSubstr("another number of classes"));
  EXPECT_THAT(error_with("\"mean\":0.0", "\"mean\":\"x\""), HasSubstr("model is damaged"));
  EXPECT_THAT(error_with("\"rotary\"", "\"learned\""), HasSubstr("cannot read"));
  EXPECT_THAT(error_with("{", "["), HasSubstr("model is damaged"));
  EXPECT_THAT(error_with("\"dim\":24", "\"dim\":24.7"), HasSubstr("model.options.dim is damaged"));
  EXPECT_THAT(error_with("\"counts\":", "\"other\":0,\"counts\":"), HasSubstr("unknown field"));
  EXPECT_THAT(error_with("\"deviation\":", "\"deviation\":-"), HasSubstr("is negative"));
  EXPECT_THAT(error_with("\"b\"", "\"a\""), HasSubstr("names a feature twice"));
  EXPECT_THAT(error_with("\"low\"", "\"high\""), HasSubstr("names a class twice"));
  const auto with = [&](const std::string& name, const Tensor& tensor) {
    io::Safetensors changed = whole;
    std::erase_if(changed.tensors, [&](const io::NamedTensor& each) { return each.name == name; });
    changed.tensors.push_back({name, tensor});
    io::write_safetensors(path, changed);
    return input_error_of([&] { read_feature_model(path); });
  };
  EXPECT_THAT(with("x", at::zeros({2})), HasSubstr("tensor \"x\" belongs to no such training"));
  EXPECT_THAT(with("model.parameter.cls", at::full({24}, INFINITY)), HasSubstr("not finite"));
  EXPECT_THAT(with("scale.edges", at::arange(4, 0, -1, at::kDouble)), HasSubstr("ascending"));
  io::Safetensors other = whole;
  other.metadata["format"] = "nsimplex model 2";
  io::write_safetensors(path, other);
  EXPECT_THAT(input_error_of([&] { read_feature_model(path); }), HasSubstr("--save-models"));
  std::string bytes = test::read_file(path);
  bytes[bytes.size() - 9] ^= 4;
  test::write_file(path, bytes);
  EXPECT_THAT(input_error_of([&] { read_feature_model(path); }), HasSubstr("damaged"));
}

}  // namespace
}  // namespace nsimplex::training
