#pragma once

#include <nsimplex/feature_transformer.h>

#include <cstdint>
#include <functional>

/// Training of transformers over features: restoring masked values, then answers.
namespace nsimplex::training {

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
