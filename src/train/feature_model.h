// Declares a trained feature model with all that predictions for new rows need.

#pragma once

#include <nsimplex/feature_transformer.h>

#include <memory>
#include <string>
#include <vector>

#include "train/feature_encodings.h"
#include "train/feature_training.h"

namespace nsimplex::training {

/// The training of the models of feature_preset(), as far as the paper describes it (section F.4):
/// Adam at 1e-4, with masked values restored in 100 epochs of batches of 3 (scBERT) or 60 of 5
/// (scGPT).
FeatureTrainingOptions preset_training(const std::string& name);

/// The graphs and embeddings of these models: estimator paper, tau = 0.2; lambda_g = 0.1 on pi with
/// unchanged weights, k = 2, rate 1e-3, 1000 epochs of batches of 32 nodes. Here a batch is a step
/// over all nodes. The weight decay of the paper's AdamW is omitted, because it would pull all
/// points to the origin, and lambda_g pulls them by generality.
void use_preset_embedding(EncodingOptions& options);

/// A trained transformer over features with everything that it needs for new rows, and its file.

/// The scaling of values, float64 [N, M], before a model takes them: bins, or a mean and a
/// deviation per column. They come from the training rows.
struct FeatureScale {
  at::Tensor edges;            ///< of bins; undefined: none
  at::Tensor mean, deviation;  ///< float64 [M], if there are no bins
};
FeatureScale feature_scale(const at::Tensor& learn, const FeatureTransformerOptions& model);
at::Tensor scaled_features(const FeatureScale& scale, const at::Tensor& values);

struct FeatureModel {
  std::string encoding;               ///< a name of encoding_names()
  std::vector<std::string> features;  ///< names of the columns, in the order of the model
  /// by the number of an output; empty: the model predicts a number
  std::vector<std::string> classes;
  bool counts = false;                 ///< rows are counts and are scaled as by --counts
  double mean = 0.0, deviation = 1.0;  ///< of the training targets
  FeatureScale scale;
  FeatureTransformer model{nullptr};
  std::shared_ptr<FeatureTransformerImpl> general;  ///< of values general; otherwise nullptr
};

/// Predictions for rows [N, M] of the model's columns: class probabilities [N, C] or numbers [N],
/// float64.
at::Tensor feature_answers(FeatureModel& model, const at::Tensor& values);

/// Replaces the file atomically. It is a safetensors file with weights, the table of the encoding
/// and the scale of the values. A JSON object in its metadata has everything else.
void write_feature_model(const std::string& path, const FeatureModel& model);

/// Throws InputError for a file that is damaged, inconsistent or something else.
FeatureModel read_feature_model(const std::string& path);

}  // namespace nsimplex::training
