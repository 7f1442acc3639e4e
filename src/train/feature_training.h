// Declares the training of feature transformers and of linear baselines.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/feature_transformer.h>

#include <cstdint>
#include <functional>

#include "train/ranks.h"
#include "train/training_loop.h"

/// Linear models of a table, as baselines.
namespace nsimplex::training {

struct LinearAnswers {
  at::Tensor answers;     ///< for the test rows: classes, int64, or numbers, float64
  double strength = 0.0;  ///< the chosen strength of the penalty
};

/// Multinomial logistic regression of classes, int64 [N] from 0 on, on columns x, float64 [N, M].
/// It minimises
///
///     mean cross entropy + strength / 2 sum W^2
///
/// over weights W and one bias per class by L-BFGS. The strength is 1, 0.1, .. or 1e-5: the one
/// with the lowest cross entropy of held-out rows, over five parts of x to which the rows of each
/// class are assigned in turn. `checkpoint` is called between fits and may throw to end it.
LinearAnswers logistic_regression(const at::Tensor& x, const at::Tensor& labels, int64_t classes,
                                  const at::Tensor& judge,
                                  const std::function<void()>& checkpoint = {});

/// Ridge regression of numbers, float64 [N], on columns x. It minimises
///
///     mean squared error + strength sum w^2
///
/// with a bias. The strength is 100, 10, .. or 1e-5: the one with the lowest leave-one-out squared
/// error.
LinearAnswers ridge_regression(const at::Tensor& x, const at::Tensor& numbers,
                               const at::Tensor& judge);

/// Training of transformers over features: first restore masked values, then predict targets.

struct FeatureTrainingOptions {
  int64_t epochs = 20;
  int64_t batch = 32;  ///< observations per step; the last step of an epoch may have fewer
  double learning_rate = 1e-3;
  double weight_decay = 0.0;
  double mask = 0.15;  ///< for restoring: share of the nonzero values that are masked
};

/// Throws InputError, which names the option, if an option is invalid.
void check(const FeatureTrainingOptions& options);

struct FeatureEvents {
  std::function<void(int64_t done, int64_t of, double loss)> step;  ///< after each update
  /// called before each step, by all ranks together; may throw on all of them to end the training
  std::function<void()> checkpoint;
};

/// The loss of a rank's part of a step: the mean over its terms (for example the masked values), and
/// their share of the terms of all ranks. The losses of all ranks times their shares add up to the
/// loss of one process. Undefined if the share is 0.
struct PartialLoss {
  at::Tensor mean;
  double share = 1.0;
};

/// Gets the numbers of a step's examples, int64, which of them are this rank's, and a generator for
/// random numbers, from which every rank draws the same ones.
using ExampleLoss = std::function<PartialLoss(const at::Tensor& examples, Ranks::Rows rows,
                                              const at::Generator& generator)>;

/// The share of the terms of all ranks that a rank has.
inline double share_of(int64_t own, int64_t all) {
  return static_cast<double>(own) / static_cast<double>(all);
}

/// Trains the parameters of `module` with Adam. An epoch has all examples 0 .. count - 1 in an
/// order that `seed` determines. Throws Diverged if the loss is not finite.
///
/// Several ranks train one model, from the weights of rank 0: each computes its part of every step,
/// with the losses of one process to rounding. As many ranks give the same bits again.
void train_examples(const torch::nn::Module& module, int64_t count,
                    const FeatureTrainingOptions& options, uint64_t seed, const ExampleLoss& loss,
                    const FeatureEvents& events = {}, Ranks& ranks = only_rank());

/// Learns to restore masked values of x [N, M]. The share options.mask of the nonzero values is
/// masked, at least one per step.
void restore_values(FeatureTransformer& model, const at::Tensor& x,
                    const FeatureTrainingOptions& options, uint64_t seed,
                    const FeatureEvents& events = {}, Ranks& ranks = only_rank());

/// Learns targets: classes, int64 [N], by cross entropy, or numbers, [N, outputs], by squared
/// error.
void learn_answers(FeatureTransformer& model, const at::Tensor& x, const at::Tensor& answers,
                   const FeatureTrainingOptions& options, uint64_t seed,
                   const FeatureEvents& events = {}, Ranks& ranks = only_rank());

/// predict() of all observations, or their embeddings, in batches and without gradients.
/// `checkpoint` is called before each batch and may throw.
at::Tensor predict_all(FeatureTransformer& model, const at::Tensor& x, int64_t batch = 256,
                       const std::function<void()>& checkpoint = {});
at::Tensor embed_all(FeatureTransformer& model, const at::Tensor& x, int64_t batch = 256,
                     const std::function<void()>& checkpoint = {});

}  // namespace nsimplex::training
