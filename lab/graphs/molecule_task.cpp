// The task of predicting one number per molecule, and a baseline on fingerprints.

#include "lab/graphs/molecule_task.h"

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

// [rows, all codes]: 1 at the code of each feature.
Tensor one_hot(const Tensor& codes, const Tensor& categories) {
  const Tensor first = categories.cumsum(0) - categories;
  return at::zeros({codes.size(0), categories.sum().item<int64_t>()})
      .scatter_(1, codes.to(at::kLong) + first, 1.0);
}

Tensor offsets_of(const Tensor& counts) {
  return at::cat({at::zeros({1}, at::kLong), counts.cumsum(0)});
}

}  // namespace

int64_t atom_channels(const data::Molecules& molecules) {
  return molecules.atom_categories.sum().item<int64_t>();
}

int64_t bond_channels(const data::Molecules& molecules) {
  return molecules.bond_categories.sum().item<int64_t>();
}

Tensor molecule_sizes(const data::Molecules& molecules) {
  const Tensor sizes =
      at::stack({molecules.atom_offsets.diff(), molecules.bond_offsets.diff()}, 1).to(at::kDouble);
  const Tensor deviation = sizes.std(0, /*unbiased=*/false).clamp_min(1e-12);
  return ((sizes - sizes.mean(0)) / deviation).to(at::kFloat);
}

MoleculeGraphs molecule_graphs(const data::Molecules& molecules, const Tensor& numbers,
                               const Tensor& more) {
  const ChosenRows atoms = rows_of(molecules.atom_offsets, numbers),
                   bonds = rows_of(molecules.bond_offsets, numbers);
  const Tensor node_offsets = offsets_of(atoms.counts);
  const Tensor first = node_offsets.slice(0, 0, -1).repeat_interleave(bonds.counts);
  const TupleBatch links{molecules.bonds.index_select(0, bonds.rows) + first.unsqueeze(1),
                         offsets_of(bonds.counts), node_offsets, Symmetry::undirected};
  const DerivedTuples both = all_orders(links);
  DerivedTuples pairs = with_loops(both.batch);
  // Row numbers of the links, -1 for loops.
  pairs.origin = at::where(
      pairs.origin < 0, pairs.origin,
      at::cat({both.origin, at::zeros({1}, at::kLong)}).index_select(0, pairs.origin.clamp_min(0)));
  Tensor nodes = one_hot(molecules.atoms.index_select(0, atoms.rows), molecules.atom_categories);
  if (more.defined()) {
    nodes = at::cat({nodes, more.index_select(0, numbers.repeat_interleave(atoms.counts))}, 1);
  }
  const Tensor features = node_and_edge_features(
      pairs, nodes,
      one_hot(molecules.bond_types.index_select(0, bonds.rows), molecules.bond_categories));
  return {std::move(pairs.batch), features};
}

MoleculeTask::MoleculeTask(std::shared_ptr<const data::Molecules> molecules,
                           const MoleculeSplits& splits, uint64_t split_seed, bool sizes)
    : molecules_(std::move(molecules)), sizes_(sizes ? molecule_sizes(*molecules_) : Tensor()) {
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
  auto [pairs, features] = molecule_graphs(*molecules_, chosen, sizes_);
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
