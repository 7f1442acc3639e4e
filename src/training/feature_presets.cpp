#include "training/feature_presets.h"

#include "support/error.h"

namespace nsimplex::training {

FeatureTrainingOptions preset_training(const std::string& name) {
  FeatureTrainingOptions options{.learning_rate = 1e-4};
  if (name == "paper-scbert") {
    options.epochs = 100;
    options.batch = 3;
  } else if (name == "paper-scgpt") {
    options.epochs = 60;
    options.batch = 5;
  } else {
    throw InputError(
        std::string("preset: expected paper-scbert or paper-scgpt, got ").append(name));
  }
  return options;
}

void use_preset_embedding(EncodingOptions& options) {
  options.structure.estimator = StructureEstimator::paper;
  options.structure.threshold = 0.2;
  options.embedding.generality = 0.1;
  options.embedding.relative = false;
  options.embedding.balanced = false;
  options.embedding.hops = 2;
  options.embedding.learning_rate = 1e-3;
  options.embedding.steps = 1000;
  options.embedding_batch = 32;
}

}  // namespace nsimplex::training
