#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/equivariant/tuple_attention.h"

// Groups of queries and keys with what a pass of attention between them takes and gives, and the
// definition of it, pair by pair.

namespace nsimplex::kernels::testing {

// Channels beyond a vector, and no whole number of vectors.
inline constexpr int64_t kHeads = 2, kWidth = 13, kValues = 9, kWide = kValues + 1;

template <class T>
std::vector<T> draw(size_t count, unsigned seed, double scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(scale * normal(generator));
  return values;
}

struct GroupSize {
  int32_t keys, queries;
};

// Groups over shuffled rows; nodes of keys and queries that pairs must not share.
struct Groups {
  std::vector<int32_t> key_offsets{0}, query_offsets{0}, keys, queries, key_nodes, query_nodes;
  std::vector<uint8_t> skip;

  explicit Groups(const std::vector<GroupSize>& sizes) {
    for (const auto [own_keys, own_queries] : sizes) {
      key_offsets.push_back(key_offsets.back() + own_keys);
      query_offsets.push_back(query_offsets.back() + own_queries);
    }
    std::mt19937 generator(3);
    for (auto* rows : {&keys, &queries}) {
      rows->resize(rows == &keys ? key_offsets.back() : query_offsets.back());
      std::iota(rows->begin(), rows->end(), 0);
      std::shuffle(rows->begin(), rows->end(), generator);
      for (size_t i = 0; i < rows->size(); ++i) {
        (rows == &keys ? key_nodes : query_nodes).push_back(static_cast<int32_t>(generator() % 7));
      }
    }
    for (size_t i = 0; i < queries.size(); ++i) skip.push_back(generator() % 4 == 0);
  }

  TupleRelation relation() const {
    return {std::ssize(key_offsets) - 1, key_offsets.data(), keys.data(), query_offsets.data(),
            queries.data()};
  }

  void for_each_pair(const std::function<void(int32_t query, int32_t key)>& visit) const {
    for (size_t g = 0; g + 1 < key_offsets.size(); ++g) {
      for (int32_t q = query_offsets[g]; q < query_offsets[g + 1]; ++q) {
        for (int32_t k = key_offsets[g]; k < key_offsets[g + 1]; ++k) visit(queries[q], keys[k]);
      }
    }
  }
};

// Inputs and outputs of a pass in type T.
template <class T>
struct TupleCase {
  const Groups& groups;
  int64_t values, wide = values + 1;
  std::vector<T> query, key, value, grad, shift;
  std::vector<double> sums, grad_query, grad_key, grad_value;

  explicit TupleCase(const Groups& groups, double scale = 1, int64_t values = kValues)
      : groups(groups),
        values(values),
        query(draw<T>(groups.queries.size() * kHeads * kWidth, 1, scale)),
        key(draw<T>(groups.keys.size() * kHeads * kWidth, 2)),
        value(draw<T>(groups.keys.size() * kHeads * values, 3)),
        grad(draw<T>(groups.queries.size() * kHeads * wide, 4)),
        shift(groups.queries.size() * kHeads, -std::numeric_limits<T>::infinity()),
        sums(groups.queries.size() * kHeads * wide, 0),
        grad_query(query.size(), 0),
        grad_key(key.size(), 0),
        grad_value(value.size(), 0) {}

  template <class Problem>
  void fill(Problem& problem) {
    problem.heads = kHeads;
    problem.query = {query.data(), kHeads * kWidth, kWidth};
    problem.key = {key.data(), kHeads * kWidth, kWidth};
    problem.value = {value.data(), kHeads * values, values};
    problem.sums = sums.data();
    problem.grad = grad.data();
    problem.grad_query = grad_query.data();
    problem.grad_key = grad_key.data();
    problem.grad_value = grad_value.data();
  }

  PairAttention<T> pairs(PairWeight weight, bool nodes) {
    PairAttention<T> problem;
    fill(problem);
    problem.relation = groups.relation();
    problem.weight = weight;
    problem.shift = shift.data();
    if (nodes) {
      problem.key_only = problem.query_only = 1;
      problem.key_nodes[0] = groups.key_nodes.data();
      problem.query_nodes[0] = groups.query_nodes.data();
    }
    return problem;
  }

  double score(int32_t q, int32_t k, int64_t h) const {
    double sum = 0;
    for (int64_t c = 0; c < kWidth; ++c) {
      sum += static_cast<double>(query[(q * kHeads + h) * kWidth + c]) *
             static_cast<double>(key[(k * kHeads + h) * kWidth + c]);
    }
    return sum;
  }

  // Adds what one pair gives, whose weight is w and whose slope dw / d(q . k) is `slope`.
  void define(int32_t q, int32_t k, int64_t h, double w, double slope) {
    const int64_t qh = q * kHeads + h, kh = k * kHeads + h;
    double grad_weight = grad[qh * wide + values];
    for (int64_t c = 0; c < values; ++c) {
      sums[qh * wide + c] += w * value[kh * values + c];
      grad_value[kh * values + c] += w * grad[qh * wide + c];
      grad_weight += static_cast<double>(grad[qh * wide + c]) * value[kh * values + c];
    }
    sums[qh * wide + values] += w;
    for (int64_t c = 0; c < kWidth; ++c) {
      grad_query[qh * kWidth + c] += slope * grad_weight * key[kh * kWidth + c];
      grad_key[kh * kWidth + c] += slope * grad_weight * query[qh * kWidth + c];
    }
  }
};

}  // namespace nsimplex::kernels::testing
