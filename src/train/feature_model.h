#pragma once

#include <nsimplex/feature_transformer.h>

#include <memory>
#include <string>
#include <vector>

#include "train/feature_encodings.h"
#include "train/feature_training.h"

namespace nsimplex::training {

/// How the models of feature_preset() are trained, as far as the paper says it (section F.4): Adam
/// at 1e-4, masked values restored in 100 epochs of batches of 3 (scBERT) or 60 of 5 (scGPT).
FeatureTrainingOptions preset_training(const std::string& name);

/// Their graphs and embeddings: estimator paper, tau = 0.2; lambda_g = 0.1 on pi and weights as
/// given, k = 2, rate 1e-3, 1000 epochs of batches of 32 nodes. A batch is a step over all nodes here. The weight decay of the paper's AdamW is left out: it would pull to the origin
/// what lambda_g pulls by generality.
void use_preset_embedding(EncodingOptions& options);

/// A trained transformer over features with all that answers for new rows need, and its file.

/// What becomes of measured values, float64 [N, M], before a model takes them: bins, or a mean and a
/// deviation of each column, all of the rows that were learned from.
struct FeatureScale {
  at::Tensor edges;            ///< of bins; undefined: none
  at::Tensor mean, deviation;  ///< float64 [M], where there are no bins
};
FeatureScale feature_scale(const at::Tensor& learn, const FeatureTransformerOptions& model);
at::Tensor scaled_features(const FeatureScale& scale, const at::Tensor& values);

struct FeatureModel {
  std::string encoding;               ///< as encoding_names() has it
  std::vector<std::string> features;  ///< names of the columns, in the order of the model
  std::vector<std::string> classes;   ///< by the number of an output; empty: the answer is a number
  bool counts = false;                ///< rows are counts and made comparable as --counts does
  double mean = 0.0, deviation = 1.0;  ///< of the numbers that were learned
  FeatureScale scale;
  FeatureTransformer model{nullptr};
  std::shared_ptr<FeatureTransformerImpl> general;  ///< of values general; nullptr: none
};

/// Answers for rows [N, M] of the model's columns: probabilities of its classes [N, C], or numbers
/// [N], float64.
at::Tensor feature_answers(FeatureModel& model, const at::Tensor& values);

/// Replaces the file atomically: a safetensors file with weights, the table of the encoding and the
/// scale of the values, and a JSON object in its metadata with everything else.
void write_feature_model(const std::string& path, const FeatureModel& model);

/// Throws InputError for a file that is damaged, is something else or does not fit together.
FeatureModel read_feature_model(const std::string& path);

}  // namespace nsimplex::training
