#pragma once

#include <map>
#include <string>
#include <vector>

#include "training/perturbation_task.h"

/// Simple answers to what an intervention does, which any model should be better than.
namespace nsimplex::training {

/// Answers that are made from the responses of the interventions to learn from, and from nothing
/// else. A response [M] is the mean of the rows after an intervention less the mean before it.
class PerturbationBaselines {
 public:
  explicit PerturbationBaselines(const PerturbationData& data);

  /// The mean of all responses; of each feature, over the interventions that do not target it.
  const at::Tensor& mean() const { return mean_; }

  /// Of two features, the sum of their own responses where both single interventions were learned;
  /// the mean of all responses otherwise.
  at::Tensor additive(const std::vector<int64_t>& features) const;

  /// The sum over the targets of a linear function of where a target lies among the first ten
  /// principal components of the unperturbed rows, of its loadings x. Minimises, for each feature
  /// over the interventions that do not target it,
  ///
  ///     mean (response - sum over targets of (a + x w))^2 + strength sum w^2
  ///
  /// The strength is 100, 10, .. or 1e-5, the same for all features: the one with the least squared
  /// error of interventions to learn from that are left out one by one.
  at::Tensor linear(const std::vector<int64_t>& features) const;

 private:
  at::Tensor place(const std::vector<int64_t>& features) const;
  void fit(const PerturbationData& data, const at::Tensor& responses, const at::Tensor& own);

  at::Tensor mean_;                       // float64 [M], as all below
  std::map<int64_t, at::Tensor> single_;  // the response of a feature's own intervention
  at::Tensor loadings_;                   // [M, components + 1], ones in the first column
  at::Tensor weights_;                    // [components + 1, M]
};

/// The names of the baselines in the order in which they are shown: `unchanged`, `mean response`,
/// `additive` and `linear`.
const std::vector<std::string>& perturbation_baseline_names();

/// Of a baseline by its name. Throws InputError for a name that is not there.
PerturbationScores perturbation_baseline_scores(const std::string& name,
                                                const PerturbationData& data,
                                                const PerturbationOptions& options);

}  // namespace nsimplex::training
