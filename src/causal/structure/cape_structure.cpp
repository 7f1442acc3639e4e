// The estimators `paper` and `paper_lowrank`, which train a network and a graph by batches.

#include "causal/structure/cape_structure.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "causal/option_names.h"
#include "causal/structure/acyclicity.h"
#include "causal/tensors.h"

namespace nsimplex::causal {
namespace {

using at::Tensor;

constexpr double kPaperSparsity = 0.01;
constexpr int64_t kPaperHidden = 64;

Tensor drawn(at::IntArrayRef shape, double bound, const at::Generator& generator) {
  return at::empty(shape, at::kDouble).uniform_(-bound, bound, generator).requires_grad_();
}

Tensor zeros(at::IntArrayRef shape) { return at::zeros(shape, at::kDouble).requires_grad_(); }

// Centres the features and scales them to the mean square of x.
Tensor fix_gauge(const Tensor& features, const Tensor& x) {
  const Tensor centred = features - features.mean(0, true);
  return centred * at::sqrt(x.square().mean() / (centred.square().mean() + 1e-12));
}

}  // namespace

PointwiseNetwork::PointwiseNetwork(const at::Generator& generator)
    // The usual bounds of a linear layer, 1 / sqrt(inputs).
    : in(drawn({kPaperHidden}, 1, generator)),
      in_bias(drawn({kPaperHidden}, 1, generator)),
      out(drawn({kPaperHidden}, 0.125, generator)),
      out_bias(drawn({1}, 0.125, generator)) {}

Tensor PointwiseNetwork::operator()(const Tensor& x) const {
  return at::matmul(at::relu(x.unsqueeze(-1) * in + in_bias), out) + out_bias;
}

PaperModel::PaperModel(int64_t features, const CausalFitOptions& options)
    : sample_(options.sample),
      generator_(at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(options.seed))),
      encoder_(generator_),
      decoder_(generator_),
      one_(at::eye(features, at::kDouble)) {
  if (options.estimator == StructureEstimator::paper_lowrank) {
    const int64_t rank = std::min(options.rank, features);
    // The derivative is 0 if both factors are 0. The rows of U have a norm of about 1, so A changes
    // about as fast as V.
    const double bound = std::sqrt(3 / static_cast<double>(rank));
    unknowns_ = {drawn({features, rank}, bound, generator_), zeros({features, rank})};
  } else {
    unknowns_ = {zeros({features, features})};
  }
  const CandidateEdges edges(options.constraints, features);
  possible_ = to_tensor(edges.matrix(Vector::Ones(edges.size())));
  l1_ = to_tensor(edges.matrix(edges.penalties(options.sparsity.value_or(kPaperSparsity))));
}

std::vector<Tensor> PaperModel::network_unknowns() const {
  return {encoder_.in, encoder_.in_bias, encoder_.out, encoder_.out_bias,
          decoder_.in, decoder_.in_bias, decoder_.out, decoder_.out_bias};
}

Tensor PaperModel::graph() const {
  return possible_ *
         (unknowns_.size() == 1 ? unknowns_[0] : at::matmul(unknowns_[0], unknowns_[1].t()));
}

Tensor PaperModel::acyclicity(const Tensor& graph) {
  const Tensor fixed = graph.detach();
  const Tensor exponential = at::linalg_matrix_exp(fixed.square());
  const Tensor value = exponential.trace() - static_cast<double>(graph.size(0));
  return value + (2 * fixed * exponential.t() * (graph - fixed)).sum();
}

Tensor PaperModel::loss(const Tensor& x, double rho, double alpha) const {
  const Tensor graph = this->graph();
  const Tensor rest = one_ - graph;
  const Tensor mean = at::matmul(fix_gauge(encoder_(x), x), rest);
  const Tensor latent = sample_ ? mean + at::randn(mean.sizes(), generator_, mean.options()) : mean;
  // Z (I - A)^-1. I - A may be nearly singular before A is acyclic, which is no error.
  const Tensor mixed = std::get<0>(at::linalg_solve_ex(rest, latent, /*left=*/false));
  const Tensor misfit = (x - decoder_(mixed)).square().sum() + mean.square().sum();
  const Tensor h = acyclicity(graph);
  return misfit / (2 * static_cast<double>(x.size(0))) + (l1_ * graph.abs()).sum() +
         rho / 2 * h.square() + alpha * h;
}

namespace {

using at::Tensor;

constexpr double kLearningRate = 3e-3;
constexpr double kAcyclic = 1e-8;   // a graph counts as acyclic below this h
constexpr double kProgress = 0.25;  // rho grows if h falls less than to this part

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
  return {found, found.cwiseAbs(), std::string(name_of(options.estimator))};
}

}  // namespace nsimplex::causal
