#include <nsimplex/feature_transformer.h>

#include <array>

#include "support/error.h"

namespace nsimplex {
namespace {

struct Preset {
  const char* name;
  FeatureTransformerOptions options;
};

const std::array<Preset, 2>& presets() {
  static const std::array<Preset, 2> all{Preset{"paper-scbert",
                                                {.dim = 200,
                                                 .heads = 10,
                                                 .layers = 6,
                                                 .backbone = FeatureBackbone::performer,
                                                 .values = FeatureValues::bins,
                                                 .bins = 5}},
                                         Preset{"paper-scgpt",
                                                {.dim = 512,
                                                 .heads = 8,
                                                 .layers = 4,
                                                 .backbone = FeatureBackbone::softmax,
                                                 .values = FeatureValues::bins,
                                                 .bins = 51}}};
  return all;
}

}  // namespace

const std::vector<std::string>& feature_preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Preset& each : presets()) all.emplace_back(each.name);
    return all;
  }();
  return names;
}

FeatureTransformerOptions feature_preset(const std::string& name) {
  for (const Preset& each : presets()) {
    if (name == each.name) return each.options;
  }
  throw InputError("[FeatureTransformer] preset: expected paper-scbert or paper-scgpt, got " +
                   name);
}

}  // namespace nsimplex
