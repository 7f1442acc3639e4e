#include "graph/tuple_lists.h"

#include <algorithm>
#include <string>

#include "support/error.h"

namespace nsimplex::graph {
namespace {

// Visits the tuples of `order` entries out of `values` (ascending, each once) in lexicographic
// order: visit(tuple). `lowest(tuple, depth)` is the first position that entry `depth` may have.
class Enumeration {
 public:
  Enumeration(std::span<const int64_t> values, int64_t order, Symmetry symmetry, bool loops)
      : values_(values), symmetry_(symmetry), loops_(loops), tuple_(order), place_(order) {}

  template <class Visit>
  void run(Visit&& visit, size_t depth = 0) {
    if (depth == tuple_.size()) return visit(std::span<const int64_t>(tuple_));
    for (size_t at = first(depth); at < values_.size(); ++at) {
      if (!loops_ && is_used(at, depth)) continue;
      place_[depth] = at;
      tuple_[depth] = values_[at];
      run(visit, depth + 1);
    }
  }

 private:
  size_t first(size_t depth) const {
    return symmetry_ == Symmetry::undirected && depth > 0 ? place_[depth - 1] : 0;
  }
  bool is_used(size_t at, size_t depth) const {
    return std::find(place_.begin(), place_.begin() + depth, at) != place_.begin() + depth;
  }

  std::span<const int64_t> values_;
  Symmetry symmetry_;
  bool loops_;
  std::vector<int64_t> tuple_;
  std::vector<size_t> place_;
};

// Room for the tuples of one row or graph after another, counted before they are made.
class Room {
 public:
  explicit Room(int64_t order) : order_(order) {}

  // `tuples`: -1 where they are beyond int64.
  void take(int64_t tuples) {
    const int64_t width = std::max<int64_t>(order_, 1);
    if (tuples < 0 || tuples > (kMostEntries - entries_) / width) {
      throw InputError("order: expected tuples of at most " + std::to_string(kMostEntries) +
                       " entries in all, got more of order " + std::to_string(order_));
    }
    entries_ += tuples * width;
  }

 private:
  int64_t order_, entries_ = 0;
};

// Different orders of a row that ascends; -1 beyond int64.
int64_t permutation_count(std::span<const int64_t> ascending) {
  __int128 count = 1;
  for (size_t at = 0, equal = 0; at < ascending.size(); ++at) {
    equal = at > 0 && ascending[at] == ascending[at - 1] ? equal + 1 : 1;
    count = count * static_cast<__int128>(at + 1) / static_cast<__int128>(equal);
    if (count > INT64_MAX) return -1;
  }
  return static_cast<int64_t>(count);
}

}  // namespace

TupleList sorted_unique(const TupleList& list, int64_t limit) {
  SortedRows sorted = sort_rows(list.rows(), limit);
  const int64_t width = list.width;
  int64_t kept = 0;
  for (int64_t row = 0; row < list.count(); ++row) {
    const auto begin = sorted.values.begin() + row * width;
    const auto last = sorted.values.begin() + (kept - 1) * width;
    if (kept > 0 && std::equal(begin, begin + width, last)) continue;
    std::copy(begin, begin + width, sorted.values.begin() + kept * width);
    sorted.order[kept++] = list.origin[sorted.order[row]];
  }
  sorted.values.resize(kept * width);
  sorted.order.resize(kept);
  return {width, std::move(sorted.values), std::move(sorted.order)};
}

int64_t complete_count(int64_t nodes, int64_t order, Symmetry symmetry, bool loops) {
  // Each step multiplies by how many values the next entry has; for unordered tuples a division by
  // the step keeps the product the number of (multi)sets so far.
  __int128 count = 1;
  for (int64_t step = 0; step < order; ++step) {
    const bool sets = symmetry == Symmetry::undirected;
    const __int128 n = nodes;
    const __int128 choices = !loops ? std::max<__int128>(n - step, 0) : sets ? n + step : n;
    count *= choices;
    if (sets) count /= step + 1;
    if (count > INT64_MAX) return -1;
  }
  return static_cast<int64_t>(count);
}

TupleList complete_tuples(std::span<const int64_t> node_offsets, int64_t order, Symmetry symmetry,
                          bool loops) {
  TupleList list{order, {}, {}};
  Room room(order);
  std::vector<int64_t> nodes;
  for (size_t graph = 0; graph + 1 < node_offsets.size(); ++graph) {
    room.take(
        complete_count(node_offsets[graph + 1] - node_offsets[graph], order, symmetry, loops));
    nodes.clear();
    for (int64_t node = node_offsets[graph]; node < node_offsets[graph + 1]; ++node) {
      nodes.push_back(node);
    }
    Enumeration(nodes, order, symmetry, loops).run([&](std::span<const int64_t> tuple) {
      list.add(tuple, -1);
    });
  }
  return list;
}

TupleList with_loops(const TupleView& batch) {
  TupleList list{batch.tuples.width, {}, {}};
  list.reserve(batch.tuples.count + batch.nodes());
  for (int64_t row = 0; row < batch.tuples.count; ++row) list.add(batch.tuples[row], row);
  std::vector<int64_t> loop(batch.tuples.width);
  for (int64_t node = 0; node < batch.nodes(); ++node) {
    std::fill(loop.begin(), loop.end(), node);
    list.add(loop, -1);
  }
  return sorted_unique(list, batch.nodes());  // of a loop that was there, the first: its row
}

TupleList all_orders(const TupleView& batch) {
  TupleList list{batch.tuples.width, {}, {}};
  Room room(list.width);
  std::vector<int64_t> tuple;
  for (int64_t row = 0; row < batch.tuples.count; ++row) {
    const auto entries = batch.tuples[row];
    tuple.assign(entries.begin(), entries.end());
    std::sort(tuple.begin(), tuple.end());
    room.take(permutation_count(tuple));
    do {
      list.add(tuple, row);
    } while (std::next_permutation(tuple.begin(), tuple.end()));
  }
  return sorted_unique(list, batch.nodes());
}

TupleList project(const TupleView& batch, int64_t order, Symmetry symmetry) {
  TupleList list{order, {}, {}};
  if (order == 0) {
    list.origin.assign(batch.graphs(), -1);
    return list;
  }
  Room room(order);
  std::vector<int64_t> entries;
  for (int64_t row = 0; row < batch.tuples.count; ++row) {
    entries.assign(batch.tuples[row].begin(), batch.tuples[row].end());
    std::sort(entries.begin(), entries.end());
    entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
    const bool loops = symmetry != Symmetry::loop_free;
    room.take(complete_count(std::ssize(entries), order, symmetry, loops));
    Enumeration(entries, order, symmetry, loops).run([&](std::span<const int64_t> tuple) {
      list.add(tuple, row);
    });
  }
  return sorted_unique(list, batch.nodes());
}

std::vector<int64_t> offsets_of_sorted(const TupleList& list,
                                       std::span<const int64_t> node_offsets) {
  std::vector<int64_t> offsets = {0};
  const Rows rows = list.rows();
  int64_t row = 0;
  for (size_t graph = 1; graph < node_offsets.size(); ++graph) {
    // Empty tuples: one a graph.
    if (list.width == 0) {
      row = std::min<int64_t>(row + 1, list.count());
    } else {
      while (row < rows.count && rows[row][0] < node_offsets[graph]) ++row;
    }
    offsets.push_back(row);
  }
  return offsets;
}

}  // namespace nsimplex::graph
