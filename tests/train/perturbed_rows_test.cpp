#include "train/perturbed_rows.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "input_error_of.h"
#include "train/perturbation_task.h"

namespace nsimplex::training {
namespace {

using at::Tensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Targets = std::vector<int64_t>;

// The tables of a simulated task below one another, as a file would have them.
PerturbedRows rows_of(const PerturbationData& data) {
  PerturbedRows rows;
  const Tensor mean = data.table.mean(0), deviation = data.table.std(0, /*unbiased=*/false);
  std::vector<Tensor> tables{data.table};
  rows.targets.resize(static_cast<size_t>(data.table.size(0)));
  for (const auto* part : {&data.doubles, &data.singles, &data.learned}) {
    for (const Perturbation& each : *part) {
      tables.push_back(each.after.to(at::kDouble) * deviation + mean);
      rows.targets.insert(rows.targets.end(), static_cast<size_t>(each.after.size(0)),
                          each.features);
    }
  }
  rows.table = at::cat(tables);
  for (int64_t column = 0; column < rows.table.size(1); ++column) {
    rows.features.push_back(std::string("g").append(std::to_string(column)));
  }
  return rows;
}

PerturbationOptions paired() {
  return {.simulation = {.nodes = 8, .degree = 1, .observations = 60},
          .doubles = 3,
          .asked = 3,
          .rows = 60,
          .most_changed = 4};
}

std::vector<Targets> targets_in(const std::vector<Perturbation>& all) {
  std::vector<Targets> targets;
  for (const Perturbation& each : all) targets.push_back(each.features);
  return targets;
}

// Where the rows and the split are those of the simulated task, so is everything else.
TEST(ArrangePerturbations, TheSimulatedTaskComesBackFromItsRows) {
  const PerturbationOptions options = paired();
  const PerturbationData simulated = draw_perturbations(options, 5);
  const PerturbedRows rows = rows_of(simulated);
  const PerturbationData given =
      arrange_perturbations(rows, {targets_in(simulated.learned), targets_in(simulated.singles),
                                   targets_in(simulated.doubles)});
  EXPECT_TRUE(at::equal(given.table, simulated.table));
  EXPECT_TRUE(at::allclose(given.control, simulated.control, 0, 1e-5));
  EXPECT_NEAR(given.dose, simulated.dose, 1e-5);
  EXPECT_EQ(given.starts, simulated.starts);
  for (const auto part :
       {&PerturbationData::learned, &PerturbationData::singles, &PerturbationData::doubles}) {
    ASSERT_EQ(targets_in(given.*part), targets_in(simulated.*part));
    for (size_t at = 0; at < (given.*part).size(); ++at) {
      const Perturbation &ours = (given.*part)[at], &theirs = (simulated.*part)[at];
      EXPECT_TRUE(at::allclose(ours.after, theirs.after, 0, 1e-4));
      EXPECT_TRUE(at::equal(ours.before, theirs.before));
    }
  }
  for (const std::string& name : perturbation_baseline_names()) {
    const auto ours = perturbation_baseline_scores(name, given, options),
               theirs = perturbation_baseline_scores(name, simulated, options);
    EXPECT_NEAR(ours.singles, theirs.singles, 1e-4) << name;
    EXPECT_NEAR(ours.doubles, theirs.doubles, 1e-4) << name;
  }
}

// Control rows are taken in turn, from the first one again after the last.
TEST(ArrangePerturbations, RowsNeedNotBeAsMany) {
  PerturbedRows rows{.table = at::arange(27, at::kDouble).reshape({9, 3}).square(),
                     .features = {"a", "b", "c"},
                     .targets = {{}, {0}, {}, {0}, {1}, {1}, {1}, {}, {2}}};
  const PerturbationData data = arrange_perturbations(rows, {{{0}, {1}}, {{2}}, {}});
  EXPECT_EQ(data.control.size(0), 3);
  EXPECT_TRUE(at::equal(data.learned[0].before, at::tensor({0, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(data.learned[1].before, at::tensor({2, 0, 1}, at::kLong)));
  EXPECT_EQ(data.learned[1].after.size(0), 3);
  EXPECT_EQ(data.singles[0].after.size(0), 1);
  // The dose is that of the learned targets alone, each perturbation counting once.
  const double of_a = data.learned[0].after.select(1, 0).mean().item<double>(),
               of_b = data.learned[1].after.select(1, 1).mean().item<double>();
  EXPECT_NEAR(data.dose, (of_a + of_b) / 2, 1e-5);
}

PerturbedRows labelled(std::vector<Targets> targets, int64_t features) {
  const auto count = std::ssize(targets);
  PerturbedRows rows{
      .table = at::arange(count * features, at::kDouble).mul(1.7).sin().reshape({count, features}),
      .features = {},
      .targets = std::move(targets)};
  for (int64_t column = 0; column < features; ++column) {
    rows.features.push_back(std::string("g").append(std::to_string(column)));
  }
  return rows;
}

TEST(SplitPerturbations, WhatIsAskedForIsNeverLearned) {
  std::vector<Targets> targets{{}, {}};
  for (int64_t a = 0; a < 8; ++a) {
    targets.push_back({a});
    targets.push_back({a});
    for (int64_t b = a + 1; b < 8; ++b) targets.push_back({a, b});
  }
  const PerturbedRows rows = labelled(targets, 10);
  std::set<std::vector<Targets>> different;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const PerturbationSplit split = split_perturbations(rows, 0.25, seed);
    const PerturbationSplit again = split_perturbations(rows, 0.25, seed);
    EXPECT_EQ(split.learned, again.learned);
    different.insert(split.singles);
    EXPECT_EQ(split.singles.size(), 2U);
    // 28 pairs: 13 with a held-out target, and a quarter of the other 15, rounded.
    EXPECT_EQ(split.doubles.size(), 13U + 4U);
    EXPECT_EQ(split.learned.size(), 6U + 11U);
    std::set<Targets> learned(split.learned.begin(), split.learned.end());
    for (const Targets& each : split.singles) {
      for (const Targets& other : learned) {
        EXPECT_EQ(std::ranges::count(other, each[0]), 0) << "a target in a pair is seen";
      }
    }
    for (const Targets& each : split.doubles) EXPECT_EQ(learned.count(each), 0U);
  }
  EXPECT_GT(different.size(), 1U);
}

// A pair with a target that has no single perturbation cannot be put together from singles.
TEST(SplitPerturbations, APairOfATargetWithoutASingleIsAskedFor) {
  const PerturbedRows rows = labelled({{}, {}, {0}, {1}, {2}, {3}, {0, 5}, {4, 5}}, 6);
  const PerturbationSplit split = split_perturbations(rows, 0.25, 1);
  EXPECT_THAT(split.doubles, ElementsAre(Targets{0, 5}, Targets{4, 5}));
  EXPECT_EQ(split.learned.size(), 3U);
  EXPECT_EQ(test::input_error_of([&] { split_perturbations(rows, 0.95, 1); }),
            "unseen: expected a share that leaves perturbations to learn from, got 0.95");
}

TEST(SplitPerturbations, ScoresTellPairsApartByWhatWasSeen) {
  const PerturbedRows rows =
      labelled({{}, {}, {}, {0}, {1}, {2}, {3}, {0, 1}, {0, 4}, {1, 4}, {4, 5}}, 6);
  const PerturbationData data =
      arrange_perturbations(rows, {{{0}, {1}, {2}}, {{3}}, {{0, 1}, {0, 4}, {1, 4}, {4, 5}}});
  PerturbationOptions options;
  options.most_changed = 2;
  const PerturbationScores scores = unchanged_scores(data, options);
  const auto& [none, one, both] = scores.doubles_by_seen;
  EXPECT_NEAR(4 * scores.doubles, none + 2 * one + both, 1e-6);
  PerturbationData singles = data;
  singles.doubles.clear();
  EXPECT_TRUE(std::isnan(unchanged_scores(singles, options).doubles));
}

TEST(WithVaryingColumns, KeepsTargetsAndTheMostVariable) {
  PerturbedRows rows = labelled({{}, {}, {}, {1}, {2}, {3}, {1, 4}, {0}}, 8);
  rows.table.select(1, 6).mul_(100);
  rows.table.select(1, 7).fill_(3);
  rows.table[4][7].fill_(9);  // varies, but not among the control rows
  PerturbedRows few = with_varying_columns(rows, 1);
  EXPECT_THAT(few.features, ElementsAre("g0", "g1", "g2", "g3", "g4", "g6"));
  EXPECT_TRUE(at::equal(few.table.select(1, 5), rows.table.select(1, 6)));
  EXPECT_THAT(with_varying_columns(rows, 100).features,
              ElementsAre("g0", "g1", "g2", "g3", "g4", "g5", "g6"));
  // Targets are numbers of the columns that are left.
  rows.targets = {{}, {}, {}, {1}, {2}, {3}, {4, 6}, {4}};
  few = with_varying_columns(rows, 1);
  EXPECT_THAT(few.features, ElementsAre("g1", "g2", "g3", "g4", "g6"));
  EXPECT_THAT(few.targets[6], ElementsAre(3, 4));
  EXPECT_EQ(perturbation_name(few, few.targets[6]), "g4+g6");
  EXPECT_EQ(perturbation_name(few, few.targets[3]), "g1");
}

TEST(WithVaryingColumns, NamesWhatCannotBe) {
  const auto error = [](const PerturbedRows& rows) {
    return test::input_error_of([&] { with_varying_columns(rows, 100); });
  };
  EXPECT_EQ(error(labelled({{0}, {1}, {2}, {3}}, 5)), "expected at least two control rows, got 0");
  EXPECT_EQ(error(labelled({{}, {}, {0}, {1}, {2}, {2}, {0, 1}}, 5)),
            "expected at least 4 single perturbations, got 3");
  PerturbedRows constant = labelled({{}, {}, {0}, {1}, {2}, {3}}, 5);
  constant.table.narrow(0, 0, 2).select(1, 3).fill_(0);
  EXPECT_EQ(error(constant),
            "column \"g3\" is a target and has the same value in all control rows; leave out the "
            "rows in which it is perturbed");
}

}  // namespace
}  // namespace nsimplex::training
