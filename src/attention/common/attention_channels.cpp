// Combines queries and keys channel by channel, as products or exterior products.

#include "attention/common/attention_channels.h"

#include <ATen/ATen.h>

#include <bit>
#include <map>

namespace nsimplex::dense {
namespace {

using at::Tensor;

// Maps the subsets of {0, .., size - 1} with `grade` elements, as bits, to their ranks by value.
std::map<unsigned, int> subsets(int size, int grade) {
  std::map<unsigned, int> places;
  for (unsigned bits = 0; bits < (1u << size); ++bits) {
    if (std::popcount(bits) == grade) places.emplace(bits, static_cast<int>(places.size()));
  }
  return places;
}

int count_below(unsigned bits, int element) { return std::popcount(bits & ((1u << element) - 1)); }
int count_above(unsigned bits, int element) { return std::popcount(bits >> (element + 1)); }

// [.., chunks * width] -> width tensors of [.., chunks]
std::vector<Tensor> components(const Tensor& channels, int width) {
  return channels.unflatten(-1, {channels.size(-1) / width, width}).unbind(-1);
}

}  // namespace

ChannelMap ChannelMap::exterior_product(int size, int grade) {
  const std::map<unsigned, int> from = subsets(size, grade), to = subsets(size, grade + 1);
  ChannelMap map;
  map.width_ = {static_cast<int>(from.size()), size, static_cast<int>(to.size())};
  for (const auto& [bits, place] : from) {
    for (int i = 0; i < size; ++i) {
      if (bits >> i & 1u) continue;
      // The sign counts the elements above e_i, which it passes.
      map.terms_.push_back({{place, i, to.at(bits | 1u << i)}, count_above(bits, i) % 2 == 1});
    }
  }
  return map;
}

ChannelMap ChannelMap::cofactors(int size) {
  const std::map<unsigned, int> from = subsets(size, size - 2);
  ChannelMap map;
  map.width_ = {static_cast<int>(from.size()), size, size};
  for (const auto& [bits, place] : from) {
    for (int i = 0; i < size; ++i) {
      for (int a = 0; a < size; ++a) {
        if (i == a || (bits >> i & 1u) || (bits >> a & 1u)) continue;
        // The number of inversions of the permutation (i, the subset in order, a).
        const int inversions = count_below(bits, i) + (a < i ? 1 : 0) + count_above(bits, a);
        map.terms_.push_back({{place, i, a}, inversions % 2 == 1});
      }
    }
  }
  return map;
}

Tensor ChannelMap::contract(const Tensor& left, int left_role, const Tensor& right, int right_role,
                            int result_role) const {
  if (terms_.empty()) return left * right;
  const std::vector<Tensor> lefts = components(left, width_[left_role]);
  const std::vector<Tensor> rights = components(right, width_[right_role]);
  std::vector<Tensor> results(width_[result_role]);
  for (const Term& term : terms_) {
    const Tensor part = lefts[term.component[left_role]] * rights[term.component[right_role]];
    Tensor& result = results[term.component[result_role]];
    if (!result.defined()) {
      result = term.negative ? part.neg() : part;
    } else {
      result = term.negative ? result - part : result + part;
    }
  }
  return at::stack(results, -1).flatten(-2, -1);
}

LeadingRows::LeadingRows(Form form, int order)
    : chunk_(form == Form::determinant ? order + 1 : 0),
      with_query_(chunk_ ? ChannelMap::cofactors(chunk_) : ChannelMap::elementwise()) {
  for (int m = 1; m + 1 < order; ++m) {
    join_.push_back(chunk_ ? ChannelMap::exterior_product(chunk_, m) : ChannelMap::elementwise());
  }
}

Tensor LeadingRows::of(const std::vector<Tensor>& axes) const {
  return rows(axes, axes.size() - 1);
}

// Rows of the first `count` axes.
Tensor LeadingRows::rows(const std::vector<Tensor>& axes, size_t count) const {
  if (count == 0) {  // of grade 0: one component per chunk
    return at::ones({1, 1, 1, unit_channels(axes[0].size(-1))}, axes[0].options());
  }
  Tensor rows = axes[0];
  for (size_t m = 1; m < count; ++m) {
    rows = join_[m - 1].z(rows.unsqueeze(-2), axes[m].unsqueeze(-3)).flatten(-3, -2);
  }
  return rows;
}

std::vector<Tensor> LeadingRows::backward(const std::vector<Tensor>& axes, Tensor grad) const {
  std::vector<Tensor> grads(axes.size() - 1);
  for (size_t m = grads.size(); m-- > 1;) {
    const Tensor before = rows(axes, m);
    const Tensor pairs = grad.unflatten(-2, {before.size(-2), axes[m].size(-2)});
    grads[m] = join_[m - 1].y(before.unsqueeze(-2), pairs).sum(-3);
    grad = join_[m - 1].x(axes[m].unsqueeze(-3), pairs).sum(-2);
  }
  if (!grads.empty()) grads[0] = grad;
  return grads;
}

}  // namespace nsimplex::dense
