#include "causal/structure/paper.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/optim/adamw.h>

#include <limits>

#include "causal/structure/candidate_edges.h"
#include "causal/structure/paper_schedule.h"
#include "causal/tensors.h"

namespace nsimplex::causal {
namespace {

using at::Tensor;

constexpr double kSparsity = 0.01, kLearningRate = 3e-3;
constexpr double kAcyclic = 1e-8;   // h at which a graph counts as acyclic
constexpr double kProgress = 0.25;  // part of h that may be left before rho grows
constexpr int64_t kHidden = 64;

// 1-64-1 with a ReLU between, of every entry by itself.
struct Pointwise {
  Tensor in, in_bias, out, out_bias;

  explicit Pointwise(const at::Generator& generator) {
    const auto draw = [&](at::IntArrayRef shape, double bound) {
      return at::empty(shape, at::kDouble).uniform_(-bound, bound, generator).requires_grad_();
    };
    // Usual bounds of a linear layer, 1 / sqrt(inputs).
    in = draw({kHidden}, 1);
    in_bias = draw({kHidden}, 1);
    out = draw({kHidden}, 0.125);
    out_bias = draw({1}, 0.125);
  }

  Tensor operator()(const Tensor& x) const {
    return at::matmul(at::relu(x.unsqueeze(-1) * in + in_bias), out) + out_bias;
  }
};

// Centred, with the mean square of x.
Tensor fix_gauge(const Tensor& features, const Tensor& x) {
  const Tensor centred = features - features.mean(0, true);
  return centred * at::sqrt(x.square().mean() / (centred.square().mean() + 1e-12));
}

class PaperModel {
 public:
  PaperModel(int64_t features, const CausalFitOptions& options)
      : sample_(options.sample),
        generator_(at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(options.seed))),
        encoder_(generator_),
        decoder_(generator_),
        weights_(at::zeros({features, features}, at::kDouble).requires_grad_()),
        one_(at::eye(features, at::kDouble)) {
    const CandidateEdges edges(options.constraints, features);
    possible_ = to_tensor(edges.matrix(Vector::Ones(edges.size())));
    l1_ = to_tensor(edges.matrix(edges.penalties(options.sparsity.value_or(kSparsity))));
  }

  const at::Generator& generator() const { return generator_; }
  Tensor graph() const { return weights_ * possible_; }

  static Tensor acyclicity(const Tensor& graph) {
    return at::linalg_matrix_exp(graph.square()).trace() - static_cast<double>(graph.size(0));
  }

  Tensor loss(const Tensor& x, double rho, double alpha) const {
    const Tensor graph = this->graph();
    const Tensor rest = one_ - graph;
    const Tensor mean = at::matmul(fix_gauge(encoder_(x), x), rest);
    const Tensor latent =
        sample_ ? mean + at::randn(mean.sizes(), generator_, mean.options()) : mean;
    // Z (I - A)^-1. Before A is acyclic I - A may come near a singular matrix, which is no error.
    const Tensor mixed = std::get<0>(at::linalg_solve_ex(rest, latent, /*left=*/false));
    const Tensor misfit = (x - decoder_(mixed)).square().sum() + mean.square().sum();
    const Tensor h = acyclicity(graph);
    return misfit / (2 * static_cast<double>(x.size(0))) + (l1_ * graph.abs()).sum() +
           rho / 2 * h.square() + alpha * h;
  }

  std::vector<torch::optim::OptimizerParamGroup> parameters() const {
    auto undecayed = std::make_unique<torch::optim::AdamWOptions>(kLearningRate);
    undecayed->weight_decay(0);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<Tensor>{weights_}, std::move(undecayed));
    groups.emplace_back(std::vector<Tensor>{encoder_.in, encoder_.in_bias, encoder_.out,
                                            encoder_.out_bias, decoder_.in, decoder_.in_bias,
                                            decoder_.out, decoder_.out_bias});
    return groups;
  }

 private:
  bool sample_;
  at::Generator generator_;
  Pointwise encoder_, decoder_;
  Tensor weights_, one_, possible_, l1_;
};

}  // namespace

Structure fit_paper(TableView table, const CausalFitOptions& options) {
  const c10::InferenceMode no_inference(false);
  const at::AutoGradMode gradients(true);
  const int64_t features = table.cols();
  const Tensor x = to_tensor(table);
  PaperModel model(features, options);
  torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(kLearningRate));

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
  return {found, found.cwiseAbs(), "paper"};
}

}  // namespace nsimplex::causal
