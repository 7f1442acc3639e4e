// Attention between groups of queries and keys, by pairs and by tables, beside the definition.

#include "kernels/cpu/equivariant/tuple_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/drive.h"
#include "kernels/tuple_case.h"

namespace nsimplex::kernels::testing {
namespace {

void expect_near(const std::vector<double>& ours, const std::vector<double>& exact, double error) {
  ASSERT_EQ(ours.size(), exact.size());
  double largest = 1;
  for (const double value : exact) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_NEAR(ours[i], exact[i], error * largest) << "at " << i;
  }
}

template <class T>
void expect_same(const TupleCase<T>& ours, const TupleCase<T>& exact, double error) {
  expect_near(ours.sums, exact.sums, error);
  expect_near(ours.grad_query, exact.grad_query, error);
  expect_near(ours.grad_key, exact.grad_key, error);
  expect_near(ours.grad_value, exact.grad_value, error);
}

// A list of tasks as drive_plan() takes it.
struct TaskList {
  int phases = 1;
  int64_t tasks[3] = {};
  size_t workspace_bytes = 0, scratch_bytes = 0;
};

template <class T>
void run_pairs(TupleCase<T>& own, PairWeight weight, bool nodes, Drive drive) {
  auto problem = own.pairs(weight, nodes);
  const auto pass = [&](TupleSide side, auto&& run) {
    const auto tasks = cut_pairs(problem.relation, side, problem.largest_group);
    const TaskList list{1, {std::ssize(tasks)}, 0, pair_scratch_bytes(problem)};
    drive_plan(list, drive,
               [&](int, int64_t task, void*, void* scratch) { run(tasks[task], scratch); });
  };
  pass(TupleSide::queries,
       [&](const GroupTask& task, void* scratch) { run_pairs_forward(problem, task, scratch); });
  if (weight == PairWeight::softmax) {
    // Weights of 2^(score - maximum): the backward pass takes the same shift.
    for (T& shift : own.shift) {
      if (std::isinf(shift)) shift = std::numeric_limits<T>::infinity();
    }
  }
  for (const TupleSide side : {TupleSide::queries, TupleSide::keys}) {
    pass(side, [&](const GroupTask& task, void* scratch) {
      run_pairs_backward(problem, side, task, scratch);
    });
  }
}

// Members meet the rows of the groups of `own` on either side.
template <class T>
void run_tables(TupleCase<T>& own, std::span<const TableMember> members, bool skip, Drive drive) {
  TableAttention<T> problem;
  own.fill(problem);
  problem.members = members;
  if (skip) problem.skip = own.groups.skip.data();
  const TupleRelation relation = own.groups.relation();
  problem.groups = relation.groups;
  // The gradient of a query is that of w v, and that of w times the sum of keys.
  std::vector<T> grad_out;
  for (size_t i = 0; i < own.grad.size(); ++i) {
    if (static_cast<int64_t>(i) % own.wide < own.values) grad_out.push_back(own.grad[i]);
  }
  std::vector<double> key_sums(own.grad_query.size());
  problem.grad_out = {grad_out.data(), kHeads * own.values, own.values};
  problem.key_sums = key_sums.data();
  for (const TupleSide side : {TupleSide::queries, TupleSide::keys}) {
    const bool keys = side == TupleSide::keys;
    problem.offsets = keys ? relation.key_offsets : relation.query_offsets;
    problem.rows = keys ? relation.keys : relation.queries;
    const TablePlan plan = plan_tables(problem, side);
    const TaskList list{TablePlan::kPhases,
                        {plan.tasks_of(0), plan.tasks_of(1), plan.tasks_of(2)},
                        plan.workspace_doubles * sizeof(double),
                        plan.scratch_doubles * sizeof(double)};
    drive_plan(list, drive, [&](int phase, int64_t task, void* workspace, void* scratch) {
      kernels::run_tables(problem, plan, phase, task, static_cast<double*>(workspace),
                          static_cast<double*>(scratch));
    });
  }
  for (size_t i = 0; i < key_sums.size(); ++i) {
    const double of_weights = own.grad[(i / kWidth + 1) * own.wide - 1];
    own.grad_query[i] += of_weights * key_sums[i];
  }
}

// Empty sides, single rows, groups beyond a panel, and beyond what a task or table takes.
const std::vector<std::vector<GroupSize>> kGroups = {
    {},
    {{0, 3}, {3, 0}, {1, 1}, {0, 0}},
    {{1, 1}, {1, 1}, {2, 1}, {1, 5}, {33, 7}, {4, 4}},
    {{300, 9}, {17, 270}, {1, 1}},
    {{5000, 6}, {3, 5000}, {40, 40}},
    {{600, 600}},
};
const std::vector<Drive> kDrives = {{1, false}, {3, true}};

template <class T>
class TupleAttention : public ::testing::Test {
 protected:
  static constexpr double kError = std::is_same_v<T, float> ? 2e-5 : 1e-12;
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TupleAttention, Types);

TYPED_TEST(TupleAttention, ProductsOfPairs) {
  for (const auto& sizes : kGroups) {
    const Groups groups(sizes);
    for (const bool nodes : {false, true}) {
      TupleCase<TypeParam> exact(groups);
      groups.for_each_pair([&](int32_t q, int32_t k) {
        if (nodes && groups.query_nodes[q] == groups.key_nodes[k]) return;
        for (int64_t h = 0; h < kHeads; ++h) exact.define(q, k, h, exact.score(q, k, h), 1);
      });
      for (const Drive drive : kDrives) {
        TupleCase<TypeParam> own(groups);
        run_pairs(own, PairWeight::product, nodes, drive);
        expect_same(own, exact, TestFixture::kError);
      }
    }
  }
}

TYPED_TEST(TupleAttention, ExponentialsOfPairs) {
  for (const auto& sizes : kGroups) {
    const Groups groups(sizes);
    for (const bool nodes : {false, true}) {
      // Scores far apart: the running maximum has to follow.
      TupleCase<TypeParam> exact(groups, 4);
      std::vector<double> most(exact.shift.size(), -std::numeric_limits<double>::infinity());
      const auto visit = [&](auto&& body) {
        groups.for_each_pair([&](int32_t q, int32_t k) {
          if (nodes && groups.query_nodes[q] == groups.key_nodes[k]) return;
          for (int64_t h = 0; h < kHeads; ++h) body(q, k, h, exact.score(q, k, h));
        });
      };
      visit([&](int32_t q, int32_t, int64_t h, double score) {
        most[q * kHeads + h] = std::max(most[q * kHeads + h], score);
      });
      visit([&](int32_t q, int32_t k, int64_t h, double score) {
        const double w = std::exp2(score - most[q * kHeads + h]);
        exact.define(q, k, h, w, std::log(2.0) * w);
      });
      for (const Drive drive : kDrives) {
        TupleCase<TypeParam> own(groups, 4);
        run_pairs(own, PairWeight::softmax, nodes, drive);
        // The maximum itself is rounded.
        expect_same(own, exact, 10 * TestFixture::kError);
      }
    }
  }
}

TYPED_TEST(TupleAttention, Tables) {
  // Values that fill their vectors too: then nothing of a table is padding.
  for (const int64_t values : {kValues, int64_t{8}}) {
    for (const auto& sizes : kGroups) {
      const Groups groups(sizes);
      for (const bool skip : {false, true}) {
        TupleCase<TypeParam> exact(groups, 1, values);
        groups.for_each_pair([&](int32_t q, int32_t k) {
          if (skip && groups.skip[q] != 0) return;
          for (int64_t h = 0; h < kHeads; ++h) exact.define(q, k, h, -exact.score(q, k, h), -1);
        });
        for (const Drive drive : kDrives) {
          TupleCase<TypeParam> own(groups, 1, values);
          run_tables<TypeParam>(own, std::vector{TableMember{groups.relation(), -1}}, skip, drive);
          // Sums run in double from inputs as they are.
          expect_same(own, exact, 1e-12);
        }
      }
    }
  }
}

// Tables of a group and, twice subtracted, of the one across, met at once.
TYPED_TEST(TupleAttention, TablesOfSeveralMembers) {
  for (const auto& sizes : kGroups) {
    const Groups groups(sizes);
    const TupleRelation relation = groups.relation();
    std::vector<int32_t> across;
    for (int64_t g = 0; g < relation.groups; ++g) {
      const bool none = g == 1 || g == relation.groups - 2;
      across.push_back(none ? -1 : static_cast<int32_t>(relation.groups - 1 - g));
    }
    const std::vector<TableMember> members{{relation, 1}, {relation, -2, across.data()}};
    TupleCase<TypeParam> exact(groups);
    const auto define = [&](int64_t of_queries, int64_t of_keys, double sign) {
      for (int32_t q = relation.query_offsets[of_queries];
           q < relation.query_offsets[of_queries + 1]; ++q) {
        for (int32_t k = relation.key_offsets[of_keys]; k < relation.key_offsets[of_keys + 1];
             ++k) {
          const int32_t query = groups.queries[q], key = groups.keys[k];
          for (int64_t h = 0; h < kHeads; ++h) {
            exact.define(query, key, h, sign * exact.score(query, key, h), sign);
          }
        }
      }
    };
    for (int64_t g = 0; g < relation.groups; ++g) {
      define(g, g, 1);
      if (across[g] >= 0) define(g, across[g], -2);
    }
    for (const Drive drive : kDrives) {
      TupleCase<TypeParam> own(groups);
      run_tables<TypeParam>(own, members, /*skip=*/false, drive);
      expect_same(own, exact, 1e-12);
    }
  }
}

TYPED_TEST(TupleAttention, GroupsBeyondTheLargestAreLeftOut) {
  const Groups groups({{3, 4}, {8, 4}});
  TupleCase<TypeParam> own(groups);
  auto problem = own.pairs(PairWeight::product, false);
  problem.largest_group = 5;
  GuardedMemory scratch(pair_scratch_bytes(problem));
  for (const GroupTask& task : cut_pairs(problem.relation, TupleSide::queries, 5)) {
    run_pairs_forward(problem, task, scratch.get());
  }
  for (int32_t q = 0; q < 8; ++q) {
    const bool counts = q < 4;
    const double sum = own.sums[groups.queries[q] * kHeads * kWide];
    EXPECT_EQ(sum != 0, counts) << q;
  }
}

}  // namespace
}  // namespace nsimplex::kernels::testing
