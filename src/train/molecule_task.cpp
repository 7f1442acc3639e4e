// The task of predicting one number per molecule, and a baseline on fingerprints.

#include "train/molecule_task.h"

#include <ATen/ATen.h>

#include <numeric>
#include <string>

#include "support/error.h"
#include "support/random.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

// The numbers 0 .. count - 1 in a random order, the same on every machine.
std::vector<int64_t> shuffled(int64_t count, uint64_t seed) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  RandomStream draws(seed);
  for (int64_t i = count - 1; i > 0; --i) std::swap(order[i], order[draws.below(i + 1)]);
  return order;
}

class ErrorScorer : public GraphScorer {
 public:
  explicit ErrorScorer(double unit) : unit_(unit) {}

  void add(const Tensor& outputs, const GraphBatch& batch) override {
    const Tensor error = outputs.flatten().to(at::kDouble) - batch.targets.select(1, 0);
    sum_ += error.abs().sum().item<double>();
    count_ += error.size(0);
  }

  Scores scores() const override { return {{"mae", unit_ * sum_ / static_cast<double>(count_)}}; }

 private:
  double unit_, sum_ = 0.0;
  int64_t count_ = 0;
};

// The bits of bytes, the highest first: fp32 [rows, 8 bytes].
Tensor unpack(const Tensor& bytes) {
  const Tensor places = at::tensor({128, 64, 32, 16, 8, 4, 2, 1}, at::kByte);
  return bytes.unsqueeze(2).bitwise_and(places).ne(0).to(at::kFloat).flatten(1);
}

}  // namespace

MoleculeTask::MoleculeTask(std::shared_ptr<const data::Molecules> molecules,
                           const MoleculeSplits& splits, uint64_t split_seed, bool sizes)
    : molecules_(std::move(molecules)),
      sizes_(sizes ? data::molecule_sizes(*molecules_) : Tensor()) {
  const std::vector<int64_t> order = shuffled(molecules_->size(), split_seed);
  const int64_t count =
      splits.most > 0 ? std::min(splits.most, molecules_->size()) : molecules_->size();
  const auto share = [&](double of) {
    return static_cast<int64_t>(of * static_cast<double>(count));
  };
  const int64_t test = share(splits.test), validation = share(splits.validation);
  if (test < 1 || validation < 1 || count - test - validation < 2) {
    throw InputError("[molecules] splits: expected molecules in each, got " +
                     std::to_string(count - test - validation) + ", " + std::to_string(validation) +
                     " and " + std::to_string(test));
  }
  // Test and validation come first, so that they do not depend on the number of training molecules.
  const Tensor all = at::tensor(order, at::kLong);
  numbers_ = {all.slice(0, test + validation, count), all.slice(0, test, test + validation),
              all.slice(0, 0, test)};
  const Tensor targets = molecules_->targets.index_select(0, numbers_[0]);
  mean_ = targets.mean().item<double>();
  deviation_ = std::max(targets.std().item<double>(), 1e-12);
}

int64_t MoleculeTask::size(GraphSplit split) const {
  return numbers_[static_cast<size_t>(split)].size(0);
}

GraphBatch MoleculeTask::batch(GraphSplit split, std::span<const int64_t> examples,
                               const at::Generator&) {
  const Tensor chosen = numbers_[static_cast<size_t>(split)].index_select(
      0, at::tensor(at::ArrayRef<int64_t>(examples.data(), examples.size())));
  auto [pairs, features] = data::molecule_graphs(*molecules_, chosen, sizes_);
  const Tensor targets = (molecules_->targets.index_select(0, chosen) - mean_) / deviation_;
  TupleBatch output = project_tuples(pairs, 0);
  return {std::move(pairs), features, std::move(output),
          at::stack({targets, chosen.to(at::kDouble)}, 1)};
}

Tensor MoleculeTask::loss(const Tensor& outputs, const GraphBatch& batch) const {
  return at::l1_loss(outputs.flatten(), batch.targets.select(1, 0).to(outputs.dtype()));
}

std::unique_ptr<GraphScorer> MoleculeTask::scorer() const {
  return std::make_unique<ErrorScorer>(deviation_);
}

std::vector<std::pair<std::string, Scores>> MoleculeTask::references() const {
  const auto targets = [&](GraphSplit split) {
    return molecules_->targets.index_select(0, numbers_[static_cast<size_t>(split)]);
  };
  const double error =
      (targets(GraphSplit::test) - targets(GraphSplit::train).median()).abs().mean().item<double>();
  return {{"median", {{"mae", error}}}};
}

FingerprintNetwork::FingerprintNetwork(std::shared_ptr<const data::Molecules> molecules,
                                       GraphHeadOptions head)
    : molecules_(std::move(molecules)) {
  head.in_channels = molecules_->fingerprint_bits();
  head_ = register_module("head", std::make_shared<GraphHead>(head));
}

GraphModel::Forward FingerprintNetwork::prepare(const GraphBatch& batch) {
  const Tensor numbers = batch.targets.select(1, 1).to(at::kLong);
  return [this, bits = unpack(molecules_->fingerprints.index_select(0, numbers))] {
    return head_->forward(bits);
  };
}

}  // namespace nsimplex::training
