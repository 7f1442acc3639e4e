#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/feature_transformer.h>

#include <cstdint>
#include <functional>

#include "train/training_loop.h"

/// Linear models of a table, which any other model should answer better than.
namespace nsimplex::training {

struct LinearAnswers {
  at::Tensor answers;     ///< of the rows to judge by: classes, int64, or numbers, float64
  double strength = 0.0;  ///< of the penalty that was chosen
};

/// Multinomial logistic regression of classes, int64 [N] from 0 on, on columns x, float64 [N, M]:
/// minimises
///
///     mean cross entropy + strength / 2 sum W^2
///
/// over weights W and a bias a class by L-BFGS. The strength is 1, 0.1, .. or 1e-5: the one with the
/// least cross entropy of rows that were left out, over five parts of x, to which the rows of each
/// class go in turn. `checkpoint` is called between fits; what it throws ends it.
LinearAnswers logistic_regression(const at::Tensor& x, const at::Tensor& labels, int64_t classes,
                                  const at::Tensor& judge,
                                  const std::function<void()>& checkpoint = {});

/// Ridge regression of numbers, float64 [N], on columns x: minimises
///
///     mean squared error + strength sum w^2
///
/// with a bias. The strength is 100, 10, .. or 1e-5: the one with the least squared error of rows
/// that are left out one by one.
LinearAnswers ridge_regression(const at::Tensor& x, const at::Tensor& numbers,
                               const at::Tensor& judge);

/// Training of transformers over features: restoring masked values, then answers.

struct FeatureTrainingOptions {
  int64_t epochs = 20;
  int64_t batch = 32;  ///< observations of a step; the last one of an epoch may have fewer
  double learning_rate = 1e-3;
  double weight_decay = 0.0;
  double mask = 0.15;  ///< of restoring: share of the values that are not zero
};

/// Throws InputError, which names the option, where options cannot be used.
void check(const FeatureTrainingOptions& options);

struct FeatureEvents {
  std::function<void(int64_t done, int64_t of, double loss)> step;  ///< after each update
  std::function<void()> checkpoint;  ///< called before each step; what it throws ends the training
};

/// Adam on the parameters of `module` over all examples 0 .. count - 1 an
/// epoch, in an order that `seed` draws. `loss` gets the numbers of a step's examples, int64, and
/// the generator for what it draws itself. Throws Diverged where the loss is not finite.
void train_examples(const torch::nn::Module& module, int64_t count,
                    const FeatureTrainingOptions& options, uint64_t seed,
                    const std::function<at::Tensor(const at::Tensor& examples,
                                                   const at::Generator& generator)>& loss,
                    const FeatureEvents& events = {});

/// Learns to restore masked values of x [N, M]: options.mask of those that are not zero, at least
/// one of each step.
void restore_values(FeatureTransformer& model, const at::Tensor& x,
                    const FeatureTrainingOptions& options, uint64_t seed,
                    const FeatureEvents& events = {});

/// Learns answers: classes, int64 [N], by cross entropy, or numbers, [N, outputs], by squared
/// error.
void learn_answers(FeatureTransformer& model, const at::Tensor& x, const at::Tensor& answers,
                   const FeatureTrainingOptions& options, uint64_t seed,
                   const FeatureEvents& events = {});

/// predict() of all observations, or their embeddings, batch by batch and without gradients.
at::Tensor predict_all(FeatureTransformer& model, const at::Tensor& x, int64_t batch = 256);
at::Tensor embed_all(FeatureTransformer& model, const at::Tensor& x, int64_t batch = 256);

}  // namespace nsimplex::training
