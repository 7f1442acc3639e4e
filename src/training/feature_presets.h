#pragma once

#include <string>

#include "training/feature_encodings.h"
#include "training/feature_training.h"

namespace nsimplex::training {

/// How the models of feature_preset() are trained, as far as the paper says it (section F.4): Adam
/// at 1e-4, masked values restored in 100 epochs of batches of 3 (scBERT) or 60 of 5 (scGPT).
FeatureTrainingOptions preset_training(const std::string& name);

/// Their graphs and embeddings: estimator paper, tau = 0.2; lambda_g = 0.1 on pi and weights as
/// given, k = 2, rate 1e-3, 1000 epochs of batches of 32 nodes. A batch is a step over all nodes here. The weight decay of the paper's AdamW is left out: it would pull to the origin
/// what lambda_g pulls by generality.
void use_preset_embedding(EncodingOptions& options);

}  // namespace nsimplex::training
