// The tuples of a call, read from its lists, sets and paths; see sparse_attention_reference.h.

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "attention/sparse_attention/sparse_attention_reference.h"
#include "support/transforms.h"

namespace nsimplex::sparse {
namespace {

using at::Tensor;

// The indices of true elements, one tensor per dimension.
std::vector<Tensor> places(const Tensor& mask) { return mask.nonzero().unbind(1); }

// sets[row, column], elementwise.
Tensor pick(const Tensor& sets, const Tensor& row, const Tensor& column) {
  return sets.flatten().index_select(0, row * sets.size(1) + column);
}

// A row's number for each element of a tensor of these sizes, flattened.
Tensor spread_rows(const Tensor& rows, at::IntArrayRef sizes) {
  Tensor column = rows;
  while (column.dim() < static_cast<int64_t>(sizes.size())) column = column.unsqueeze(-1);
  return column.expand(sizes).flatten();
}

}  // namespace

TupleList::TupleList(const Call& call, const Settings& settings, int64_t entry, int64_t group)
    : settings_(settings),
      queries_(call.query.size(2)),
      entry_(entry),
      group_(group),
      heads_(call.keys[0].size(1) / settings.list_groups) {
  indices_ = call.indices.to(at::kLong);
  if (settings.pattern != TuplePattern::list) {
    indices_ = indices_.select(0, entry).select(0, group);
    mapped_ = is_mapped(indices_);
    return;
  }
  const BelowTransforms below;
  const Tensor offsets = below_transforms(*call.offsets).select(0, entry).select(0, group);
  // A copy on the CPU has numbers that can be read, unless the tensor has none: on the device meta,
  // or in a traced graph.
  const bool none = offsets.is_meta() && !offsets.key_set().has(c10::DispatchKey::Python);
  offsets_ = none ? offsets : offsets.cpu().contiguous();
  TORCH_CHECK_VALUE(has_numbers(offsets_),
                    "[sparse_attention] offsets: expected numbers that can be read, got a tensor "
                    "of a traced graph; a second derivative of a list runs outside of it");
}

Tensor TupleList::part(const Tensor& tensor) const {
  const Tensor heads = tensor.narrow(1, group_ * heads_, heads_);
  return settings_.list_entries == 1 ? heads : heads.narrow(0, entry_, 1);
}

Tensor TupleList::heads(const Tensor& weights) const {
  return weights.narrow(0, group_ * heads_, heads_);
}

int64_t TupleList::chunk_length(int64_t first, int64_t most) const {
  if (settings_.pattern == TuplePattern::list) {
    const int64_t* const offset = offsets_.const_data_ptr<int64_t>();
    const int64_t* const end =
        std::upper_bound(offset + first + 1, offset + queries_ + 1, offset[first] + most);
    return std::max<int64_t>(end - (offset + first + 1), 1);
  }
  const double tuples = std::pow(static_cast<double>(indices_.size(1)), settings_.order);
  return static_cast<int64_t>(std::clamp(static_cast<double>(most) / std::max(tuples, 1.0), 1.0,
                                         static_cast<double>(queries_ - first)));
}

void TupleList::for_each_chunk(int64_t most,
                               const std::function<void(const TupleChunk&)>& visit) const {
  int64_t first = 0;
  do {
    const int64_t count = first < queries_ ? chunk_length(first, most) : 0;
    switch (settings_.pattern) {
      case TuplePattern::list:
        visit(listed(first, count));
        break;
      case TuplePattern::product:
        visit(mapped_ ? all_combinations(first, count) : combinations(first, count));
        break;
      case TuplePattern::path:
        visit(mapped_ ? all_chains(first, count) : chains(first, count));
        break;
    }
    first += count;
  } while (first < queries_);
}

TupleChunk TupleList::listed(int64_t first, int64_t count) const {
  const int64_t* const offset = offsets_.const_data_ptr<int64_t>() + first;
  const Tensor tuples = indices_.narrow(0, offset[0], offset[count] - offset[0]);
  const Tensor counts = offsets_.narrow(0, first, count + 1).diff();
  const Tensor rows = at::repeat_interleave(counts).to(indices_.device());
  return {first, count, rows, tuples.unbind(1), {}};
}

TupleChunk TupleList::combinations(int64_t first, int64_t count) const {
  const Tensor sets = indices_.narrow(0, first, count), filled = sets.ge(0);
  Tensor all = filled;  // [queries, k, .., k]
  for (int m = 1; m < settings_.order; ++m) {
    at::DimVector shape(m + 2, 1);
    shape[0] = count;
    shape[m + 1] = sets.size(1);
    all = all.unsqueeze(-1).logical_and(filled.view(shape));
  }
  std::vector<Tensor> at_place = places(all);
  TupleChunk chunk{first, count, at_place[0], {}, {}};
  for (int m = 0; m < settings_.order; ++m) {
    chunk.keys.push_back(pick(sets, chunk.rows, at_place[1 + m]));
  }
  return chunk;
}

TupleChunk TupleList::chains(int64_t first, int64_t count) const {
  TupleChunk chunk{first, count, at::arange(count, indices_.options()), {}, {}};
  Tensor position = chunk.rows + (first + indices_.size(0) - queries_);
  for (int m = 0; m < settings_.order; ++m) {
    const Tensor sets = indices_.index_select(0, position);
    const std::vector<Tensor> at_place = places(sets.ge(0));
    const auto grow = [&](Tensor& tensor) { tensor = tensor.index_select(0, at_place[0]); };
    grow(chunk.rows);
    for (Tensor& key : chunk.keys) grow(key);
    position = pick(sets, at_place[0], at_place[1]);
    chunk.keys.push_back(position);
  }
  return chunk;
}

TupleChunk TupleList::all_combinations(int64_t first, int64_t count) const {
  const Tensor sets = indices_.narrow(0, first, count);
  at::DimVector all(settings_.order + 1, sets.size(1));  // [queries, k, .., k]
  all[0] = count;
  TupleChunk chunk{first, count, spread_rows(at::arange(count, indices_.options()), all), {}, {}};
  for (int m = 0; m < settings_.order; ++m) {
    at::DimVector own(settings_.order + 1, 1);
    own[0] = count;
    own[m + 1] = sets.size(1);
    const Tensor key = sets.reshape(own).expand(all).flatten(), none = key.lt(0);
    chunk.keys.push_back(key.clamp_min(0));
    chunk.missing = m == 0 ? none : chunk.missing.logical_or(none);
  }
  return chunk;
}

TupleChunk TupleList::all_chains(int64_t first, int64_t count) const {
  TupleChunk chunk{first, count, at::arange(count, indices_.options()), {}, {}};
  Tensor position = chunk.rows + (first + indices_.size(0) - queries_);
  for (int m = 0; m < settings_.order; ++m) {
    const Tensor sets = indices_.index_select(0, position), none = sets.lt(0);
    const auto grow = [&](Tensor& tensor) { tensor = spread_rows(tensor, none.sizes()); };
    grow(chunk.rows);
    for (Tensor& key : chunk.keys) grow(key);
    if (m > 0) grow(chunk.missing);
    chunk.missing = m == 0 ? none.flatten() : chunk.missing.logical_or(none.flatten());
    position = sets.clamp_min(0).flatten();
    chunk.keys.push_back(position);
  }
  return chunk;
}

Tensor TupleList::counts() const {
  if (settings_.pattern == TuplePattern::list) return offsets_.diff();
  const Tensor sizes = indices_.ge(0).sum(1);
  if (settings_.pattern == TuplePattern::product) return sizes.pow(settings_.order);
  // The number of chains that continue from a position is the sum over its keys of those one step
  // shorter.
  Tensor chains = sizes;
  const Tensor filled = indices_.clamp_min(0);
  for (int m = 1; m < settings_.order; ++m) {
    const Tensor of_keys = chains.index_select(0, filled.flatten()).view_as(indices_);
    chains = of_keys.masked_fill(indices_.lt(0), 0).sum(1);
  }
  return chains.narrow(0, chains.size(0) - queries_, queries_);
}

}  // namespace nsimplex::sparse
