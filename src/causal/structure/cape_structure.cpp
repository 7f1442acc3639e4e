#include "causal/structure/cape_structure.h"

#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <limits>
#include <string>

#include "causal/option_names.h"
#include "causal/structure/cape_model.h"
#include "causal/tensors.h"

namespace nsimplex::causal {
namespace {

using at::Tensor;

constexpr double kLearningRate = 3e-3;
constexpr double kAcyclic = 1e-8;   // h at which a graph counts as acyclic
constexpr double kProgress = 0.25;  // part of h that may be left before rho grows

std::vector<torch::optim::OptimizerParamGroup> parameter_groups(const PaperModel& model) {
  auto undecayed = std::make_unique<torch::optim::AdamWOptions>(kLearningRate);
  undecayed->weight_decay(0);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(model.graph_unknowns(), std::move(undecayed));
  groups.emplace_back(model.network_unknowns());
  return groups;
}

}  // namespace

Structure fit_paper(TableView table, const CausalFitOptions& options) {
  const c10::InferenceMode no_inference(false);
  const at::AutoGradMode gradients(true);
  const int64_t features = table.cols();
  const Tensor x = to_tensor(table);
  PaperModel model(features, options);
  torch::optim::AdamW optimizer(parameter_groups(model), torch::optim::AdamWOptions(kLearningRate));

  double rho = 1, alpha = 0, h = std::numeric_limits<double>::infinity();
  for (int64_t loop = 0; loop < kPaperLoops && h >= kAcyclic; ++loop) {
    for (int64_t epoch = 0; epoch < kPaperEpochs; ++epoch) {
      const Tensor order = at::randperm(x.size(0), model.generator(), at::kLong);
      for (const Tensor& rows : order.split(kPaperBatch)) {
        if (options.checkpoint) options.checkpoint();
        optimizer.zero_grad();
        model.loss(x.index_select(0, rows), rho, alpha).backward();
        optimizer.step();
      }
    }
    const double last = h;
    h = PaperModel::acyclicity(model.graph().detach()).item<double>();
    alpha += rho * h;
    if (h > kProgress * last) rho *= 10;
  }
  const Tensor graph = model.graph().detach().contiguous();
  const Matrix found = Eigen::Map<const Matrix>(graph.const_data_ptr<double>(), features, features);
  return {found, found.cwiseAbs(), std::string(name_of(kEstimatorNames, options.estimator))};
}

}  // namespace nsimplex::causal
