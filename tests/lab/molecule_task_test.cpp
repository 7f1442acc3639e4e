#include "lab/graphs/molecule_task.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "data/molecule_file.h"
#include "input_error_of.h"
#include "support/tensors.h"

namespace nsimplex::training {
namespace {

using test::numbers;

// Those of a file.
data::Molecules three_molecules() {
  const test::TemporaryFolder folder;
  return data::read_molecules(
      test::write_file(folder / "molecules.npz", io::zip_file(test::molecule_arrays(), true)));
}

// Molecule b is a chain of b + 1 atoms; its target is b, its fingerprint the bits of b.
std::shared_ptr<data::Molecules> chains(int64_t count) {
  std::vector<int64_t> atom_offsets = {0}, bond_offsets = {0}, bonds;
  std::vector<uint8_t> prints;
  for (int64_t b = 0; b < count; ++b) {
    for (int64_t i = 0; i < b; ++i) bonds.insert(bonds.end(), {i, i + 1});
    atom_offsets.push_back(atom_offsets.back() + b + 1);
    bond_offsets.push_back(bond_offsets.back() + b);
    prints.push_back(static_cast<uint8_t>(b));
  }
  return std::make_shared<data::Molecules>(
      data::Molecules{.atoms = at::zeros({atom_offsets.back(), 1}, at::kByte),
                      .atom_offsets = at::tensor(atom_offsets, at::kLong),
                      .atom_categories = at::tensor({int64_t{2}}),
                      .bonds = at::tensor(bonds, at::kLong).view({-1, 2}),
                      .bond_types = at::ones({bond_offsets.back(), 1}, at::kByte),
                      .bond_offsets = at::tensor(bond_offsets, at::kLong),
                      .bond_categories = at::tensor({int64_t{3}}),
                      .targets = at::arange(count, at::kDouble),
                      .fingerprints = at::tensor(prints, at::kByte).view({-1, 1})});
}

GraphBatch all_of(MoleculeTask& task, GraphSplit split) {
  std::vector<int64_t> examples(task.size(split));
  std::iota(examples.begin(), examples.end(), int64_t{0});
  return task.batch(split, examples, at::make_generator<at::CPUGeneratorImpl>(0));
}

constexpr GraphSplit kSplits[] = {GraphSplit::train, GraphSplit::validation, GraphSplit::test};

TEST(MoleculeGraphs, GivesGraphsWithAtomsOnLoopsAndBondsOnPairs) {
  const data::Molecules molecules = three_molecules();
  EXPECT_EQ(atom_channels(molecules), 5);
  EXPECT_EQ(bond_channels(molecules), 2);
  const auto [pairs, features] = molecule_graphs(molecules, numbers({2, 1, 0}));
  check_tuples(pairs);
  EXPECT_TRUE(pairs.node_offsets.equal(numbers({0, 2, 3, 6})));
  EXPECT_TRUE(pairs.tuple_offsets.equal(numbers({0, 4, 5, 12})));
  ASSERT_EQ(features.sizes(), (at::IntArrayRef{12, 7}));
  const at::Tensor tuples = pairs.tuples;
  for (int64_t row = 0; row < 12; ++row) {
    const bool loop = tuples[row][0].equal(tuples[row][1]);
    EXPECT_EQ(features[row].slice(0, 0, 5).sum().item<float>(), loop ? 2 : 0);
    EXPECT_EQ(features[row].slice(0, 5).sum().item<float>(), loop ? 0 : 1);
  }
  // The last molecule of the batch is the first of the file: atoms (0, 0), (1, 1), (2, 0), bonds of
  // types 0 and 1.
  const auto feature = [&](int64_t i, int64_t j) {
    const at::Tensor row = ((tuples.select(1, 0) == i) & (tuples.select(1, 1) == j)).nonzero();
    EXPECT_EQ(row.numel(), 1);
    return features.index_select(0, row.flatten()).flatten();
  };
  const auto expect = [&](int64_t i, int64_t j, std::vector<float> values) {
    EXPECT_TRUE(feature(i, j).equal(at::tensor(values))) << i << ", " << j;
  };
  expect(3, 3, {1, 0, 0, 1, 0, 0, 0});
  expect(4, 4, {0, 1, 0, 0, 1, 0, 0});
  expect(5, 5, {0, 0, 1, 1, 0, 0, 0});
  expect(3, 4, {0, 0, 0, 0, 0, 1, 0});
  expect(4, 3, {0, 0, 0, 0, 0, 1, 0});
  expect(5, 4, {0, 0, 0, 0, 0, 0, 1});
}

TEST(MoleculeGraphs, SizesAreChannelsOfAtomsWhereTheyAreGiven) {
  const data::Molecules molecules = three_molecules();
  // Of 3, 1 and 2 atoms, 2, 0 and 1 bonds.
  const at::Tensor sizes = molecule_sizes(molecules);
  const float most = std::sqrt(1.5F);
  EXPECT_TRUE(
      sizes.allclose(at::tensor({most, most, -most, -most, 0.0F, 0.0F}).view({3, 2}), 1e-6));
  const auto plain = molecule_graphs(molecules, numbers({2, 0}));
  const auto [pairs, features] = molecule_graphs(molecules, numbers({2, 0}), sizes);
  ASSERT_EQ(features.sizes(), (at::IntArrayRef{11, 9}));
  EXPECT_TRUE(at::cat({features.slice(1, 0, 5), features.slice(1, 7)}, 1).equal(plain.features));
  const at::Tensor loops = pairs.tuples.select(1, 0).eq(pairs.tuples.select(1, 1));
  const at::Tensor of_graph =
      sizes.index_select(0, numbers({2, 0})).repeat_interleave(pairs.tuple_offsets.diff(), 0);
  EXPECT_TRUE(features.slice(1, 5, 7).equal(of_graph * loops.unsqueeze(1)));
}

TEST(MoleculeGraphs, SizesThatAreAllTheSameAreZero) {
  data::Molecules one = three_molecules();
  one.atom_offsets = numbers({0, 3});
  one.bond_offsets = numbers({0, 2});
  EXPECT_TRUE(molecule_sizes(one).equal(at::zeros({1, 2})));
}

TEST(MoleculeTask, SplitsAllOfThemBySeed) {
  MoleculeTask task(chains(20), {.validation = 0.2, .test = 0.1}, 3);
  EXPECT_EQ(task.size(GraphSplit::train), 14);
  EXPECT_EQ(task.size(GraphSplit::validation), 4);
  EXPECT_EQ(task.size(GraphSplit::test), 2);
  std::vector<at::Tensor> numbers;
  for (const GraphSplit split : kSplits)
    numbers.push_back(all_of(task, split).targets.select(1, 1));
  EXPECT_TRUE(std::get<0>(at::cat(numbers).sort()).equal(at::arange(20, at::kDouble)));
  MoleculeTask again(chains(20), {.validation = 0.2, .test = 0.1}, 3),
      other(chains(20), {.validation = 0.2, .test = 0.1}, 4);
  EXPECT_TRUE(
      all_of(again, GraphSplit::train).targets.equal(all_of(task, GraphSplit::train).targets));
  EXPECT_FALSE(
      all_of(other, GraphSplit::train).targets.equal(all_of(task, GraphSplit::train).targets));
  EXPECT_EQ(MoleculeTask(chains(20), {.most = 10}, 3).size(GraphSplit::train), 8);
  EXPECT_EQ(test::input_error_of([] { MoleculeTask(chains(5), {}, 1); }),
            "[molecules] splits: expected molecules in each, got 5, 0 and 0");
}

TEST(MoleculeTask, GivesEachMoleculeItsGraphAndTarget) {
  MoleculeTask task(chains(20), {}, 3);
  const GraphBatch batch = all_of(task, GraphSplit::train);
  check_tuples(batch.input);
  EXPECT_EQ(batch.output.order(), 0);
  EXPECT_EQ(batch.output.size(), 16);
  const at::Tensor number = batch.targets.select(1, 1);
  EXPECT_TRUE(batch.input.node_offsets.diff().to(at::kDouble).equal(number + 1));
  EXPECT_TRUE(batch.input.tuple_offsets.diff().to(at::kDouble).equal(3 * number + 1));
  EXPECT_NEAR(batch.targets.select(1, 0).mean().item<double>(), 0, 1e-12);
  EXPECT_NEAR(batch.targets.select(1, 0).std().item<double>(), 1, 1e-12);
}

TEST(MoleculeTask, TellsSizesWhereTheyAreAskedFor) {
  MoleculeTask plain(chains(20), {}, 3), task(chains(20), {}, 3, /*sizes=*/true);
  const GraphBatch batch = all_of(task, GraphSplit::train);
  EXPECT_EQ(batch.features.size(1), all_of(plain, GraphSplit::train).features.size(1) + 2);
  const at::Tensor loops = batch.input.tuples.select(1, 0).eq(batch.input.tuples.select(1, 1));
  // Molecule b has b + 1 atoms and b bonds: both are as far from their mean.
  const at::Tensor number = batch.targets.select(1, 1).to(at::kFloat);
  const at::Tensor expected = ((number - 9.5) / std::sqrt(33.25))
                                  .repeat_interleave(batch.input.tuple_offsets.diff())
                                  .where(loops, at::zeros({1}));
  EXPECT_TRUE(batch.features.select(1, 2).allclose(expected));
  EXPECT_TRUE(batch.features.select(1, 3).allclose(expected));
}

TEST(MoleculeTask, JudgesInTheUnitsOfTheFile) {
  MoleculeTask task(chains(20), {}, 3);
  const GraphBatch train = all_of(task, GraphSplit::train), test = all_of(task, GraphSplit::test);
  const double unit = at::std(train.targets.select(1, 1)).item<double>();
  const auto scorer = task.scorer();
  scorer->add((test.targets.select(1, 0) + 2 / unit).unsqueeze(1), test);
  ASSERT_EQ(scorer->scores().front().first, "mae");
  EXPECT_NEAR(scorer->scores().front().second, 2, 1e-9);
  EXPECT_FALSE(task.higher_is_better());
  EXPECT_NEAR(task.loss(test.targets.select(1, 0).unsqueeze(1) + 0.25, test).item<double>(), 0.25,
              1e-9);
  const double median = train.targets.select(1, 1).median().item<double>();
  EXPECT_NEAR(task.references().front().second.front().second,
              (test.targets.select(1, 1) - median).abs().mean().item<double>(), 1e-12);
}

TEST(FingerprintNetwork, ReadsBitsOfTheRightMolecule) {
  const auto molecules = chains(20);
  MoleculeTask task(molecules, {}, 3);
  FingerprintNetwork network(molecules, {.out_channels = 1});
  {
    // Bits, the first one highest, as a number again.
    const at::NoGradGuard no_grad;
    network.named_parameters()["head.0.weight"].copy_(
        at::tensor({128.F, 64.F, 32.F, 16.F, 8.F, 4.F, 2.F, 1.F}).unsqueeze(0));
    network.named_parameters()["head.0.bias"].zero_();
  }
  const GraphBatch batch = all_of(task, GraphSplit::validation);
  EXPECT_TRUE(network.prepare(batch)().flatten().to(at::kDouble).equal(batch.targets.select(1, 1)));
}

}  // namespace
}  // namespace nsimplex::training
